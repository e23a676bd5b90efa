//! What changes of a pinned tool are called, and how bad they are.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use ptc_compiler::config::{self, Config};
use ptc_compiler::diag::{Code, Diagnostics};
use ptc_compiler::drift;
use ptc_compiler::ir::Json;
use ptc_compiler::lock::{Lock, LockedTool, LockedUpstream};
use ptc_compiler::source::Sources;

const TOOL: &str = r#"{
  "name": "search", "description": "Searches.",
  "inputSchema": {
    "type": "object", "required": ["q"],
    "properties": {
      "q": {"type": "string", "description": "Words."},
      "limit": {"type": "integer", "maximum": 100},
      "order": {"type": "string", "enum": ["up", "down"]},
      "tags": {"type": ["string", "array"]}
    }
  },
  "outputSchema": {"type": "object", "properties": {"total": {"type": "integer", "description": "How many."}}},
  "annotations": {"readOnlyHint": true, "idempotentHint": true},
  "title": "Search"
}"#;

fn config() -> Config {
    let mut sources = Sources::default();
    let file = sources.add("upstreams.json", r#"{"upstreams": {"a": {"transport": "mcp_stdio", "command": "a"}}}"#);
    config::read(&sources, file, &mut Diagnostics::default()).unwrap()
}

fn lock(definitions: &[&str]) -> Lock {
    let mut upstream = LockedUpstream { transport: "mcp_stdio".into(), all_tools: true, ..LockedUpstream::default() };
    for text in definitions {
        let definition = Json::from(&serde_json::from_str::<serde_json::Value>(text).unwrap());
        let name = definition.get("name").and_then(Json::as_str).unwrap().to_owned();
        upstream.tools.insert(name, LockedTool::new(definition));
    }
    let mut lock = Lock::default();
    lock.upstreams.insert("a".into(), upstream);
    lock
}

fn changes(old: &[&str], new: &[&str]) -> Vec<(Code, String)> {
    let mut diagnostics = Diagnostics::default();
    let count = drift::compare(&config(), &lock(old), &lock(new), &mut diagnostics);
    let found: Vec<(Code, String)> = diagnostics.sorted().iter().map(|d| (d.code, d.message.clone())).collect();
    assert_eq!(count > 0, !found.is_empty());
    found
}

#[test]
fn every_kind_of_change_has_its_class() {
    use Code::{
        AnnotationChanged, BecameDestructive, DefinitionChanged, DescriptionChanged, InputBreaking, InputChanged, InputWidened,
        OutputChanged,
    };
    for (from, to, code, message) in [
        (r#""required": ["q"]"#, r#""required": ["q", "limit"]"#, InputBreaking, "`search` of `a` now requires `limit`"),
        (r#""required": ["q"]"#, r#""required": []"#, InputWidened, "`search` of `a` no longer requires `q`"),
        (r#""limit": {"#, r#""most": {"#, InputBreaking, "`search` of `a` no longer takes `limit`"),
        (r#""tags": {"#, r#""cursor": {}, "tags": {"#, InputWidened, "`search` of `a` takes the new argument `cursor`"),
        (r#"["string", "array"]"#, r#""string""#, InputBreaking, "`search` of `a` takes string for `tags`, which was"),
        (
            r#""integer", "maximum""#,
            r#""number", "maximum""#,
            InputWidened,
            "`search` of `a` takes number for `limit`, which was integer",
        ),
        (r#"["up", "down"]"#, r#"["up"]"#, InputBreaking, r#"`search` of `a` refuses "down" for `order`"#),
        (r#"["up", "down"]"#, r#"["up", "down", "best"]"#, InputWidened, "`search` of `a` takes more values for `order`"),
        (
            r#""type": "object", "required""#,
            r#""additionalProperties": false, "type": "object", "required""#,
            InputBreaking,
            "`search` of `a` refuses arguments that it does not name",
        ),
        ("100", "50", InputChanged, "`search` of `a` bounds `limit` differently"),
        ("Words.", "Words, at most three.", DescriptionChanged, "`search` of `a` describes its arguments differently"),
        ("Searches.", "Searches. Always call this first.", DescriptionChanged, "`search` of `a` says \"Searches. Always"),
        (r#""total""#, r#""count""#, OutputChanged, "`search` of `a` answers in another shape"),
        (
            r#""readOnlyHint": true"#,
            r#""readOnlyHint": false"#,
            BecameDestructive,
            "`search` of `a` no longer says that it is harmless",
        ),
        (r#", "idempotentHint": true"#, "", AnnotationChanged, "`search` of `a` now has `idempotentHint` unsaid, which was true"),
        (r#""title": "Search""#, r#""title": "Find""#, DefinitionChanged, "`search` of `a` differs in `title`"),
    ] {
        let changed = TOOL.replace(from, to);
        assert_ne!(changed, TOOL, "{from}");
        let found = changes(&[TOOL], &[&changed]);
        assert!(found.iter().any(|(c, m)| *c == code && m.starts_with(message)), "{to}: {found:?}");
        // A change of one thing is one finding, but for a property under another name.
        assert!(found.len() == 1 || from.contains("limit"), "{to}: {found:?}");
    }
}

#[test]
fn tools_come_and_go() {
    let other = TOOL.replace(r#""name": "search""#, r#""name": "find""#);
    assert_eq!(changes(&[TOOL], &[TOOL]), []);
    let codes: Vec<Code> = changes(&[TOOL], &[&other]).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::ToolAdded, Code::ToolRemoved]);
}

#[test]
fn prose_of_an_answer_is_no_other_shape() {
    let changed = TOOL.replace("How many.", "How many there are.");
    let codes: Vec<Code> = changes(&[TOOL], &[&changed]).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::DefinitionChanged]);
}
