//! Access tokens of an authorization server.

mod hostile;
mod introspection;
mod issuer;
mod policy;
mod rsa;
mod scenarios;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ptc_runtime::digest::{hex, sha256};
use ring::signature::KeyPair as _;
use serde_json::{Value, json};

use self::issuer::{AUDIENCE, Document, Issuer, Keys, Signer, edwards_jwk, rsa_jwk};
use self::rsa::RsaKey;
use super::access::{scratch, until};
#[cfg(feature = "agentic")]
use super::separation::{check_separation, with_tokens};
use super::site::{Answer, Client, Site, call};
use crate::Test;
use crate::peer::server;

pub(super) const TESTS: &[Test] = &[
    ("http::opaque_access_token_is_introspected", introspection::opaque_access_token_is_introspected),
    ("http::opaque_access_token_is_refused_with_its_reason", introspection::opaque_access_token_is_refused_with_its_reason),
    ("http::guessed_tokens_cause_few_introspections", introspection::guessed_tokens_cause_few_introspections),
    ("http::valid_opaque_token_passes_after_wrong_ones", introspection::valid_opaque_token_passes_after_wrong_ones),
    ("http::equal_opaque_tokens_cause_one_introspection", introspection::equal_opaque_tokens_cause_one_introspection),
    ("http::token_that_cannot_be_introspected_stops_no_other", introspection::token_that_cannot_be_introspected_stops_no_other),
    ("http::tokens_that_cannot_be_introspected_are_guesses", introspection::tokens_that_cannot_be_introspected_are_guesses),
    ("http::failed_introspection_refuses_no_token", introspection::failed_introspection_refuses_no_token),
    ("http::access_token_of_each_algorithm_is_accepted", access_token_of_each_algorithm_is_accepted),
    ("http::subjects_of_access_tokens_are_separate_owners", subjects_of_access_tokens_are_separate_owners),
    #[cfg(feature = "agentic")]
    ("http::owner_of_an_access_token_finds_nothing_of_another", owner_of_an_access_token_finds_nothing_of_another),
    ("http::hostile_access_token_is_refused_with_its_reason", hostile_access_token_is_refused_with_its_reason),
    ("http::keys_of_a_hostile_issuer_are_not_used", keys_of_a_hostile_issuer_are_not_used),
    ("http::metadata_and_challenges_lead_to_the_authorization_server", metadata_and_challenges_lead_to_the_authorization_server),
    ("http::access_token_without_a_required_scope_is_forbidden", access_token_without_a_required_scope_is_forbidden),
    (
        "http::policy_of_scopes_and_groups_challenges_for_missing_scopes",
        policy::policy_of_scopes_and_groups_challenges_for_missing_scopes,
    ),
    (
        "http::function_of_a_session_is_authorized_with_the_token_of_its_caller",
        policy::function_of_a_session_is_authorized_with_the_token_of_its_caller,
    ),
    ("http::metadata_has_the_scopes_of_the_policy", policy::metadata_has_the_scopes_of_the_policy),
    ("http::protected_server_passes_the_drafted_checks", scenarios::protected_server_passes_the_drafted_checks),
    ("http::step_up_passes_the_drafted_checks", scenarios::step_up_passes_the_drafted_checks),
    ("http::keys_of_the_issuer_rotate", keys_of_the_issuer_rotate),
    ("http::key_that_is_replaced_under_its_id_is_accepted", key_that_is_replaced_under_its_id_is_accepted),
    ("http::unknown_keys_cause_one_fetch_in_an_interval", unknown_keys_cause_one_fetch_in_an_interval),
    ("http::token_is_not_refused_while_newer_keys_cannot_be_fetched", token_is_not_refused_while_newer_keys_cannot_be_fetched),
    ("http::issuer_that_cannot_be_reached_does_not_end_valid_calls", issuer_that_cannot_be_reached_does_not_end_valid_calls),
    ("http::contradicting_settings_of_access_tokens_are_refused", contradicting_settings_of_access_tokens_are_refused),
];

fn start(issuer: &Issuer, more: &[&str]) -> Site {
    start_limited(issuer, &[&["--http-auth-rate-limit=false"], more].concat())
}

/// Starts a server that delays replies to wrong tokens after repeated failures.
fn start_limited(issuer: &Issuer, more: &[&str]) -> Site {
    let mut command = server("plain");
    command.args(["--http", "--http-port", "0", "--http-oauth-issuer", issuer.name(), "--http-oauth-audience", AUDIENCE]);
    Site::of(command.args(more))
}

/// Sends the first message of a client with this token.
fn initialize(site: &Site, token: &str) -> Answer {
    initialize_at(site.address, token)
}

fn initialize_at(address: SocketAddr, token: &str) -> Answer {
    let mut client = Client::connect(address);
    let message = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    client.ask("POST", "/mcp", &[("Authorization", &format!("Bearer {token}"))], &message.to_string())
}

fn connect(site: &Site, token: String) -> Client {
    site.authenticated(token.leak())
}

fn access_token_of_each_algorithm_is_accepted() {
    let issuer = Issuer::start();
    let site = start(&issuer, &[]);
    let (keys, claims) = (&issuer.keys, issuer.claims(&json!({})));
    for (alg, kid, signer) in [
        ("RS256", "rsa", Signer::Rs256(&keys.rsa)),
        ("PS256", "rsa", Signer::Ps256(&keys.rsa)),
        ("ES256", "curve", Signer::Es256(&keys.curve)),
        ("EdDSA", "edwards", Signer::EdDsa(&keys.edwards)),
    ] {
        let token = signer.token(&json!({ "alg": alg, "typ": "at+jwt", "kid": kid }), &claims);
        assert_eq!(connect(&site, token).eval("(+ 1 2)"), "user=> 3", "{alg}");
        let token = signer.token(&json!({ "alg": alg, "typ": "application/AT+JWT" }), &claims);
        assert_eq!(initialize(&site, &token).status, 200, "{alg} without a key id");
    }
    for (changes, what) in [
        (json!({ "aud": ["https://other.example", AUDIENCE] }), "one of several audiences"),
        (json!({ "exp": issuer::now() - 10 }), "a clock that is ahead"),
        (json!({ "nbf": issuer::now() + 10 }), "a clock that is behind"),
    ] {
        assert_eq!(initialize(&site, &issuer.token(&changes)).status, 200, "{what}");
    }
    assert_eq!(issuer.requests("/keys"), 1, "keys are fetched once");
}

fn subjects_of_access_tokens_are_separate_owners() {
    const STATIC: &str = "not-a-real-token-of-alice-0123456789abcdef";
    let (issuer, path) = (Issuer::start(), scratch("beside-oauth"));
    std::fs::write(&path, format!("alice {}\n", hex(&sha256(STATIC.as_bytes())))).expect("a file");
    let site = start(&issuer, &["--sessions", "--http-tokens-file", path.to_str().expect("plain text")]);
    let tool = |client: &mut Client, name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        client.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).json()["result"]["structuredContent"].clone()
    };
    let mut alice = connect(&site, issuer.token(&json!({})));
    let session = tool(&mut alice, "lisp_session_start", json!({}))["session_id"].clone();
    // The owner is the subject and not the token, which is replaced often.
    let mut later = connect(&site, issuer.token(&json!({ "jti": "2" })));
    assert_eq!(tool(&mut later, "lisp_session_list", json!({}))["sessions"][0]["session_id"], session);
    let other = issuer.token(&json!({ "sub": "bob" }));
    // A name in the file of tokens is not a subject, even if both have the same text.
    for mut other in [connect(&site, other), site.authenticated(STATIC)] {
        assert_eq!(tool(&mut other, "lisp_session_list", json!({}))["sessions"], json!([]));
        assert_eq!(tool(&mut other, "lisp_session_inspect", json!({ "session_id": session }))["reason"], "session_not_found");
        other.session.clone_from(&alice.session);
        assert_eq!(other.post(&call(1, "1")).status, 404);
    }
    std::fs::remove_file(&path).expect("it is there");
}

#[cfg(feature = "agentic")]
fn owner_of_an_access_token_finds_nothing_of_another() {
    let issuer = Issuer::start();
    let tokens = ["alice", "bob"].map(|subject| &*issuer.token(&json!({ "sub": subject })).leak());
    let options = ["--http-oauth-issuer", issuer.name(), "--http-oauth-audience", AUDIENCE];
    check_separation("separate", &format!("oauth:{} alice", issuer.name()), &options, &with_tokens(tokens));
}

fn hostile_access_token_is_refused_with_its_reason() {
    let issuer = Issuer::start();
    // The issuer publishes keys that must not verify a token.
    let mut set = issuer.keys.set();
    let keys = set["keys"].as_array_mut().expect("a list");
    let unusable = |id: &str, name: &str, value: Value| {
        let mut key = edwards_jwk(id, &issuer.keys.edwards);
        key[name] = value;
        key
    };
    keys.push(rsa_jwk("short", &RsaKey::short()));
    keys.push(json!({ "kty": "oct", "kid": "secret", "k": issuer::encode(b"published") }));
    keys.push(unusable("encryption", "use", "enc".into()));
    keys.push(unusable("wrapping", "key_ops", json!(["wrapKey"])));
    keys.push(json!({ "kty": "of the future", "kid": "edwards" }));
    issuer.serve("/keys", Document::Json(set));
    issuer.serve("/evil", Document::Json(Keys::generate().set()));
    let mut site = start(&issuer, &[]);
    assert_eq!(initialize(&site, &issuer.token(&json!({}))).status, 200);
    let rows = hostile::tokens(&issuer);
    assert!(rows.len() >= 80, "{}", rows.len());
    for (what, token, reason) in rows {
        let refused = initialize(&site, &token);
        let challenge = refused.header("www-authenticate").unwrap_or_default().to_owned();
        assert_eq!(refused.status, 401, "{what}: {refused:?}");
        assert_eq!(site.logged("access_token_refused")["reason"], reason, "{what}");
        // A client learns more only if the issuer has signed its token.
        let shown = if hostile::PUBLIC.contains(&reason) { reason } else { "the access token is not valid" };
        assert!(challenge.contains(&format!("error=\"invalid_token\", error_description=\"{shown}\"")), "{what}: {challenge}");
        assert!(refused.body.is_empty(), "{what}: {refused:?}");
    }
    assert_eq!(issuer.requests("/evil"), 0, "a key of a token's own choice is not fetched");
    assert_eq!(issuer.requests("/keys"), 1, "unknown keys cause no further fetch within 30 seconds");
    // Nothing of a token is in the log.
    let valid = issuer.token(&json!({}));
    assert_eq!(initialize(&site, &valid).status, 200);
    site.signal(rustix::process::Signal::TERM);
    let (status, log) = site.end();
    assert!(status.success());
    assert!(log.iter().all(|line| !line.contains("eyJ") && !line.contains("UNION") && !line.contains("forged")), "{log:?}");
}

fn keys_of_a_hostile_issuer_are_not_used() {
    let template = Issuer::start();
    for at in 0..hostile::issuers(&template).len() {
        let issuer = Issuer::start();
        let (what, documents, reason) = hostile::issuers(&issuer).swap_remove(at);
        issuer.serve("/moved", Document::Json(issuer.metadata()));
        for (path, document) in documents {
            issuer.serve(path, document);
        }
        let mut site = start(&issuer, &[]);
        let answer = initialize(&site, &issuer.token(&json!({})));
        assert!(answer.status == 503 && answer.header("retry-after").is_some(), "{what}: {answer:?}");
        let logged = site.logged("keys of access tokens not fetched");
        assert!(logged["reason"].as_str().is_some_and(|logged| logged.contains(reason)), "{what}: {logged}");
        assert_eq!(issuer.requests("/moved"), 0, "{what}");
    }
}

fn metadata_and_challenges_lead_to_the_authorization_server() {
    let issuer = Issuer::start();
    let site = start(&issuer, &["--http-allowed-origin", "https://app.example"]);
    let mut client = site.client();
    let origin = [("Origin", "https://app.example")];
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = client.ask("GET", path, &origin, "");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
        let expected = json!({
            "resource": AUDIENCE, "authorization_servers": [issuer.name()], "bearer_methods_supported": ["header"],
        });
        assert_eq!(answer.json(), expected);
        assert_eq!(client.ask("POST", path, &[], "{}").status, 405);
        assert_eq!(client.ask("GET", path, &[("Origin", "https://evil.example")], "").status, 403);
        assert_eq!(client.ask("GET", path, &[("Host", "evil.example")], "").status, 403);
    }
    assert_eq!(client.ask("GET", "/.well-known/oauth-protected-resource/other", &[], "").status, 404);
    let challenge = "Bearer resource_metadata=\"https://gate.example/.well-known/oauth-protected-resource/mcp\"";
    let missing = client.ask("POST", "/mcp", &[], "{}");
    assert_eq!((missing.status, missing.header("www-authenticate")), (401, Some(challenge)));
    // A client without a token does not make the server fetch anything.
    assert_eq!(issuer.requests("/keys"), 0);
    // OpenID Connect Discovery has other locations, and the audience need not be a URL.
    issuer.serve("/.well-known/oauth-authorization-server/tenant", Document::Status(404));
    issuer.serve("/tenant/.well-known/openid-configuration", Document::Json(issuer.metadata()));
    let public = ["--http-oauth-audience", "api://gate", "--http-oauth-resource", "https://gate.example/prefix/mcp"];
    let mut command = server("plain");
    command.args(["--http", "--http-port", "0", "--http-oauth-issuer", issuer.name()]).args(public);
    let site = Site::of(&mut command);
    assert_eq!(initialize(&site, &issuer.token(&json!({ "aud": "api://gate" }))).status, 200);
    let path = "/.well-known/oauth-protected-resource/prefix/mcp";
    let answer = site.client().ask("GET", path, &[], "");
    assert_eq!(answer.json()["resource"], "https://gate.example/prefix/mcp");
    let missing = site.client().ask("POST", "/mcp", &[], "{}");
    assert_eq!(missing.header("www-authenticate"), Some(&*format!("Bearer resource_metadata=\"https://gate.example{path}\"")));
    // Without an authorization server there is no metadata.
    assert_eq!(Site::start(&[]).client().ask("GET", "/.well-known/oauth-protected-resource", &[], "").status, 404);
}

fn access_token_without_a_required_scope_is_forbidden() {
    let issuer = Issuer::start();
    let site = start(&issuer, &["--http-oauth-scope", "mcp:call mcp:read"]);
    assert_eq!(initialize(&site, &issuer.token(&json!({ "scope": "other mcp:read mcp:call" }))).status, 200);
    for scope in [json!("mcp:call"), json!("mcp:call mcp:reader"), json!(""), json!(null), json!(["mcp:call", "mcp:read"])] {
        let refused = initialize(&site, &issuer.token(&json!({ "scope": scope })));
        let challenge = refused.header("www-authenticate").unwrap_or_default();
        assert_eq!(refused.status, 403, "{scope}");
        for part in ["error=\"insufficient_scope\"", "scope=\"mcp:call mcp:read\"", "resource_metadata=\"https://gate.example/"] {
            assert!(challenge.contains(part), "{challenge}");
        }
    }
    let missing = site.client().ask("POST", "/mcp", &[], "{}");
    assert!(missing.header("www-authenticate").is_some_and(|challenge| challenge.ends_with(", scope=\"mcp:call mcp:read\"")));
    let metadata = site.client().ask("GET", "/.well-known/oauth-protected-resource", &[], "").json();
    assert_eq!(metadata["scopes_supported"], json!(["mcp:call", "mcp:read"]));
}

fn keys_of_the_issuer_rotate() {
    let (issuer, next) = (Issuer::start(), Keys::generate());
    let site = start(&issuer, &["--http-oauth-refetch-ms", "100"]);
    let (old, claims) = (issuer.token(&json!({})), issuer.claims(&json!({})));
    let new = Signer::EdDsa(&next.edwards).token(&json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "next" }), &claims);
    assert_ne!(next.edwards.public_key().as_ref(), issuer.keys.edwards.public_key().as_ref());
    assert_eq!((initialize(&site, &old).status, initialize(&site, &new).status), (200, 401));
    let old_key = edwards_jwk("edwards", &issuer.keys.edwards);
    issuer.serve("/keys", Document::Json(json!({ "keys": [old_key, edwards_jwk("next", &next.edwards)] })));
    until("the new key is accepted", || initialize(&site, &new).status == 200);
    assert_eq!(initialize(&site, &old).status, 200);
    // A withdrawn key is refused once the keys were refreshed.
    issuer.serve("/keys", Document::Json(json!({ "keys": [edwards_jwk("next", &next.edwards)] })));
    let withdrawn = Instant::now();
    until("the old key is refused", || initialize(&site, &old).status == 401);
    assert!(withdrawn.elapsed() < Duration::from_secs(20), "{:?}", withdrawn.elapsed());
    assert_eq!(initialize(&site, &new).status, 200);
}

fn key_that_is_replaced_under_its_id_is_accepted() {
    const INTERVAL: Duration = Duration::from_secs(2);
    let (issuer, next) = (Issuer::start(), Keys::generate());
    let site = start(&issuer, &["--http-oauth-refetch-ms", &INTERVAL.as_millis().to_string()]);
    let old = issuer.token(&json!({}));
    let sign = |kid: &str, alg: &str, signer: Signer<'_>| {
        signer.token(&json!({ "alg": alg, "typ": "at+jwt", "kid": kid }), &issuer.claims(&json!({})))
    };
    let new = sign("edwards", "EdDSA", Signer::EdDsa(&next.edwards));
    assert_eq!(initialize(&site, &old).status, 200);
    // The next key may be for another algorithm, too.
    let keys = json!([edwards_jwk("edwards", &next.edwards), edwards_jwk("curve", &next.edwards)]);
    issuer.serve("/keys", Document::Json(json!({ "keys": keys })));
    std::thread::sleep(INTERVAL);
    let (before, began) = (issuer.requests("/keys"), Instant::now());
    assert_eq!(initialize(&site, &new).status, 200, "the first token with the new key");
    let statuses: Vec<u16> = (0..50).map(|_| initialize(&site, &old).status).collect();
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    let permitted = 1 + (began.elapsed().as_millis() / INTERVAL.as_millis()) as usize;
    let fetched = issuer.requests("/keys") - before;
    assert!(fetched <= permitted, "{fetched} fetches, at most {permitted}");
    assert_eq!(initialize(&site, &sign("curve", "EdDSA", Signer::EdDsa(&next.edwards))).status, 200);
    issuer.serve("/keys", Document::Json(issuer.keys.set()));
    std::thread::sleep(INTERVAL);
    let of_curve = sign("curve", "ES256", Signer::Es256(&issuer.keys.curve));
    assert_eq!(initialize(&site, &of_curve).status, 200, "a key for another algorithm");
}

fn unknown_keys_cause_one_fetch_in_an_interval() {
    let issuer = Issuer::start();
    let site = start(&issuer, &["--http-oauth-refetch-ms", "1000"]);
    assert_eq!(initialize(&site, &issuer.token(&json!({}))).status, 200);
    let began = Instant::now();
    let unknown = |n: u32| issuer.token_with(&json!({ "kid": format!("unknown-{n}") }));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (address, unknown) = (site.address, &unknown);
            scope.spawn(move || (0..50).for_each(|n| assert_eq!(initialize_at(address, &unknown(thread * 50 + n)).status, 401)));
        }
    });
    let permitted = 1 + began.elapsed().as_secs() as usize + 1;
    assert!(issuer.requests("/keys") <= permitted, "{} fetches, at most {permitted}", issuer.requests("/keys"));
    std::thread::sleep(Duration::from_millis(1100));
    let before = issuer.requests("/keys");
    assert_eq!((initialize(&site, &unknown(1000)).status, initialize(&site, &unknown(1001)).status), (401, 401));
    assert_eq!(issuer.requests("/keys"), before + 1);
}

/// Newer keys may verify each of these tokens.
fn token_is_not_refused_while_newer_keys_cannot_be_fetched() {
    const INTERVAL: Duration = Duration::from_millis(100);
    let (issuer, next) = (Issuer::start(), Keys::generate());
    let site = start(&issuer, &["--http-oauth-refetch-ms", &INTERVAL.as_millis().to_string()]);
    let sign = |kid: &str, alg: &str, signer: Signer<'_>| {
        signer.token(&json!({ "alg": alg, "typ": "at+jwt", "kid": kid }), &issuer.claims(&json!({})))
    };
    let tokens = [
        ("an unknown key id", sign("next", "EdDSA", Signer::EdDsa(&next.edwards))),
        ("another key with a known id", sign("edwards", "EdDSA", Signer::EdDsa(&next.edwards))),
        ("a known id with another algorithm", sign("curve", "EdDSA", Signer::EdDsa(&next.edwards))),
    ];
    assert_eq!(initialize(&site, &issuer.token(&json!({}))).status, 200);
    for (what, token) in &tokens {
        assert_eq!(initialize(&site, token).status, 401, "{what}");
    }
    issuer.serve("/keys", Document::Status(500));
    std::thread::sleep(INTERVAL);
    for (what, token) in &tokens {
        let answer = initialize(&site, token);
        assert_eq!((answer.status, answer.header("www-authenticate")), (503, None), "{what}");
        assert_eq!(initialize(&site, &issuer.token(&json!({}))).status, 200, "known keys stay in use");
        // Newer keys do not change what is wrong with these.
        let expired = issuer.token(&json!({ "exp": issuer::now() - 600 }));
        assert_eq!((initialize(&site, &expired).status, initialize(&site, "..").status), (401, 401));
    }
    issuer.serve("/keys", Document::Json(issuer.keys.set()));
    for (what, token) in &tokens {
        until(what, || initialize(&site, token).status == 401);
    }
}

fn issuer_that_cannot_be_reached_does_not_end_valid_calls() {
    let issuer = Issuer::start();
    let metadata = "/.well-known/oauth-authorization-server/tenant";
    issuer.serve(metadata, Document::Status(500));
    let mut site = start(&issuer, &["--http-oauth-refetch-ms", "100"]);
    let token = issuer.token(&json!({}));
    // A client must not throw its token away because of this.
    let answer = initialize(&site, &token);
    assert_eq!((answer.status, answer.header("www-authenticate")), (503, None));
    assert_eq!(initialize(&site, "opaque-0123456789-0123456789-0123456789").status, 401, "no key is needed to refuse this");
    let attempts = issuer.requests(metadata);
    for _ in 0..20 {
        assert_eq!(initialize(&site, &token).status, 503);
    }
    assert!(issuer.requests(metadata) <= attempts + 1, "attempts become rarer");
    issuer.serve(metadata, Document::Json(issuer.metadata()));
    until("the issuer is back", || initialize(&site, &token).status == 200);
    issuer.serve(metadata, Document::Status(500));
    // The keys are refreshed after two seconds, which fails.
    let mut client = connect(&site, token);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        assert_eq!(client.eval("(+ 1 2)"), "user=> 3");
        std::thread::sleep(Duration::from_millis(20));
    }
    let logged = std::iter::repeat_with(|| site.logged("keys of access tokens not fetched"));
    let is_kept = |line: &Value| line["hint"] == "the earlier keys stay in use";
    assert!(logged.take(10).any(|line| is_kept(&line)));
}

fn contradicting_settings_of_access_tokens_are_refused() {
    let issuer = "https://id.example";
    for (args, part) in [
        (&["--http-oauth-issuer", issuer][..], "--http-oauth-issuer and --http-oauth-audience go together"),
        (&["--http-oauth-issuer", issuer, "--http-oauth-audience", "gate"], "with --http-oauth-resource"),
        (&["--http-oauth-issuer", "http://id.example", "--http-oauth-audience", AUDIENCE], "expected a URL with https"),
        (&["--http-oauth-client-id", "gate"], "--http-oauth-client-secret-file and --http-oauth-issuer go together"),
        (&["--http-oauth-scope", "mcp:call"], "need --http-oauth-issuer"),
        (
            &["--http-oauth-issuer", issuer, "--http-oauth-audience", AUDIENCE, "--http-disable-auth"],
            "--http-disable-auth does not go with --http-oauth-issuer",
        ),
    ] {
        let refused = server("plain").args(["--http", "--http-port", "0"]).args(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(part), "{said}");
    }
}
