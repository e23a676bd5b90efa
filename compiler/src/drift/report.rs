//! A comparison of two locks as text: a summary for each upstream, and below it a line for each tool.

use std::fmt::Write;

use super::severity::BreakingTools;
use super::summary::{Depth, Line, counts, lines, upstreams};
use crate::config::model::Config;
use crate::diag::quoted;
use crate::diag::render::Style;
use crate::diag::text::on_one_line;
use crate::lock::Lock;

/// How much of a comparison is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The summaries only.
    Summaries,
    /// Summaries and tools.
    Tools,
}

/// Returns the report on all upstreams of a config that differ between two locks, also if only the version does.
/// `breaking`: the tools through which programs break.
pub fn report(config: &Config, old: &Lock, new: &Lock, breaking: &BreakingTools, extent: Extent, style: Style) -> String {
    let mut out = String::new();
    for summary in upstreams(config, old, new, breaking) {
        if summary.is_new {
            for line in &summary.new_lines() {
                line_of(&mut out, "", line, style);
            }
            continue;
        }
        let versions: Vec<_> = summary.versions.iter().map(|version| on_one_line(version)).collect();
        let versions = if versions.is_empty() { String::new() } else { format!(" {}", versions.join(" → ")) };
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(out, "{}{versions}: {}", on_one_line(summary.name), counts(&summary.found));
        if extent == Extent::Tools {
            let (lines, rest) = lines(&summary, Depth::Tools, &|_| String::new());
            for line in &lines {
                line_of(&mut out, "  ", line, style);
            }
            if let Some(rest) = rest {
                let _ = writeln!(out, "  {rest}");
            }
        }
    }
    out
}

fn line_of(out: &mut String, indent: &str, line: &Line, style: Style) {
    let head = style.paint(line.severity, &format!("{}[{}]:", line.severity.name(), line.code.name()));
    let _ = writeln!(out, "{indent}{head} {}", on_one_line(&line.text(quoted, str::to_owned)));
}
