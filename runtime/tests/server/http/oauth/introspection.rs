//! Opaque tokens, about which the server asks the authorization server.

use std::time::Instant;

use serde_json::{Value, json};

use super::issuer::{AUDIENCE, CLIENT_SECRET, Document, Issuer, now};
use super::{connect, initialize, initialize_at, start_limited};
use crate::http::access::{scratch, until};
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

pub(super) fn valid_opaque_token_passes_after_wrong_ones() {
    let issuer = Issuer::start();
    let site = start_with_options(&issuer, &["--http-auth-rate-limit-max-failures", "3"]);
    for guess in 0..6 {
        let status = initialize(&site, &format!("opaque-guess-{guess}-0123456789")).status;
        assert_eq!(status, if guess < 3 { 401 } else { 429 }, "guess {guess}");
    }
    // All clients behind a proxy share an address.
    for token in [TOKEN, "opaque-not-a-real-token-of-another-client"] {
        issuer.know(token, active(&json!({})));
        assert_eq!(initialize(&site, token).status, 200, "{token} was not asked about before");
    }
    assert_eq!(issuer.requests("/introspect"), 8);
    let guess = [("Authorization", "Bearer opaque-ready-0123456789")];
    assert_eq!(site.client().ask("GET", "/ready", &guess, "").status, 200);
    assert_eq!(issuer.requests("/introspect"), 8, "a request whose failure is not counted asks nothing");
}

pub(super) fn guessed_tokens_cause_few_introspections() {
    let issuer = Issuer::start();
    issuer.know(TOKEN, active(&json!({})));
    let site = start_with_options(&issuer, &["--http-auth-rate-limit-max-failures", "1"]);
    assert_eq!(initialize(&site, TOKEN).status, 200);
    for guess in 0..2 {
        assert_ne!(initialize(&site, &format!("opaque-guess-{guess}-0123456789")).status, 200);
    }
    let (before, began) = (issuer.requests("/introspect"), Instant::now());
    std::thread::scope(|scope| {
        for thread in 0..40 {
            let address = site.address;
            scope.spawn(move || {
                for guess in 0..4 {
                    let status = initialize_at(address, &format!("opaque-flood-{thread}-{guess}-0123456789")).status;
                    assert!(status == 429 || status == 503, "{status}");
                }
            });
        }
        assert_eq!(initialize(&site, TOKEN).status, 200, "a kept answer needs no request");
    });
    let permitted = 10 + 5 * (began.elapsed().as_secs() as usize + 1);
    let sent = issuer.requests("/introspect") - before;
    assert!(sent <= permitted && sent < 160, "{sent} introspections, at most {permitted}");
    // The flood leaves nothing behind.
    let other = "opaque-not-a-real-token-after-the-flood";
    issuer.know(other, active(&json!({})));
    until("a new token is accepted", || initialize(&site, other).status == 200);
}

pub(super) fn equal_opaque_tokens_cause_one_introspection() {
    let issuer = Issuer::start();
    let token = format!("{}{TOKEN}", super::issuer::SLOW);
    issuer.know(&token, active(&json!({})));
    let site = start_with(&issuer);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let (address, token) = (site.address, &token);
            scope.spawn(move || assert_eq!(initialize_at(address, token).status, 200));
        }
    });
    assert_eq!(issuer.requests("/introspect"), 1);
}

pub(super) fn token_that_cannot_be_introspected_stops_no_other() {
    let issuer = Issuer::start();
    issuer.serve("/introspect", Document::Status(400));
    let site = start_with(&issuer);
    assert_eq!(initialize(&site, "opaque-of-an-unusual-form-0123456789").status, 503);
    issuer.serve("/introspect", Document::Json(active(&json!({}))));
    assert_eq!(initialize(&site, TOKEN).status, 200);
}

/// Each such token has caused a request, so that it counts as a guess.
pub(super) fn tokens_that_cannot_be_introspected_are_guesses() {
    for status in [400, 413, 414, 422] {
        let issuer = Issuer::start();
        issuer.serve("/introspect", Document::Status(status));
        let site = start_with_options(&issuer, &["--http-auth-rate-limit-max-failures", "3"]);
        let answers = (0..6).map(|guess| initialize(&site, &format!("opaque-guess-{guess}-0123456789")));
        let statuses: Vec<u16> = answers.map(|answer| answer.status).collect();
        assert_eq!(statuses, [503, 503, 503, 429, 429, 429], "{status}");
        issuer.serve("/introspect", Document::Json(active(&json!({}))));
        assert_eq!(initialize(&site, TOKEN).status, 200, "{status}: others of the address are not stopped");
    }
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
