//! Requests of pages in browsers: preflights, and the headers that let a page read a reply.

use serde_json::json;

use super::site::{Answer, Client, Site, TOKEN};
use crate::Test;
use crate::peer::server;

pub(super) const TESTS: &[Test] = &[
    ("http::preflight_of_an_allowed_origin_needs_no_token", preflight_of_an_allowed_origin_needs_no_token),
    ("http::page_of_an_allowed_origin_can_call", page_of_an_allowed_origin_can_call),
    ("http::page_of_another_origin_gets_no_cors_headers", page_of_another_origin_gets_no_cors_headers),
];

const APP: &str = "https://app.example";

fn start() -> Site {
    Site::of(server("plain").args(["--http", "--http-port", "0", "--http-allowed-origin", APP, "--http-auth-token", TOKEN]))
}

fn preflight(client: &mut Client, path: &str, origin: &str, method: &str) -> Answer {
    let headers = [
        ("Origin", origin),
        ("Access-Control-Request-Method", method),
        ("Access-Control-Request-Headers", "authorization,content-type,mcp-protocol-version"),
    ];
    client.ask("OPTIONS", path, &headers, "")
}

/// Whether a list between commas has a name.
fn lists(answer: &Answer, header: &str, name: &str) -> bool {
    answer.header(header).is_some_and(|list| list.split(',').any(|listed| listed.trim().eq_ignore_ascii_case(name)))
}

fn has_cors(answer: &Answer) -> bool {
    answer.headers.iter().any(|(name, _)| name.starts_with("access-control-"))
}

fn preflight_of_an_allowed_origin_needs_no_token() {
    let site = start();
    let mut client = site.client();
    for method in ["GET", "POST", "DELETE"] {
        let answer = preflight(&mut client, "/mcp", APP, method);
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (204, Some(APP)), "{answer:?}");
        assert!(lists(&answer, "access-control-allow-methods", method), "{answer:?}");
        assert_eq!(answer.header("access-control-max-age"), Some("7200"));
        assert!(answer.header("access-control-allow-credentials").is_none(), "cookies are not used");
        for name in [
            "Authorization",
            "Content-Type",
            "Last-Event-ID",
            "Mcp-Session-Id",
            "Mcp-Protocol-Version",
            "Mcp-Method",
            "Mcp-Name",
            "traceparent",
        ] {
            assert!(lists(&answer, "access-control-allow-headers", name), "{name}: {answer:?}");
        }
    }
    // An origin is compared without its default port, and repeated as the browser wrote it.
    let answer = preflight(&mut client, "/mcp", "https://app.example:443", "POST");
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example:443"));
    // Other requests with this method need the token, and the other endpoints are not for pages.
    assert_eq!(client.ask("OPTIONS", "/mcp", &[("Origin", APP)], "").status, 401);
    for path in ["/metrics", "/health", "/ready", "/viewer/api/calls"] {
        assert!(!has_cors(&preflight(&mut client, path, APP, "GET")), "{path}");
    }
}

fn page_of_an_allowed_origin_can_call() {
    let site = start();
    let mut client = site.client();
    let origin = [("Origin", APP)];
    let is_shared = |answer: &Answer, status: u16| {
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (status, Some(APP)), "{answer:?}");
        assert_eq!(answer.header("vary"), Some("Origin"));
        for name in ["Mcp-Session-Id", "WWW-Authenticate"] {
            assert!(lists(answer, "access-control-expose-headers", name), "{answer:?}");
        }
    };
    // A page can read why a call failed, too.
    let refused = client.ask("POST", "/mcp", &origin, "{}");
    is_shared(&refused, 401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    client.token = Some(TOKEN);
    let initialize = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    let opened = client.ask("POST", "/mcp", &origin, &initialize.to_string());
    is_shared(&opened, 200);
    client.session = opened.header("mcp-session-id").map(str::to_owned);
    let answer = client.ask("POST", "/mcp", &origin, &super::site::call(1, "(+ 1 2)").to_string());
    is_shared(&answer, 200);
    assert_eq!(answer.text(), "user=> 3");
    is_shared(&client.ask("GET", "/mcp", &origin, ""), 405);
    is_shared(&client.ask("DELETE", "/mcp", &origin, ""), 204);
    is_shared(&client.ask("POST", "/mcp", &origin, "not JSON"), 400);
}

fn page_of_another_origin_gets_no_cors_headers() {
    let site = start();
    let mut client = Client { token: Some(TOKEN), ..site.client() };
    for origin in
        ["https://evil.example", "http://app.example", "https://app.example.evil.example", "null", "http://localhost:3000"]
    {
        for answer in [preflight(&mut client, "/mcp", origin, "POST"), client.ask("POST", "/mcp", &[("Origin", origin)], "{}")] {
            assert!(answer.status == 403 && !has_cors(&answer), "{origin}: {answer:?}");
        }
    }
    assert!(!has_cors(&client.initialize()), "a client that is not a browser");
    // Without a list, pages of this machine are allowed on a loopback address.
    let site = Site::start(&["--http-auth-token", TOKEN]);
    let mut client = site.client();
    let local = preflight(&mut client, "/mcp", "http://localhost:6274", "POST");
    assert_eq!((local.status, local.header("access-control-allow-origin")), (204, Some("http://localhost:6274")));
    assert!(!has_cors(&preflight(&mut client, "/mcp", APP, "POST")));
}
