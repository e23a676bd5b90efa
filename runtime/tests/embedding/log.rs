//! Sinks of log lines. They belong to the process, so that one test covers several engines.

use std::sync::{Arc, Mutex};

use ptc_catalog::{Binding, Catalog, Deployment, EnvPart, McpStdio, Source, Tool, Tools, Transport, Upstream};
use ptc_runtime::embed::{Engine, Request};
use ptc_runtime::log::Level;

const SECRET: &str = "swordfish-1234";

/// Returns a deployment with a child that writes a secret to standard error and ends.
fn deployment() -> &'static Deployment {
    static BINDINGS: [Binding; 1] = [Binding { name: "key", source: Source::Literal { value: SECRET } }];
    static TOOLS: [Tool; 1] = [Tool { name: "echo", ..Tool::EMPTY }];
    static UPSTREAMS: [Upstream; 1] = [Upstream {
        name: "child",
        description: "",
        transport: Transport::McpStdio(McpStdio {
            args: &["-c", "echo \"refused: $TOKEN\" >&2; exit 3"],
            env: &[("TOKEN", &[EnvPart::Text(SECRET)])],
            ..McpStdio::new("sh")
        }),
        tools: Tools::table(&TOOLS),
    }];
    static CATALOG: Catalog = Catalog { digest: "", search_index: &[], upstreams: &UPSTREAMS };
    static DEPLOYMENT: Deployment =
        Deployment { name: "logging", credentials: &BINDINGS, catalog: &CATALOG, ..Deployment::EMPTY };
    &DEPLOYMENT
}

#[test]
fn log_sink_receives_redacted_lines_until_its_engine_ends() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&lines);
    let builder = Engine::builder().deployment(deployment()).log_sink(move |line| {
        let text = line.text("upstream").map(str::to_owned);
        sink.lock().unwrap().push((line.level(), line.event().to_owned(), text, line.to_string()));
        panic!("a bug of the sink");
    });
    let engine = builder.build().unwrap();
    let call = "(:reason (tool/call {:server \"child\" :tool \"echo\"}))";
    assert_eq!(engine.run(Request::new(call)).preview(), Ok(":upstream_unavailable"), "the panic of a sink is ignored");
    let received = lines.lock().unwrap().clone();
    let about_child = |(level, _, upstream, _): &&(Level, String, Option<String>, String)| {
        *level == Level::Warn && upstream.as_deref() == Some("child")
    };
    let line = received.iter().find(about_child).unwrap_or_else(|| panic!("{received:?}"));
    assert!(line.3.contains("refused: [REDACTED]"), "{line:?}");
    let json: serde_json::Value = serde_json::from_str(&line.3).unwrap();
    assert_eq!((&json["level"], &json["event"]), (&"warn".into(), &line.1.as_str().into()));

    // A line of another engine passes the redactors of all sinks.
    ptc_runtime::log::line(Level::Error, "from elsewhere", &[("reason", SECRET)]);
    let received = lines.lock().unwrap().clone();
    assert!(received.iter().any(|(_, event, _, text)| event == "from elsewhere" && text.contains("\"reason\":\"[REDACTED]\"")));
    assert!(received.iter().all(|(.., text)| !text.contains(SECRET)), "{received:?}");
    drop(engine);
    let before = lines.lock().unwrap().len();
    ptc_runtime::log::line(Level::Error, "after the engine", &[]);
    assert_eq!(lines.lock().unwrap().len(), before, "its sink is removed");
}
