//! A comparison of two locks as Markdown, for the summary of a job or the body of a pull request: what changed, how severe it is, and
//! which stored programs call the changed tools.

use std::fmt::Write;

use super::callers::{Caller, Callers};
use super::summary::{Depth, Line, Summary, counts, lines, severities, upstreams};
use super::{Count, operation_of, severity};
use crate::config::model::Config;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, quoted};
use crate::lock::Lock;
use crate::lower::text::one_line;
use crate::render::markdown::{code, sentence};
use crate::source::Sources;

/// Maximum size of a document in bytes. GitHub accepts 65,536 characters as the body of a pull request.
const MAX_BYTES: usize = 60_000;

/// Maximum size of a section with findings in bytes. There are two; the rest of the document is for the changes.
const MAX_FINDINGS_BYTES: usize = MAX_BYTES / 4;

/// Maximum length of a finding in characters.
const MAX_FINDING: usize = 400;

/// What a document is made of.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The config of both locks.
    pub config: &'a Config,
    /// The lock file as it is.
    pub old: &'a Lock,
    /// The lock file with the current tools.
    pub new: &'a Lock,
    /// The numbers of changes, as [`super::compare`] returns them.
    pub changed: Count,
    /// The stored programs.
    pub callers: &'a [Caller],
    /// Findings about the stored programs that they have only with the current tools.
    pub program_findings: Diagnostics,
    /// Whether each change is shown, instead of one line for each tool.
    pub has_details: bool,
}

/// Returns the document. `comparison` is `None` if the upstreams could not be compared. `is_whole`: whether all of them could.
/// `findings`: findings other than the changes.
pub fn document(comparison: Option<&Comparison<'_>>, is_whole: bool, sources: &Sources, findings: &Diagnostics) -> String {
    let summaries = comparison.map(|all| upstreams(all.config, all.old, all.new)).unwrap_or_default();
    if is_whole && summaries.is_empty() && !findings.has_errors() {
        let same = "No upstream differs from the lock file.\n".to_owned();
        return same + &findings_section("Findings", sources, findings);
    }
    let mut out = "## Changes of upstreams\n\n".to_owned();
    match comparison {
        None => out.push_str("The upstreams could not be compared with the lock file.\n"),
        Some(all) => {
            out.push_str(&overview(all, &summaries));
            if !is_whole {
                out.push_str("\nThe comparison is incomplete: the current state of an upstream is not known.\n");
            }
        }
    }
    out.push_str(&findings_section("Findings", sources, findings));
    if let Some(all) = comparison {
        out.push_str(&findings_section("Stored programs with the changed tools", sources, &all.program_findings));
        sections(&mut out, all, &summaries);
    }
    out
}

/// Counts the changes, and names the stored programs that call changed tools.
fn overview(all: &Comparison<'_>, summaries: &[Summary<'_>]) -> String {
    let changed = if all.changed == Count::default() { "No changed tool was found".to_owned() } else { all.changed.clause() };
    let mut out = format!("{changed}.");
    // Tools of an upstream that is new did not change.
    let known = || summaries.iter().filter(|summary| !summary.is_new);
    let tools = || known().flat_map(|summary| summary.found.tools.values());
    let by_severity = severities(|wanted| tools().filter(|changes| severity::of_tool(changes) == wanted).count());
    if !by_severity.is_empty() {
        let _ = write!(out, " Tools: {by_severity}.");
    }
    out.push('\n');
    if !all.callers.is_empty() && !by_severity.is_empty() {
        let mut callers = Callers::default();
        for summary in known() {
            for tool in summary.found.tools.keys() {
                callers.add(all.callers_of(summary.name, tool));
            }
        }
        let names = callers.names();
        let programs = if names.is_empty() { "none".to_owned() } else { sentence(&names) };
        let _ = writeln!(out, "\nStored programs that call changed tools: {programs}.");
    }
    out
}

impl<'a> Comparison<'a> {
    fn callers_of(&self, upstream: &str, tool: &str) -> Callers<'a> {
        let mut locked = [self.new, self.old].into_iter().filter_map(|lock| lock.upstreams.get(upstream)?.tools.get(tool));
        let operation = locked.find_map(operation_of);
        Callers::of(self.callers, upstream, tool, operation.as_deref())
    }
}

/// Appends a section for each upstream, the most severe first, as long as there is room.
fn sections(out: &mut String, all: &Comparison<'_>, summaries: &[Summary<'_>]) {
    let depth = if all.has_details { Depth::Changes } else { Depth::Tools };
    let mut sections: Vec<(Option<Severity>, String, Vec<String>)> = Vec::new();
    for summary in summaries {
        let (found, rest) = if summary.is_new {
            (vec![summary.new_line()], None)
        } else {
            lines(summary, depth, &|tool| all.callers_of(summary.name, tool).names())
        };
        let worst = found.iter().map(|line| line.severity).max();
        let items = found.iter().map(item).chain(rest.map(|rest| format!("- {}.\n", sentence(&rest)))).collect();
        sections.push((worst, heading(summary), items));
    }
    sections.sort_by_key(|(worst, ..)| std::cmp::Reverse(*worst));
    let mut omitted = 0;
    for (_, heading, items) in sections {
        if out.len() + heading.len() > MAX_BYTES {
            omitted += items.len();
            continue;
        }
        out.push_str(&heading);
        for item in items {
            if out.len() + item.len() > MAX_BYTES {
                omitted += 1;
            } else {
                out.push_str(&item);
            }
        }
    }
    if omitted > 0 {
        let lines = if omitted == 1 { "1 line is".to_owned() } else { format!("{omitted} lines are") };
        let _ = writeln!(out, "\n{lines} left out, because a pull request has no room for more.");
    }
}

/// Returns the heading of an upstream, and the numbers of its changes.
fn heading(summary: &Summary<'_>) -> String {
    let mut out = format!("\n### {}", name(summary.name));
    for (at, version) in summary.versions.iter().enumerate() {
        let _ = write!(out, "{} {}", if at == 0 { "" } else { " →" }, name(version));
    }
    out.push_str("\n\n");
    if !summary.is_new {
        let counts = sentence(&counts(&summary.found));
        let (first, rest) = counts.split_at_checked(1).unwrap_or_default();
        let _ = writeln!(out, "{}{rest}.\n", first.to_uppercase());
    }
    out
}

/// Returns the list item of a line.
fn item(line: &Line) -> String {
    let callers = if line.callers.is_empty() { String::new() } else { format!(" Stored programs: {}.", sentence(&line.callers)) };
    list_item(line.severity, line.code, &line.text(name, sentence), &callers)
}

/// Returns a list item with a sentence, and with `more` behind it. Both are Markdown.
fn list_item(severity: Severity, code: Code, text: &str, more: &str) -> String {
    let end = if text.ends_with(['.', '…']) { "" } else { "." };
    format!("- **{}** {}: {text}{end}{more}\n", severity.name(), code.name())
}

/// Returns a section with the errors and warnings, the most severe first.
fn findings_section(title: &str, sources: &Sources, findings: &Diagnostics) -> String {
    let mut found: Vec<&Diagnostic> = findings.sorted();
    found.retain(|finding| finding.severity > Severity::Note);
    if found.is_empty() {
        return String::new();
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let mut out = format!("\n### {title}\n\n");
    let mut omitted = 0;
    for finding in found {
        let place = finding.primary.as_ref().map(|label| {
            let (line, column) = sources.position(label.place.file, label.place.range.start);
            format!(" {}", name(&format!("{}:{line}:{column}", sources.get(label.place.file).path)))
        });
        let hint = finding.hints.first().map(|hint| format!(" Help: {}.", sentence(&one_line(hint, MAX_FINDING))));
        let more = [hint, place].into_iter().flatten().collect::<String>();
        let message = sentence(&one_line(&finding.message, MAX_FINDING));
        let item = list_item(finding.severity, finding.code, &message, &more);
        if out.len() + item.len() > MAX_FINDINGS_BYTES {
            omitted += 1;
        } else {
            out.push_str(&item);
        }
    }
    if omitted > 0 {
        let _ = writeln!(out, "- And {omitted} more.");
    }
    out
}

/// Returns a name as inline code, as messages show it.
fn name(text: &str) -> String {
    let shown = quoted(text);
    code(shown.strip_prefix('`').and_then(|shown| shown.strip_suffix('`')).unwrap_or(&shown))
}
