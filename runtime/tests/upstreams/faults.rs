//! Misbehaving peers: the error that a program sees, the origin of a timeout, and the success of the next call.

use std::time::Duration;

use ptc_catalog::{Era, McpHttp, McpStdio, OpenApi, Operation, Tool, Transport};
use ptc_lisp::Limits;
use ptc_runtime::upstream::WaitLimits;
use serde_json::json;

use crate::http::handshaking;
use crate::peer;
use crate::web::{Answer, Asked, End, Web};
use crate::world::{Program, World, eventually, operation, tool, upstream};

/// A behaviour, with the answers of an `mcp_http` and an `openapi` upstream that show it: the start of the answer and the status
/// in the call's record.
struct Row {
    name: &'static str,
    mcp: (&'static str, Option<u16>),
    api: (&'static str, Option<u16>),
}

const fn both(name: &'static str, told: &'static str, status: Option<u16>) -> Row {
    Row { name, mcp: (told, status), api: (told, status) }
}

const ROWS: &[Row] = &[
    both("reset", "upstream_unavailable: the request failed: Connection reset", None),
    both("close", "upstream_unavailable: the request failed: connection closed before message completed", None),
    both("no_http", "upstream_error: the answer is not HTTP: ", None),
    both("truncated", "upstream_unavailable: the answer was cut off: ", Some(200)),
    both("chunk_missing", "upstream_unavailable: the answer was cut off: ", Some(200)),
    both("reset_in_body", "upstream_unavailable: the answer was cut off: ", Some(200)),
    // These are legal but rare.
    Row { name: "shouted_headers", mcp: ("text fine", Some(200)), api: ("json ", Some(200)) },
    Row { name: "trailers", mcp: ("text fine", Some(200)), api: ("json ", Some(200)) },
    Row { name: "early_hints", mcp: ("text fine", Some(200)), api: ("json ", Some(200)) },
    Row { name: "http_1_0", mcp: ("text fine", Some(200)), api: ("json ", Some(200)) },
    // An unsolicited answer is not taken for the answer to the next request.
    Row { name: "unasked", mcp: ("text fine", Some(200)), api: ("json ", Some(200)) },
    both("endless_head", "upstream_error: the answer is not HTTP: ", None),
    // The client neither requests nor decodes compression, so that a decompression bomb has no effect.
    Row {
        name: "compressed",
        mcp: ("upstream_error: the answer is not a JSON-RPC response: ", Some(200)),
        api: ("upstream_error: the answer is not JSON (", Some(200)),
    },
    Row {
        name: "not_utf8",
        mcp: ("upstream_error: the answer is not a JSON-RPC response: ", Some(200)),
        api: ("upstream_error: the answer is not JSON (", Some(200)),
    },
    Row {
        name: "endless_line",
        mcp: ("response_too_large: the answer is larger than 2097152 bytes", Some(200)),
        api: ("response_too_large: the answer is larger than 2097152 bytes", Some(200)),
    },
    both("round_and_round", "upstream_error: HTTP 307 Temporary Redirect: it redirects to http://127.0.0.1:", Some(307)),
    Row {
        name: "not_json",
        mcp: ("upstream_error: the answer is not a JSON-RPC response: {\"a\":", Some(200)),
        api: ("upstream_error: the answer is not JSON (EOF while parsing", Some(200)),
    },
    Row {
        name: "wrong_id",
        mcp: ("upstream_error: the answer is not a JSON-RPC response", Some(200)),
        api: ("json ", Some(200)),
    },
    Row { name: "twice", mcp: ("text first", Some(200)), api: ("upstream_error: the answer is not JSON", Some(200)) },
    Row { name: "hologram", mcp: ("text beside it", Some(200)), api: ("json ", Some(200)) },
    both("ten_megabytes", "response_too_large: the answer is larger than 2097152 bytes", Some(200)),
    both("ten_megabytes_in_chunks", "response_too_large: the answer is larger than 2097152 bytes", Some(200)),
    both(
        "elsewhere",
        "upstream_error: HTTP 307 Temporary Redirect: it redirects to http://elsewhere.invalid/x, which is not followed",
        Some(307),
    ),
    both(
        "status_401",
        "auth_failed: HTTP 401 Unauthorized: the upstream refuses the credential: {\"detail\":\"why\"}",
        Some(401),
    ),
    both("status_403", "tool_error: HTTP 403 Forbidden: {\"detail\":\"why\"}", Some(403)),
    both("status_404", "tool_error: HTTP 404 Not Found: {\"detail\":\"why\"}", Some(404)),
    both("status_429", "rate_limited: HTTP 429 Too Many Requests (retry after 120 s): why", Some(429)),
    both("status_500", "upstream_unavailable: HTTP 500 Internal Server Error (retry after 120 s): {\"detail\"", Some(500)),
    both("status_503", "upstream_unavailable: HTTP 503 Service Unavailable (retry after 120 s): {\"detail\"", Some(503)),
];

/// Slow peers, with the message that names the phase which timed out.
const SLOW: &[(&str, &str, Option<u16>)] = &[
    ("hang", "the time ran out while waiting for an answer", None),
    ("hang_after_head", "the time ran out while reading the answer", Some(200)),
    ("drip", "the time ran out while reading the answer", Some(200)),
];

fn head(more: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{more}\r\n").into_bytes()
}

fn misbehave(name: &str, id: &serde_json::Value) -> Answer {
    let text = |text: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}});
    let raw = |parts: Vec<Vec<u8>>, end| Answer::Raw(parts.into_iter().map(|part| (0, part)).collect(), end);
    match name {
        "fine" => Answer::json(200, text("fine")),
        "reset" => raw(vec![], End::Reset),
        "close" => raw(vec![], End::Close),
        "no_http" => raw(vec![b"220 mail.example ESMTP\r\n".to_vec()], End::Hang),
        "truncated" => raw(vec![head("Content-Length: 1000\r\n"), b"{\"a\":".to_vec()], End::Close),
        "chunk_missing" => raw(vec![head("Transfer-Encoding: chunked\r\n"), b"5\r\n{\"a\":\r\n".to_vec()], End::Close),
        "reset_in_body" => {
            Answer::Raw(vec![(0, head("Content-Length: 1000\r\n")), (0, b"{\"a\":".to_vec()), (100, vec![])], End::Reset)
        }
        "not_json" => Answer::json(200, "{\"a\":"),
        "shouted_headers" => {
            let kind = if id.is_null() { "APPLICATION/JSON" } else { "TEXT/Event-Stream; Charset=UTF-8" };
            let body = if id.is_null() { text("fine").to_string() } else { format!("data: {}\n\n", text("fine")) };
            Answer::Full(200, vec![format!("CONTENT-TYPE:{kind}")], body.into_bytes())
        }
        "trailers" => {
            let body = text("fine").to_string();
            let (first, rest) = body.split_at(7);
            let chunks = format!(
                "7;name=\"value\"\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\nX-Sum: 1\r\nContent-Length: 5\r\n\r\n",
                rest.len()
            );
            raw(
                vec![head("Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\nConnection: close\r\n"), chunks.into_bytes()],
                End::Close,
            )
        }
        "early_hints" => {
            let body = text("fine").to_string();
            let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".to_vec();
            raw(
                vec![hints, head(&format!("Content-Length: {}\r\nConnection: close\r\n", body.len())), body.into_bytes()],
                End::Close,
            )
        }
        "http_1_0" => {
            let body = format!("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{}", text("fine"));
            raw(vec![body.into_bytes()], End::Close)
        }
        "unasked" => {
            let answer = |text: String| [head(&format!("Content-Length: {}\r\n", text.len())), text.into_bytes()].concat();
            raw(vec![[answer(text("fine").to_string()), answer(text("unasked").to_string())].concat()], End::Hang)
        }
        "endless_head" => {
            let lines = format!("X-Filler: {}\r\n", "x".repeat(8_000)).into_bytes();
            raw(std::iter::once(b"HTTP/1.1 200 OK\r\n".to_vec()).chain(std::iter::repeat_n(lines, 300)).collect(), End::Hang)
        }
        "compressed" => Answer::Full(
            200,
            vec!["Content-Type: application/json".into(), "Content-Encoding: gzip".into()],
            [b"\x1f\x8b\x08\0\0\0\0\0\x02\x03".as_slice(), &[0; 1000]].concat(),
        ),
        "not_utf8" => Answer::Full(200, vec!["Content-Type: application/json".into()], b"{\"a\":\"\xff\"}".to_vec()),
        "endless_line" => {
            let kind = if id.is_null() { "application/json" } else { "text/event-stream" };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n: ");
            let parts = std::iter::repeat_n(vec![b'x'; 0x10000], 160);
            raw(std::iter::once(head.into_bytes()).chain(parts).collect(), End::Close)
        }
        "round_and_round" => Answer::Full(307, vec!["Location: ?once=more".into()], vec![]),
        "wrong_id" => Answer::json(200, json!({"jsonrpc": "2.0", "id": 424_242, "result": {}})),
        "twice" => Answer::Full(
            200,
            vec![if id.is_null() { "Content-Type: application/json".into() } else { "Content-Type: text/event-stream".into() }],
            format!("data: {}\n\ndata: {}\n\n", text("first"), text("second")).into_bytes(),
        ),
        "hologram" => Answer::json(
            200,
            json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "hologram"}, {"type": "text", "text": "beside it"}]}}),
        ),
        "ten_megabytes" => Answer::json(200, text(&"x".repeat(10_000_000))),
        "ten_megabytes_in_chunks" => {
            let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat();
            let mut parts = vec![head("Transfer-Encoding: chunked\r\n")];
            parts.extend(std::iter::repeat_n(chunk, 160));
            raw(parts, End::Close)
        }
        "elsewhere" => Answer::Full(307, vec!["Location: http://elsewhere.invalid/x?token=1".into()], vec![]),
        "hang" => Answer::Hang,
        "hang_after_head" => raw(vec![head("Content-Length: 1000\r\n")], End::Hang),
        "drip" => {
            let bytes = (0..600).map(|_| (50, b" ".to_vec()));
            Answer::Raw(std::iter::once((0, head("Content-Length: 1000\r\n"))).chain(bytes).collect(), End::Close)
        }
        status => {
            let status = status.strip_prefix("status_").unwrap().parse().unwrap();
            let lines = vec!["Content-Type: application/problem+json".into(), "Retry-After: 120".into()];
            let lines = if matches!(status, 429 | 500 | 503) { lines } else { lines[..1].to_vec() };
            Answer::Full(status, lines, br#"{"detail":"why"}"#.to_vec())
        }
    }
}

fn mcp(asked: &Asked) -> Answer {
    handshaking(asked, |frame| misbehave(frame["params"]["name"].as_str().unwrap(), &frame["id"]))
}

fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name).chain(SLOW.iter().map(|row| row.0)).chain(["fine"])
}

fn over_http(request_timeout_ms: u64) -> World {
    let web = Web::start(|asked| match asked.method.as_str() {
        "GET" => misbehave(asked.target.trim_start_matches("/api/").trim_end_matches("?once=more"), &serde_json::Value::Null),
        _ => mcp(asked),
    });
    let operations = names().map(|name| {
        let path: &'static str = format!("/{name}").leak();
        operation(name, Operation::new(name, path))
    });
    World::new(vec![
        upstream(
            "mcp",
            Transport::McpHttp(McpHttp { era: Some(Era::Handshake), request_timeout_ms, ..McpHttp::new(web.url("/mcp")) }),
            names().map(tool).collect(),
        ),
        upstream(
            "api",
            Transport::OpenApi(OpenApi { request_timeout_ms, ..OpenApi::new(web.url("/api")) }),
            operations.collect(),
        ),
    ])
}

#[test]
fn every_http_fault_has_its_reason() {
    let world = over_http(30_000);
    for row in ROWS {
        for (server, (told, status)) in [("mcp", row.mcp), ("api", row.api)] {
            let program = world.program();
            let answer = program.call(server, row.name, "{}");
            assert!(answer.starts_with(told), "{server} {}: {answer}", row.name);
            let record = program.last();
            assert_eq!(record.http_status, status, "{server} {}", row.name);
            assert_eq!(record.oversize, told.starts_with("response_too_large"), "{server} {}", row.name);
            assert!(!record.oversize || record.result_bytes > 2_097_152, "{record:?}");
            assert!(!answer.contains("token=1") && !answer.contains("unasked"));
            assert_eq!(row.name == "round_and_round", answer.ends_with(", which is not followed after 5 others"), "{answer}");
            let next = program.call(server, "fine", "{}");
            assert!(next == "text fine" || next.starts_with("json {"), "{server} after {}: {next}", row.name);
        }
    }
}

/// Recursion in the parser would overflow the stack.
#[test]
fn deeply_nested_response_does_not_overflow_the_stack() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let web = Web::start(move |asked| {
        let frame = asked.json();
        match (asked.method.as_str(), frame["method"].as_str()) {
            ("GET", _) => Answer::json(200, &deep),
            (_, Some("tools/call")) => {
                let id = &frame["id"];
                let result = format!(r#"{{"content":[],"structuredContent":{{"a":{deep}}}}}"#);
                Answer::json(200, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
            }
            _ => mcp(asked),
        }
    });
    let deep = operation("deep", Operation::new("deep", "/deep"));
    let spec = McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) };
    let world = World::new(vec![
        upstream("mcp", Transport::McpHttp(spec), vec![tool("deep")]),
        upstream("api", Transport::OpenApi(OpenApi::new(web.url(""))), vec![deep]),
    ]);
    for server in ["mcp", "api"] {
        let call = format!(r#"(tool/call {{:server "{server}" :tool "deep"}})"#);
        let program = format!("(let [r {call}] (println r) [(:ok r) (< 400000 (count (pr-str r))) (= r {call})])");
        let limits = Limits::with_upstreams().wall_clock(Duration::from_mins(1));
        let found = world.evaluate(&program, limits);
        let told = found.map(|value| ptc_lisp::print::preview(&value, 1000).text);
        assert_eq!(told.unwrap(), "[true true true]", "{server}");
    }
}

#[test]
fn http_timeout_names_the_stage() {
    let world = over_http(1_000);
    let program = world.program();
    for (name, stage, status) in SLOW {
        for server in ["mcp", "api"] {
            let answer = program.call(server, name, "{}");
            let told = format!(
                "timeout: '{server}' did not answer the call within 1000 ms (request_timeout_ms of the upstream): {stage}"
            );
            assert_eq!((answer, program.last().http_status), (told, *status), "{server} {name}");
        }
    }
    eventually("an answer in time", || world.program().call("mcp", "fine", "{}") == "text fine");
}

/// The limit of a tool replaces that of the server and that of the upstream, whether it is shorter or longer.
#[test]
fn tool_has_a_separate_time_limit() {
    let late = |answer| {
        std::thread::sleep(Duration::from_millis(700));
        answer
    };
    let web = Web::start(move |asked| match asked.method.as_str() {
        "GET" => late(Answer::json(200, "1")),
        _ => handshaking(asked, |frame| {
            let result = json!({ "content": [{ "type": "text", "text": "1" }] });
            late(Answer::json(200, json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result })))
        }),
    });
    let timed = |tool: Tool, call_timeout_ms| Tool { call_timeout_ms: Some(call_timeout_ms), ..tool };
    let spec = McpHttp { era: Some(Era::Handshake), request_timeout_ms: 300, ..McpHttp::new(web.url("/mcp")) };
    let service = OpenApi { request_timeout_ms: 300, ..OpenApi::new(web.url("")) };
    let operations =
        [("long", 60_000), ("short", 200)].map(|(name, time)| timed(operation(name, Operation::new(name, "/")), time));
    let tools = [("long", 60_000), ("short", 200)].map(|(name, time)| timed(tool(name), time));
    let world = World::with(
        vec![
            upstream("mcp", Transport::McpHttp(spec), tools.into()),
            upstream("api", Transport::OpenApi(service), operations.into()),
        ],
        Vec::new(),
        |settings| settings.call_timeout = Duration::from_millis(400),
    );
    let program = world.program();
    for server in ["mcp", "api"] {
        let answer = program.call(server, "long", "{}");
        assert!(answer.ends_with(" 1"), "{server}: {answer}");
        let answer = program.call(server, "short", "{}");
        assert!(
            answer.starts_with(&format!("timeout: '{server}' did not answer the call within 200 ms (call_timeout_ms)")),
            "{answer}"
        );
    }
}

#[test]
fn timeout_names_a_connection_that_is_not_established() {
    // A listener with a full accept queue answers no SYN.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let fill: Vec<_> = (0..8)
        .map(|_| std::thread::spawn(move || std::net::TcpStream::connect_timeout(&address, Duration::from_millis(300))))
        .collect();
    let held: Vec<_> = fill.into_iter().map(|attempt| attempt.join().unwrap()).collect();
    assert!(held.iter().any(Result::is_err), "the queue is full");
    let base: &'static str = format!("http://{address}").leak();
    let api = |connect_timeout_ms| {
        let spec = OpenApi { connect_timeout_ms, request_timeout_ms: 700, ..OpenApi::new(base) };
        let fine = operation("fine", Operation::new("fine", "/"));
        World::new(vec![upstream("api", Transport::OpenApi(spec), vec![fine])]).program().call("api", "fine", "{}")
    };
    assert_eq!(api(200), "timeout: no connection to 'api' was made within 200 ms (connect_timeout_ms)");
    assert_eq!(
        api(5_000),
        "timeout: 'api' did not answer the call within 700 ms (request_timeout_ms of the upstream): the time ran out while connecting"
    );
    let spec = McpHttp { handshake_timeout_ms: 300, ..McpHttp::new(base) };
    let mcp = World::new(vec![upstream("mcp", Transport::McpHttp(spec), vec![tool("fine")])]);
    assert_eq!(
        mcp.program().call("mcp", "fine", "{}"),
        "timeout: 'mcp' did not finish its handshake within 300 ms (handshake_timeout_ms): the time ran out while connecting"
    );
}

#[test]
fn read_is_retried_once_if_the_connection_is_reset_before_a_response() {
    for (failures, told, sent) in [(1, "json ", 2), (2, "upstream_unavailable: the request failed", 2)] {
        let left = std::sync::atomic::AtomicU32::new(failures);
        let web = Web::start(move |_| {
            let next =
                left.fetch_update(std::sync::atomic::Ordering::SeqCst, std::sync::atomic::Ordering::SeqCst, |n| n.checked_sub(1));
            if next.is_ok() { Answer::Raw(vec![], End::Reset) } else { Answer::json(200, "{}") }
        });
        let fine = operation("fine", Operation::new("fine", "/"));
        let world = World::new(vec![upstream("api", Transport::OpenApi(OpenApi::new(web.url(""))), vec![fine])]);
        let answer = world.program().call("api", "fine", "{}");
        assert!(answer.starts_with(told), "{answer}");
        assert_eq!(web.requests().len(), sent);
    }
    // On a reused connection the earlier answer does not count as the beginning of this one, so that the read is repeated.
    let count = std::sync::atomic::AtomicU32::new(0);
    let web = Web::start(move |_| match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        1 => Answer::Raw(vec![], End::Reset),
        _ => Answer::json(200, "{}"),
    });
    let fine = operation("fine", Operation::new("fine", "/"));
    let world = World::new(vec![upstream("api", Transport::OpenApi(OpenApi::new(web.url(""))), vec![fine])]);
    let program = world.program();
    for sent in [1, 3] {
        assert!(program.call("api", "fine", "{}").starts_with("json "));
        assert_eq!(web.requests().len(), sent);
    }
    // Calls of MCP tools are repeated only if the tool is declared read-only.
    for (read_only, sent) in [(None, 1), (Some(true), 2)] {
        let web = Web::start(mcp);
        let spec = McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) };
        let mut reset = tool("reset");
        reset.effects.read_only = read_only;
        let world = World::new(vec![upstream("mcp", Transport::McpHttp(spec), vec![reset])]);
        world.program().call("mcp", "reset", "{}");
        let calls = web.requests().iter().filter(|asked| asked.json()["method"] == "tools/call").count();
        assert_eq!(calls, sent, "{read_only:?}");
    }
}

/// RFC 9110, section 9.2.2: a read may be sent again. Once the head is complete, the response is this one.
#[test]
fn read_is_retried_once_if_the_response_head_is_incomplete() {
    let complete = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{";
    for part in ["H", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 103 Early Hints\r\n\r\n", complete] {
        let fault = if part == complete { "the answer was cut off" } else { "the request failed" };
        let partly: &[&str] = if part == complete { &["/partly"] } else { &["/partly", "/partly"] };
        for end in [End::Close, End::Reset] {
            // Both a new and a reused connection are tested.
            let web = Web::start(move |asked| match asked.target.as_str() {
                // The pause lets the client read the part before the connection is lost.
                "/partly" => Answer::Raw(vec![(0, part.into()), (50, Vec::new())], end),
                _ => Answer::json(200, "{}"),
            });
            let get = |path| Operation::new("get", path);
            let tools = vec![operation("fine", get("/")), operation("partly", get("/partly"))];
            let world = World::new(vec![upstream("api", Transport::OpenApi(OpenApi::new(web.url(""))), tools)]);
            let program = world.program();
            for tool in ["partly", "fine", "partly"] {
                let answer = program.call("api", tool, "{}");
                assert_eq!(answer.starts_with(&format!("upstream_unavailable: {fault}")), tool == "partly", "{part}: {answer}");
            }
            let sent: Vec<String> = web.requests().into_iter().map(|request| request.target).collect();
            assert_eq!(sent, [partly, &["/"], partly].concat(), "{part}");
        }
    }
}

/// None of the answers ends, so that the received bytes are not in any value of the program.
#[test]
fn partial_responses_count_toward_the_memory_of_a_program() {
    let filler = "x".repeat(1_000_000);
    let rows = [
        ("api", "Content-Length: 1000000\r\n\r\n".to_owned()),
        ("api", format!("Transfer-Encoding: chunked\r\n\r\nf4240\r\n{filler}")),
        ("mcp", format!("Content-Type: text/event-stream\r\n\r\ndata: {filler}")),
    ];
    for (server, begun) in rows {
        let web = Web::start(move |asked| match asked.json()["method"].as_str() {
            None | Some("tools/call") => Answer::Raw(vec![(0, format!("HTTP/1.1 200 OK\r\n{begun}").into_bytes())], End::Hang),
            _ => mcp(asked),
        });
        let spec = McpHttp { era: Some(Era::Handshake), ..McpHttp::new(web.url("/mcp")) };
        let read = operation("read", Operation::new("read", "/"));
        let upstreams = vec![
            upstream("api", Transport::OpenApi(OpenApi::new(web.url(""))), vec![read]),
            upstream("mcp", Transport::McpHttp(spec), vec![tool("read")]),
        ];
        let world = World::with(upstreams, Vec::new(), |settings| settings.call_timeout = Duration::from_secs(1));
        let program = |calls: u32| {
            let source = format!(
                r#"(frequencies (map :reason (pmap (fn [_] (tool/call {{:server "{server}" :tool "read"}})) (range {calls}))))"#
            );
            let limits = ptc_lisp::Limits::default().wall_clock(Duration::from_secs(20));
            world.evaluate(&source, limits)
        };
        let fault = program(20).unwrap_err();
        assert_eq!(fault.kind, ptc_lisp::ErrorKind::MemoryExceeded, "{fault:?}");
        assert!(fault.message.contains("the answers on their way need more than 10485760 bytes"), "{fault:?}");
        assert_eq!(ptc_lisp::print::preview(&program(5).unwrap(), 100).text, "{:timeout 5}");
    }
}

#[test]
fn every_fault_of_a_child_has_its_reason() {
    let rows = [
        ("garbage", "{}", "upstream_error: the server wrote a line that is not JSON"),
        ("twice", "{}", "text first"),
        ("hologram", "{}", "text beside it"),
        ("flood", "{}", "text wet"),
        ("big", r#"{"bytes":10000000}"#, "response_too_large: the answer is larger than 2097152 bytes"),
        ("half", "{}", "upstream_unavailable: the process of 'peer' ended (exit status: 0)"),
        ("crash", "{}", "upstream_unavailable: the process of 'peer' ended (exit status: 7); its standard error: out of cheese"),
    ];
    let tools = ["big", "crash", "drip", "echo", "flood", "garbage", "half", "hologram", "twice", "wrong_id"];
    let world_of = |mode| {
        let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec(mode) };
        World::with(vec![upstream("peer", Transport::McpStdio(spec), tools.map(tool).into())], Vec::new(), |settings| {
            settings.call_timeout = Duration::from_secs(30);
        })
    };
    // Output of a child before the handshake is ignored.
    let world = world_of("chatty");
    for (name, args, told) in rows {
        let program = world.program();
        let answer = program.call("peer", name, args);
        assert!(answer.starts_with(told), "{name}: {answer}");
        assert_eq!(program.call("peer", "echo", r#"{"message":"next"}"#), "text next", "after {name}");
    }
    let record = {
        let program = world.program();
        program.call("peer", "big", r#"{"bytes":10000000}"#);
        program.last()
    };
    assert!(record.oversize && record.result_bytes > 10_000_000, "{record:?}");

    for name in ["wrong_id", "drip"] {
        let spec = McpStdio { era: Some(Era::Handshake), ..peer::spec("plain") };
        let short =
            World::with(vec![upstream("peer", Transport::McpStdio(spec), tools.map(tool).into())], Vec::new(), |settings| {
                settings.call_timeout = Duration::from_secs(1);
            });
        let told = "timeout: 'peer' did not answer the call within 1000 ms (--upstream-call-timeout-ms): the time ran out while waiting for an answer";
        assert_eq!(short.program().call("peer", name, "{}"), told, "{name}");
    }
}

#[test]
fn abandoned_call_records_the_stage_it_reached() {
    let spec = |mode| McpStdio { era: Some(Era::Handshake), ..peer::spec(mode) };
    let world = World::new(vec![upstream("peer", Transport::McpStdio(spec("plain")), vec![tool("slow")])]);
    let program = world.program();
    let _ticket = program.start("peer", "slow", r#"{"ms":600000}"#);
    let told = "the program ended while waiting for an answer";
    eventually("the request is written", || program.last().error.as_deref() == Some(told));
    assert_eq!(program.last().reason, Some("timeout"));
    // A live upstream that never completes its handshake.
    let mute = World::live(vec![upstream("peer", Transport::McpStdio(spec("mute")), Vec::new())], |_| {});
    let deadline = std::time::Instant::now().checked_add(Duration::from_millis(300));
    let host = mute.upstreams.program(WaitLimits { deadline, ..WaitLimits::default() });
    let answer = Program(host).call("peer", "echo", "{}");
    assert_eq!(
        answer,
        "timeout: 'peer' had not listed its tools when the program stopped while waiting for the server's handshake"
    );
}

#[test]
fn requests_are_queued_for_a_child_that_does_not_read() {
    // This child completes the handshake and then stops reading.
    let script = r#"read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'; exec sleep 600"#;
    let spec = McpStdio { args: vec!["-c", script].leak(), era: Some(Era::Handshake), ..McpStdio::new("sh") };
    let world = World::with(vec![upstream("peer", Transport::McpStdio(spec), vec![tool("echo")])], Vec::new(), |settings| {
        settings.call_timeout = Duration::from_millis(500);
    });
    // The frame is larger than a pipe's buffer.
    let args = json!({"message": "x".repeat(200_000)}).to_string();
    let told = "timeout: 'peer' did not answer the call within 500 ms (--upstream-call-timeout-ms): the time ran out while the request was queued, because the server does not read its input";
    assert_eq!(world.program().call("peer", "echo", &args), told);
}
