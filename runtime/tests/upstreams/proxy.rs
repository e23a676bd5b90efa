//! Proxies with credentials and exceptions, of every kind of upstream.

use std::sync::Arc;

use ptc_catalog::{Binding, Era, McpHttp, OpenApi, Operation, Proxy, Source, Transport};
use ptc_runtime::upstream::http::access_token::AccessTokens;
use serde_json::json;

use crate::forward_proxy::ForwardProxy;
use crate::http::handshaking;
use crate::tunnel::listen_with_tls;
use crate::web::{Answer, Web};
use crate::world::{World, operation, tool, upstream};

/// Characters that a URL encodes, and some that look encoded.
const LOGIN: &str = "anna:p%41ss:w@rd/é?#";
/// `Proxy-Authorization` for it: base64 of the UTF-8 text.
const SENT: &str = "Basic YW5uYTpwJTQxc3M6d0ByZC/DqT8j";

fn bindings(value: &'static str) -> Vec<Binding> {
    vec![Binding { name: "corp", source: Source::Literal { value } }]
}

fn through(proxy: &ForwardProxy, auth: Option<&'static str>, no_proxy: &'static [&'static str]) -> Proxy {
    let url = format!("http://{}", proxy.address()).leak();
    Proxy { url, auth, no_proxy }
}

/// Returns an MCP server and a JSON service that answer with 7.
fn service() -> Web {
    Web::start(|asked| match asked.method.as_str() {
        "POST" => handshaking(asked, |frame| {
            let content = json!([{"type": "text", "text": "7"}]);
            Answer::json(200, json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"content": content}}))
        }),
        _ => Answer::json(200, "7"),
    })
}

/// Returns the answers of a JSON service and of an MCP server at `base`, both behind the proxy.
fn answers(base: &'static str, proxy: Proxy, login: &'static str, roots: Option<&str>) -> [String; 2] {
    let (url, proxy) = (format!("{base}/mcp").leak(), Some(proxy));
    let web = McpHttp { proxy, era: Some(Era::Handshake), ..McpHttp::new(url) };
    let upstreams = vec![
        upstream(
            "api",
            Transport::OpenApi(OpenApi { proxy, ..OpenApi::new(base) }),
            vec![operation("seven", Operation::new("seven", "/seven"))],
        ),
        upstream("web", Transport::McpHttp(web), vec![tool("seven")]),
    ];
    let world = World::with(upstreams, bindings(login), |settings| {
        settings.extra_roots = roots.map(|roots| Arc::from(roots.as_bytes()));
    });
    let program = world.program();
    ["api", "web"].map(|server| program.call(server, "seven", "{}"))
}

#[test]
fn proxy_credentials_are_sent_with_plain_requests() {
    let (web, proxy) = (service(), ForwardProxy::start(Some(SENT)));
    assert_eq!(answers(web.url(""), through(&proxy, Some("corp"), &[]), LOGIN, None), ["json 7", "text 7"]);
    let heads = proxy.heads();
    assert!(heads.len() > 2, "{heads:?}");
    for head in heads {
        assert!(head.contains(&format!(" http://{}/", web.address)) && head.contains(SENT), "{head}");
    }
    assert!(web.requests().iter().all(|asked| asked.header("proxy-authorization").is_none()), "they are for the proxy alone");
}

#[test]
fn proxy_credentials_are_sent_with_connect() {
    let (web, proxy, home) = (service(), ForwardProxy::start(Some(SENT)), World::new(Vec::new()));
    let (secure, certificate) = listen_with_tls(&home, web.address);
    let base: &'static str = format!("https://localhost:{}", secure.port()).leak();
    assert_eq!(answers(base, through(&proxy, Some("corp"), &[]), LOGIN, Some(&certificate)), ["json 7", "text 7"]);
    for head in proxy.heads() {
        assert!(head.starts_with(&format!("CONNECT localhost:{} ", secure.port())) && head.contains(SENT), "{head}");
    }
    assert!(web.requests().iter().all(|asked| asked.header("proxy-authorization").is_none()), "they are for the proxy alone");

    let before = web.requests().len();
    let refused = answers(base, through(&proxy, Some("corp"), &[]), "anna:wrong-password", Some(&certificate));
    for (answer, name) in refused.iter().zip(["api", "web"]) {
        let expected = format!("auth_failed: the proxy of '{name}' refuses its credentials (407 Proxy Authentication Required)");
        assert_eq!(answer, &expected);
    }
    assert_eq!(web.requests().len(), before, "no request reaches the upstream");
}

#[test]
fn refused_proxy_credentials_name_the_upstream_and_the_proxy() {
    let (web, proxy) = (service(), ForwardProxy::start(Some(SENT)));
    for (auth, why) in
        [(Some("corp"), "refuses its credentials"), (None, "asks for credentials, and has none in the configuration")]
    {
        let refused = answers(web.url(""), through(&proxy, auth, &[]), "anna:wrong-password", None);
        for (answer, name) in refused.iter().zip(["api", "web"]) {
            let expected = format!("auth_failed: the proxy of '{name}' {why} (407 Proxy Authentication Required)");
            assert_eq!(answer, &expected);
        }
    }
    assert!(web.requests().is_empty(), "no request reaches the upstream");
}

#[test]
fn exceptions_are_reached_without_the_proxy() {
    let web = service();
    let local: &'static str = format!("http://localhost:{}", web.address.port()).leak();
    for (base, no_proxy, is_exception) in [
        (web.url(""), &["127.0.0.1"][..], true),
        (web.url(""), &["10.0.0.0/8", "127.0.0.0/8"], true),
        (web.url(""), &["*"], true),
        (web.url(""), &["10.0.0.0/8", "localhost"], false),
        (local, &["localhost"], true),
        (local, &[".localhost"], true),
        (local, &["host", "127.0.0.1"], false),
    ] {
        let proxy = ForwardProxy::start(None);
        assert_eq!(answers(base, through(&proxy, None, no_proxy), LOGIN, None), ["json 7", "text 7"]);
        assert_eq!(proxy.heads().is_empty(), is_exception, "{base} {no_proxy:?}");
    }
}

#[cfg(feature = "http")]
#[test]
fn document_is_fetched_through_the_proxy() {
    let (web, proxy) = (service(), ForwardProxy::start(Some(SENT)));
    let entry = OpenApi { proxy: Some(through(&proxy, Some("corp"), &[])), ..OpenApi::new(web.url("")) };
    let world =
        |value| World::with(vec![upstream("api", Transport::OpenApi(entry.clone()), Vec::new())], bindings(value), |_| {});
    let fetch = |world: &World| {
        let (upstreams, entry, url) = (Arc::clone(&world.upstreams), entry.clone(), web.url("/openapi.json"));
        world.run(async move {
            ptc_runtime::upstream::fetch_document(url, 1_000, &entry, upstreams.secrets(), &AccessTokens::default()).await
        })
    };
    assert_eq!(fetch(&world(LOGIN)).unwrap(), b"7");
    assert_eq!(proxy.heads().len(), 1);
    let refused = fetch(&world("anna:wrong-password")).unwrap_err().to_string();
    assert!(refused.contains("the proxy refuses its credentials (407 Proxy Authentication Required)"), "{refused}");
    assert!(!refused.contains("wrong-password"), "{refused}");
}
