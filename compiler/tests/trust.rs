//! Tests which effects of MCP tools are relied on: those that the config states, and declared ones only where the config trusts the
//! server.
#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use ptc_catalog::EffectKind::{self, Read, Unknown, Write};
use ptc_compiler::config;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::ir::{Deployment, Tool};
use ptc_compiler::json::Json;
use ptc_compiler::lock::{Lock, LockedTool, LockedUpstream};
use ptc_compiler::lower;
use ptc_compiler::source::Sources;

/// Returns a deployment of one server, with further keys in its entry. Its tools declare that they read, write, or nothing.
fn deployment(keys: &str) -> Deployment {
    let declared =
        [("reads", r#"{"readOnlyHint":true}"#), ("writes", r#"{"readOnlyHint":false,"idempotentHint":true}"#), ("says", "{}")];
    let definition = |name: &str, annotations: &str| {
        let text = format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"annotations":{annotations}}}"#);
        LockedTool::new(Json::from(&serde_json::from_str::<serde_json::Value>(&text).unwrap()))
    };
    let tools = declared.map(|(name, annotations)| (name.to_owned(), definition(name, annotations))).into_iter().collect();
    let mut lock = Lock::default();
    let pinned = LockedUpstream { transport: "mcp_stdio".into(), tools, all_tools: true, ..LockedUpstream::default() };
    lock.upstreams.insert("files".to_owned(), pinned);
    let mut sources = Sources::default();
    let text = format!(r#"{{ "upstreams": {{ "files": {{ "transport": "mcp_stdio", "command": "c"{keys} }} }} }}"#);
    let file = sources.add("upstreams.json", text);
    let mut diagnostics = Diagnostics::default();
    let config = config::read(&sources, file, &mut diagnostics).unwrap();
    lower::deployment(&config, &lock, "trust")
}

fn kinds(deployment: &Deployment) -> Vec<(&str, EffectKind)> {
    let tools = &deployment.upstreams.first().unwrap().tools;
    tools.iter().map(|tool| (tool.name.as_str(), tool.effect().kind)).collect()
}

fn tool<'a>(deployment: &'a Deployment, name: &str) -> &'a Tool {
    deployment.upstreams.first().unwrap().tools.iter().find(|tool| tool.name == name).unwrap()
}

/// Returns the lines of a tool's documentation before its arguments, without its name.
fn head(deployment: &Deployment, name: &str) -> Vec<String> {
    let doc = &tool(deployment, name).doc;
    doc.lines().skip(1).take_while(|line| !line.starts_with("args:")).map(str::to_owned).collect()
}

#[test]
fn annotations_of_an_untrusted_server_have_no_effect() {
    let deployment = deployment("");
    assert_eq!(kinds(&deployment), [("reads", Unknown), ("says", Unknown), ("writes", Unknown)]);
    assert_eq!(head(&deployment, "reads"), ["effect: not known (declared, not trusted: reads)"]);
    assert_eq!(head(&deployment, "writes"), ["effect: not known (declared, not trusted: writes, can be repeated)"]);
    assert_eq!(head(&deployment, "says"), [""; 0]);
    assert_eq!(tool(&deployment, "reads").annotations.read_only, Some(true));
}

#[test]
fn annotations_of_a_trusted_server_decide_the_effect() {
    let deployment = deployment(r#", "trust_annotations": true"#);
    assert_eq!(kinds(&deployment), [("reads", Read), ("says", Unknown), ("writes", Write)]);
    assert_eq!(head(&deployment, "reads"), [""; 0]);
    assert_eq!(head(&deployment, "writes"), ["effect: writes, can be repeated"]);
}

#[test]
fn overrides_take_precedence_over_declarations_of_a_tool() {
    let overrides = r#", "trust_annotations": true, "tool_overrides": {
        "reads": { "read_only": false, "destructive": true },
        "says": { "read_only": true, "description": "Says the time." }
    }"#;
    let deployment = deployment(overrides);
    assert_eq!(kinds(&deployment), [("reads", Write), ("says", Read), ("writes", Write)]);
    assert_eq!(head(&deployment, "reads"), ["effect: writes, may destroy data"]);
    assert_eq!(head(&deployment, "says"), ["Says the time."]);
    assert_eq!(tool(&deployment, "says").description, "Says the time.");
}
