//! One call in the text against the catalog. Wording and rules are those of the runtime, which checks every call again with
//! the values that it then has.

use ptc_catalog::{Arg, Catalog, Tool, Upstream};
use ptc_lisp::{ErrorKind, ToolCallSite};

use crate::{Concern, Finding, argument, near_name};

/// Names that a hint lists before it says how many more there are.
const LISTED: usize = 30;

pub(crate) fn check(site: &ToolCallSite, catalog: &Catalog, findings: &mut Vec<Finding>) {
    let finding = |concern, message, hint| Finding { concern, message, hint, span: site.request.unwrap_or(site.span) };
    let (unknown, rejects) = (Concern::Fails(ErrorKind::UnknownTool), Concern::Fails(ErrorKind::ToolError));
    let Some(server) = &site.server else { return };
    let Some(upstream) = catalog.upstream(server) else {
        let hint = exists(server, "configured upstreams", catalog.upstreams.iter().map(|upstream| upstream.name));
        let message = format!("no upstream '{server}' configured");
        return findings.push(finding(unknown, message, Some(hint)));
    };
    let Some(name) = &site.tool else { return };
    if upstream.tools.is_empty() {
        // Its tools may not have been asked for yet: the run will tell.
        return;
    }
    let Some(tool) = upstream.tool(name) else {
        let hint = exists(name, "its tools", upstream.tools.iter().map(|tool| tool.name));
        let message = format!("no tool '{name}' in upstream '{server}'");
        return findings.push(finding(unknown, message, Some(hint)));
    };
    let Some(args) = &site.args else { return };
    let missing: Vec<&str> = tool.args.iter().filter(|arg| arg.required && !is_given(arg, args)).map(|arg| arg.name).collect();
    if !missing.is_empty() {
        let message = rejected(upstream, tool, &format!("missing required args {}", missing.join(", ")));
        findings.push(finding(rejects, message, Some(documented(upstream, tool))));
    }
    for (name, value) in args {
        if let Some(arg) = find(tool, name) {
            let literal = value.as_ref().filter(|value| !value.is_nil());
            if let Some(why) = literal.and_then(|value| argument::fault(arg, value)) {
                findings.push(finding(rejects, rejected(upstream, tool, &why), Some(documented(upstream, tool))));
            }
            continue;
        }
        let near = near_name(name, tool.args.iter().map(|arg| arg.name));
        if !tool.closed && near.is_none() {
            // An open object takes any name; without a near one there is nothing to say.
            continue;
        }
        let message = rejected(upstream, tool, &format!("unknown arg '{name}'"));
        let hint = exists(name, "its args", tool.args.iter().map(|arg| arg.name));
        findings.push(finding(if tool.closed { rejects } else { Concern::Doubtful }, message, Some(hint)));
    }
}

/// A keyword in Lisp's spelling finds the schema's: `:page-size` is `page_size`.
fn find(tool: &Tool, name: &str) -> Option<&'static Arg> {
    tool.arg(name).or_else(|| tool.arg(&name.replace('-', "_")))
}

/// `nil` leaves an argument out, unless the schema has a use for it.
fn is_given(arg: &Arg, args: &[(String, Option<ptc_lisp::Value>)]) -> bool {
    args.iter().any(|(name, value)| {
        let named = name == arg.name || name.replace('-', "_") == arg.name;
        let left_out = value.as_ref().is_some_and(ptc_lisp::Value::is_nil) && !arg.types.admits(ptc_catalog::Type::Null);
        named && !left_out
    })
}

fn rejected(upstream: &Upstream, tool: &Tool, why: &str) -> String {
    format!("tool '{}.{}' rejected args: {why}", upstream.name, tool.name)
}

fn documented(upstream: &Upstream, tool: &Tool) -> String {
    format!("(doc \"{}/{}\") shows its arguments", upstream.name, tool.name)
}

/// A near name, or all names.
fn exists<'a>(wanted: &str, what: &str, names: impl ExactSizeIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = near_name(wanted, names.clone()) {
        return format!("did you mean '{near}'?");
    }
    let total = names.len();
    let listed = names.take(LISTED).collect::<Vec<_>>().join(", ");
    match total {
        0 => format!("{what}: none"),
        n if n > LISTED => format!("{what}: {listed}, … and {} more", n - LISTED),
        _ => format!("{what}: {listed}"),
    }
}
