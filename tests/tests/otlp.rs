//! Tests the exported spans of calls with OpenTelemetry's own protocol buffers.

use std::io::{BufRead, BufReader};
use std::process::Command;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers::python_script;
use ptc_tests::process::Background;
use serde_json::{Value, json};

#[test]
#[ignore = "needs what .ci/peers installs"]
fn official_collector_accepts_exported_spans() {
    let (_collector, output) = Background::with_output(&mut python_script("collector.py"));
    let mut lines = BufReader::new(output).lines().map(|line| line.expect("the collector writes lines"));
    let port = lines.next().expect("its port");
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("upstreams.json");
    std::fs::write(
        &config,
        json!({ "upstreams": { "gone": { "transport": "mcp_stdio", "command": "/no/such/program" } } }).to_string(),
    )
    .expect("a file");
    let mut server = Client::of(
        Command::new(ptc_compile())
            .arg("run")
            .arg(&config)
            .args(["--catalog-snapshot-mode", "live", "--otlp-endpoint", &format!("http://127.0.0.1:{port}")])
            .env("OTEL_SERVICE_NAME", "practice"),
    );
    server.initialize();
    // One call succeeds, one fails in an upstream, and one has a program that cannot be compiled.
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let arguments = json!({ "program": "(println \"p\") (+ 1 2)", "context": { "a": 1 } });
    let meta = json!({ "traceparent": format!("00-{trace}-00f067aa0ba902b7-01") });
    server.request("tools/call", &json!({ "name": "lisp_eval", "arguments": arguments, "_meta": meta }));
    server.eval("(:reason (tool/call {:server \"gone\" :tool \"x\" :args {}}))");
    server.eval("(+");
    assert_eq!(server.finish(), Some(0));

    let told: Vec<Value> = lines.map(|line| serde_json::from_str(&line).expect("JSON")).take(1).collect();
    let [told] = &told[..] else { panic!("nothing came") };
    assert_eq!(told.get("refused"), None, "{told}");
    let spans = told["spans"].as_array().expect("spans");
    let of = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let calls = of("tools/call lisp_eval");
    assert_eq!((calls.len(), of("eval").len() >= 2, of("gone/x").len()), (3, true, 1), "{told}");
    // Ids are bytes in protocol buffers, and base64 in JSON. They equal the ids of the request.
    assert_eq!((&calls[0]["traceId"], &calls[0]["parentSpanId"]), (&json!("S/kvNXezTaajzpKdDg5HNg=="), &json!("APBnqgupArc=")));
    assert_eq!(calls[0]["kind"], "SPAN_KIND_SERVER");
    assert_eq!(of("gone/x")[0]["status"]["code"], "STATUS_CODE_ERROR");
    assert_eq!(calls[2]["status"]["code"], "STATUS_CODE_ERROR");
    assert!(told["resource"].to_string().contains("practice"), "{told}");
}
