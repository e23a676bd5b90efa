//! A short summary of what `lisp_task` can access, for clients that have to know what to ask for.

use ptc_catalog::{Catalog, Upstream};

use super::hint;
use crate::settings::CatalogMode;

/// Maximum number of an object's members in a hint.
const FIELDS: usize = 3;

/// Lists upstreams with their tools, within `most` bytes unless the mode lists all. If the mode lists none, the result is a
/// sentence.
pub fn summarize(catalog: &Catalog, mode: CatalogMode, most: usize) -> String {
    match mode {
        CatalogMode::Lazy => {
            let names: Vec<&str> = catalog.upstreams.iter().map(|upstream| upstream.name).collect();
            format!("{}; which tools they have is looked up while a task runs.", names.join(", "))
        }
        CatalogMode::Inline => catalog.upstreams.iter().map(whole).collect::<Vec<_>>().join("\n"),
        CatalogMode::Auto => fitting(catalog, most),
    }
}

fn labels(upstream: &Upstream) -> Vec<String> {
    let mut labels: Vec<String> =
        upstream.tools.iter().map(|tool| format!("{}->{}", tool.name, hint::result_hint(tool, FIELDS))).collect();
    labels.sort_unstable();
    labels
}

fn whole(upstream: &Upstream) -> String {
    if upstream.tools.is_empty() {
        return format!("- {}: (no tools known)", upstream.name);
    }
    format!("- {}: {}", upstream.name, labels(upstream).join(", "))
}

/// Returns the longest prefix of the list that fits, with a mark for the omitted rest.
fn fitting(catalog: &Catalog, most: usize) -> String {
    let mut text = String::new();
    for (at, upstream) in catalog.upstreams.iter().enumerate() {
        let left = most.saturating_sub(text.len() + usize::from(!text.is_empty()));
        let line = whole(upstream);
        let (line, cut) = if line.len() <= left { (Some(line), false) } else { (beginning(upstream, left), true) };
        let shown = line.is_some();
        if let Some(line) = line {
            add(&mut text, &line);
        }
        if cut {
            let more = format!("- (+{} more upstreams)", catalog.upstreams.len() - at - usize::from(shown));
            if !more.starts_with("- (+0") && text.len() + usize::from(!text.is_empty()) + more.len() <= most {
                add(&mut text, &more);
            }
            break;
        }
    }
    text
}

fn add(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Returns as many tools of an upstream as fit.
fn beginning(upstream: &Upstream, most: usize) -> Option<String> {
    let labels = labels(upstream);
    (0..labels.len()).rev().find_map(|count| {
        let more = format!("(+{} more)", labels.len() - count);
        let shown: Vec<&str> = labels.iter().take(count).map(String::as_str).chain([more.as_str()]).collect();
        let line = format!("- {}: {}", upstream.name, shown.join(", "));
        (line.len() <= most).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_catalog::{McpStdio, Tool, Tools, Transport};

    const fn tool(name: &'static str, definition: &'static str) -> Tool {
        Tool { name, definition, ..Tool::EMPTY }
    }

    const fn upstream(name: &'static str, tools: &'static [Tool]) -> Upstream {
        Upstream { name, description: "", transport: Transport::McpStdio(McpStdio::new("x")), tools: Tools::table(tools) }
    }

    static CATALOG: Catalog = Catalog {
        digest: "",
        search_index: &[],
        upstreams: &[
            upstream("alpha", &[tool("ping", r#"{"outputSchema":{"type":"string"}}"#)]),
            upstream("beta", &[tool("search", r#"{"outputSchema":{"type":"array"}}"#), tool("fetch", "{}")]),
            upstream("gamma", &[]),
        ],
    };

    #[test]
    fn summary_stays_within_its_byte_limit() {
        let all = "- alpha: ping->:string\n- beta: fetch->:unknown_content, search->[:any]\n- gamma: (no tools known)";
        assert_eq!(summarize(&CATALOG, CatalogMode::Inline, 0), all);
        assert_eq!(summarize(&CATALOG, CatalogMode::Auto, all.len()), all);
        assert_eq!(summarize(&CATALOG, CatalogMode::Auto, 30), "- alpha: ping->:string");
        assert_eq!(summarize(&CATALOG, CatalogMode::Auto, 45), "- alpha: ping->:string\n- beta: (+2 more)");
        let one = "- alpha: ping->:string\n- beta: fetch->:unknown_content, (+1 more)";
        assert_eq!(summarize(&CATALOG, CatalogMode::Auto, one.len()), one);
        let two = "- alpha: ping->:string\n- beta: fetch->:unknown_content, search->[:any]\n- (+1 more upstreams)";
        assert_eq!(summarize(&CATALOG, CatalogMode::Auto, two.len()), two);
        assert_eq!(summarize(&CATALOG, CatalogMode::Auto, 0), "");
        for most in 0..200 {
            assert!(summarize(&CATALOG, CatalogMode::Auto, most).len() <= most, "{most}");
        }
        assert!(summarize(&CATALOG, CatalogMode::Lazy, 0).starts_with("alpha, beta, gamma; "));
    }
}
