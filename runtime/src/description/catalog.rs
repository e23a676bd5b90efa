//! The catalog in the tool description: all tools, or only the names of upstreams.

use std::fmt::Write;

use ptc_catalog::{Catalog, Tool};

use crate::settings::{CatalogMode, Settings};

/// The detail of each tool, from most to least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Name, arguments and description.
    Described,
    /// Name and arguments.
    Arguments,
    /// Only upstreams.
    Upstreams,
}

/// Maximum characters of one description in the list.
const DESCRIPTION_CHARS: usize = 120;

/// Formats the catalog for the description.
pub fn render(catalog: &Catalog, settings: &Settings) -> String {
    match settings.catalog_mode {
        CatalogMode::Lazy => list(catalog, Detail::Upstreams, &unsaid),
        CatalogMode::Inline => list(catalog, Detail::Described, &unsaid),
        // The tools are counted first, so that the list of a large catalog is never built.
        CatalogMode::Auto if catalog.tool_count() > settings.catalog_inline_max_tools => {
            list(catalog, Detail::Upstreams, &unsaid)
        }
        CatalogMode::Auto => [Detail::Described, Detail::Arguments]
            .into_iter()
            .map(|detail| list(catalog, detail, &unsaid))
            .find(|text| text.chars().count() <= settings.catalog_inline_max_chars)
            .unwrap_or_else(|| list(catalog, Detail::Upstreams, &unsaid)),
    }
}

/// Describes no result.
fn unsaid(_: &Tool) -> String {
    String::new()
}

/// Formats the catalog as a list. `gives` returns the text after a tool's arguments.
pub(crate) fn list(catalog: &Catalog, detail: Detail, gives: &dyn Fn(&Tool) -> String) -> String {
    let mut text = String::from("Upstreams:");
    for upstream in catalog.upstreams {
        let _ = match upstream.tools.len() {
            // The upstream has no tools, or they were not fetched yet. Writing to a string cannot fail.
            0 => write!(text, "\n- {}", upstream.name),
            1 => write!(text, "\n- {} (1 tool)", upstream.name),
            count => write!(text, "\n- {} ({count} tools)", upstream.name),
        };
        if !upstream.description.is_empty() {
            let _ = write!(text, ": {}", line(upstream.description));
        }
        if detail == Detail::Upstreams {
            continue;
        }
        for tool in upstream.tools {
            let _ = write!(text, "\n  - {}{}{}", tool.name, arguments(tool), gives(tool));
            if detail == Detail::Described && !tool.description.is_empty() {
                let _ = write!(text, " - {}", line(tool.description));
            }
        }
    }
    text
}

/// Formats arguments as ` :path string, :head number?`. Empty if there are none.
fn arguments(tool: &Tool) -> String {
    let args: Vec<String> =
        tool.args.iter().map(|arg| format!(":{} {}{}", arg.name, arg.label, if arg.required { "" } else { "?" })).collect();
    if args.is_empty() { String::new() } else { format!(" {{{}}}", args.join(", ")) }
}

/// Formats a text as one line with a maximum length.
fn line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut chars = words.chars();
    let head: String = chars.by_ref().take(DESCRIPTION_CHARS).collect();
    if chars.next().is_none() { head } else { format!("{}…", head.trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_catalog::{Arg, McpStdio, Tools, Transport, Types, Upstream};

    const fn tool(name: &'static str, description: &'static str) -> Tool {
        Tool {
            name,
            description,
            args: &[
                Arg { name: "path", required: true, types: Types::ANY, label: "string", allowed: "" },
                Arg { name: "head", required: false, types: Types::ANY, label: "number", allowed: "" },
            ],
            ..Tool::EMPTY
        }
    }

    static CATALOG: Catalog = Catalog {
        digest: "",
        search_index: &[],
        upstreams: &[Upstream {
            name: "fs",
            description: "Files.",
            transport: Transport::McpStdio(McpStdio::new("x")),
            tools: Tools::table(&[tool("list", "Lists\na   folder."), tool("read", "")]),
        }],
    };

    fn rendered(mode: CatalogMode, tools: usize, chars: usize) -> String {
        let mut settings = Settings::defaults(true);
        settings.catalog_mode = mode;
        settings.catalog_inline_max_tools = tools;
        settings.catalog_inline_max_chars = chars;
        render(&CATALOG, &settings)
    }

    #[test]
    fn catalog_mode_and_thresholds_decide_the_detail() {
        let described = "Upstreams:\n- fs (2 tools): Files.\n  - list {:path string, :head number?} - Lists a folder.\
                         \n  - read {:path string, :head number?}";
        let arguments = "Upstreams:\n- fs (2 tools): Files.\n  - list {:path string, :head number?}\
                         \n  - read {:path string, :head number?}";
        let lazy = "Upstreams:\n- fs (2 tools): Files.";
        assert_eq!(rendered(CatalogMode::Inline, 0, 0), described);
        assert_eq!(rendered(CatalogMode::Lazy, 8, 800), lazy);
        assert_eq!(rendered(CatalogMode::Auto, 8, 800), described);
        assert_eq!(rendered(CatalogMode::Auto, 2, described.len()), described);
        assert_eq!(rendered(CatalogMode::Auto, 2, described.len() - 1), arguments);
        assert_eq!(rendered(CatalogMode::Auto, 2, arguments.len() - 1), lazy);
        assert_eq!(rendered(CatalogMode::Auto, 1, 800), lazy);
    }
}
