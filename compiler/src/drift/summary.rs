//! What a report says about each upstream: a summary, and a line for each tool. The reports of all formats have these sentences.

use std::collections::BTreeMap;
use std::fmt::Write;

use ptc_text::join_limited;

use super::cause::Change;
use super::severity::BreakingTools;
use super::{Changes, Count, SAYS, changes, severity};
use crate::config::model::{Config, Upstream};
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

/// Kinds of changes, each with its codes and its words for one tool and for several.
const KINDS: [(&[Code], &str, &str); 10] = [
    (&[Code::ToolRemoved], "tool removed", "tools removed"),
    (&[Code::ToolAdded], "tool added", "tools added"),
    (&[Code::InputBreaking, Code::InputWidened, Code::InputChanged], "input changed", "inputs changed"),
    (&[Code::OutputChanged], "output changed", "outputs changed"),
    (&[Code::BecameDestructive, Code::AnnotationChanged], "effect changed", "effects changed"),
    (&[Code::RequestChanged], "request changed", "requests changed"),
    (&[Code::OperationRenamed], "operation renamed", "operations renamed"),
    (&[Code::DescriptionChanged], "description changed", "descriptions changed"),
    (&[Code::ObservedChanged], "observed shape changed", "observed shapes changed"),
    (&[Code::DefinitionChanged], "other change", "other changes"),
];

impl Count {
    /// Returns the numbers as a clause: `4 tools and 1 upstream changed, 1 upstream is new`.
    pub fn clause(self) -> String {
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            count => Some(format!("{count} {what}s")),
        };
        let parts: Vec<String> =
            [counted(self.tools, "tool"), counted(self.upstreams, "upstream")].into_iter().flatten().collect();
        let changed = (!parts.is_empty()).then(|| format!("{} changed", parts.join(" and ")));
        let new = counted(self.new_upstreams, "upstream").map(|new| match self.new_upstreams {
            1 => format!("{new} is new"),
            _ => format!("{new} are new"),
        });
        let clauses: Vec<String> = changed.into_iter().chain(new).collect();
        if clauses.is_empty() { "nothing changed".to_owned() } else { clauses.join(", ") }
    }
}

/// The changes of one upstream.
pub(super) struct Summary<'a> {
    pub(super) name: &'a str,
    /// The versions that its server reports, the earlier first. Only one if they are equal.
    pub(super) versions: Vec<&'a str>,
    /// Whether the old lock does not have it. It then has one line and no summary.
    pub(super) is_new: bool,
    pub(super) found: Changes,
}

impl Summary<'_> {
    /// Returns the lines of an upstream that is new. It can name another authorization server than the config.
    pub(super) fn new_lines(&self) -> Vec<Line> {
        let of_upstream = |code, what: &str| Line::of_upstream(code, format!("{} {what}", quoted(self.name)));
        let found = self.found.authorization.iter().map(|(code, what)| of_upstream(*code, what));
        found.chain([of_upstream(Code::ToolAdded, &new_upstream(self.found.tools.len()))]).collect()
    }
}

/// Returns all upstreams of a config that differ between two locks, also if only the version does.
pub(super) fn upstreams<'a>(config: &'a Config, old: &'a Lock, new: &'a Lock, breaking: &BreakingTools) -> Vec<Summary<'a>> {
    let summary = |(name, entry): (&'a String, &'a Upstream)| {
        let (before, after) = (old.upstreams.get(name), new.upstreams.get(name));
        let mut found = changes(name, entry, before, after);
        found.breaking = found.tools.keys().filter(|tool| breaking.contains(name, tool)).cloned().collect();
        let versions = versions(before, after);
        let is_new = before.is_none() && !found.tools.is_empty();
        let is_shown = is_new || !found.is_empty() || versions.len() > 1;
        is_shown.then_some(Summary { name, versions, is_new, found })
    };
    config.upstreams.iter().filter_map(summary).collect()
}

/// Describes an upstream that the old lock does not have.
pub(super) fn new_upstream(tools: usize) -> String {
    format!("is new, with {}", if tools == 1 { "one tool".to_owned() } else { format!("{tools} tools") })
}

/// Returns the versions in the handshakes.
fn versions<'a>(before: Option<&'a LockedUpstream>, after: Option<&'a LockedUpstream>) -> Vec<&'a str> {
    let version = |upstream: Option<&'a LockedUpstream>| Some(upstream?.server.as_ref()?.version.as_str());
    let mut versions: Vec<&str> = [before, after].into_iter().filter_map(version).filter(|version| !version.is_empty()).collect();
    versions.dedup();
    versions
}

/// Counts the tools with each kind of change: `2 tools removed, 1 added, 5 inputs changed (1 breaking)`.
pub fn counts(found: &Changes) -> String {
    let mut parts = Vec::new();
    for (codes, one, several) in KINDS {
        let tools: Vec<(&String, &Vec<Change>)> =
            found.tools.iter().filter(|(_, changes)| changes.iter().any(|change| codes.contains(&change.code))).collect();
        if tools.is_empty() {
            continue;
        }
        let words = if tools.len() == 1 { one } else { several };
        // Only the first count names tools.
        let words = if parts.is_empty() { words } else { words.trim_start_matches("tools ").trim_start_matches("tool ") };
        let is_breaking = |tool: &String, code: Code| {
            codes.contains(&code) && severity::of_change(code, found.breaking.contains(tool)) == Severity::Error
        };
        let breaking = tools.iter().filter(|(tool, changes)| changes.iter().any(|change| is_breaking(tool, change.code))).count();
        let breaking =
            if breaking == 0 || codes.contains(&Code::ToolRemoved) { String::new() } else { format!(" ({breaking} breaking)") };
        parts.push(format!("{} {words}{breaking}", tools.len()));
    }
    if found.transport.is_some() {
        parts.push("its HTTP transport changed".to_owned());
    }
    for (code, what) in [
        (Code::AuthorizationServerChanged, "its authorization server changed (breaking)"),
        (Code::ScopesChanged, "its scopes changed"),
    ] {
        if found.authorization.iter().any(|(found, _)| *found == code) {
            parts.push(what.to_owned());
        }
    }
    if found.has_other_server_info() {
        parts.push("its own description changed".to_owned());
    }
    if parts.is_empty() { "no tool changed".to_owned() } else { parts.join(", ") }
}

/// A line below a summary: the tools that share it, with their changes.
pub(super) struct Line {
    pub(super) severity: Severity,
    pub(super) code: Code,
    /// The tools, none if the line is about the upstream.
    tools: Vec<String>,
    words: String,
    /// The stored programs that call the tools. Empty if there are none, or if the report does not show them.
    pub(super) callers: String,
}

impl Line {
    fn of_upstream(code: Code, words: String) -> Line {
        Line { severity: code.severity(), code, tools: Vec::new(), words, callers: String::new() }
    }

    /// Returns the sentence. `name` and `words` write the names of tools and the rest for the format of the report.
    pub(super) fn text(&self, name: fn(&str) -> String, words: fn(&str) -> String) -> String {
        if self.tools.is_empty() {
            return words(&self.words);
        }
        let names = self.tools.iter().map(|tool| name(tool));
        format!("{} {}", join_limited(names, ", ", MAX_NAMES), words(&self.words))
    }
}

/// How much a report shows of each upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// One line for each tool, with descriptions left out, and at most [`MAX_LINES`].
    Tools,
    /// One line for each change.
    Changes,
}

/// Returns the lines below the summary of an upstream, the most severe first, and a sentence about the lines that are left out.
/// `callers` names the stored programs that call a tool.
pub(super) fn lines(summary: &Summary<'_>, depth: Depth, callers: &dyn Fn(&str) -> String) -> (Vec<Line>, Option<String>) {
    let Summary { name, found, .. } = summary;
    // The texts of instructions and descriptions are long. `--details` shows them.
    let instructions = match depth {
        Depth::Tools => found.instructions.as_ref().map(|_| "has other instructions".to_owned()),
        Depth::Changes => found.instructions.clone(),
    };
    let server_name = found.server_name.as_deref().map(|what| one_line(what, MAX_CHANGE));
    let server_info = server_name.into_iter().chain(instructions);
    let of_upstream = |code, what: &str| Line::of_upstream(code, format!("{} {what}", quoted(name)));
    let mut lines: Vec<Line> = found.transport.iter().map(|what| of_upstream(Code::TransportChanged, what)).collect();
    lines.extend(found.authorization.iter().map(|(code, what)| of_upstream(*code, what)));
    lines.extend(server_info.map(|what| of_upstream(Code::DescriptionChanged, &what)));
    lines.extend(found.files.iter().map(|what| Line::of_upstream(Code::DocumentFileChanged, format!("the document {what}"))));
    let room = if depth == Depth::Changes { usize::MAX } else { MAX_LINES.saturating_sub(lines.len()) };
    let mut tools: Vec<Line> = Vec::new();
    for (tool, changes) in &found.tools {
        let (callers, breaks_program) = (callers(tool), found.breaking.contains(tool));
        match depth {
            Depth::Tools => tools.push(Line { callers, ..line(tool, changes, breaks_program) }),
            Depth::Changes => tools.extend(changes.iter().map(|Change { code, what, .. }| {
                let (tools, callers) = (vec![tool.clone()], callers.clone());
                let severity = severity::of_change(*code, breaks_program);
                Line { severity, tools, callers, ..Line::of_upstream(*code, what.clone()) }
            })),
        }
    }
    if tools.len() > room {
        tools = shared(tools);
    }
    // Of equally severe changes, those that stored programs meet come first.
    tools.sort_by(|a, b| {
        let key = |line: &Line| (std::cmp::Reverse(line.severity), line.callers.is_empty(), line.code);
        (key(a), &a.tools).cmp(&(key(b), &b.tools))
    });
    let shown = if tools.len() > room { room.saturating_sub(1) } else { tools.len() };
    let rest = tools.split_off(shown);
    lines.extend(tools);
    let rest_of = |severity| rest.iter().filter(|line| line.severity == severity).map(|line| line.tools.len()).sum::<usize>();
    let rest = (!rest.is_empty()).then(|| format!("and more tools: {}; `--details` shows all changes", severities(rest_of)));
    (lines, rest)
}

/// Counts tools by severity: `1 with an error, 2 with notes`.
pub(super) fn severities(count: impl Fn(Severity) -> usize) -> String {
    let counts: Vec<String> = [(Severity::Error, "an"), (Severity::Warning, "a"), (Severity::Note, "a")]
        .into_iter()
        .map(|(severity, article)| (severity.name(), article, count(severity)))
        .filter(|(_, _, count)| *count > 0)
        .map(|(name, article, count)| match count {
            1 => format!("1 with {article} {name}"),
            count => format!("{count} with {name}s"),
        })
        .collect();
    counts.join(", ")
}

/// Returns a change without the description that it quotes, which `--details` shows.
fn in_short(what: &str) -> String {
    if what.starts_with(SAYS) { "has another description".to_owned() } else { one_line(what, MAX_CHANGE) }
}

/// Makes the line of one tool: its changes in words, the most severe first.
fn line(tool: &str, changes: &[Change], breaks_program: bool) -> Line {
    let mut ordered: Vec<&Change> = changes.iter().collect();
    ordered.sort_by_key(|change| std::cmp::Reverse(severity::of_change(change.code, breaks_program)));
    let mut words = String::new();
    let mut shown = 0;
    for what in ordered.iter().map(|change| in_short(&change.what)) {
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
    let code = ordered.first().map_or(Code::DefinitionChanged, |change| change.code);
    let severity = severity::of_tool(changes, breaks_program);
    Line { severity, tools: vec![tool.to_owned()], ..Line::of_upstream(code, words) }
}

/// Puts tools with equal changes and equal callers into one line.
fn shared(lines: Vec<Line>) -> Vec<Line> {
    let mut by_words: BTreeMap<(String, String), Line> = BTreeMap::new();
    for line in lines {
        let key = (line.words.clone(), line.callers.clone());
        match by_words.get_mut(&key) {
            Some(known) => known.tools.extend(line.tools),
            None => {
                by_words.insert(key, line);
            }
        }
    }
    by_words.into_values().collect()
}
