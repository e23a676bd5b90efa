//! Suggests the intended tool for a call that names an unknown upstream or tool.

use ptc_catalog::{Catalog, Tool, Upstream};

use ptc_text::closest_match;

/// Returns the tool that the names of an upstream and of a tool most likely refer to. It recognises both names in one of them
/// (`"petstore/list-pets"`, `"petstore.list-pets"`), a tool in place of the upstream, a tool of another upstream, and
/// misspellings of either.
pub fn meant_tool(server: &str, tool: Option<&str>, catalog: &Catalog) -> Option<(&'static Upstream, &'static Tool)> {
    if let Some(found) = tool.and_then(|tool| qualified(tool, catalog)) {
        return Some(found);
    }
    let upstream = catalog.upstream(server).or_else(|| near_upstream(server, catalog));
    if let Some((upstream, tool)) = upstream.zip(tool)
        && let Some(found) = near_tool(upstream, tool)
    {
        return Some((upstream, found));
    }
    qualified(server, catalog).or_else(|| only(tool.unwrap_or(server), catalog)).or_else(|| only(server, catalog))
}

/// Finds upstream and tool in one text.
fn qualified(text: &str, catalog: &Catalog) -> Option<(&'static Upstream, &'static Tool)> {
    let mut cuts = text.char_indices().filter(|(_, c)| matches!(c, '/' | '.' | ':')).take(MAX_CUTS);
    cuts.find_map(|(at, _)| {
        let (server, tool) = (text.get(..at)?, text.get(at + 1..)?);
        let upstream = catalog.upstream(server).or_else(|| near_upstream(server, catalog))?;
        Some((upstream, near_tool(upstream, tool)?))
    })
}

/// Maximum number of separators tried in one text.
const MAX_CUTS: usize = 8;

pub(crate) fn near_upstream(name: &str, catalog: &Catalog) -> Option<&'static Upstream> {
    let near = closest_match(name, catalog.upstreams.iter().map(|upstream| upstream.name))?;
    catalog.upstream(near)
}

pub(crate) fn near_tool(upstream: &'static Upstream, name: &str) -> Option<&'static Tool> {
    let near = || closest_match(name, upstream.tools.iter().map(|tool| tool.name)).and_then(|near| upstream.tool(near));
    upstream.tool(name).or_else(near)
}

/// Returns the only tool with this name, compared without case and separators. If several have it, the intended one is unknown.
fn only(name: &str, catalog: &Catalog) -> Option<(&'static Upstream, &'static Tool)> {
    if name.len() > MAX_NAME {
        return None;
    }
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let wanted = letters(name);
    let mut found = catalog.tools().filter(|(_, tool)| letters(tool.name) == wanted);
    found.next().filter(|_| !wanted.is_empty() && found.next().is_none())
}

/// Maximum bytes of a name that is compared with those of all tools.
const MAX_NAME: usize = 200;
