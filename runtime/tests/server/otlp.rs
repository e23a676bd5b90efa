//! Spans of calls, exported to working and to misbehaving collectors.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::Test;
use crate::forward_proxy::ForwardProxy;
use crate::peer::{Peer, server};
use crate::policy::{COUNT, count_file};
use crate::web::{Answer, Web};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("otlp::each_call_is_exported_as_a_trace", each_call_is_exported_as_a_trace),
    ("otlp::trace_context_of_a_request_is_continued", trace_context_of_a_request_is_continued),
    ("otlp::messages_follow_the_policy_of_traces", messages_follow_the_policy_of_traces),
    ("otlp::span_of_a_call_has_the_rule_of_the_policy", span_of_a_call_has_the_rule_of_the_policy),
    ("otlp::busy_collector_is_retried", busy_collector_is_retried),
    ("otlp::rejected_spans_are_counted_and_reported_once", rejected_spans_are_counted_and_reported_once),
    ("otlp::hanging_collector_does_not_delay_calls", hanging_collector_does_not_delay_calls),
    ("otlp::wrong_otlp_variable_is_named", wrong_otlp_variable_is_named),
    ("otlp::spans_are_sent_through_the_proxy", spans_are_sent_through_the_proxy),
];

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn collector() -> Web {
    Web::start(|_| Answer::json(200, "{}"))
}

fn call(server: &mut Peer, id: u64, program: &str, meta: &Value) -> String {
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program }, "_meta": meta });
    server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
    server.receive()
}

/// Returns the spans of all requests.
fn spans(web: &Web) -> Vec<Value> {
    let bodies = web.requests().into_iter().map(|asked| asked.json());
    bodies.flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()).collect()
}

fn attribute<'v>(of: &'v Value, name: &str) -> &'v Value {
    let found = of["attributes"].as_array().and_then(|all| all.iter().find(|one| one["key"] == name));
    found.and_then(|one| one["value"].as_object()?.values().next()).unwrap_or(&Value::Null)
}

fn end(mut server: Peer) -> String {
    server.input = None;
    let (status, log) = server.end();
    assert!(status.success(), "{log}");
    log
}

fn each_call_is_exported_as_a_trace() {
    let web = collector();
    let mut server = Peer::of(
        server("aggregator")
            .args(["--otlp-endpoint", web.url("/base/")])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
            .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20not-a-secret-0123,x-tenant=a")
            .env("OTEL_SERVICE_NAME", "practice")
            .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,service.version=7"),
    );
    let program = r#"(:value (tool/call {:server "child" :tool "echo" :args {:text "payload-of-a-program"}}))"#;
    let answer = call(&mut server, 1, program, &Value::Null);
    assert!(answer.contains("payload-of-a-program"), "{answer}");
    let log = end(server);
    assert!(log.contains("spans are exported") && !log.contains("not exported") && !log.contains("not-a-secret"), "{log}");

    let [asked] = &web.requests()[..] else { panic!("{:?}", web.requests()) };
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/base/v1/traces"));
    for (name, value) in [("authorization", "Bearer not-a-secret-0123"), ("x-tenant", "a"), ("content-type", "application/json")]
    {
        assert_eq!(asked.header(name), Some(value));
    }
    assert!(!asked.body.contains("payload-of-a-program"), "{}", asked.body);
    let resource = &asked.json()["resourceSpans"][0]["resource"];
    for (name, value) in [("service.name", "practice"), ("deployment.environment", "test"), ("service.version", "7")] {
        assert_eq!(attribute(resource, name), value);
    }

    let spans = spans(&web);
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["tools/call lisp_eval", "analyze", "eval", "child/echo"]);
    let parents: Vec<Option<&str>> = spans.iter().map(|span| span["parentSpanId"].as_str()).collect();
    let id = |at: usize| spans[at]["spanId"].as_str();
    assert_eq!(parents, [None, id(0), id(0), id(2)]);
    assert_eq!(spans.iter().map(|span| span["kind"].as_u64()).collect::<Vec<_>>(), [Some(2), Some(1), Some(1), Some(3)]);
    assert_eq!(
        (attribute(&spans[0], "gen_ai.tool.name"), attribute(&spans[0], "jsonrpc.request.id")),
        (&json!("lisp_eval"), &json!("1"))
    );
    assert_eq!((attribute(&spans[3], "ptc.upstream"), attribute(&spans[3], "ptc.result.bytes")), (&json!("child"), &json!("22")));
    let time = |span: &Value, name: &str| span[name].as_str().and_then(|text| text.parse::<u128>().ok()).expect("nanoseconds");
    for span in &spans {
        assert_eq!((&span["traceId"], span["spanId"].as_str().map(str::len)), (&spans[0]["traceId"], Some(16)));
        assert!(time(span, "startTimeUnixNano") >= time(&spans[0], "startTimeUnixNano"), "{span}");
        assert!(time(span, "endTimeUnixNano") <= time(&spans[0], "endTimeUnixNano"), "{span}");
    }
}

fn trace_context_of_a_request_is_continued() {
    let web = collector();
    let mut server = Peer::of(server("plain").env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", web.url("/exact")));
    call(&mut server, 1, "1", &json!({ "traceparent": format!("00-{TRACE}-{PARENT}-01") }));
    call(&mut server, 2, "2", &json!({ "traceparent": format!("00-{TRACE}-{PARENT}-00") }));
    call(&mut server, 3, "3", &json!({ "traceparent": "nonsense" }));
    end(server);
    assert_eq!(web.requests()[0].target, "/exact");
    let all = spans(&web);
    let calls: Vec<&Value> = all.iter().filter(|span| span["kind"] == 2).collect();
    assert_eq!(calls.len(), 2, "what its client does not keep is not sent");
    assert_eq!(
        (&calls[0]["traceId"], &calls[0]["parentSpanId"], &calls[0]["flags"]),
        (&json!(TRACE), &json!(PARENT), &json!(0x301))
    );
    assert_eq!((calls[1].get("parentSpanId"), &calls[1]["flags"]), (None, &json!(0x101)));
    assert_ne!(calls[1]["traceId"], TRACE);
}

fn messages_follow_the_policy_of_traces() {
    for (policy, message) in [("none", Value::Null), ("summary", Value::Null), ("full", json!("words-of-a-program"))] {
        let web = collector();
        let mut server = Peer::start(&["--otlp-endpoint", web.url(""), "--trace-payloads", policy]);
        call(&mut server, 1, "(fail \"words-of-a-program\")", &Value::Null);
        end(server);
        let span = spans(&web).remove(0);
        assert_eq!((&span["status"]["code"], attribute(&span, "error.type")), (&json!(2), &json!("fail")), "{policy}");
        let told = span["status"]["message"].as_str().map_or(Value::Null, |text| {
            assert!(text.contains("words-of-a-program"), "{text}");
            json!("words-of-a-program")
        });
        assert_eq!(told, message, "{policy}");
    }
}

fn span_of_a_call_has_the_rule_of_the_policy() {
    let (web, count) = (collector(), count_file("otlp"));
    let mut server = Peer::of(server("policy").env(COUNT, &count).args(["--otlp-endpoint", web.url("")]));
    for (id, region) in [(1, "eu"), (2, "asia")] {
        let program = format!(r#"(tool/value {{:server "crm" :tool "get_user" :args {{:region "{region}"}}}})"#);
        call(&mut server, id, &program, &Value::Null);
    }
    end(server);
    let spans = spans(&web);
    let of = |span: &Value| (attribute(span, "ptc.policy.rule").clone(), attribute(span, "error.type").clone());
    let calls: Vec<_> = spans.iter().filter(|span| span["name"] == "crm/get_user").map(of).collect();
    assert_eq!(calls, [(json!("local"), Value::Null), (json!("local"), json!("forbidden"))]);
    std::fs::remove_file(&count).expect("it is there");
}

fn busy_collector_is_retried() {
    let times = AtomicUsize::new(0);
    let web = Web::start(move |_| match times.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::Full(503, vec!["Retry-After: 0".into()], b"later".to_vec()),
        1 => Answer::Close,
        _ => Answer::json(200, json!({ "partialSuccess": {} })),
    });
    let mut server = Peer::start(&["--otlp-endpoint", web.url("")]);
    call(&mut server, 1, "1", &Value::Null);
    while web.requests().len() < 3 {
        std::thread::yield_now();
    }
    let log = end(server);
    assert!(!log.contains("not exported"), "{log}");
    let bodies: Vec<String> = web.requests().into_iter().map(|asked| asked.body).collect();
    assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]), "the same batch: {bodies:?}");
}

fn rejected_spans_are_counted_and_reported_once() {
    let web = Web::start(|_| Answer::json(400, json!({ "message": "no such thing" })));
    let mut server = Peer::start(&["--otlp-endpoint", web.url("")]);
    call(&mut server, 1, "1", &Value::Null);
    // There are two batches. The second one is sent when the server ends.
    while web.requests().is_empty() {
        std::thread::yield_now();
    }
    call(&mut server, 2, "2", &Value::Null);
    let log = end(server);
    assert_eq!(web.requests().len(), 2, "refused is refused");
    let told: Vec<Value> = log
        .lines()
        .filter(|line| line.contains("spans not exported"))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let [told] = &told[..] else { panic!("{log}") };
    assert!(
        told["lost"] == 3 && told["reason"].as_str().is_some_and(|why| why.contains("400") && why.contains("no such thing")),
        "{told}"
    );
}

fn hanging_collector_does_not_delay_calls() {
    let web = Web::start(|_| Answer::Hang);
    let mut server = Peer::of(server("plain").args(["--otlp-endpoint", web.url("")]).env("OTEL_EXPORTER_OTLP_TIMEOUT", "600000"));
    call(&mut server, 0, "0", &Value::Null);
    while web.requests().is_empty() {
        std::thread::yield_now();
    }
    // These are more spans than may be queued.
    for id in 1..5000 {
        assert!(call(&mut server, id, "1", &Value::Null).contains("user=> 1"));
    }
    let log = end(server);
    let told: Value = log
        .lines()
        .find(|line| line.contains("before the process ended"))
        .map_or(Value::Null, |line| serde_json::from_str(line).expect("JSON"));
    let count = |name: &str| told[name].as_u64().expect("a number");
    // Spans in flight are neither lost nor waiting.
    assert!(count("lost") > 0 && count("waiting") > 0 && count("lost") + count("waiting") < 15_000, "{told}");
}

fn wrong_otlp_variable_is_named() {
    for (name, value, part) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://x", "OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "nothing", "OTEL_EXPORTER_OTLP_HEADERS: expected name=value"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=c", "'a b': expected a name of a header"),
    ] {
        let mut command = server("plain");
        if name != "OTEL_EXPORTER_OTLP_ENDPOINT" {
            command.args(["--otlp-endpoint", "http://127.0.0.1:1"]);
        }
        let done = command.env(name, value).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(part), "{said}");
    }
}

fn spans_are_sent_through_the_proxy() {
    let proxy = ForwardProxy::start(Some("Basic YW5uYTpub3QtYS1zZWNyZXQ="));
    let export = |web: &Web, password: &str, flags: &[&str]| {
        let mut command = server("plain");
        command
            .args(["--otlp-endpoint", web.url("")])
            .args(flags)
            .env("PTC_RUNNER_MCP_PROXY", format!("http://anna:{password}@{}", proxy.address()));
        let mut server = Peer::of(&mut command);
        let answer = call(&mut server, 1, &json!(password).to_string(), &Value::Null);
        let log = end(server);
        for text in [&answer, &log] {
            assert!(!text.contains("not-a-secret") && !text.contains("YW5uYTp"), "{text}");
        }
        log
    };
    let web = collector();
    let log = export(&web, "not-a-secret", &[]);
    assert!(!log.contains("not exported"), "{log}");
    assert_eq!((web.requests().len(), proxy.heads().len()), (1, 1));
    assert_eq!(web.requests()[0].header("proxy-authorization"), None, "it is for the proxy alone");

    let log = export(&web, "not-a-secret-either", &[]);
    assert!(log.contains("the proxy refuses its credentials (407 Proxy Authentication Required)"), "{log}");
    assert_eq!((web.requests().len(), proxy.heads().len()), (1, 2), "it is not repeated");

    export(&web, "not-a-secret", &["--no-proxy", "internal.example, 127.0.0.0/8"]);
    assert_eq!((web.requests().len(), proxy.heads().len()), (2, 2));

    for (flag, part) in [
        ("--proxy=socks5://proxy:1080", "--proxy: expected http[s]://[user:password@]host[:port]"),
        ("--proxy=http://anna:short@proxy", "found '23 bytes'"),
        ("--no-proxy=http://internal.example", "--no-proxy: expected hosts, addresses or blocks"),
        ("--proxy-file=/nowhere", "--proxy-file: expected a readable file"),
    ] {
        let done = server("plain").arg(flag).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(part) && !said.contains("short"), "{said}");
    }
    let mut idle = Peer::of(server("plain").arg("--proxy=http://anna:not-a-secret@proxy.example"));
    call(&mut idle, 1, "1", &Value::Null);
    let log = end(idle);
    assert!(log.contains("--proxy has no effect without --agentic or --otlp-endpoint"), "{log}");
    assert!(log.contains("use PTC_RUNNER_MCP_PROXY or --proxy-file") && !log.contains("not-a-secret"), "{log}");
}
