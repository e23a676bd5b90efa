//! A comparison of two locks as Markdown, for the summary of a job or the body of a pull request: what changed, how severe it is, and
//! which stored programs call the changed tools.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::callers::{Caller, Callers};
use super::cause::Change;
use super::severity::BreakingTools;
use super::summary::{Depth, Line, Summary, counts, lines, severities, upstreams};
use super::{Changes, Count, severity};
use crate::config::model::Config;
use crate::diag::{Code, Diagnostic, Diagnostics, Severity, quoted};
use crate::lock::Lock;
use crate::lower::text::one_line;
use crate::render::markdown::{code, sentence};
use crate::source::Sources;

/// Maximum size of a document in bytes. GitHub accepts 65,536 characters as the body of a pull request.
const MAX_BYTES: usize = 60_000;

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
    /// The tools through which programs break.
    pub breaking: &'a BreakingTools,
    /// The stored programs.
    pub callers: &'a [Caller],
    /// Findings about the stored programs that they have only with the current tools.
    pub program_findings: &'a Diagnostics,
    /// Whether each change is shown, instead of one line for each tool.
    pub has_details: bool,
}

/// Returns the document. `comparison` is `None` if the upstreams could not be compared. `is_whole`: whether all of them could.
/// `findings`: findings other than the changes.
pub fn document(comparison: Option<&Comparison<'_>>, is_whole: bool, sources: &Sources, findings: &Diagnostics) -> String {
    let summaries = comparison.map(|all| upstreams(all.config, all.old, all.new, all.breaking)).unwrap_or_default();
    let mut sections = vec![Section::of_findings("Findings", Severity::Warning, sources, findings)];
    let has_faulty_programs = comparison.is_some_and(|all| all.program_findings.worst().is_some());
    let mut out = String::new();
    if is_whole && summaries.is_empty() && !findings.has_errors() && !has_faulty_programs {
        out.push_str("No upstream differs from the lock file.\n");
    } else {
        out.push_str("## Changes of upstreams\n\n");
        match comparison {
            None => out.push_str("The upstreams could not be compared with the lock file.\n"),
            Some(all) => {
                out.push_str(&overview(all, &summaries));
                if !is_whole {
                    out.push_str("\nThe comparison is incomplete: the current state of an upstream is not known.\n");
                }
                let title = "Stored programs with the changed tools";
                sections.push(Section::of_findings(title, Severity::Note, sources, all.program_findings));
                let mut of_upstreams: Vec<Section> = summaries.iter().map(|summary| Section::of_upstream(all, summary)).collect();
                of_upstreams.sort_by_key(|section| std::cmp::Reverse(section.items.iter().map(|(severity, _)| *severity).max()));
                sections.extend(of_upstreams);
            }
        }
    }
    write_sections(&mut out, &sections);
    out
}

/// Counts the changes, and names the stored programs that call changed tools.
fn overview(all: &Comparison<'_>, summaries: &[Summary<'_>]) -> String {
    let changed = if all.changed == Count::default() { "No changed tool was found".to_owned() } else { all.changed.clause() };
    let mut out = format!("{changed}.");
    // Tools of an upstream that is new did not change.
    let known = || summaries.iter().filter(|summary| !summary.is_new);
    let severity_of =
        |found: &Changes, tool: &String, changes: &[Change]| severity::of_tool(changes, found.breaking.contains(tool));
    let tools = || known().flat_map(|summary| summary.found.tools.iter().map(|(tool, changes)| (&summary.found, tool, changes)));
    let by_severity =
        severities(|wanted| tools().filter(|(found, tool, changes)| severity_of(found, tool, changes) == wanted).count());
    if !by_severity.is_empty() {
        let _ = write!(out, " Tools: {by_severity}.");
    }
    out.push('\n');
    if !all.callers.is_empty() && !by_severity.is_empty() {
        let names = Callers::of_changes(all.callers, all.config, [all.old, all.new], |_| true).names();
        let programs = if names.is_empty() { "none".to_owned() } else { sentence(&names) };
        let _ = writeln!(out, "\nStored programs that call changed tools: {programs}.");
    }
    out
}

/// A heading with list items. Each item is one line.
struct Section {
    heading: String,
    items: Vec<(Severity, String)>,
}

impl Section {
    /// Makes the section of an upstream.
    fn of_upstream(all: &Comparison<'_>, summary: &Summary<'_>) -> Section {
        let depth = if all.has_details { Depth::Changes } else { Depth::Tools };
        let (found, rest) = if summary.is_new {
            (summary.new_lines(), None)
        } else {
            lines(summary, depth, &|tool| Callers::of_tool(all.callers, all.old, all.new, summary.name, tool).names())
        };
        let mut items: Vec<(Severity, String)> = found.iter().map(|line| (line.severity, item(line))).collect();
        // The lines of tools are ordered by severity, so that the rest is at most as severe as the last of them.
        let last = found.last().map_or(Severity::Note, |line| line.severity);
        items.extend(rest.map(|rest| (last, format!("- {}.\n", sentence(&rest)))));
        if items.is_empty() {
            // Only the version changed, which the heading shows.
            items.push((Severity::Note, String::new()));
        }
        Section { heading: heading(summary), items }
    }

    /// Makes the section of the findings that have at least a severity, the most severe first.
    fn of_findings(title: &str, least: Severity, sources: &Sources, findings: &Diagnostics) -> Section {
        let mut found: Vec<&Diagnostic> = findings.sorted();
        found.retain(|finding| finding.severity >= least);
        found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let items = found.into_iter().map(|finding| (finding.severity, finding_item(sources, finding))).collect();
        Section { heading: format!("\n### {title}\n\n"), items }
    }
}

/// Appends sections as long as there is room. No item is left out for a less severe one, whatever sections they are in.
fn write_sections(out: &mut String, sections: &[Section]) {
    let mut ordered: Vec<(Severity, usize, usize, &str)> = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        ordered.extend(section.items.iter().enumerate().map(|(item, (severity, text))| (*severity, at, item, text.as_str())));
    }
    // The sort is stable: items of equal severity keep the order of the document.
    ordered.sort_by_key(|(severity, ..)| std::cmp::Reverse(*severity));
    let (mut kept, mut begun) = (BTreeSet::new(), BTreeSet::new());
    let mut size = out.len();
    let mut omitted = 0;
    let mut full = None;
    for (severity, at, item, text) in ordered {
        let heading = sections.get(at).filter(|_| !begun.contains(&at)).map_or(0, |section| section.heading.len());
        let is_after_omitted = full.is_some_and(|full| severity < full);
        if is_after_omitted || size + heading + text.len() > MAX_BYTES {
            omitted += 1;
            full = full.or(Some(severity));
        } else {
            size += heading + text.len();
            begun.insert(at);
            kept.insert((at, item));
        }
    }
    for (at, section) in sections.iter().enumerate() {
        if begun.contains(&at) {
            out.push_str(&section.heading);
        }
        let items = section.items.iter().enumerate().filter(|(item, _)| kept.contains(&(at, *item)));
        items.for_each(|(_, (_, text))| out.push_str(text));
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

/// Returns the list item of a finding, with its first hint and its place.
fn finding_item(sources: &Sources, finding: &Diagnostic) -> String {
    let place = finding.primary.as_ref().map(|label| {
        let (line, column) = sources.position(label.place.file, label.place.range.start);
        format!(" {}", name(&format!("{}:{line}:{column}", sources.get(label.place.file).path)))
    });
    let hint = finding.hints.first().map(|hint| format!(" Help: {}.", sentence(&one_line(hint, MAX_FINDING))));
    let more = [hint, place].into_iter().flatten().collect::<String>();
    let message = sentence(&one_line(&finding.message, MAX_FINDING));
    list_item(finding.severity, finding.code, &message, &more)
}

/// Returns a name as inline code, as messages show it.
fn name(text: &str) -> String {
    let shown = quoted(text);
    code(shown.strip_prefix('`').and_then(|shown| shown.strip_suffix('`')).unwrap_or(&shown))
}
