//! Checks that the tables of keys in `guide/config.md` match the rows of the reader.
//! `UPDATE=1 cargo test -p ptc-compiler config_guide::` rewrites them.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fmt::Write as _;
use std::path::Path;

use ptc_compiler::config::keys;
use ptc_compiler::config::table::{Key, Kind, Presence, Table, Variants};

const START: &str = "<!-- keys -->\n";
const END: &str = "<!-- end of keys -->\n";

/// The groups of keys in the order of the page, each with its default.
fn sections() -> Vec<(&'static str, Vec<(&'static Key, String)>)> {
    let with_default = |key| (key, default(key));
    let all = |groups: &'static [&'static [Key]]| groups.iter().flat_map(|group| group.iter()).map(with_default).collect();
    let case = |tag: &str| keys::UPSTREAM.case(tag).unwrap().groups;
    let ([entry, stdio, mcp], [_, mcp_http, http, _], [_, openapi, _]) = (case("mcp_stdio"), case("mcp_sse"), case("openapi"))
    else {
        panic!("the groups of the entries have changed")
    };
    let of = |group: &'static &'static [Key]| group.iter().map(with_default).collect();
    vec![
        ("The config", all(keys::CONFIG.groups)),
        ("Every entry of `upstreams`", of(entry)),
        ("`mcp_stdio`", of(stdio)),
        ("`sandbox` of an `mcp_stdio` entry", all(keys::SANDBOX.groups)),
        ("`mcp_http` and `mcp_sse`", of(mcp_http)),
        ("`mcp_stdio`, `mcp_http` and `mcp_sse`", of(mcp)),
        ("`openapi`", of(openapi)),
        ("`mcp_http`, `mcp_sse` and `openapi`", of(http)),
        ("`proxy` of an `mcp_http`, `mcp_sse` or `openapi` entry", all(keys::PROXY.groups)),
        ("`operation_overrides`, by operation", all(keys::OVERRIDE.groups)),
        ("`tool_overrides`, by tool", all(keys::TOOL_OVERRIDE.groups)),
        ("`credentials`, by name", distinct(&keys::CREDENTIAL)),
        ("`auth`, a list", distinct(&keys::AUTH)),
        ("`programs`, by tool name", all(keys::PROGRAM.groups)),
        ("`policy`", all(keys::POLICY.groups)),
        ("`rules` of a `policy`, a list", all(keys::RULE.groups)),
        ("`when` of a rule", all(keys::WHEN.groups)),
        ("`allow` of a rule, a list", all(keys::GRANT.groups)),
        ("`limits` of a rule", all(keys::LIMITS.groups)),
    ]
}

/// The keys of all cases, each once. A key that only some cases require says which.
fn distinct(variants: &'static Variants) -> Vec<(&'static Key, String)> {
    let mut distinct: Vec<(&Key, String)> = Vec::new();
    for key in variants.cases.iter().flat_map(Table::keys) {
        let is_required = |case: &&Table| case.key(key.name).is_some_and(|key| matches!(key.presence, Presence::Required));
        let required: Vec<&str> = variants.cases.iter().filter(is_required).map(|case| case.tag).collect();
        let is_partial = !required.is_empty() && required.len() < variants.cases.len();
        if distinct.iter().all(|(known, _)| known.name != key.name) {
            let partial = || format!("required for {}", choices(required.iter().copied()));
            distinct.push((key, if is_partial { partial() } else { default(key) }));
        }
    }
    distinct
}

fn tables() -> String {
    let mut text = String::new();
    for (title, keys) in sections() {
        writeln!(text, "\n### {title}\n\n| key | value | default | meaning |\n|---|---|---|---|").unwrap();
        for (key, default) in keys {
            let Key { name, doc, .. } = key;
            writeln!(text, "| `{name}` | {} | {default} | {doc} |", value(key)).unwrap();
        }
    }
    text + "\n"
}

fn value(key: &Key) -> String {
    match key.kind {
        Kind::Text | Kind::AnyText => match key.name {
            "transport" => choices(keys::UPSTREAM.tags()),
            "source" => choices(keys::CREDENTIAL.tags()),
            "scheme" => choices(keys::AUTH.tags()),
            _ => "text".to_owned(),
        },
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Number { unit, .. } => format!("number of {unit}"),
        Kind::Texts | Kind::Names => "list of texts".to_owned(),
        Kind::Notes => "list of codes".to_owned(),
        Kind::FlagOrNames => "`true`, `false`, or list of texts".to_owned(),
        Kind::TextMap => "texts by name".to_owned(),
        Kind::Secret => "text, or `user` and `pass`".to_owned(),
        Kind::Choice(words) => choices(words.iter().copied()),
        Kind::Object | Kind::Record(_) => "object".to_owned(),
        Kind::TextOrRecord(_) => "text, or object".to_owned(),
        Kind::List => "list of objects".to_owned(),
        Kind::Paging => "`false`, or object".to_owned(),
    }
}

fn choices<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn default(key: &Key) -> String {
    match (key.presence, key.kind) {
        (Presence::Required, _) => "required".to_owned(),
        (Presence::Default(number), _) => number.to_string(),
        (Presence::Optional, Kind::Flag | Kind::FlagOrNames) => "`false`".to_owned(),
        (Presence::Optional, _) => String::new(),
    }
}

#[test]
fn tables_of_keys_match_the_config_reader() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("guide/config.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(START).expect("the page has the mark");
    let (written, after) = rest.split_once(END).expect("the page has the mark");
    let wanted = tables();
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(&path, [before, START, &wanted, END, after].concat()).unwrap();
    }
    let differs = written.lines().zip(wanted.lines()).find(|(written, wanted)| written != wanted);
    assert!(written == wanted, "guide/config.md differs from the rows at {differs:?}: run with UPDATE=1");
}
