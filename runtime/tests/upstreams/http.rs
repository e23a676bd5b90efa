//! MCP over Streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ptc_catalog::{Auth, Binding, Era, McpHttp, Proxy, Source, Transport};
use serde_json::{Value, json};

use crate::web::{Answer, Asked, Web};
use crate::world::{World, eventually, tool, upstream};

const TOOLS: [&str; 13] =
    ["answered", "big", "cut", "echo", "fail", "hang", "html", "list", "moved", "progress", "rpc", "status", "stream"];

/// Answers like a server of the handshake era without sessions. `call` makes the answer to a tool call from its frame.
pub(crate) fn handshaking(asked: &Asked, call: impl FnOnce(&Value) -> Answer) -> Answer {
    let frame = asked.json();
    match frame["method"].as_str() {
        Some("initialize") => Answer::json(
            200,
            json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}),
        ),
        Some("tools/call") => call(&frame),
        _ => Answer::Full(202, vec![], vec![]),
    }
}

/// Returns a server of the handshake era with sessions.
fn legacy(sessions: Arc<AtomicU32>) -> impl Fn(&Asked) -> Answer + Send + Sync {
    move |asked| {
        let frame = asked.json();
        let id = &frame["id"];
        if asked.method == "DELETE" {
            return Answer::json(200, "");
        }
        let session = format!("session-{}", sessions.load(Ordering::SeqCst));
        let method = frame["method"].as_str().unwrap_or_default();
        if method == "server/discover" {
            return Answer::json(400, json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no session"}}));
        }
        if method == "initialize" {
            let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
            let result =
                json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "web", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            return Answer::Full(
                200,
                vec!["Content-Type: application/json".into(), format!("Mcp-Session-Id: session-{number}")],
                body.into_bytes(),
            );
        }
        if asked.header("mcp-session-id") != Some(&session) {
            return Answer::json(
                404,
                json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}}),
            );
        }
        assert_eq!(asked.header("mcp-protocol-version"), Some("2025-06-18"), "{asked:?}");
        if id.is_null() || frame.get("method").is_none() {
            return Answer::Full(202, vec![], vec![]);
        }
        call(&frame)
    }
}

fn call(frame: &Value) -> Answer {
    let id = &frame["id"];
    let args = &frame["params"]["arguments"];
    let text = |text: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}});
    let other = json!({"jsonrpc": "2.0", "id": 424_242, "result": {}});
    match frame["params"]["name"].as_str().unwrap_or_default() {
        "echo" => Answer::json(200, text(args["message"].as_str().unwrap_or_default())),
        "stream" => Answer::Stream(vec![
            (0, ": keep-alive\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n".into()),
            (5, format!("data: {other}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}}\n\nda")),
            (5, format!("ta: {}\r\n\r\n", text("streamed"))),
        ]),
        "cut" => Answer::Stream(vec![(0, ": nothing\n\n".into())]),
        "progress" => Answer::Stream(vec![(0, ":\n\n".into()), (4_000, ":\n\n".into())]),
        "big" => Answer::json(200, text(&"x".repeat(200_000))),
        "list" => Answer::Stream(vec![(0, format!("data: {}\n\n", text(&"x".repeat(200_000))))]),
        "fail" => Answer::json(
            200,
            json!({"jsonrpc": "2.0", "id": id, "result": {"isError": true, "content": [{"type": "text", "text": "no"}]}}),
        ),
        "rpc" => Answer::json(200, json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "boom"}})),
        "html" => Answer::Full(200, vec!["Content-Type: text/html".into()], b"<html>hi</html>".to_vec()),
        "hang" => Answer::Hang,
        "moved" => Answer::Full(307, vec!["Location: http://127.0.0.1:9/elsewhere".into()], vec![]),
        "status" => {
            let status = args["code"].as_u64().unwrap() as u16;
            let why = args["why"].as_str().unwrap_or("why");
            Answer::Full(status, vec!["Retry-After: 7".into()], why.as_bytes().to_vec())
        }
        "answered" => Answer::json(
            404,
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32001, "message": "no such session of yours"}}),
        ),
        other => panic!("{other}"),
    }
}

fn world(spec: McpHttp) -> World {
    World::new(vec![upstream("web", Transport::McpHttp(spec), TOOLS.map(tool).into())])
}

#[test]
fn http_calls_give_payloads_and_faults_in_json_and_event_streams() {
    let sessions = Arc::default();
    let web = Web::start(legacy(Arc::clone(&sessions)));
    let world = world(McpHttp { max_response_bytes: 100_000, request_timeout_ms: 1_500, ..McpHttp::new(web.url("/mcp")) });
    let program = world.program();
    let cases = [
        ("echo", r#"{"message":"hi"}"#, "text hi", Some(200)),
        ("stream", "{}", "text streamed", Some(200)),
        ("fail", "{}", "tool_error: no", Some(200)),
        ("rpc", "{}", "upstream_error: boom (JSON-RPC error -32000)", None),
        ("html", "{}", "upstream_error: the answer is not a JSON-RPC response: <html>hi</html>", Some(200)),
        ("cut", "{}", "upstream_error: the stream of the answer ended without a response", Some(200)),
        ("big", "{}", "response_too_large: the answer is larger than 100000 bytes", Some(200)),
        ("list", "{}", "response_too_large: the answer is larger than 100000 bytes", Some(200)),
        (
            "hang",
            "{}",
            "timeout: 'web' did not answer the call within 1500 ms (request_timeout_ms of the upstream): the time ran out while waiting",
            None,
        ),
        ("progress", "{}", "timeout: 'web' did not answer the call within 1500 ms", Some(200)),
        ("status", r#"{"code":401}"#, "auth_failed: HTTP 401 Unauthorized", Some(401)),
        ("status", r#"{"code":403}"#, "tool_error: HTTP 403 Forbidden", Some(403)),
        ("status", r#"{"code":422}"#, "tool_error: HTTP 422", Some(422)),
        ("status", r#"{"code":429}"#, "rate_limited: HTTP 429 Too Many Requests (retry after 7 s): why", Some(429)),
        ("status", r#"{"code":503}"#, "upstream_unavailable: HTTP 503 Service Unavailable (retry after 7 s): why", Some(503)),
        ("status", r#"{"code":409}"#, "tool_error: HTTP 409 Conflict", Some(409)),
        (
            "moved",
            "{}",
            "upstream_error: HTTP 307 Temporary Redirect: it redirects to http://127.0.0.1:9/elsewhere, which is not followed",
            Some(307),
        ),
        ("echo", r#"{"message":"again"}"#, "text again", Some(200)),
    ];
    for (tool, args, expected, status) in cases {
        let answer = program.call("web", tool, args);
        assert!(answer.starts_with(expected), "{tool}: {answer}");
        if status.is_some() {
            assert_eq!(program.last().http_status, status, "{tool}");
        }
    }
    assert_eq!(sessions.load(Ordering::SeqCst), 1, "one session for all calls");
    eventually("the answer to the server's ping, and cancellations", || {
        let requests = web.requests();
        requests.iter().any(|r| r.json()["id"] == "p" && r.json()["result"] == json!({}))
            && requests.iter().filter(|r| r.json()["method"] == "notifications/cancelled").count() == 2
    });
    world.shutdown();
    assert_eq!(web.requests().last().map(|r| r.method.clone()).as_deref(), Some("DELETE"));
}

#[test]
fn expired_session_is_reopened_once_for_all_calls() {
    let sessions: Arc<AtomicU32> = Arc::default();
    let web = Web::start(legacy(Arc::clone(&sessions)));
    let world = world(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) });
    let program = world.program();
    assert_eq!(program.call("web", "echo", r#"{"message":"a"}"#), "text a");
    // The server restarts and has lost its sessions.
    sessions.store(10, Ordering::SeqCst);
    let tickets: Vec<_> = (0..8).map(|_| program.start("web", "echo", r#"{"message":"b"}"#)).collect();
    for ticket in tickets {
        let waited = ticket.wait(None);
        assert!(
            matches!(&waited, ptc_lisp::host::WaitOutcome::Reply(ptc_lisp::host::Reply::Text(text)) if text == "b"),
            "{waited:?}"
        );
    }
    assert_eq!(sessions.load(Ordering::SeqCst), 11);
}

/// A tool may itself cause a 404 or 400. The 400 is not taken for a lost session, the 404 only once, and the program sees the
/// error.
#[test]
fn errors_in_a_valid_session_are_reported_unchanged() {
    let web = Web::start(legacy(Arc::default()));
    let world = world(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) });
    let calls = || web.requests().iter().filter(|asked| asked.json()["method"] == "tools/call").count();
    let mut before = 0;
    for (arguments, expected, asked) in [
        (
            r#"{"code":400,"why":"chat session 7 is archived"}"#,
            "tool_error: HTTP 400 Bad Request (retry after 7 s): chat session 7 is archived",
            1,
        ),
        (r#"{"code":404,"why":"no such order"}"#, "tool_error: HTTP 404 Not Found (retry after 7 s): no such order", 2),
    ] {
        let answer = world.program().call("web", "status", arguments);
        assert_eq!((answer.as_str(), calls() - before), (expected, asked));
        before = calls();
    }
    let answer = world.program().call("web", "answered", "{}");
    assert_eq!((answer.as_str(), calls() - before), ("upstream_error: no such session of yours (JSON-RPC error -32001)", 1));
}

#[test]
fn stateless_era_uses_headers_and_no_session() {
    let web = Web::start(|asked| {
        let frame = asked.json();
        let id = &frame["id"];
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(asked.header("mcp-method"), frame["method"].as_str());
        assert_eq!(asked.header("mcp-session-id"), None);
        assert_eq!(frame["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        if frame["method"] == "server/discover" {
            return Answer::json(
                200,
                json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}}}),
            );
        }
        assert_eq!(asked.header("mcp-name"), frame["params"]["name"].as_str());
        call(&frame)
    });
    for era in [None, Some(Era::Stateless)] {
        let world = world(McpHttp { era, ..McpHttp::new(web.url("/mcp")) });
        assert_eq!(world.program().call("web", "echo", r#"{"message":"x"}"#), "text x");
    }
}

#[test]
fn credentials_and_headers_are_sent_and_redacted_in_results() {
    let web = Web::start(|asked| {
        handshaking(asked, |frame| {
            let headers: Value =
                asked.headers.iter().map(|(n, v)| (n.clone(), json!(v))).collect::<serde_json::Map<_, _>>().into();
            Answer::json(200, json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"structuredContent": headers}}))
        })
    });
    let bindings = || {
        vec![
            Binding { name: "basic", source: Source::Literal { value: "ann:correct-horse" } },
            Binding { name: "key", source: Source::Literal { value: "k3y-k3y-k3y" } },
            Binding { name: "pat", source: Source::Literal { value: "b3arer-t0ken" } },
        ]
    };
    let world = |auth: &'static [Auth]| {
        let spec =
            McpHttp { auth, static_headers: &[("X-Tenant", "t1")], era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) };
        World::with(vec![upstream("web", Transport::McpHttp(spec), TOOLS.map(tool).into())], bindings(), |_| {})
    };
    let first = world(&[Auth::Bearer { binding: "pat" }, Auth::CustomHeader { header: "X-Key", binding: "key" }]);
    let program = first.program();
    let answer = program.call("web", "echo", "{}");
    let seen = web.requests().pop().unwrap();
    assert_eq!(seen.header("authorization"), Some("Bearer b3arer-t0ken"));
    assert_eq!((seen.header("x-key"), seen.header("x-tenant")), (Some("k3y-k3y-k3y"), Some("t1")));
    assert!(seen.header("user-agent").unwrap().starts_with("ptc_lisp/"));
    assert_eq!(seen.header("accept-encoding"), None, "nothing is decompressed");
    assert!(answer.contains(r#""authorization":"Bearer [REDACTED]""#) && answer.contains(r#""x-key":"[REDACTED]""#), "{answer}");
    let auth = program.last().auth.unwrap();
    assert_eq!((auth.scheme, auth.binding), ("bearer", "pat"));

    let second = world(&[Auth::Basic { binding: "basic" }]);
    let answer = second.program().call("web", "echo", "{}");
    assert_eq!(web.requests().pop().unwrap().header("authorization"), Some("Basic YW5uOmNvcnJlY3QtaG9yc2U="));
    assert!(!answer.contains("YW5uOmNvcnJlY3Qt"), "{answer}");
}

#[test]
fn secret_in_a_header_is_not_truncated_before_redaction() {
    const LONG: &str = "l0ng-s3cret-of-more-than-the-forty-characters-that-are-shown";
    let web = Web::start(|_| {
        let lines = vec![format!("Retry-After: {LONG}"), format!("Location: http://{LONG}.invalid/{LONG}?x={LONG}")];
        Answer::Full(307, lines, vec![])
    });
    let bindings = vec![Binding { name: "pat", source: Source::Literal { value: LONG } }];
    let spec = McpHttp { auth: &[Auth::Bearer { binding: "pat" }], era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) };
    let world = World::with(vec![upstream("web", Transport::McpHttp(spec), vec![tool("echo")])], bindings, |_| {});
    let answer = world.program().call("web", "echo", "{}");
    assert_eq!(answer, "upstream_error: HTTP 307 Temporary Redirect: it redirects to nowhere (retry after [REDACTED])");
}

/// The server sends requests without end and accepts no answers.
#[test]
fn requests_of_a_server_use_few_connections() {
    let web = Web::start(|asked| {
        if asked.json().get("method").is_none() {
            return Answer::Hang;
        }
        handshaking(asked, |frame| {
            let pings = (0..2_000).map(|n| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"ping\"}}\n\n"));
            let content = json!([{"type": "text", "text": "asked"}]);
            let result = json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"content": content}});
            Answer::Stream(vec![(0, pings.collect()), (300, format!("data: {result}\n\n"))])
        })
    });
    let world = world(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) });
    assert_eq!(world.program().call("web", "stream", "{}"), "text asked");
    let answered = web.requests().iter().filter(|asked| asked.json().get("result") == Some(&json!({}))).count();
    assert!((1..=16).contains(&answered), "{answered}");
}

#[test]
fn unreachable_upstream_is_unavailable() {
    // This port was just released.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = world(McpHttp::new(format!("http://127.0.0.1:{port}/mcp").leak()));
    let answer = refused.program().call("web", "echo", "{}");
    assert!(answer.starts_with("upstream_unavailable: cannot connect to 'web': Connection refused"), "{answer}");

    let silent = Web::start(|_| Answer::Hang);
    let mute = world(McpHttp { handshake_timeout_ms: 300, ..McpHttp::new(silent.url("/mcp")) });
    let answer = mute.program().call("web", "echo", "{}");
    assert_eq!(
        answer,
        "timeout: 'web' did not finish its handshake within 300 ms (handshake_timeout_ms): the time ran out while waiting for an answer"
    );

    let closing = Web::start(|_| Answer::Close);
    let answer = world(McpHttp::new(closing.url("/mcp"))).program().call("web", "echo", "{}");
    assert!(answer.starts_with("upstream_unavailable: the request failed"), "{answer}");

    let locked = Web::start(|_| Answer::Full(401, vec![], vec![]));
    let answer = world(McpHttp::new(locked.url("/mcp"))).program().call("web", "echo", "{}");
    assert_eq!(answer, "auth_failed: HTTP 401 Unauthorized: the upstream refuses the credential");
}

#[test]
fn redirect_to_another_origin_is_not_followed() {
    let other = Web::start(|_| Answer::json(200, "{}"));
    let elsewhere = other.url("/stolen");
    let sessions = Arc::default();
    let inner = legacy(Arc::clone(&sessions));
    let web = Web::start(move |asked| match asked.target.as_str() {
        "/same" => Answer::Full(307, vec!["Location: /mcp".into()], vec![]),
        "/other" => Answer::Full(307, vec![format!("Location: {elsewhere}")], vec![]),
        "/get" => Answer::Full(302, vec!["Location: /mcp".into()], vec![]),
        _ => inner(asked),
    });
    let call = |path: &str| world(McpHttp::new(web.url(path))).program().call("web", "echo", r#"{"message":"x"}"#);
    assert_eq!(call("/same"), "text x");
    assert!(call("/other").contains("it redirects to"), "{}", call("/other"));
    assert!(call("/get").contains("HTTP 302"), "a POST must not become a GET");
    assert!(other.requests().is_empty());
}

#[test]
fn server_that_starts_late_is_reached_later() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = world(McpHttp::new(format!("http://{port}/mcp").leak()));
    let program = world.program();
    assert!(program.call("web", "echo", "{}").starts_with("upstream_unavailable"));
    assert!(program.call("web", "echo", "{}").contains("the next attempt is made in"));
    std::thread::sleep(Duration::from_millis(10));
}

/// A stream that ends early is resumed after its last event, after the delay that the server requests.
#[test]
fn interrupted_event_stream_is_resumed() {
    let web = Web::start(|asked| {
        if asked.method == "GET" {
            let rest = match asked.header("last-event-id") {
                // The stream breaks again before any new message.
                Some("a-1") => {
                    ": still here\n\nid: a-2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n".to_owned()
                }
                Some("a-2") => r#"id: a-3
data: {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"resumed"}]}}

"#
                .to_owned(),
                other => panic!("{other:?}"),
            };
            return Answer::Stream(vec![(0, rest)]);
        }
        handshaking(asked, |frame| {
            let cut = frame["params"]["name"] == "cut";
            let text =
                if cut { "id: b-1\ndata: {\"jsonrpc\":\"2.0\"" } else { "retry: 20\nid: a-1\ndata:\n\nid: a-9\ndata: {\"js" };
            Answer::Stream(vec![(0, text.into())])
        })
    });
    let world = world(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) });
    let program = world.program();
    assert_eq!(program.call("web", "stream", "{}"), "text resumed");
    let asked: Vec<_> = web.requests().iter().filter_map(|r| r.header("last-event-id").map(str::to_owned)).collect();
    assert_eq!(asked, ["a-1", "a-2"], "an event that was cut is not one to go on after");
    assert_eq!(web.requests().iter().filter(|r| r.json()["method"] == "tools/call").count(), 1, "nothing is called twice");
    let answer = program.call("web", "cut", "{}");
    assert_eq!(answer, "upstream_error: the stream of the answer ended without a response");
}

#[test]
fn proxy_of_the_entry_is_used() {
    let sessions = Arc::default();
    let proxy = Web::start(legacy(Arc::clone(&sessions)));
    let world = world(McpHttp { proxy: Some(Proxy::new(proxy.url(""))), ..McpHttp::new("http://upstream.invalid/mcp") });
    assert_eq!(world.program().call("web", "echo", r#"{"message":"x"}"#), "text x");
    assert!(proxy.requests().iter().all(|asked| asked.target == "http://upstream.invalid/mcp"));
}
