//! Suggests the intended call for a name that cannot be used in a program: models write tool calls in the syntax of other
//! languages.

use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_lisp::print::excerpt;
use ptc_lisp::{Error, ErrorKind};

use crate::meant_tool::{near_tool, near_upstream};

/// Adds a hint to an error at a name that nothing is bound to, if the name means a tool of the catalog: `petstore/get-pet`,
/// `tool/get-pet`,
/// `:petstore/get-pet` or `get-pet`. The hint shows the call, also if only the upstream exists.
pub fn add_call_hint(error: Error, source: &str, catalog: &Catalog) -> Error {
    let text = error.span.and_then(|span| source.get(span.start as usize..span.end as usize));
    // A keyword with a namespace is an error of the reader. Other errors of the reader do not point to a name.
    let is_of_name = match error.kind {
        ErrorKind::UnboundVar | ErrorKind::UnknownTool => true,
        ErrorKind::ParseError => text.is_some_and(|text| text.starts_with(':')),
        _ => false,
    };
    let Some(text) = text.filter(|_| is_of_name) else { return error };
    let name = text.trim_start_matches(':');
    let name = name.strip_prefix("tool/").unwrap_or(name);
    let hint = if let Some((server, tool)) = name.split_once('/') {
        qualified_hint(server, tool, catalog)
    } else {
        let mut found = catalog.upstreams.iter().filter_map(|upstream| Some((upstream, upstream.tool(name)?)));
        // If two tools have the name, the intended one is unknown.
        found.next().filter(|_| found.next().is_none()).map(|(upstream, tool)| call_hint(upstream, tool))
    };
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn qualified_hint(server: &str, tool: &str, catalog: &Catalog) -> Option<String> {
    let known = catalog.upstream(server);
    let upstream = known.or_else(|| near_upstream(server, catalog))?;
    if let Some(tool) = near_tool(upstream, tool) {
        return Some(call_hint(upstream, tool));
    }
    let server = known?.name;
    let (lists, tool) = (format!("(dir {server:?})"), excerpt(tool));
    Some(format!(
        "tools are called with (tool/call {{:server {server:?} :tool \"…\" :args {{…}}}}); '{server}' has no tool '{tool}', {lists} lists \
         its tools"
    ))
}

fn call_hint(upstream: &Upstream, tool: &Tool) -> String {
    let required: Vec<String> = tool.args.iter().filter(|arg| arg.required).map(|arg| format!(":{} …", arg.name)).collect();
    let args = required.join(" ");
    format!("call the tool with (tool/call {{:server {:?} :tool {:?} :args {{{args}}}}})", upstream.name, tool.name)
}
