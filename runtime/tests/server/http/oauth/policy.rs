//! The policy for scopes and groups of access tokens.

use serde_json::{Value, json};

use super::issuer::{AUDIENCE, Issuer};
use crate::http::owners::tool;
use crate::http::policy::{eval, start};
use crate::policy::{called, count_file};

pub(super) fn policy_of_scopes_and_groups_challenges_for_missing_scopes() {
    let (issuer, count) = (Issuer::start(), count_file("scopes"));
    let oauth = ["--http-auth-rate-limit=false", "--http-oauth-issuer", issuer.name(), "--http-oauth-audience", AUDIENCE];
    let site = start(&count, &oauth);
    let connect = |claims: &Value| site.authenticated(issuer.token(claims).leak());
    let mut reader = connect(&json!({ "scope": "crm:read other" }));
    assert_eq!(eval(&mut reader, r#"(tool/value {:server "crm" :tool "get_order"})"#)["status"], "ok");
    let program = r#"(tool/call {:server "crm" :tool "get_order"}) (tool/call {:server "crm" :tool "delete_order"})"#;
    let refused = tool(&mut reader, "1", "lisp_eval", &json!({ "program": program }));
    assert_eq!(refused.status, 403, "{refused:?}");
    let challenge = refused.header("www-authenticate").unwrap_or_default();
    let metadata = "resource_metadata=\"https://gate.example/.well-known/oauth-protected-resource/mcp\"";
    for part in ["error=\"insufficient_scope\"", "scope=\"crm:read other crm:write\"", metadata] {
        assert!(challenge.contains(part), "{part}: {challenge}");
    }
    assert_eq!(refused.json()["result"]["structuredContent"]["missing_scopes"], json!(["crm:write"]));
    assert_eq!(called(&count), ["get_order"]);
    // All missing scopes are in one challenge.
    let mut other = connect(&json!({ "scope": "other" }));
    let refused = tool(&mut other, "1", "lisp_eval", &json!({ "program": program }));
    let challenge = refused.header("www-authenticate").unwrap_or_default();
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(challenge.contains("scope=\"other crm:read crm:write\""), "{challenge}");
    assert_eq!(refused.json()["result"]["structuredContent"]["missing_scopes"], json!(["crm:read", "crm:write"]));
    assert_eq!(called(&count), ["get_order"]);
    let mut writer = connect(&json!({ "scope": "crm:read crm:write" }));
    assert_eq!(eval(&mut writer, program)["status"], "ok");
    // No scope helps here, so that the client is not asked for another token, and does not learn that there is such a tool.
    let refund = r#"(tool/value {:server "billing" :tool "refund"})"#;
    let refused = tool(&mut writer, "1", "lisp_eval", &json!({ "program": refund }));
    let message = &refused.json()["result"]["structuredContent"]["message"];
    assert_eq!((refused.status, message), (200, &json!("unknown_tool: no upstream 'billing' configured")));
    let mut admin = connect(&json!({ "groups": ["staff", "admins"] }));
    assert_eq!(eval(&mut admin, refund)["status"], "ok");
    std::fs::remove_file(&count).expect("it is there");
}

pub(super) fn metadata_has_the_scopes_of_the_policy() {
    let (issuer, count) = (Issuer::start(), count_file("scopes-supported"));
    for (required, supported, first) in [
        (&[][..], json!(["crm:read", "crm:write"]), None),
        (
            &["--http-oauth-scope", "mcp:call crm:read"],
            json!(["mcp:call", "crm:read", "crm:write"]),
            Some("scope=\"mcp:call crm:read\""),
        ),
    ] {
        let oauth = [&["--http-oauth-issuer", issuer.name(), "--http-oauth-audience", AUDIENCE][..], required].concat();
        let site = start(&count, &oauth);
        let metadata = site.client().ask("GET", "/.well-known/oauth-protected-resource", &[], "").json();
        assert_eq!(metadata["scopes_supported"], supported);
        // A client asks for the scopes of the challenge and no others, so that it has only the required ones.
        let refused = site.client().ask("POST", "/mcp", &[], "{}");
        let challenge = refused.header("www-authenticate").unwrap_or_default();
        assert_eq!(refused.status, 401);
        assert_eq!(challenge.find("scope=").map(|at| &challenge[at..]), first, "{challenge}");
        // A client that has asked for the scopes of the metadata can do what the policy permits for them.
        let scopes: Vec<&str> = supported.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let mut client = site.authenticated(issuer.token(&json!({ "scope": scopes.join(" ") })).leak());
        assert_eq!(eval(&mut client, r#"(tool/value {:server "crm" :tool "get_order"})"#)["status"], "ok");
    }
    std::fs::remove_file(&count).expect("it is there");
}

/// A function keeps no right of the token with which it was defined.
pub(super) fn function_of_a_session_is_authorized_with_the_token_of_its_caller() {
    let (issuer, count) = (Issuer::start(), count_file("function"));
    let oauth =
        ["--sessions", "--http-auth-rate-limit=false", "--http-oauth-issuer", issuer.name(), "--http-oauth-audience", AUDIENCE];
    let site = start(&count, &oauth);
    let token = |scope: &str| issuer.token(&json!({ "scope": scope })).leak();
    let mut writer = site.authenticated(token("crm:read crm:write"));
    let session =
        tool(&mut writer, "1", "lisp_session_start", &json!({})).json()["result"]["structuredContent"]["session_id"].clone();
    assert!(session.is_string());
    let eval = |program: &str| json!({ "session_id": session, "program": program });
    let define = r#"(defn f [] (tool/call {:server "crm" :tool "get_user"}) (tool/call {:server "crm" :tool "delete_order"}))"#;
    let defined = tool(&mut writer, "2", "lisp_session_eval", &eval(define));
    assert_eq!(defined.json()["result"]["isError"], false, "{defined:?}");
    // The same subject with fewer scopes is the same owner, which has the session.
    let mut reader = site.authenticated(token("crm:read"));
    let refused = tool(&mut reader, "3", "lisp_session_eval", &eval("(f)"));
    let challenge = refused.header("www-authenticate").unwrap_or_default();
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"crm:read crm:write\""),
        "{challenge}"
    );
    assert_eq!(refused.json()["result"]["structuredContent"]["missing_scopes"], json!(["crm:write"]));
    assert!(!count.exists(), "no byte was sent to an upstream");
    let permitted = tool(&mut writer, "4", "lisp_session_eval", &eval("(f)"));
    assert_eq!((permitted.status, &permitted.json()["result"]["isError"]), (200, &json!(false)), "{permitted:?}");
    assert_eq!(called(&count), ["get_user", "delete_order"]);
    std::fs::remove_file(&count).expect("it is there");
}
