//! `GET` operations of a JSON service.

use ptc_catalog::{Answers, Auth, Binding, KeyPlace, OpenApi, Operation, Params, Source, Transport};

use crate::web::{Answer, Web};
use crate::world::{Program, World, described, operation, upstream};

const ITEM: Params = Params("path simple - - id\nquery form explode - q");
const FIELDS: Params =
    Params("header simple - - X-Trace\nheader simple - - x-tenant\nheader simple - - Authorization\ncookie form explode - theme");
const STATUS: Params = Params("path simple - - code");

fn world(base_url: &'static str) -> World {
    let spec = OpenApi {
        auth: &[Auth::Bearer { binding: "tok" }],
        static_headers: &[("X-Tenant", "t1")],
        max_response_bytes: 10_000,
        request_timeout_ms: 1_500,
        ..OpenApi::new(base_url)
    };
    let plain = |id: &'static str, path: &'static str| Operation::new(id, path);
    let tools = vec![
        operation(
            "get-item",
            Operation { params: ITEM, default_args: &[("q", r#""all""#)], ..Operation::new("getItem", "/items/{id}") },
        ),
        operation("fields", Operation { params: FIELDS, ..Operation::new("fields", "/fields") }),
        operation("status", Operation { params: STATUS, ..Operation::new("status", "/status/{code}") }),
        operation("empty", plain("empty", "/empty")),
        operation("text", plain("text", "/text")),
        operation("big", plain("big", "/big")),
        operation("hang", plain("hang", "/hang")),
        operation("close", plain("close", "/close")),
        operation("moved", plain("moved", "/moved")),
        operation("away", plain("away", "/away")),
    ];
    let bindings = vec![Binding { name: "tok", source: Source::Literal { value: "s3cr3t-token-value" } }];
    World::with(vec![upstream("api", Transport::OpenApi(spec), tools)], bindings, |_| {})
}

fn service() -> Web {
    Web::start(|asked| match asked.target.as_str() {
        "/v1/empty" => Answer::Full(204, vec![], vec![]),
        "/v1/text" => Answer::Full(200, vec!["Content-Type: text/plain".into()], b"hello plain".to_vec()),
        "/v1/big" => Answer::json(200, format!("\"{}\"", "x".repeat(20_000))),
        "/v1/hang" => Answer::Hang,
        "/v1/close" => Answer::Close,
        "/v1/moved" => Answer::Full(302, vec!["Location: /v1/items/5?q=moved".into()], vec![]),
        "/v1/away" => Answer::Full(302, vec!["Location: http://127.0.0.1:9/?token=x".into()], vec![]),
        target if target.starts_with("/v1/status/") => {
            let code = target.rsplit('/').next().unwrap().parse().unwrap();
            Answer::json(code, r#"{"error":"why"}"#)
        }
        target => {
            let seen = serde_json::json!({"target": target, "auth": asked.header("authorization"), "tenant": asked.header("x-tenant"), "accept": asked.header("accept"), "n": 1.0, "cookie": asked.header("cookie"), "trace": asked.header("x-trace")});
            let lines = ["Content-Type: application/json", "ETag: \"1\"", "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT"];
            Answer::Full(200, lines.map(str::to_owned).into(), seen.to_string().into_bytes())
        }
    })
}

#[test]
fn operations_are_called_and_their_responses_mapped() {
    let web = service();
    let world = world(web.url("/v1"));
    let program = world.program();
    let item = r#"json {"accept":"application/json","auth":"Bearer [REDACTED]","cookie":null,"n":1.0,"#;
    let cases = [
        ("get-item", r#"{"id":"a/b c"}"#, format!(r#"{item}"target":"/v1/items/a%2Fb%20c?q=all","tenant":"t1","trace":null}}"#), Some(200)),
        ("getItem", r#"{"id":7,"q":["x","y"]}"#, format!(r#"{item}"target":"/v1/items/7?q=x&q=y","tenant":"t1","trace":null}}"#), Some(200)),
        ("get-item", r#"{"id":7,"q":null}"#, format!(r#"{item}"target":"/v1/items/7?q=all","tenant":"t1","trace":null}}"#), Some(200)),
        ("moved", "{}", format!(r#"{item}"target":"/v1/items/5?q=moved","tenant":"t1","trace":null}}"#), Some(200)),
        // Arguments do not replace the headers of the entry.
        (
            "fields",
            r#"{"X-Trace":"a b","x-tenant":"t2","Authorization":"Basic eA==","theme":"dark; x=1"}"#,
            r#"json {"accept":"application/json","auth":"Bearer [REDACTED]","cookie":"theme=dark%3B%20x%3D1","n":1.0,"target":"/v1/fields","tenant":"t1","trace":"a b"}"#.into(),
            Some(200),
        ),
        ("empty", "{}", "none".into(), Some(204)),
        ("text", "{}", "text hello plain".into(), Some(200)),
        ("big", "{}", "response_too_large: the answer is larger than 10000 bytes".into(), Some(200)),
        ("hang", "{}", "timeout: 'api' did not answer the call within 1500 ms (request_timeout_ms of the upstream)".into(), None),
        ("close", "{}", "upstream_unavailable: the request failed".into(), None),
        (
            "away",
            "{}",
            "upstream_error: HTTP 302 Found: it redirects to http://127.0.0.1:9/, which is not followed".into(),
            Some(302),
        ),
        ("status", r#"{"code":400}"#, r#"tool_error: HTTP 400 Bad Request: {"error":"why"}"#.into(), Some(400)),
        (
            "status",
            r#"{"code":401}"#,
            "auth_failed: HTTP 401 Unauthorized: the upstream refuses the credential".into(),
            Some(401),
        ),
        ("status", r#"{"code":404}"#, r#"tool_error: HTTP 404 Not Found: {"error":"why"}"#.into(), Some(404)),
        ("status", r#"{"code":429}"#, "rate_limited: HTTP 429 Too Many Requests: why".into(), Some(429)),
        ("status", r#"{"code":500}"#, "upstream_unavailable: HTTP 500".into(), Some(500)),
        ("status", r#"{"code":418}"#, "upstream_error: HTTP 418".into(), Some(418)),
    ];
    for (tool, args, expected, status) in cases {
        let answer = program.call("api", tool, args);
        assert!(answer.starts_with(&expected), "{tool} {args}: {answer}");
        assert_eq!(program.last().http_status, status, "{tool} {args}");
    }
    let auth = program.last().auth.unwrap();
    assert_eq!((auth.scheme, auth.binding), ("bearer", "tok"));
    for name in ["if-none-match", "if-modified-since", "if-range"] {
        assert!(
            web.requests().iter().all(|r| r.header(name).is_none()),
            "the answers had tags, but {name} was sent without a reason"
        );
    }
    assert!(web.requests().iter().all(|r| r.header("authorization") == Some("Bearer s3cr3t-token-value")));
}

const KEY: &str = "k3y &+/%é-0123";
const SESSION: &str = "s3ssi0n/;x=y";
const SENT_KEY: &str = "key=k3y%20%26%2B%2F%25%C3%A9-0123";

/// An operation that echoes its request in body and headers, and redirects to it.
fn world_with_keys(web: &Web) -> World {
    let spec = OpenApi {
        auth: &[
            Auth::ApiKey { place: KeyPlace::Query, name: "key", binding: "key" },
            Auth::ApiKey { place: KeyPlace::Query, name: "app[id]", binding: "app" },
            Auth::ApiKey { place: KeyPlace::Cookie, name: "sid", binding: "session" },
            Auth::ApiKey { place: KeyPlace::Cookie, name: "app", binding: "app" },
        ],
        ..OpenApi::new(web.url("/v1"))
    };
    let binding = |name, value| Binding { name, source: Source::Literal { value } };
    let bindings = vec![binding("app", "app-0123456"), binding("key", KEY), binding("session", SESSION)];
    let params = Params("query form explode - q\nquery form explode - filter\ncookie form explode - theme");
    let tool = |name: &'static str| {
        operation(
            name,
            Operation { params, answers: Answers("type */*\nheader x-echo"), ..Operation::new(name, format!("/{name}").leak()) },
        )
    };
    let tools = ["away", "echo", "fail", "loop", "moved"].map(tool).into();
    World::with(vec![upstream("api", Transport::OpenApi(spec), tools)], bindings, |_| {})
}

fn service_with_keys() -> Web {
    Web::start(|asked| {
        let redirect = |to: String| Answer::Full(302, vec![format!("Location: {to}")], vec![]);
        let path = asked.target.trim_start_matches("/v1/").split('?').next().unwrap();
        let cookies: Vec<&str> =
            asked.headers.iter().filter(|(name, _)| name == "cookie").map(|(_, value)| value.as_str()).collect();
        let seen = serde_json::json!({ "target": asked.target, "cookies": cookies });
        match path {
            "moved" => redirect(format!("echo?page=2&key=other&{}", asked.target.split_once('?').unwrap().1)),
            "away" => redirect(format!("http://127.0.0.1:9/{0}?{0}", asked.target)),
            "loop" => redirect(asked.target.clone()),
            "fail" => Answer::json(404, &seen),
            _ => {
                let lines =
                    vec![format!("X-Echo: {} {}", asked.target, cookies.join("|")), format!("Location: {}", asked.target)];
                Answer::Full(201, lines, seen.to_string().into_bytes())
            }
        }
    })
}

#[test]
fn keys_are_sent_in_query_and_cookie_and_redacted_in_results() {
    let web = service_with_keys();
    let world = world_with_keys(&web);
    let program = world.program();
    let suffix = format!("{SENT_KEY}&app%5Bid%5D=app-0123456");
    let cookies = "sid=s3ssi0n/%3Bx=y; app=app-0123456";
    for (tool, args, targets, cookies) in [
        ("echo", "{}", vec![format!("/v1/echo?{suffix}")], vec![cookies.to_owned()]),
        ("echo", r#"{"q":"a","theme":"dark"}"#, vec![format!("/v1/echo?q=a&{suffix}")], vec![format!("{cookies}; theme=dark")]),
        // Members of an argument cannot replace or repeat a key.
        (
            "echo",
            r#"{"filter":{"key":"x","app[id]":"y","n":1}}"#,
            vec![format!("/v1/echo?n=1&{suffix}")],
            vec![cookies.to_owned()],
        ),
        (
            "moved",
            r#"{"q":"a"}"#,
            vec![format!("/v1/moved?q=a&{suffix}"), format!("/v1/echo?page=2&q=a&{suffix}")],
            vec![cookies.to_owned(), cookies.to_owned()],
        ),
        ("fail", "{}", vec![format!("/v1/fail?{suffix}")], vec![cookies.to_owned()]),
        ("away", "{}", vec![format!("/v1/away?{suffix}")], vec![cookies.to_owned()]),
        ("loop", "{}", vec![format!("/v1/loop?{suffix}"); 6], vec![cookies.to_owned(); 6]),
    ] {
        let before = web.requests().len();
        let (head, reply) = program.submit_for_head(&Program::request("api", tool, args)).unwrap();
        let requests = web.requests().split_off(before);
        assert_eq!(requests.iter().map(|asked| asked.target.clone()).collect::<Vec<_>>(), targets, "{tool} {args}");
        let sent: Vec<String> = requests
            .iter()
            .flat_map(|asked| asked.headers.iter().filter(|(name, _)| name == "cookie").map(|(_, value)| value.clone()))
            .collect();
        assert_eq!(sent, cookies, "{tool} {args}");
        let said = format!("{head:?} {} {:?}", described(reply), program.last());
        for secret in [KEY, SESSION, "app-0123456", "k3y%20", "%C3%A9-0123", "s3ssi0n"] {
            assert!(!said.contains(secret), "{tool} shows {secret}: {said}");
        }
        assert!(said.contains("[REDACTED]") || matches!(tool, "away" | "loop"), "{said}");
    }
    let auth = program.last().auth.unwrap();
    assert_eq!((auth.scheme, auth.binding), ("api_key", "key"));
}

#[test]
fn url_with_a_password_is_refused() {
    let answer = world("http://user:pass-word@127.0.0.1:9").program().call("api", "get-item", r#"{"id":"1"}"#);
    assert!(answer.starts_with("upstream_unavailable: the URL http://127.0.0.1:9/ holds a user or password: "), "{answer}");
}

#[test]
fn unsendable_arguments_are_faults_of_the_program() {
    let world = world("http://127.0.0.1:9");
    let program = world.program();
    for (args, expected) in [
        ("{}", "tool 'api.get-item' rejected args: missing required args id"),
        (r#"{"id":".."}"#, r#"tool 'api.get-item' rejected args: 'id' is part of the path and cannot be "..""#),
    ] {
        let fault = program.submit(&Program::request("api", "get-item", args)).unwrap_err();
        assert_eq!(fault.message, expected);
    }
    assert!(program.0.calls().is_empty());
}

const CSV: Answers =
    Answers("type application/json\ntype text/csv\nheader x-ratelimit-left\nheader x-session\nheader set-cookie");

/// Content type, head and body of what `/answers/NAME` gives.
fn answer(name: &str) -> (u16, Vec<&'static str>, &'static [u8]) {
    match name {
        "csv" => (200, vec!["Content-Type: text/csv; charset=iso-8859-1", "X-RateLimit-Left: 7", "X-Other: 1"], b"caf\xe9"),
        "text-that-is-json" => (200, vec!["Content-Type: text/plain"], b"[1]"),
        "untyped" => (200, vec![], b"{\"a\":1}"),
        "json-that-is-html" => (200, vec!["Content-Type: application/json", "ETag: W/\"7\""], b"<html>"),
        "lines" => (200, vec!["Content-Type: application/x-ndjson"], b"{\"a\":1}\n2\n"),
        "events" => (200, vec!["Content-Type: text/event-stream"], b"data: {\"a\":1}\n\ndata: [DONE]\n\n"),
        "image" => (200, vec!["Content-Type: image/png"], b"\x89PNG"),
        "created" => (201, vec!["Content-Type: application/json", "Location: /v1/items/8?key=s3cr3t-token-value"], b"{}"),
        "cookies" => (
            200,
            vec![
                "Content-Type: application/json",
                "Set-Cookie: sid=1",
                "X-Session: abc",
                "X-Total-Count: 12",
                "Link: </a>",
                "Link: </b>",
            ],
            b"[]",
        ),
        "unchanged" => (304, vec!["ETag: \"7\""], b""),
        "conflict" => {
            (409, vec!["Content-Type: application/json", "Retry-After: 3"], b"{\"code\":\"taken\",\"by\":\"s3cr3t-token-value\"}")
        }
        "gone" => (410, vec!["Content-Type: text/html"], b"<p>gone"),
        _ => (404, vec![], b""),
    }
}

fn answers() -> (Web, World) {
    let web = Web::start(|asked| {
        let name = asked.target.strip_prefix("/v1/").unwrap();
        if name == "accept" {
            return Answer::json(200, serde_json::json!(asked.header("accept")));
        }
        let (status, lines, body) = answer(name);
        Answer::Full(status, lines.into_iter().map(str::to_owned).collect(), body.to_vec())
    });
    let spec = OpenApi { auth: &[Auth::Bearer { binding: "tok" }], ..OpenApi::new(web.url("/v1")) };
    let names = [
        "accept",
        "conflict",
        "cookies",
        "created",
        "csv",
        "events",
        "gone",
        "image",
        "json-that-is-html",
        "lines",
        "text-that-is-json",
        "unchanged",
        "untyped",
    ];
    let tool =
        |name: &'static str| operation(name, Operation { answers: CSV, ..Operation::new(name, format!("/{name}").leak()) });
    let bindings = vec![Binding { name: "tok", source: Source::Literal { value: "s3cr3t-token-value" } }];
    let world = World::with(vec![upstream("api", Transport::OpenApi(spec), names.map(tool).into())], bindings, |_| {});
    (web, world)
}

/// Tool, expected answer, status and headers.
type Case = (&'static str, &'static str, u16, &'static [(&'static str, &'static str)]);

#[test]
fn responses_are_read_by_content_type() {
    let (_web, world) = answers();
    let program = world.program();
    let cases: [Case; 12] = [
        ("csv", "text café", 200, &[("x-ratelimit-left", "7")]),
        ("text-that-is-json", "text [1]", 200, &[]),
        ("untyped", r#"json {"a":1}"#, 200, &[]),
        (
            "json-that-is-html",
            "upstream_error: the answer is not JSON (expected value at line 1 column 1): <html>",
            200,
            &[("etag", "W/\"7\"")],
        ),
        ("lines", r#"json [{"a":1},2]"#, 200, &[]),
        ("events", r#"json [{"a":1},"[DONE]"]"#, 200, &[]),
        ("image", r#"json {"base64":"iVBORw==","bytes":4,"content_type":"image/png"}"#, 200, &[]),
        ("created", "json {}", 201, &[("location", "/v1/items/8?key=[REDACTED]")]),
        ("cookies", "json []", 200, &[("x-total-count", "12"), ("link", "</a>, </b>")]),
        ("unchanged", "none", 304, &[("etag", "\"7\"")]),
        (
            "conflict",
            r#"tool_error: HTTP 409 Conflict (retry after 3 s): {"code":"taken","by":"[REDACTED]"}"#,
            409,
            &[("retry-after", "3")],
        ),
        ("gone", "upstream_error: HTTP 410 Gone: <p>gone", 410, &[]),
    ];
    for (name, expected, status, headers) in cases {
        let (head, reply) = program.submit_for_head(&Program::request("api", name, "{}")).unwrap();
        let head = head.unwrap();
        assert_eq!(described(reply), expected, "{name}");
        let mut seen: Vec<(&str, &str)> = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        seen.sort_unstable();
        let mut headers = headers.to_vec();
        headers.sort_unstable();
        assert_eq!((head.status, seen), (status, headers), "{name}");
        let body = head.failed_body.map(|body| String::from_utf8(body).unwrap());
        assert_eq!(body.as_deref(), (name == "conflict").then_some(r#"{"code":"taken","by":"[REDACTED]"}"#), "{name}");
    }
}

#[test]
fn call_can_choose_the_response_type_and_omit_bytes() {
    let (_web, world) = answers();
    let program = world.program();
    let request = |tool: &str, options: &str| {
        let mut text = format!(r#"{{"server":"api","tool":"{tool}""#);
        text.push_str(options);
        ptc_lisp::json::decode(format!("{text}}}").as_bytes()).unwrap()
    };
    let call = |tool: &str, options: &str| program.submit(&request(tool, options)).map(described).map_err(|fault| fault.message);
    for (tool, options, expected) in [
        ("accept", "", Ok(r#"json "application/json, text/csv;q=0.9""#)),
        ("accept", r#","accept":"text/csv""#, Ok(r#"json "text/csv""#)),
        (
            "accept",
            r#","accept":"text/html""#,
            Err(
                "tool 'api.accept' rejected args: the operation does not answer with 'text/html' (:accept); it answers with application/json, text/csv",
            ),
        ),
        ("accept", r#","accept":7"#, Err("tool/call requires :accept to be a media type (string), got 7")),
        ("image", r#","body":false"#, Ok(r#"json {"bytes":4,"content_type":"image/png"}"#)),
        ("image", r#","body":"no""#, Err("tool/call requires :body to be true or false, got \"no\"")),
    ] {
        assert_eq!(call(tool, options), expected.map(str::to_owned).map_err(str::to_owned), "{tool} {options}");
    }
}
