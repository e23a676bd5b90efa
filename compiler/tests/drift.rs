//! Tests the codes and severities of changes of a pinned tool.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use ptc_catalog::HttpTransport;
use ptc_compiler::config::{self, Config};
use ptc_compiler::diag::render::Style;
use ptc_compiler::diag::{Code, Diagnostics, Severity};
use ptc_compiler::drift;
use ptc_compiler::json::Json;
use ptc_compiler::lock::read::Places;
use ptc_compiler::lock::{Lock, LockedTool, LockedUpstream, Observed, Server};
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
    let count = drift::compare(&config(), &lock(old), &lock(new), &Places::default(), None, &mut diagnostics);
    let found: Vec<(Code, String)> = diagnostics.sorted().iter().map(|d| (d.code, d.message.clone())).collect();
    assert_eq!(count.tools > 0, !found.is_empty());
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
        (r#"["up", "down"]"#, r#"["up", "down", "best"]"#, InputWidened, "`search` of `a` now takes \"best\" for `order`"),
        (
            r#""type": "object", "required""#,
            r#""additionalProperties": false, "type": "object", "required""#,
            InputBreaking,
            "`search` of `a` refuses arguments that it does not name",
        ),
        ("100", "50", InputBreaking, "`search` of `a` now has `maximum` 50 for `limit`, which was 100"),
        ("100", "200", InputWidened, "`search` of `a` now has `maximum` 200 for `limit`, which was 100"),
        ("100", "100, \"default\": 9", InputChanged, "`search` of `a` now has `default` 9 for `limit`"),
        ("Words.", "Words, at most three.", DescriptionChanged, "`search` of `a` describes `q` differently"),
        ("Searches.", "Searches. Always call this first.", DescriptionChanged, "`search` of `a` says \"Searches. Always"),
        (r#""total""#, r#""count""#, OutputChanged, "`search` of `a` answers {:count integer?}, which was {:total integer?}"),
        (
            r#""readOnlyHint": true"#,
            r#""readOnlyHint": false"#,
            BecameDestructive,
            "`search` of `a` no longer says that it is harmless",
        ),
        (
            r#", "idempotentHint": true"#,
            "",
            AnnotationChanged,
            "`search` of `a` no longer declares `idempotentHint`, which was true",
        ),
        (r#""title": "Search""#, r#""title": "Find""#, DefinitionChanged, "`search` of `a` differs in `title`"),
    ] {
        let changed = TOOL.replace(from, to);
        assert_ne!(changed, TOOL, "{from}");
        let found = changes(&[TOOL], &[&changed]);
        assert!(found.iter().any(|(c, m)| *c == code && m.starts_with(message)), "{to}: {found:?}");
        // One change gives one finding, except for a renamed property.
        assert!(found.len() == 1 || from.contains("limit"), "{to}: {found:?}");
    }
}

#[test]
fn harmless_change_does_not_hide_another_change() {
    let changed = TOOL
        .replace(r#""tags": {"#, r#""cursor": {}, "tags": {"#)
        .replace("100", "100, \"default\": 9")
        .replace("Words.", "Words, at most three.");
    let codes: Vec<Code> = changes(&[TOOL], &[&changed]).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::InputWidened, Code::InputChanged, Code::DescriptionChanged]);
    let shared = |most: u32| {
        format!(
            r##"{{"name": "a", "inputSchema": {{"type": "object", "properties": {{"n": {{"$ref": "#/$defs/n"}}}},
                "$defs": {{"n": {{"type": "integer", "maximum": {most}}}}}}}}}"##
        )
    };
    let found = changes(&[&shared(9)], &[&shared(8)]);
    assert_eq!(found, [(Code::InputBreaking, "`a` of `a` now has `maximum` 8 for `n`, which was 9".to_owned())]);
}

/// An old and a new schema of an argument `f`, and the expected findings about the tool.
type Inside = (&'static str, &'static str, &'static [(Code, &'static str)]);

const INSIDE: &[Inside] = &[
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}"#,
        &[(Code::InputBreaking, "now requires `f.b`")],
    ),
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}"#,
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}"#,
        &[(Code::InputWidened, "takes the new member `f.b`"), (Code::InputWidened, "no longer requires `f.a`")],
    ),
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {}}}"#,
        r#"{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}"#,
        &[(Code::InputBreaking, "no longer takes `f.b`"), (Code::InputBreaking, "refuses members of `f` that it does not name")],
    ),
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
        r#"{"type": "object", "additionalProperties": true}"#,
        &[(Code::InputChanged, "no longer describes `f.a`, and takes any members there")],
    ),
    (
        r#"{"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}"#,
        r#"{"type": "object", "properties": {"a": {"type": "integer"}}}"#,
        &[(Code::InputBreaking, "takes integer for `f.a`, which was string|integer")],
    ),
    (
        r#"{"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}"#,
        r#"{"type": "array", "items": {"type": "string", "enum": ["a"]}}"#,
        &[(Code::InputBreaking, "refuses \"b\" for `f[]`")],
    ),
    // Removed and added values are both reported.
    (
        r#"{"type": "array", "items": {"enum": ["a", "b"]}}"#,
        r#"{"type": "array", "items": {"enum": ["c", "a"]}}"#,
        &[(Code::InputBreaking, "refuses \"b\" for `f[]`"), (Code::InputWidened, "now takes \"c\" for `f[]`")],
    ),
    (
        r#"{"type": "array", "items": {"type": "string"}}"#,
        r#"{"type": "array", "items": {"type": "integer"}}"#,
        &[(Code::InputBreaking, "takes integer for `f[]`, which was string")],
    ),
    (
        r#"{"type": "array", "items": {"type": "object", "properties": {"n": {"minimum": 1}}}}"#,
        r#"{"type": "array", "items": {"type": "object", "properties": {"n": {"minimum": 0}}}}"#,
        &[(Code::InputWidened, "now has `minimum` 0 for `f[].n`, which was 1")],
    ),
    (
        r#"{"type": "object", "additionalProperties": {"type": "string"}}"#,
        r#"{"type": "object", "additionalProperties": {"type": "string", "pattern": "^x"}}"#,
        &[(Code::InputBreaking, "now has `pattern` \"^x\" for `f.*`")],
    ),
    (
        r#"{"type": "string", "pattern": "^x", "uniqueItems": false}"#,
        r#"{"type": "string", "pattern": "^y"}"#,
        &[(Code::InputChanged, "now has `pattern` \"^y\" for `f`, which was \"^x\"")],
    ),
    (
        r#"{"type": "object"}"#,
        r#"{"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
        &[(Code::InputBreaking, r#"now has `anyOf` [{"required":["a"]},{"required":["b"]}] for `f`"#)],
    ),
    // This is the usual way to write an optional schema: the only alternative beside `null` is the schema itself.
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
        r#"{"anyOf": [{"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}, {"type": "null"}]}"#,
        &[
            (Code::InputBreaking, "now has `maxLength` 3 for `f.a`"),
            (Code::InputWidened, "takes object|null for `f`, which was object"),
        ],
    ),
    // A recursive schema is compared once.
    (
        r##"{"$ref": "#/$defs/t"}"##,
        r##"{"$ref": "#/$defs/u"}"##,
        &[(Code::InputBreaking, "takes integer for `f.n`, which was number")],
    ),
    // Neither a different order nor different descriptions change the accepted values.
    (
        r#"{"type": ["object", "null"], "properties": {"a": {"description": "One."}}, "required": ["a", "b"]}"#,
        r#"{"type": ["null", "object"], "properties": {"a": {"description": "Two."}}, "required": ["b", "a"]}"#,
        &[(Code::DescriptionChanged, "describes `f` differently")],
    ),
];

#[test]
fn members_of_an_argument_are_compared_like_arguments() {
    let tool = |schema: &str| {
        format!(
            r##"{{"name": "t", "inputSchema": {{"type": "object", "properties": {{"f": {schema}}}, "$defs": {{
                "t": {{"type": "object", "properties": {{"n": {{"type": "number"}}, "more": {{"$ref": "#/$defs/t"}}}}}},
                "u": {{"type": "object", "properties": {{"n": {{"type": "integer"}}, "more": {{"$ref": "#/$defs/u"}}}}}}}}}}}}"##
        )
    };
    for (from, to, expected) in INSIDE {
        let found = changes(&[&tool(from)], &[&tool(to)]);
        let expected: Vec<(Code, String)> = expected.iter().map(|(code, what)| (*code, format!("`t` of `a` {what}"))).collect();
        assert_eq!(found, expected, "{from} {to}");
    }
    let input = |more: &str| {
        format!(r#"{{"name": "t", "inputSchema": {{"type": "object", "properties": {{"a": {{}}, "b": {{}}}}{more}}}}}"#)
    };
    for (more, code, what) in [
        (r#", "minProperties": 1"#, Code::InputBreaking, "now has `minProperties` 1 for its arguments"),
        (
            r#", "dependentRequired": {"a": ["b"]}"#,
            Code::InputBreaking,
            r#"now has `dependentRequired` {"a":["b"]} for its arguments"#,
        ),
    ] {
        let found = changes(&[&input("")], &[&input(more)]);
        assert_eq!(found, [(code, format!("`t` of `a` {what}"))]);
    }
}

/// An argument that is only no longer named is not refused, so no call breaks.
#[test]
fn schema_without_constraints_breaks_no_argument() {
    let tool = |input: &str| format!(r#"{{"name": "t", "inputSchema": {input}}}"#);
    let before = tool(r#"{"type": "object", "properties": {"path": {"type": "string"}}}"#);
    for now in [
        "{}",
        r#"{"type": "object"}"#,
        r#"{"type": "object", "description": "Anything."}"#,
        r#"{"type": "object", "additionalProperties": true}"#,
        r#"{"type": "object", "properties": {"n": {}}, "additionalProperties": {}}"#,
    ] {
        let found = changes(&[&before], &[&tool(now)]);
        assert!(found.iter().all(|(code, _)| *code != Code::InputBreaking), "{now}: {found:?}");
        let expected = (Code::InputChanged, "`t` of `a` no longer describes `path`, and takes any arguments".to_owned());
        assert!(found.contains(&expected), "{now}: {found:?}");
    }
    for now in [r#"{"type": "object", "properties": {"n": {}}}"#, r#"{"type": "object", "additionalProperties": false}"#] {
        let found = changes(&[&before], &[&tool(now)]);
        assert!(found.contains(&(Code::InputBreaking, "`t` of `a` no longer takes `path`".to_owned())), "{now}: {found:?}");
    }
}

#[test]
fn members_and_definitions_of_alternatives_are_compared_together() {
    let tool = |input: &str| format!(r#"{{"name": "add", "inputSchema": {{"type": "object", {input}}}}}"#);
    let block = |kind: &str| format!(r#"{{"properties": {{"type": {{"enum": [{kind}]}}}}}}"#);
    let blocks = |alternatives: &str| tool(&format!(r#""properties": {{"blocks": {{"items": {alternatives}}}}}"#));
    let before = blocks(&block(r#""text", "list""#));
    let after = blocks(&format!(r#"{{"anyOf": [{}, {}]}}"#, block(r#""text""#), block(r#""list""#)));
    let found = changes(&[&before], &[&after]);
    assert!(found.iter().all(|(_, message)| !message.contains("refuses")), "{found:?}");
    let after = blocks(&format!(r#"{{"anyOf": [{}, {}]}}"#, block(r#""text""#), block(r#""table""#)));
    let found = changes(&[&before], &[&after]);
    assert!(found.contains(&(Code::InputBreaking, r#"`add` of `a` refuses "list" for `blocks[].type`"#.to_owned())), "{found:?}");

    // A definition that nothing refers to bounds nothing.
    let defined = |input: &str, length: u8| tool(&format!(r#"{input}, "$defs": {{"Text": {{"maxLength": {length}}}}}"#));
    for (input, code) in [
        (r#""properties": {"q": {}}"#, Code::DefinitionChanged),
        (r##""patternProperties": {"^x": {"$ref": "#/$defs/Text"}}"##, Code::InputChanged),
    ] {
        let codes: Vec<Code> = changes(&[&defined(input, 1)], &[&defined(input, 2)]).into_iter().map(|(code, _)| code).collect();
        assert_eq!(codes, [code], "{input}");
    }
}

#[test]
fn added_and_removed_tools_are_reported() {
    let other = TOOL.replace(r#""name": "search""#, r#""name": "find""#);
    assert_eq!(changes(&[TOOL], &[TOOL]), []);
    let codes: Vec<Code> = changes(&[TOOL], &[&other]).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::ToolAdded, Code::ToolRemoved]);
}

#[test]
fn server_name_and_instructions_are_compared() {
    let said = |name: &str, instructions: Option<&str>| {
        let mut lock = lock(&[TOOL]);
        let upstream = lock.upstreams.get_mut("a").unwrap();
        upstream.server = Some(Server { name: name.to_owned(), version: "1".to_owned() });
        upstream.instructions = instructions.map(str::to_owned);
        lock
    };
    let before = said("Shop", Some("Sells things."));
    for (now, expected) in [
        (said("Shop", Some("Sells things.")), None),
        (said("Stop", Some("Sells things.")), Some(r#"`a` calls itself "Stop", which was "Shop""#)),
        (said("Shop", None), Some(r#"`a` says of itself "", which was "Sells things.""#)),
        (said("Shop", Some("Sells all.")), Some(r#"`a` says of itself "Sells all.", which was "Sells things.""#)),
    ] {
        let mut diagnostics = Diagnostics::default();
        let count = drift::compare(&config(), &before, &now, &Places::default(), None, &mut diagnostics);
        let found: Vec<(Code, &str)> = diagnostics.sorted().iter().map(|d| (d.code, d.message.as_str())).collect();
        assert_eq!(found, expected.map(|message| (Code::DescriptionChanged, message)).into_iter().collect::<Vec<_>>());
        assert_eq!((count.tools, count.upstreams), (0, found.len()));
    }
}

#[test]
fn changed_http_transport_is_an_error_of_its_own() {
    let over = |transport: &str, agreed: Option<HttpTransport>| {
        let mut lock = lock(&[TOOL]);
        let upstream = lock.upstreams.get_mut("a").unwrap();
        (upstream.transport, upstream.http_transport) = (transport.to_owned(), agreed);
        lock
    };
    let (streamable, sse) = (over("mcp_http", Some(HttpTransport::Streamable)), over("mcp_http", Some(HttpTransport::Sse)));
    // Earlier compilers wrote no transport, and knew only Streamable HTTP.
    let earlier = over("mcp_http", None);
    let to_sse = Some("`a` is reached over HTTP+SSE, which was Streamable HTTP");
    let to_streamable = Some("`a` is reached over Streamable HTTP, which was HTTP+SSE");
    for (before, now, expected) in [
        (&streamable, &sse, to_sse),
        (&earlier, &sse, to_sse),
        (&streamable, &over("mcp_sse", Some(HttpTransport::Sse)), to_sse),
        (&sse, &streamable, to_streamable),
        (&earlier, &streamable, None),
        (&sse, &sse, None),
        (&over("mcp_stdio", None), &streamable, None),
    ] {
        let mut diagnostics = Diagnostics::default();
        let count = drift::compare(&config(), before, now, &Places::default(), None, &mut diagnostics);
        let found: Vec<(Code, &str)> = diagnostics.sorted().iter().map(|d| (d.code, d.message.as_str())).collect();
        assert_eq!(found, expected.map(|message| (Code::TransportChanged, message)).into_iter().collect::<Vec<_>>());
        assert_eq!((count.tools, count.upstreams), (0, found.len()));
        let line = expected.map(|message| format!("a: its HTTP transport changed\n  error[PTC0631]: {message}\n"));
        assert_eq!(report_of(before, now), line.unwrap_or_default());
    }
}

#[test]
fn tools_of_a_new_upstream_are_not_counted_as_changed() {
    let mut diagnostics = Diagnostics::default();
    let count = drift::compare(&config(), &Lock::default(), &lock(&[TOOL]), &Places::default(), None, &mut diagnostics);
    assert_eq!((count.tools, count.upstreams, count.new_upstreams), (0, 0, 1));
    assert_eq!(count.clause(), "1 upstream is new");
    let all = drift::Count { tools: 2, upstreams: 1, new_upstreams: 3 };
    assert_eq!(all.clause(), "2 tools and 1 upstream changed, 3 upstreams are new");
}

/// An operation of a document with all members of its request.
const OPERATION: &str = r#"{
  "name": "add-order",
  "inputSchema": {"type": "object", "required": ["id"], "properties": {"id": {}, "note": {}, "size": {}}},
  "_ptc": {
    "operationId": "addOrder", "method": "POST", "path": "/orders", "body": "application/json", "bodyNeeds": ["note"],
    "params": [{"name": "id", "in": "query", "style": "form", "explode": true}], "defaultArgs": {"kind": "new"},
    "callTimeoutMs": 5000, "types": ["text/csv"], "headers": ["etag"], "later": 1
  }
}"#;

#[test]
fn each_member_of_the_request_of_an_operation_is_compared() {
    use Code::{DefinitionChanged, InputBreaking, InputWidened, OperationRenamed, OutputChanged, RequestChanged};
    for (from, to, code, message) in [
        ("addOrder", "makeOrder", OperationRenamed, "cannot be called as `addOrder` any more, but as `makeOrder`"),
        ("POST", "PUT", RequestChanged, "is requested with `PUT`, which was `POST`"),
        ("/orders", "/v2/orders", RequestChanged, "is requested at `/v2/orders`, which was `/orders`"),
        (r#""style": "form""#, r#""style": "pipeDelimited""#, RequestChanged, "sends `id` differently"),
        (
            "application/json",
            "application/xml",
            RequestChanged,
            "sends its body as `application/xml`, which was `application/json`",
        ),
        (r#""body": "application/json", "#, "", RequestChanged, "no longer sends a body as `application/json`"),
        (r#""bodyNeeds""#, r#""bodyRequired": true, "bodyNeeds""#, RequestChanged, "sends a body also without arguments for it"),
        (r#"["note"]"#, r#"["note", "size"]"#, InputBreaking, "now requires `size` with a body"),
        (r#"["note"]"#, "[]", InputWidened, "no longer requires `note` with a body"),
        (r#""kind": "new""#, r#""kind": "old""#, RequestChanged, "sends \"old\" for `kind` by default"),
        ("5000", "100", RequestChanged, "has the time limit in milliseconds `100`, which was `5000`"),
        ("text/csv", "text/xml", OutputChanged, "answers with the media types `[\"text/xml\"]`, which was `[\"text/csv\"]`"),
        ("etag", "age", OutputChanged, "answers with the headers `[\"age\"]`, which was `[\"etag\"]`"),
        (r#""later""#, r#""linkHeader": true, "later""#, OutputChanged, "answers with links to further pages"),
        (r#""later""#, r#""paging": {"items": "a"}, "later""#, RequestChanged, "reads the pages of its list differently"),
        (r#""later": 1"#, r#""later": 2"#, RequestChanged, "has `later` of its request as `2`, which was `1`"),
        (r#""later""#, r#""deprecated": true, "later""#, DefinitionChanged, "is deprecated"),
    ] {
        let changed = OPERATION.replace(from, to);
        assert_ne!(changed, OPERATION, "{from}");
        assert_eq!(changes(&[OPERATION], &[&changed]), [(code, format!("`add-order` of `a` {message}"))], "{to}");
    }
}

/// Returns a lock with tools that have the arguments of their schemas, of a server with a version.
fn versioned(version: &str, tools: &[(&str, &str)]) -> Lock {
    let definitions: Vec<String> = tools
        .iter()
        .map(|(name, properties)| {
            format!(r#"{{"name": "{name}", "inputSchema": {{"type": "object", "properties": {{"a": {{}}, {properties}}}}}}}"#)
        })
        .collect();
    let mut lock = lock(&definitions.iter().map(String::as_str).collect::<Vec<_>>());
    lock.upstreams.get_mut("a").unwrap().server = Some(Server { name: "A".to_owned(), version: version.to_owned() });
    lock
}

fn report_of(old: &Lock, new: &Lock) -> String {
    drift::report::report(
        &config(),
        old,
        new,
        &drift::severity::BreakingTools::default(),
        drift::report::Extent::Tools,
        Style::Plain,
    )
}

#[test]
fn report_has_a_summary_for_an_upstream_and_a_line_for_a_tool() {
    let b = r#""b": {"type": "string"}"#;
    let old = versioned("1.2.0", &[("gone", b), ("lost", b), ("same", b), ("narrow", b), ("wide", b)]);
    let int = r#""b": {"type": "integer"}"#;
    let new = versioned("1.3.0", &[("new", b), ("same", b), ("narrow", int), ("wide", r#""b": {"type": "string"}, "c": {}"#)]);
    assert_eq!(
        report_of(&old, &new),
        "a 1.2.0 → 1.3.0: 2 tools removed, 1 added, 2 inputs changed (1 breaking)\n  \
         error[PTC0611]: `gone` is gone\n  error[PTC0611]: `lost` is gone\n  \
         error[PTC0612]: `narrow` takes integer for `b`, which was string\n  \
         note[PTC0610]: `new` is new\n  note[PTC0613]: `wide` takes the new argument `c`\n"
    );
    // A version alone is shown, and is not a change.
    let newer = versioned("1.2.1", &[("gone", b), ("lost", b), ("same", b), ("narrow", b), ("wide", b)]);
    assert_eq!(report_of(&old, &newer), "a 1.2.0 → 1.2.1: no tool changed\n");
    let mut diagnostics = Diagnostics::default();
    drift::compare(&config(), &old, &newer, &Places::default(), None, &mut diagnostics);
    assert_eq!(diagnostics.worst(), None);
    assert_eq!(report_of(&old, &old), "");
}

#[test]
fn report_on_many_tools_is_short_and_begins_with_errors() {
    let names: Vec<String> = (0..200).map(|at| format!("t{at}")).collect();
    let lock = |version: &str, schema: &dyn Fn(usize) -> String| {
        let texts: Vec<String> = (0..names.len()).map(schema).collect();
        versioned(version, &names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect::<Vec<_>>())
    };
    let old = lock("1", &|_| r#""b": {"type": "integer", "maximum": 100}"#.to_owned());
    // Equal changes share a line.
    let equal = report_of(&old, &lock("2", &|_| r#""b": {"type": "integer", "maximum": 50}"#.to_owned()));
    assert_eq!(equal.lines().count(), 2, "{equal}");
    let different = |at: usize| format!(r#""b": {{"type": "integer", "maximum": {}}}"#, if at == 150 { 1 } else { 101 + at });
    let text = report_of(&old, &lock("2", &different));
    assert!(text.lines().count() <= 40, "{text}");
    assert!(text.lines().nth(1).unwrap().contains("error[PTC0612]: `t150` now has `maximum` 1"), "{text}");
    assert!(text.ends_with("  and more tools: 171 with notes; `--details` shows all changes\n"), "{text}");
}

#[test]
fn changed_description_of_output_does_not_change_its_shape() {
    let changed = TOOL.replace("How many.", "How many there are.");
    let codes: Vec<Code> = changes(&[TOOL], &[&changed]).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [Code::DefinitionChanged]);
}

#[test]
fn observed_shapes_are_compared_as_information() {
    let observed = |answers: u64, schema: &str| Some(Observed { answers, schema: Json::parse(schema).unwrap() });
    let with = |observed: Option<Observed>| {
        let mut lock = lock(&[TOOL]);
        lock.upstreams.get_mut("a").unwrap().tools.get_mut("search").unwrap().observed = observed;
        lock
    };
    let id = r#"{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}"#;
    let text = r#"{"type": "string"}"#;
    for (old, new, expected) in [
        (None, None, ""),
        (observed(2, id), observed(3, id), ""),
        (None, observed(2, id), "`search` of `a` was observed to answer {:id integer}"),
        (observed(2, id), observed(3, text), "`search` of `a` was observed to answer string, which was {:id integer}"),
        (observed(2, id), None, "`search` of `a` has another request, so that what was observed of its answers is dropped"),
    ] {
        let mut diagnostics = Diagnostics::default();
        drift::compare(&config(), &with(old), &with(new), &Places::default(), None, &mut diagnostics);
        let found: Vec<&str> = diagnostics.sorted().iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(found.concat(), expected);
        assert!(diagnostics.sorted().iter().all(|finding| finding.code == Code::ObservedChanged));
        assert!(diagnostics.worst() <= Some(Severity::Note));
    }
}

#[test]
fn recorded_examples_are_not_compared() {
    let with = |example: Option<&str>| {
        let mut lock = lock(&[TOOL]);
        lock.upstreams.get_mut("a").unwrap().tools.get_mut("search").unwrap().example = example.and_then(Json::parse);
        lock
    };
    let texts = [None, Some(r#"{"q": "a"}"#), Some(r#"{"q": "b"}"#)];
    for (old, new) in texts.into_iter().flat_map(|old| texts.map(|new| (old, new))) {
        let mut diagnostics = Diagnostics::default();
        let count = drift::compare(&config(), &with(old), &with(new), &Places::default(), None, &mut diagnostics);
        assert!(count == drift::Count::default() && diagnostics.sorted().is_empty(), "{old:?} {new:?}");
        assert_eq!(with(old).catalog_digest() == with(new).catalog_digest(), old == new);
    }
}
