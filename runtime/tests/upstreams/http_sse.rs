//! MCP over HTTP+SSE with servers that misbehave. `tests/tests/http_sse.rs` has the servers of the official SDKs.

use std::sync::{Arc, Mutex, mpsc};

use ptc_catalog::{Auth, Binding, Era, HttpTransport, McpHttp, Source, Tool, Transport};
use ptc_lisp::host::WaitOutcome;
use serde_json::{Value, json};

use crate::http::handshaking;
use crate::web::{Answer, Asked, Web};
use crate::world::{World, described, eventually, tool, upstream};

/// A server with one session at a time. `GET /sse` opens its event stream.
#[derive(Clone)]
pub(crate) struct Server {
    /// The endpoint that it names.
    endpoint: String,
    stream: Arc<Mutex<Option<mpsc::Sender<String>>>>,
}

impl Server {
    pub(crate) fn start(endpoint: &str) -> (Server, Web) {
        let server = Server { endpoint: endpoint.to_owned(), stream: Arc::default() };
        let web = server.clone();
        (server, Web::start(move |asked| web.answer(asked)))
    }

    fn send(&self, event: &str) {
        if let Some(stream) = &*self.stream.lock().unwrap() {
            let _ = stream.send(event.to_owned());
        }
    }

    fn message(&self, message: &Value) {
        self.send(&format!("event: message\r\ndata: {message}\r\n\r\n"));
    }

    fn drop_stream(&self) {
        *self.stream.lock().unwrap() = None;
    }

    fn answer(&self, asked: &Asked) -> Answer {
        if asked.method == "GET" {
            let (send, receive) = mpsc::channel();
            *self.stream.lock().unwrap() = Some(send);
            self.send(&format!(": hello\n\nevent: endpoint\ndata: {}\n\n", self.endpoint));
            return Answer::Events(receive);
        }
        if asked.target == "/sse" {
            return Answer::Full(405, vec![], b"Method Not Allowed".to_vec());
        }
        let frame = asked.json();
        let id = &frame["id"];
        let text = |text: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}});
        match (frame["method"].as_str().unwrap_or_default(), frame["params"]["name"].as_str()) {
            ("initialize", _) => self
                .message(&json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2024-11-05", "capabilities": {}}})),
            (_, Some("echo")) => {
                // Neither a response to another request, nor a notification or a request of the server, answers the call.
                self.message(&json!({"jsonrpc": "2.0", "id": 424_242, "result": {}}));
                self.message(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                self.message(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
                self.send("event: endpoint\ndata: http://other.invalid/\n\nevent: message\ndata: not JSON\n\n");
                self.message(&text(&frame["params"]["arguments"].to_string()));
            }
            (_, Some("large")) => self.message(&text(&"x".repeat(200_000))),
            (_, Some("failed")) => {
                let sent = asked.header("authorization").unwrap_or_default();
                let content = json!([{ "type": "text", "text": format!("{sent} {}", "x".repeat(20_000)) }]);
                self.message(&json!({"jsonrpc": "2.0", "method": "ping", "id": "p", "params": {"much": "x".repeat(20_000)}}));
                self.message(&json!({"jsonrpc": "2.0", "id": id, "result": {"isError": true, "content": content}}));
            }
            (_, Some("drop")) => self.drop_stream(),
            (_, Some("refused")) => return Answer::Full(403, vec![], b"not for you".to_vec()),
            // There is no answer to the request, only a response.
            (_, Some("unaccepted")) => {
                self.message(&text("early"));
                return Answer::Hang;
            }
            _ => {}
        }
        Answer::Full(202, vec![], b"Accepted".to_vec())
    }
}

fn tools() -> Vec<Tool> {
    let mut tools: Vec<Tool> = ["echo", "large", "drop", "refused", "unaccepted", "hang"].map(tool).into();
    let mut read = tool("read");
    read.effects.read_only = Some(true);
    tools.push(read);
    tools
}

fn world(spec: McpHttp) -> World {
    World::new(vec![upstream("web", Transport::McpHttp(spec), tools())])
}

fn sse(web: &Web) -> McpHttp {
    McpHttp { http_transport: Some(HttpTransport::Sse), ..McpHttp::new(web.url("/sse")) }
}

fn methods(web: &Web) -> Vec<String> {
    web.requests().iter().map(|asked| format!("{} {}", asked.method, asked.target)).collect()
}

#[test]
fn calls_and_faults_use_one_event_stream() {
    let (server, web) = Server::start("messages?session=1");
    let world = world(McpHttp { max_response_bytes: 100_000, request_timeout_ms: 500, ..sse(&web) });
    let program = world.program();
    let cases = [
        ("echo", "text {\"a\":1}"),
        ("refused", "tool_error: HTTP 403 Forbidden: not for you"),
        ("unaccepted", "text early"),
        (
            "hang",
            "timeout: 'web' did not answer the call within 500 ms (request_timeout_ms of the upstream): the time ran out while waiting",
        ),
        ("large", "response_too_large: the answer is larger than 100000 bytes"),
        ("echo", "text {\"a\":1}"),
    ];
    for (tool, expected) in cases {
        let answer = program.call("web", tool, r#"{"a":1}"#);
        assert!(answer.starts_with(expected), "{tool}: {answer}");
    }
    eventually("the answer to the server's ping, and the cancellation of the call without a response", || {
        let requests = web.requests();
        requests.iter().any(|asked| asked.json()["id"] == "p" && asked.json()["result"] == json!({}))
            && requests.iter().filter(|asked| asked.json()["method"] == "notifications/cancelled").count() == 1
    });
    // A response that is too large fails its own call only.
    let both = ["echo", "large"].map(|tool| program.start("web", tool, r#"{"a":1}"#));
    let both = both.map(|pending| match pending.wait(None) {
        WaitOutcome::Reply(reply) => described(reply),
        other => panic!("{other:?}"),
    });
    assert!(both[0] == "text {\"a\":1}" && both[1].starts_with("response_too_large: "), "{both:?}");
    let posted = methods(&web);
    assert_eq!(posted.first().map(String::as_str), Some("GET /sse"), "nothing is posted before there is an endpoint");
    assert!(posted.iter().skip(1).all(|sent| sent == "POST /messages?session=1"), "{posted:?}");
    world.shutdown();
    eventually("the end of the event stream", || {
        server.send(":\n\n");
        server.stream.lock().unwrap().as_ref().is_some_and(|stream| stream.send(":\n\n".into()).is_err())
    });
}

#[test]
fn lost_event_stream_is_reopened_between_calls() {
    let (server, web) = Server::start("/messages");
    let world = world(sse(&web));
    let opened = || methods(&web).iter().filter(|sent| *sent == "GET /sse").count();
    for streams in 1..=3 {
        assert_eq!(world.program().call("web", "echo", "{}"), "text {}");
        assert_eq!(opened(), streams);
        server.drop_stream();
        // The client reads the end of the stream concurrently.
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let initialized = web.requests().iter().filter(|asked| asked.json()["method"] == "initialize").count();
    assert_eq!(initialized, 3, "each session has its own handshake");
}

#[test]
fn lost_event_stream_fails_a_write_and_retries_a_read_once() {
    let (_, web) = Server::start("/messages");
    let calls = |name: &str| web.requests().iter().filter(|asked| asked.json()["params"]["name"] == name).count();
    let world = world(sse(&web));
    let answer = world.program().call("web", "drop", "{}");
    assert_eq!((answer.as_str(), calls("drop")), ("upstream_unavailable: the server ended the event stream", 1));

    let server = Server { endpoint: "/messages".into(), stream: Arc::default() };
    let dropping = Web::start(move |asked| {
        let answer = server.answer(asked);
        if asked.json()["params"]["name"] == "read" {
            server.drop_stream();
        }
        answer
    });
    let world = self::world(McpHttp { http_transport: Some(HttpTransport::Sse), ..McpHttp::new(dropping.url("/sse")) });
    let answer = world.program().call("web", "read", "{}");
    let sent = dropping.requests().iter().filter(|asked| asked.json()["params"]["name"] == "read").count();
    assert_eq!((answer.as_str(), sent), ("upstream_unavailable: the server ended the event stream", 2));
}

#[test]
fn endpoint_of_another_origin_is_refused() {
    let stolen = Web::start(|_| Answer::json(200, "{}"));
    let bindings = || vec![Binding { name: "key", source: Source::Literal { value: "correct-horse-battery" } }];
    for endpoint in [stolen.url("/messages?session=s3"), "//other.invalid/x", "https:/messages", "http://a:b@127.0.0.1/"] {
        let (_, web) = Server::start(endpoint);
        let spec = McpHttp { auth: &[Auth::Bearer { binding: "key" }], ..sse(&web) };
        let world = World::with(vec![upstream("web", Transport::McpHttp(spec), tools())], bindings(), |_| {});
        let answer = world.program().call("web", "echo", "{}");
        assert!(answer.starts_with("upstream_unavailable: the server names the endpoint http"), "{answer}");
        assert!(answer.ends_with(&format!("not of the origin http://{}: no request is sent there", web.address)), "{answer}");
        assert!(!answer.contains("session=s3"), "{answer}");
        let sent = web.requests();
        assert_eq!(sent.len(), 1, "{endpoint}");
        assert_eq!(sent[0].header("authorization"), Some("Bearer correct-horse-battery"));
    }
    assert!(stolen.requests().is_empty());
}

#[test]
fn refused_initialize_falls_back_only_if_the_entry_permits_it() {
    let call = |spec: McpHttp| world(spec).program().call("web", "echo", "{}");
    let (_, web) = Server::start("/messages");
    for era in [None, Some(Era::Handshake), Some(Era::Stateless)] {
        assert_eq!(call(McpHttp { era, ..McpHttp::new(web.url("/sse")) }), "text {}");
    }
    // A binary whose lock file has Streamable HTTP keeps to it.
    let before = web.requests().len();
    let locked = call(McpHttp {
        era: Some(Era::Handshake),
        http_transport: Some(HttpTransport::Streamable),
        ..McpHttp::new(web.url("/sse"))
    });
    assert_eq!(
        locked,
        "upstream_unavailable: HTTP 405 Method Not Allowed: Method Not Allowed; this binary speaks only Streamable HTTP with it, as the \
         lock file has it; if the server offers only HTTP+SSE now, `ptc-compile update` and a new build use that"
    );
    assert!(web.requests().iter().skip(before).all(|asked| asked.method == "POST"));
    let error = r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}}"#;
    // The answer to GET shows that the credential is refused, not that there is no server.
    let locked = Web::start(|asked| Answer::Full(if asked.method == "GET" { 401 } else { 405 }, vec![], vec![]));
    let answer = call(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(locked.url("/sse")) });
    assert_eq!(answer, "auth_failed: HTTP 401 Unauthorized: the upstream refuses the credential");
    let cases = [
        (400, "plain", true, "HTTP 400 Bad Request: plain; HTTP+SSE was tried too: HTTP 400 Bad Request: plain"),
        (404, error, true, "HTTP 404 Not Found: no"),
        (405, error, true, "HTTP 405 Method Not Allowed: no"),
        (400, error, false, "the server refuses 'initialize': no (JSON-RPC error -32000)"),
        (403, "plain", false, "HTTP 403 Forbidden: plain"),
        (500, "plain", false, "HTTP 500 Internal Server Error: plain"),
    ];
    for (status, body, falls_back, expected) in cases {
        let web = Web::start(move |_| Answer::Full(status, vec![], body.into()));
        let answer = call(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) });
        assert!(answer.starts_with(&format!("upstream_unavailable: {expected}")), "{status}: {answer}");
        assert_eq!(web.requests().iter().any(|asked| asked.method == "GET"), falls_back, "{status} {body}");
    }
}

#[test]
fn event_stream_is_not_opened_if_both_transports_are_offered() {
    let web = Web::start(|asked| {
        handshaking(asked, |frame| Answer::json(200, json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"content": []}})))
    });
    let world = world(McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) });
    assert_eq!(world.program().call("web", "echo", "{}"), "none");
    assert!(web.requests().iter().all(|asked| asked.method == "POST"));
}

#[test]
fn responses_that_are_not_event_streams_are_reported() {
    let json = Web::start(|_| Answer::json(200, "{}"));
    let silent = Web::start(|_| Answer::Stream(vec![(0, ": nothing\n\n".into()), (2_000, ":\n\n".into())]));
    let ended = Web::start(|_| Answer::Stream(vec![(0, "data: {}\n\n".into())]));
    let malformed = Web::start(|_| Answer::Stream(vec![(0, "event: endpoint\ndata: http://[\n\n".into())]));
    let rows = [
        (&json, "upstream_unavailable: the answer to GET is not an event stream"),
        (&silent, "timeout: 'web' did not finish its handshake within 300 ms (handshake_timeout_ms)"),
        (&ended, "upstream_unavailable: the server ended the event stream"),
        (&malformed, "upstream_unavailable: the `endpoint` event is not a URL"),
    ];
    for (web, expected) in rows {
        let answer = world(McpHttp { handshake_timeout_ms: 300, ..sse(web) }).program().call("web", "echo", "{}");
        assert!(answer.starts_with(expected), "{answer}");
    }
}
