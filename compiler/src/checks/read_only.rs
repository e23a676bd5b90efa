//! Enforces `"read_only": true` of a config: every granted tool must be a read.

use ptc_text::join_limited;

use crate::config::model::{Config, Transport, Upstream};
use crate::config::operation_selector::names_operation;
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted};
use crate::json::Json;
use crate::lock::{Lock, LockedTool};
use crate::lower;
use crate::source::Span;

/// Maximum number of tools in a finding about an upstream that grants all its tools.
const SHOWN: usize = 5;

/// Reports every tool of `lock` that is not a read, if `config` permits only reads. A tool that the config names is reported
/// there; the others of an upstream are reported together.
pub fn check(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    let Some(demanded) = &config.read_only else { return };
    for (name, upstream) in &config.upstreams {
        let tools = lock.upstreams.get(name).map(|locked| locked.tools.iter()).into_iter().flatten();
        let mut unnamed = Vec::new();
        let report = |subject: Subject, what: String, place: Span| {
            let finding = Diagnostic::new(Code::NotReadOnly, format!("{what}, and the config permits only reads"));
            finding.about(subject).at(place, "").also(demanded.clone(), "demanded here").hint(hint(upstream))
        };
        for (tool, locked) in tools {
            let effect = lower::effect(upstream, tool, &locked.definition);
            if effect.is_read() {
                continue;
            }
            let declares_to_read = || lower::declared(&locked.definition).read_only == Some(true);
            let verb = match effect.is_write() {
                true => "changes things",
                false if declares_to_read() => "declares that it only reads, which is not trusted",
                false => "does not declare its effect",
            };
            match named(upstream, tool, locked) {
                Some(place) => {
                    let what = format!("{} of {} {verb}", quoted(tool), quoted(name));
                    diagnostics.push(report(Subject::upstream(name).tool(tool), what, place));
                }
                None => unnamed.push(tool.as_str()),
            }
        }
        if !unnamed.is_empty() {
            let what = format!("{} grants tools that are not reads: {}", quoted(name), join_limited(&unnamed, ", ", SHOWN));
            diagnostics.push(report(Subject::upstream(name), what, upstream.place.clone()));
        }
    }
}

/// Returns the position at which the config grants a tool by its name.
fn named(upstream: &Upstream, tool: &str, locked: &LockedTool) -> Option<Span> {
    let operation =
        |key: &str| locked.definition.get("_ptc").and_then(|ptc| ptc.get(key)).and_then(Json::as_str).unwrap_or_default();
    let (names, is_named): (_, &dyn Fn(&str) -> bool) = match &upstream.transport {
        Transport::OpenApi(entry) => (entry.include_operations.as_slice(), &|name| {
            name == operation("operationId") || name == tool || names_operation(name, operation("method"), operation("path"))
        }),
        Transport::McpStdio(_) | Transport::McpHttp(_) => {
            (upstream.include_tools.as_deref().unwrap_or_default(), &|name| name == tool)
        }
    };
    names.iter().find(|name| is_named(&name.value)).map(|name| name.place.clone())
}

fn hint(upstream: &Upstream) -> &'static str {
    match upstream.transport {
        Transport::OpenApi(_) => "remove it; if it only reads, set `\"read_only\": true` in its override",
        Transport::McpStdio(_) | Transport::McpHttp(_) => {
            "list in `include_tools` only tools that read, and set `\"read_only\": true` for them in `tool_overrides`, or `trust_annotations`"
        }
    }
}
