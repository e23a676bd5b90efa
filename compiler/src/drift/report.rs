//! A comparison of two locks as text: a summary for each upstream, and below it a line for each tool.

use std::collections::BTreeMap;
use std::fmt::Write;

use ptc_text::join_limited;

use super::{Changes, SAYS, changes, severity};
use crate::config::model::Config;
use crate::diag::render::Style;
use crate::diag::text::on_one_line;
use crate::diag::{Code, Severity, quoted};
use crate::lock::{Lock, LockedUpstream};
use crate::lower::text::one_line;

/// Maximum number of lines below the summary of an upstream.
const MAX_LINES: usize = 30;

/// Maximum length in characters of the changes in a line. The first change is always shown.
const MAX_WIDTH: usize = 160;

/// Maximum length in characters of one change in a line.
const MAX_CHANGE: usize = 120;

/// Maximum number of tools that a line names.
const MAX_NAMES: usize = 5;

/// How much of a comparison is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The summaries only.
    Summaries,
    /// Summaries and tools.
    Tools,
}

/// Kinds of changes, each with its codes and its words for one tool and for several.
const KINDS: [(&[Code], &str, &str); 8] = [
    (&[Code::ToolRemoved], "tool removed", "tools removed"),
    (&[Code::ToolAdded], "tool added", "tools added"),
    (&[Code::InputBreaking, Code::InputWidened, Code::InputChanged], "input changed", "inputs changed"),
    (&[Code::OutputChanged], "output changed", "outputs changed"),
    (&[Code::BecameDestructive, Code::AnnotationChanged], "effect changed", "effects changed"),
    (&[Code::RequestChanged], "request changed", "requests changed"),
    (&[Code::DescriptionChanged], "description changed", "descriptions changed"),
    (&[Code::DefinitionChanged], "other change", "other changes"),
];

/// Returns the report on all upstreams of a config that differ between two locks, also if only the version does.
pub fn report(config: &Config, old: &Lock, new: &Lock, extent: Extent, style: Style) -> String {
    let mut out = String::new();
    for name in config.upstreams.keys() {
        let (before, after) = (old.upstreams.get(name), new.upstreams.get(name));
        let found = changes(name, before, after);
        let versions = versions(before, after);
        if before.is_none() && !found.tools.is_empty() {
            let line = format!("{} {}", quoted(name), new_upstream(found.tools.len()));
            line_of(&mut out, "", Code::ToolAdded, severity::of_change(Code::ToolAdded), &line, style);
            continue;
        }
        if found.is_empty() && !versions.contains('→') {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}{versions}: {}", on_one_line(name), counts(&found));
        if extent == Extent::Tools {
            lines(&mut out, name, &found, style);
        }
    }
    out
}

/// Describes an upstream that the old lock does not have.
pub(super) fn new_upstream(tools: usize) -> String {
    format!("is new, with {}", if tools == 1 { "one tool".to_owned() } else { format!("{tools} tools") })
}

/// Returns the versions in the handshakes: ` 1.2.0 → 1.3.0`, ` 1.2.0`, or nothing.
fn versions(before: Option<&LockedUpstream>, after: Option<&LockedUpstream>) -> String {
    let version = |upstream: Option<&LockedUpstream>| {
        let version = upstream?.server.as_ref().map(|server| on_one_line(&server.version).into_owned());
        version.filter(|version| !version.is_empty())
    };
    match (version(before), version(after)) {
        (Some(was), Some(now)) if was != now => format!(" {was} → {now}"),
        (_, Some(version)) | (Some(version), None) => format!(" {version}"),
        (None, None) => String::new(),
    }
}

/// Counts the tools with each kind of change: `2 tools removed, 1 added, 5 inputs changed (1 breaking)`.
pub fn counts(found: &Changes) -> String {
    let mut parts = Vec::new();
    for (codes, one, several) in KINDS {
        let has = |tool: &&Vec<(Code, String)>| tool.iter().any(|(code, _)| codes.contains(code));
        let tools: Vec<_> = found.tools.values().filter(has).collect();
        if tools.is_empty() {
            continue;
        }
        let words = if tools.len() == 1 { one } else { several };
        // Only the first count names tools.
        let words = if parts.is_empty() { words } else { words.trim_start_matches("tools ").trim_start_matches("tool ") };
        let is_breaking = |(code, _): &(Code, String)| codes.contains(code) && severity::of_change(*code) == Severity::Error;
        let breaking = tools.iter().filter(|tool| tool.iter().any(is_breaking)).count();
        let breaking =
            if breaking == 0 || codes.contains(&Code::ToolRemoved) { String::new() } else { format!(" ({breaking} breaking)") };
        parts.push(format!("{} {words}{breaking}", tools.len()));
    }
    if found.has_other_server_info() {
        parts.push("its own description changed".to_owned());
    }
    if parts.is_empty() { "no tool changed".to_owned() } else { parts.join(", ") }
}

/// A line below a summary: the tools that share it, with their changes.
struct Line {
    severity: Severity,
    code: Code,
    tools: Vec<String>,
    words: String,
}

fn lines(out: &mut String, upstream: &str, found: &Changes, style: Style) {
    // The texts of instructions and descriptions are long. `--details` shows them.
    let instructions = found.instructions.as_ref().map(|_| "has other instructions".to_owned());
    let server_info: Vec<String> =
        found.server_name.as_deref().map(|what| one_line(what, MAX_CHANGE)).into_iter().chain(instructions).collect();
    for what in &server_info {
        let code = Code::DescriptionChanged;
        line_of(out, "  ", code, severity::of_change(code), &format!("{} {what}", quoted(upstream)), style);
    }
    for what in &found.files {
        let code = Code::DocumentFileChanged;
        line_of(out, "  ", code, severity::of_change(code), &format!("the document {what}"), style);
    }
    let room = MAX_LINES.saturating_sub(server_info.len() + found.files.len());
    let mut tools: Vec<Line> = found.tools.iter().map(|(tool, changes)| line(tool, changes)).collect();
    if tools.len() > room {
        tools = shared(tools);
    }
    tools.sort_by(|a, b| (b.severity, a.code, &a.tools).cmp(&(a.severity, b.code, &b.tools)));
    let shown = if tools.len() > room { room.saturating_sub(1) } else { tools.len() };
    for line in tools.iter().take(shown) {
        let names: Vec<String> = line.tools.iter().map(|tool| quoted(tool)).collect();
        let text = format!("{} {}", join_limited(&names, ", ", MAX_NAMES), line.words);
        line_of(out, "  ", line.code, line.severity, &text, style);
    }
    let rest: Vec<&Line> = tools.iter().skip(shown).collect();
    if !rest.is_empty() {
        let count = |severity| rest.iter().filter(|line| line.severity == severity).map(|line| line.tools.len()).sum::<usize>();
        let counts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
            .into_iter()
            .map(|severity| (severity.name(), count(severity)))
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| {
                format!("{count} with {}", if count == 1 { "a".to_owned() + " " + name } else { format!("{name}s") })
            })
            .collect();
        let _ = writeln!(out, "  and more tools: {}; `--details` shows all changes", counts.join(", "));
    }
}

/// Returns a change without the description that it quotes, which `--details` shows.
fn in_short(what: &str) -> String {
    if what.starts_with(SAYS) { "has another description".to_owned() } else { one_line(what, MAX_CHANGE) }
}

/// Makes the line of one tool: its changes in words, the most severe first.
fn line(tool: &str, changes: &[(Code, String)]) -> Line {
    let mut ordered: Vec<&(Code, String)> = changes.iter().collect();
    ordered.sort_by_key(|(code, _)| std::cmp::Reverse(severity::of_change(*code)));
    let mut words = String::new();
    let mut shown = 0;
    for what in ordered.iter().map(|(_, what)| in_short(what)) {
        if shown > 0 && words.chars().count() + what.chars().count() > MAX_WIDTH {
            break;
        }
        if shown > 0 {
            words.push_str("; ");
        }
        words.push_str(&what);
        shown += 1;
    }
    match ordered.len() - shown {
        0 => {}
        1 => words.push_str("; and 1 more change"),
        more => {
            let _ = write!(words, "; and {more} more changes");
        }
    }
    let code = ordered.first().map_or(Code::DefinitionChanged, |(code, _)| *code);
    Line { severity: severity::of_tool(changes), code, tools: vec![tool.to_owned()], words }
}

/// Puts tools with equal changes into one line.
fn shared(lines: Vec<Line>) -> Vec<Line> {
    let mut by_words: BTreeMap<String, Line> = BTreeMap::new();
    for line in lines {
        match by_words.get_mut(&line.words) {
            Some(known) => known.tools.extend(line.tools),
            None => {
                by_words.insert(line.words.clone(), line);
            }
        }
    }
    by_words.into_values().collect()
}

fn line_of(out: &mut String, indent: &str, code: Code, severity: Severity, text: &str, style: Style) {
    let head = style.paint(severity, &format!("{}[{}]:", severity.name(), code.name()));
    let _ = writeln!(out, "{indent}{head} {}", on_one_line(text));
}
