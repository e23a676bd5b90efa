//! Suggests the intended call for a name that cannot be used in a program: models write tool calls in the syntax of other
//! languages.

use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_lisp::{Error, ErrorKind};

use ptc_text::closest_match;

/// Adds the intended call as a hint to an error about an unbound name that refers to a tool: `petstore/get-pet`, `tool/get-pet`,
/// `:petstore/get-pet` or `get-pet`.
pub fn add_call_hint(error: Error, source: &str, catalog: &Catalog) -> Error {
    let text = error.span.and_then(|span| source.get(span.start as usize..span.end as usize));
    // A keyword with a namespace is an error of the reader. Other errors of the reader do not point to a name.
    let is_of_name = match error.kind {
        ErrorKind::UnboundVar | ErrorKind::UnknownTool => true,
        ErrorKind::ParseError => text.is_some_and(|text| text.starts_with(':')),
        _ => false,
    };
    match text.filter(|_| is_of_name).and_then(|text| named(text, catalog)) {
        Some((upstream, tool)) => error.with_hint(format!("call the tool with {}", written(upstream, tool))),
        None => error,
    }
}

fn named(text: &str, catalog: &Catalog) -> Option<(&'static Upstream, &'static Tool)> {
    let name = text.trim_start_matches(':');
    let name = name.strip_prefix("tool/").unwrap_or(name);
    if let Some((server, tool)) = name.split_once('/') {
        let upstream = catalog.upstream(server)?;
        let near = || closest_match(tool, upstream.tools.iter().map(|tool| tool.name)).and_then(|near| upstream.tool(near));
        return Some((upstream, upstream.tool(tool).or_else(near)?));
    }
    let mut found = catalog.upstreams.iter().filter_map(|upstream| Some((upstream, upstream.tool(name)?)));
    // If two tools have the name, the intended one is unknown.
    found.next().filter(|_| found.next().is_none())
}

fn written(upstream: &Upstream, tool: &Tool) -> String {
    let required: Vec<String> = tool.args.iter().filter(|arg| arg.required).map(|arg| format!(":{} …", arg.name)).collect();
    format!("(tool/call {{:server {:?} :tool {:?} :args {{{}}}}})", upstream.name, tool.name, required.join(" "))
}
