//! Opaque tokens, about which the server asks the authorization server.

use serde_json::{Value, json};

use super::issuer::{AUDIENCE, CLIENT_SECRET, Document, Issuer, now};
use super::{connect, initialize, start_limited};
use crate::http::access::scratch;
use crate::http::site::Site;

const TOKEN: &str = "opaque-not-a-real-token-0123456789";
const INACTIVE: &str = "the authorization server does not know the token as active";

fn start_with(issuer: &Issuer) -> Site {
    start_with_options(issuer, &["--http-auth-rate-limit=false"])
}

fn start_with_options(issuer: &Issuer, limits: &[&str]) -> Site {
    let file = scratch(&format!("client-secret-{}", issuer.name().replace(|c: char| !c.is_ascii_alphanumeric(), "-")));
    std::fs::write(&file, CLIENT_SECRET).expect("a file");
    let path = file.to_str().expect("plain text");
    let more = ["--http-oauth-introspection-url", issuer.url("/introspect"), "--http-oauth-client-id", "gate"];
    let secret = ["--http-oauth-client-secret-file", path, "--sessions"];
    let site = start_limited(issuer, &[&more[..], &secret, limits].concat());
    std::fs::remove_file(&file).expect("it is there");
    site
}

fn active(changes: &Value) -> Value {
    let mut answer = json!({ "active": true, "sub": "alice", "aud": AUDIENCE, "exp": now() + 300, "scope": "mcp:call" });
    for (name, value) in changes.as_object().into_iter().flatten() {
        answer[name] = value.clone();
    }
    answer.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    answer
}

pub(super) fn opaque_access_token_is_introspected() {
    let issuer = Issuer::start();
    issuer.know(TOKEN, active(&json!({})));
    let site = start_with(&issuer);
    let mut client = connect(&site, TOKEN.to_owned());
    for _ in 0..20 {
        assert_eq!(client.eval("(+ 1 2)"), "user=> 3");
    }
    assert_eq!(issuer.requests("/introspect"), 1, "the answer is kept");
    let tool = |client: &mut crate::http::site::Client, name: &str| {
        let params = json!({ "name": name, "arguments": {} });
        client.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).json()["result"]["structuredContent"].clone()
    };
    let session = tool(&mut client, "lisp_session_start")["session_id"].clone();
    // The owner is issuer and subject, in whatever form a token comes.
    let mut of_jwt = connect(&site, issuer.token(&json!({})));
    assert_eq!(tool(&mut of_jwt, "lisp_session_list")["sessions"][0]["session_id"], session);
    assert_eq!(issuer.requests("/introspect"), 1, "a JWT is verified here");
    site.signal(rustix::process::Signal::TERM);
    let (status, log) = site.end();
    assert!(status.success() && log.iter().all(|line| !line.contains(CLIENT_SECRET) && !line.contains(TOKEN)), "{log:?}");
}

pub(super) fn opaque_access_token_is_refused_with_its_reason() {
    let issuer = Issuer::start();
    let mut site = start_with(&issuer);
    let [expired, early, other_issuer, other_audience, _, subject] = super::hostile::PUBLIC;
    for (at, (answer, reason)) in [
        (json!({ "active": false }), INACTIVE),
        (json!({}), INACTIVE),
        (active(&json!({ "active": "true" })), INACTIVE),
        (active(&json!({ "active": 1 })), INACTIVE),
        (active(&json!({ "aud": null })), other_audience),
        (active(&json!({ "aud": "https://other.example/mcp" })), other_audience),
        (active(&json!({ "aud": ["https://other.example/mcp"] })), other_audience),
        (active(&json!({ "iss": "https://other.example" })), other_issuer),
        (active(&json!({ "exp": now() - 60 })), expired),
        (active(&json!({ "nbf": now() + 120 })), early),
        (active(&json!({ "sub": null })), subject),
        (active(&json!({ "sub": "" })), subject),
    ]
    .into_iter()
    .enumerate()
    {
        let token = format!("{TOKEN}-{at}");
        issuer.know(&token, answer.clone());
        assert_eq!(initialize(&site, &token).status, 401, "{answer}");
        assert_eq!(site.logged("access_token_refused")["reason"], reason, "{answer}");
    }
    let before = issuer.requests("/introspect");
    for _ in 0..20 {
        assert_eq!(initialize(&site, "opaque-unknown-0123456789").status, 401);
    }
    assert_eq!(issuer.requests("/introspect"), before + 1, "a refusal is kept too");
    // Characters that separate parameters of a form do not.
    assert_eq!(initialize(&site, &format!("{TOKEN}&token={TOKEN}")).status, 401);
}

pub(super) fn guessed_tokens_cause_few_introspections() {
    let issuer = Issuer::start();
    issuer.know(TOKEN, active(&json!({})));
    let site = start_with_options(&issuer, &["--http-auth-rate-limit-max-failures", "3"]);
    assert_eq!(initialize(&site, TOKEN).status, 200);
    for guess in 0..8 {
        let status = initialize(&site, &format!("opaque-guess-{guess}-0123456789")).status;
        assert_eq!(status, if guess < 3 { 401 } else { 429 }, "guess {guess}");
        let ready = format!("Bearer opaque-ready-{guess}-0123456789");
        assert_eq!(site.client().ask("GET", "/ready", &[("Authorization", &ready)], "").status, 200);
    }
    assert_eq!(
        issuer.requests("/introspect"),
        1 + 4,
        "one for the valid token, and one for each failure until the address is blocked"
    );
    assert_eq!(initialize(&site, TOKEN).status, 200, "a kept answer counts");
}

pub(super) fn failed_introspection_refuses_no_token() {
    for document in [
        Document::Status(500),
        Document::Status(401),
        Document::Redirect("/moved".into()),
        Document::Bytes(b"<html>".to_vec()),
        Document::Bytes(vec![b' '; 64 * 1024 + 1]),
    ] {
        let issuer = Issuer::start();
        issuer.serve("/introspect", document);
        let mut site = start_with(&issuer);
        assert_eq!(initialize(&site, TOKEN).status, 503);
        let logged = site.logged("access tokens not introspected");
        assert!(logged["url"].as_str().is_some_and(|url| url.ends_with("/introspect")), "{logged}");
        assert_eq!(issuer.requests("/moved"), 0);
        assert_eq!(initialize(&site, &issuer.token(&json!({}))).status, 200, "a JWT needs no introspection");
    }
}
