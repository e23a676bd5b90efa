//! The tool that was meant where a call names another upstream or tool.

use ptc_catalog::{Catalog, Tool, Upstream};

use ptc_text::closest_match;

/// The tool that names of an upstream and of a tool were most likely meant for: both in one of them (`"petstore/list-pets"`,
/// `"petstore.list-pets"`), a tool at the place of the upstream, a tool of another upstream, or a slip in either.
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

/// Upstream and tool in one text.
fn qualified(text: &str, catalog: &Catalog) -> Option<(&'static Upstream, &'static Tool)> {
    let mut cuts = text.char_indices().filter(|(_, c)| matches!(c, '/' | '.' | ':')).take(MAX_CUTS);
    cuts.find_map(|(at, _)| {
        let (server, tool) = (text.get(..at)?, text.get(at + 1..)?);
        let upstream = catalog.upstream(server).or_else(|| near_upstream(server, catalog))?;
        Some((upstream, near_tool(upstream, tool)?))
    })
}

/// Separators of one text that are tried.
const MAX_CUTS: usize = 8;

fn near_upstream(name: &str, catalog: &Catalog) -> Option<&'static Upstream> {
    let near = closest_match(name, catalog.upstreams.iter().map(|upstream| upstream.name))?;
    catalog.upstream(near)
}

fn near_tool(upstream: &'static Upstream, name: &str) -> Option<&'static Tool> {
    let near = || closest_match(name, upstream.tools.iter().map(|tool| tool.name)).and_then(|near| upstream.tool(near));
    upstream.tool(name).or_else(near)
}

/// The one tool of that name, whatever its case and separators; with two of the name it is unknown which was meant.
fn only(name: &str, catalog: &Catalog) -> Option<(&'static Upstream, &'static Tool)> {
    if name.len() > MAX_NAME {
        return None;
    }
    let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let wanted = letters(name);
    let mut found = catalog.tools().filter(|(_, tool)| letters(tool.name) == wanted);
    found.next().filter(|_| !wanted.is_empty() && found.next().is_none())
}

/// Bytes of a name that is compared with those of all tools.
const MAX_NAME: usize = 200;
