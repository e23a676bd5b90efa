//! What clients rely on at a server with an authorization server, in the order in which a client comes upon it: the checks that are
//! drafted for servers in the official conformance suite.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::issuer::{AUDIENCE, Issuer, Keys, Signer};
use crate::http::owners::tool;
use crate::http::policy::start;
use crate::http::site::{Answer, Client, Site};
use crate::policy::{called, count_file};

const METADATA: &str = "https://gate.example/.well-known/oauth-protected-resource/mcp";

/// Returns the parameters of the only challenge of an answer.
fn challenge(answer: &Answer) -> BTreeMap<String, String> {
    let all: Vec<&str> =
        answer.headers.iter().filter(|(name, _)| name == "www-authenticate").map(|(_, value)| value.as_str()).collect();
    let [one] = all.as_slice() else { panic!("{} challenges: {answer:?}", all.len()) };
    let parameters = one.strip_prefix("Bearer ").unwrap_or_else(|| panic!("{one}"));
    let pair = |text: &str| {
        let (name, value) = text.split_once("=\"").unwrap_or_else(|| panic!("{one}"));
        (name.to_owned(), value.strip_suffix('"').unwrap_or_else(|| panic!("{one}")).to_owned())
    };
    parameters.split(", ").map(pair).collect()
}

/// Sends the first message of a client with this header.
fn first(site: &Site, authorization: &str) -> Answer {
    let message = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    site.client().ask("POST", "/mcp", &[("Authorization", authorization)], &message.to_string())
}

fn started(name: &str) -> (Issuer, std::path::PathBuf, Site) {
    let (issuer, count) = (Issuer::start(), count_file(name));
    let oauth = ["--http-auth-rate-limit=false", "--http-oauth-issuer", issuer.name(), "--http-oauth-audience", AUDIENCE];
    let site = start(&count, &oauth);
    (issuer, count, site)
}

pub(super) fn protected_server_passes_the_drafted_checks() {
    let (issuer, _, site) = started("protected");
    let refused = first(&site, "");
    let told = challenge(&refused);
    let path = told.get("resource_metadata").and_then(|url| url.strip_prefix("https://gate.example")).unwrap_or_default();
    let document = site.client().ask("GET", path, &[], "");
    let metadata = if document.status == 200 { document.json() } else { Value::Null };
    let accepted = first(&site, &format!("Bearer {}", issuer.token(&json!({}))));
    for (check, passes) in [
        ("a request without a token gets 401", refused.status == 401),
        ("the challenge has `resource_metadata`", told.get("resource_metadata").is_some_and(|url| url == METADATA)),
        ("the challenge names no error", !told.contains_key("error")),
        ("the metadata is JSON", document.header("content-type") == Some("application/json")),
        ("the metadata has the `resource` that clients address", metadata["resource"] == AUDIENCE),
        ("the metadata has `authorization_servers`", metadata["authorization_servers"] == json!([issuer.name()])),
        ("the metadata permits tokens in the header", metadata["bearer_methods_supported"] == json!(["header"])),
        ("a valid token is accepted", accepted.status == 200),
    ] {
        assert!(passes, "{check}: {refused:?} {document:?} {accepted:?}");
    }
    let (claims, foreign) = (issuer.claims(&json!({})), Keys::generate());
    let header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "edwards" });
    let valid = issuer.token(&json!({}));
    for (what, token) in [
        ("no token of the issuer", "invalid-token-0123456789-0123456789-0123456789".to_owned()),
        ("a token without a signature", valid.rsplit_once('.').expect("three parts").0.to_owned()),
        ("a token with the algorithm `none`", Signer::Nothing.token(&json!({ "alg": "none", "typ": "at+jwt" }), &claims)),
        ("a token that another key has signed", Signer::EdDsa(&foreign.edwards).token(&header, &claims)),
        ("a token for another resource", issuer.token(&json!({ "aud": "https://other.example/mcp" }))),
        ("an expired token", issuer.token(&json!({ "exp": super::issuer::now() - 600 }))),
    ] {
        let refused = first(&site, &format!("Bearer {token}"));
        let told = challenge(&refused);
        let error = told.get("error").map(String::as_str);
        assert_eq!((refused.status, error), (401, Some("invalid_token")), "{what}: {refused:?}");
        assert_eq!(told.get("resource_metadata").map(String::as_str), Some(METADATA), "{what}");
    }
    for header in ["foo", "Bearer", "Basic Zm9vOmJhcg=="] {
        assert_eq!(first(&site, header).status, 401, "a malformed header: {header}");
    }
}

pub(super) fn step_up_passes_the_drafted_checks() {
    let write = json!({ "program": r#"(tool/value {:server "crm" :tool "delete_order"})"# });
    for (name, arguments) in [("lisp_eval", &write), ("purge", &json!({}))] {
        let (issuer, count, site) = started(&format!("step-up-{name}"));
        let connect = |scope: &str| site.authenticated(issuer.token(&json!({ "scope": scope })).leak());
        let mut basic = connect("crm:read");
        let list = |client: &mut Client| client.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        let listed = list(&mut basic);
        let refused = tool(&mut basic, "2", name, arguments);
        let told = challenge(&refused);
        let part = |name: &str| told.get(name).map_or("", String::as_str);
        let sent_before = called(&count).len();
        // A client asks for the scopes of the challenge and no others.
        let mut escalated = connect(part("scope"));
        let succeeded = tool(&mut escalated, "3", name, arguments);
        for (check, passes) in [
            ("a permitted request succeeds with the basic scope", listed.status == 200),
            ("step-up-403-response", refused.status == 403 && part("error") == "insufficient_scope"),
            ("step-up-scope-in-header", part("scope").split(' ').any(|scope| scope == "crm:write")),
            (
                "the challenge has the scopes that the token has already",
                part("scope").split(' ').any(|scope| scope == "crm:read"),
            ),
            ("step-up-resource-metadata", part("resource_metadata") == METADATA),
            ("the refused request reaches no upstream", sent_before == 0),
            ("step-up-re-auth", escalated.session.is_some()),
            ("step-up-success-after-escalation", succeeded.status == 200 && succeeded.json()["result"]["isError"] == false),
            ("the request reaches the upstream once", called(&count) == ["delete_order"]),
            ("the first token keeps what it may do", list(&mut basic).status == 200),
        ] {
            assert!(passes, "{name}: {check}: {refused:?} {succeeded:?}");
        }
        std::fs::remove_file(&count).expect("it is there");
    }
}
