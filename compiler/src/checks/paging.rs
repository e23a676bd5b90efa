//! Checks `paging` in overrides against the tools of the lock file.

use crate::config::model::{Config, Override, Spanned, Transport};
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted, quoted_list, suggest};
use crate::json::Json;
use crate::json_schema::Schema;
use crate::lock::{Lock, LockedTool};

/// Reports overrides of tools that do not exist, and overrides that name an argument which the tool does not have.
pub fn check(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    for (name, upstream) in &config.upstreams {
        let Some(locked) = lock.upstreams.get(name) else { continue };
        if let Transport::OpenApi(entry) = &upstream.transport {
            // An override of an operation that is not included is reported when the document is read.
            for tool in locked.tools.values() {
                if let Some((key, Override { paging: Some(paging), .. })) = entry.override_of(&tool.definition) {
                    check_names(key, paging, tool, diagnostics);
                }
            }
        }
        // An upstream that lists its tools later has none yet.
        for (key, overriding) in upstream.tool_overrides.iter().filter(|_| !locked.tools.is_empty()) {
            if let Some(tool) = locked.tools.get(key) {
                if let Some(paging) = &overriding.paging {
                    check_names(key, paging, tool, diagnostics);
                }
                continue;
            }
            let message = format!("{} in `tool_overrides` is not a tool of the upstream `{name}`", quoted(key));
            let hint = suggest::hint(key, "tool", locked.tools.keys().map(String::as_str));
            let finding = Diagnostic::new(Code::BadPaging, message)
                .about(Subject::upstream(name).tool(key))
                .at(overriding.place.clone(), "not a granted tool");
            diagnostics.push(finding.hint(hint.unwrap_or_else(|| "remove the override, or grant the tool".to_owned())));
        }
    }
}

/// Reports names of arguments that the tool does not have.
fn check_names(key: &str, written: &Spanned<Json>, tool: &LockedTool, diagnostics: &mut Diagnostics) {
    let Some(input) = tool.definition.get("inputSchema") else { return };
    let (args, is_closed) = Schema::new(input).arguments();
    for member in ["argument", "size"] {
        let Some(name) = written.value.get(member).and_then(Json::as_str) else { continue };
        // A tool without declared arguments may accept any argument.
        if args.iter().any(|arg| arg.name == name) || args.is_empty() && !is_closed {
            continue;
        }
        let message =
            format!("`{member}` in the `paging` of {} names {}, which is not an argument of the tool", quoted(key), quoted(name));
        let names = || args.iter().map(|arg| arg.name.as_str());
        let hint = suggest::hint(name, "argument", names());
        let hint = hint.unwrap_or_else(|| format!("its arguments are {}", quoted_list(names())));
        diagnostics.push(
            Diagnostic::new(Code::BadPaging, message)
                .about(Subject::default().tool(key))
                .at(written.place.clone(), "")
                .hint(hint),
        );
    }
}
