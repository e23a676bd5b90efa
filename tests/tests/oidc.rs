//! Tests access tokens with a third-party authorization server: `oidc-provider`, in each form of client authentication.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers::newer_node_script;
use ptc_tests::process::{Background, free_port, run};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use serde_json::{Value, json};

/// A secret that is obviously fake, with characters that a form encodes.
pub(crate) const SECRET: &str = "not-a-real+secret/of:a=client-and-long-enough";

const FORMS: [&str; 3] = ["client_secret_basic", "client_secret_post", "private_key_jwt"];

#[test]
#[ignore = "needs oidc-provider, which .ci/peers installs"]
fn real_provider_issues_and_renews_tokens_for_each_form_of_client_authentication() {
    let port = free_port();
    let issuer = format!("http://127.0.0.1:{port}");
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    let (x, y) = key.der_bytes()[1..].split_at(32);
    let encode = |bytes| URL_SAFE_NO_PAD.encode(bytes);
    let jwk = json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k-1", "x": encode(x), "y": encode(y) });
    let mut provider = newer_node_script("oidc.mjs");
    provider.args([&port.to_string(), SECRET, &jwk.to_string()]);
    let _provider = Background::start(&mut provider).ready_on(port);

    let folder = tempfile::tempdir().expect("a folder");
    let upstreams: serde_json::Map<_, _> = FORMS
        .into_iter()
        .map(|form| {
            let mut auth = json!({
                "scheme": "oauth2",
                "grant": "client_credentials",
                "token_url": format!("{issuer}/token"),
                "client_id": form,
                "client_auth": form,
                "binding": if form == "private_key_jwt" { "key" } else { "secret" },
                "scopes": ["orders.read"],
            });
            if form == "private_key_jwt" {
                auth["key_id"] = json!("k-1");
                // The token endpoint is found in the metadata.
                auth["issuer"] = json!(&issuer);
                auth.as_object_mut().expect("an object").remove("token_url");
            }
            let entry = json!({
                "transport": "openapi",
                "base_url": &issuer,
                "schema_file": "service.json",
                "include_operations": ["whoami"],
                "auth": [auth],
                "allow_insecure_http": true,
                "allow_insecure_auth": true,
            });
            (form.to_owned(), entry)
        })
        .collect();
    let config = json!({
        "credentials": {
            "secret": { "source": "env", "var": "CLIENT_SECRET" },
            "key": { "source": "file", "path": "client.pem" },
        },
        "upstreams": upstreams,
    });
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Service", "version": "1" },
        "components": { "securitySchemes": { "id": { "type": "openIdConnect", "openIdConnectUrl": format!("{issuer}/.well-known/openid-configuration") } } },
        "security": [{ "id": ["orders.read"] }],
        "paths": { "/whoami": { "get": { "operationId": "whoami", "summary": "Names the client", "responses": { "200": { "description": "ok" } } } } },
    });
    for (name, text) in
        [("upstreams.json", config.to_string()), ("service.json", document.to_string()), ("client.pem", key.serialize_pem())]
    {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let mut server = Client::of(
        Command::new(ptc_compile()).args(["run", "upstreams.json"]).env("CLIENT_SECRET", SECRET).current_dir(folder.path()),
    );
    server.initialize();
    for _ in 0..2 {
        for form in FORMS {
            let answer = server.eval(&format!("(tool/call {{:server \"{form}\" :tool \"whoami\"}})"));
            let expected = format!("{{\"client\" \"{form}\" \"scope\" \"orders.read\"}}");
            assert!(answer.contains(&expected), "{answer}");
        }
        // The tokens expire after two seconds, so that the second round needs others.
        std::thread::sleep(Duration::from_millis(2_200));
    }
}

/// Runs `ptc-compile login` without a browser, and opens the printed URL as a person would.
pub(crate) fn log_in(folder: &Path, upstream: &str) {
    let mut login = Command::new(ptc_compile())
        .args(["login", "upstreams.json", upstream, "--store", "tokens", "--no-browser"])
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("ptc-compile starts");
    let mut lines = BufReader::new(login.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let to_open = format!("{upstream}: open ");
    let shown = lines.by_ref().find(|line| line.starts_with(&to_open)).expect("the URL is shown");
    let url = shown[to_open.len()..].split(' ').next().expect("a URL");
    let page = run(newer_node_script("browser.mjs").arg(url)).success();
    let rest: Vec<String> = lines.collect();
    assert!(login.wait().is_ok_and(|status| status.success()), "{rest:?}\n{page:?}");
    assert_eq!(rest, [format!("{upstream}: logged in")]);
}

/// Starts the provider for the client `person`, with the lifetime of access tokens in seconds. Returns it and its issuer.
fn provider_for_persons(lifetime: &str) -> (Background, String) {
    let port = free_port();
    let mut provider = newer_node_script("oidc.mjs");
    let jwk = json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k-1",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" });
    provider.args([&port.to_string(), SECRET, &jwk.to_string(), lifetime]);
    (Background::start(&mut provider).ready_on(port), format!("http://127.0.0.1:{port}"))
}

/// Returns a folder with a config of upstreams with these names and grants.
fn folder_for_persons(issuer: &str, upstreams: &[(&str, &str)]) -> tempfile::TempDir {
    let entry = |grant: &str| {
        json!({
            "transport": "openapi",
            "base_url": issuer,
            "schema_file": "service.json",
            "include_operations": ["whoami"],
            "auth": [{
                "scheme": "oauth2", "grant": grant, "issuer": issuer, "client_id": "person", "client_auth": "none",
                "scopes": ["openid", "offline_access", "orders.read"],
            }],
            "allow_insecure_http": true,
            "allow_insecure_auth": true,
        })
    };
    let upstreams: serde_json::Map<_, _> = upstreams.iter().map(|(name, grant)| ((*name).to_owned(), entry(grant))).collect();
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Service", "version": "1" },
        "paths": { "/whoami": { "get": { "operationId": "whoami", "summary": "Names the client", "responses": { "200": { "description": "ok" } } } } },
    });
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in
        [("upstreams.json", json!({ "upstreams": upstreams }).to_string()), ("service.json", document.to_string())]
    {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

#[test]
#[ignore = "needs oidc-provider, which .ci/peers installs"]
fn person_logs_in_with_a_browser_and_with_a_device_code_and_tokens_are_renewed() {
    let (_provider, issuer) = provider_for_persons("2");
    let folder = folder_for_persons(&issuer, &[("browser", "authorization_code"), ("device", "device_code")]);
    let command = |args: &[&str]| {
        let mut command = Command::new(ptc_compile());
        command.args(args).args(["upstreams.json", "--store", "tokens"]).current_dir(folder.path());
        command
    };
    let status = run(&mut command(&["login", "--status"]));
    assert_eq!((status.code, status.stdout.as_str()), (Some(1), "browser: not logged in\ndevice: not logged in\n"));
    for upstream in ["browser", "device"] {
        log_in(folder.path(), upstream);
    }
    let mut server = Client::of(
        Command::new(ptc_compile()).args(["run", "upstreams.json", "--token-store", "tokens"]).current_dir(folder.path()),
    );
    server.initialize();
    for _ in 0..2 {
        for upstream in ["browser", "device"] {
            let answer = server.eval(&format!("(tool/call {{:server \"{upstream}\" :tool \"whoami\"}})"));
            assert!(answer.contains("{\"client\" \"person\""), "{answer}");
        }
        std::thread::sleep(Duration::from_millis(2_200));
    }
    run(&mut command(&["logout"])).success();
    let answer = server.eval("(tool/call {:server \"browser\" :tool \"whoami\"})");
    assert!(answer.contains(":reason :auth_expired") && answer.contains("ptc-compile login CONFIG browser"), "{answer}");
}

/// A person enters a refresh token that the provider has issued elsewhere.
#[test]
#[ignore = "needs oidc-provider, which .ci/peers installs"]
fn refresh_token_that_a_person_enters_is_renewed_and_replaced() {
    let (_provider, issuer) = provider_for_persons("2");
    let elsewhere = folder_for_persons(&issuer, &[("browser", "authorization_code")]);
    log_in(elsewhere.path(), "browser");
    let stored = std::fs::read_dir(elsewhere.path().join("tokens")).expect("the store").flatten().map(|entry| entry.path());
    let stored = stored.into_iter().find(|path| path.extension().is_some_and(|end| end == "json")).expect("a login");
    let stored: Value = serde_json::from_slice(&std::fs::read(stored).expect("a file")).expect("JSON");
    let token = elsewhere.path().join("token");
    std::fs::write(&token, stored["refresh_token"].as_str().expect("a refresh token")).expect("a file");

    let folder = folder_for_persons(&issuer, &[("entered", "refresh_token")]);
    let mut login = Command::new(ptc_compile());
    login.args(["login", "upstreams.json", "--store", "tokens"]).current_dir(folder.path());
    let entered = login.stdin(std::fs::File::open(&token).expect("a file")).output().expect("it starts");
    assert!(entered.status.success(), "{entered:?}");
    let mut server = Client::of(
        Command::new(ptc_compile()).args(["run", "upstreams.json", "--token-store", "tokens"]).current_dir(folder.path()),
    );
    server.initialize();
    // The access token expires after two seconds, and the provider accepts each refresh token once.
    for _ in 0..3 {
        let answer = server.eval("(tool/call {:server \"entered\" :tool \"whoami\"})");
        assert!(answer.contains("{\"client\" \"person\""), "{answer}");
        std::thread::sleep(Duration::from_millis(2_200));
    }
}

/// The provider replaces a refresh token when it is used, and refuses one that it has replaced.
#[test]
#[ignore = "needs oidc-provider, which .ci/peers installs"]
fn two_processes_with_one_store_renew_once_for_each_expiry() {
    const LIFETIME: Duration = Duration::from_secs(8);
    const CALLS: usize = 20;
    let (_provider, issuer) = provider_for_persons("8");
    let folder = folder_for_persons(&issuer, &[("service", "authorization_code")]);
    log_in(folder.path(), "service");
    // The client has no TLS provider of its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let counts = || {
        let answer = reqwest::blocking::get(format!("{issuer}/renewals")).and_then(reqwest::blocking::Response::bytes);
        serde_json::from_slice::<Value>(&answer.expect("an answer")).expect("JSON")
    };
    let mut servers = [(); 2].map(|()| {
        let mut run = Command::new(ptc_compile());
        let mut server = Client::of(run.args(["run", "upstreams.json", "--token-store", "tokens"]).current_dir(folder.path()));
        server.initialize();
        server
    });
    let program = format!(
        "(count (filter (fn [answer] (= \"person\" (:client (:value answer))))
           (pmap (fn [_] (tool/call {{:server \"service\" :tool \"whoami\"}})) (range {CALLS}))))"
    );
    // In the last two rounds each process needs the refresh token that the other one, or both, have stored.
    for (round, callers) in [0..2, 0..2, 0..1, 1..2].into_iter().enumerate() {
        std::thread::scope(|scope| {
            let calls = servers[callers].iter_mut().map(|server| scope.spawn(|| server.eval(&program)));
            for answer in calls.collect::<Vec<_>>() {
                let answer = answer.join().expect("an answer");
                assert!(answer.contains(&format!("user=> {CALLS}")), "round {round}: {answer}");
            }
        });
        assert_eq!(counts(), json!({ "renewals": round, "refusals": 0 }), "round {round}");
        std::thread::sleep(LIFETIME + Duration::from_millis(200));
    }
}

/// A client of the door that sends one access token.
pub(crate) struct Caller {
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Caller {
    pub(crate) fn eval(&self, program: &str) -> String {
        let client = reqwest::blocking::Client::new();
        let post = |session: Option<&str>, message: Value| {
            let mut request = client.post(&self.url).bearer_auth(&self.token).json(&message);
            request = request.header("accept", "application/json, text/event-stream");
            for (name, value) in session.iter().flat_map(|id| [("mcp-session-id", *id), ("mcp-protocol-version", "2025-11-25")]) {
                request = request.header(name, value);
            }
            request.send().expect("an answer")
        };
        let opened = post(
            None,
            json!({
                "jsonrpc": "2.0", "id": 0, "method": "initialize",
                "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
            }),
        );
        let session = opened.headers()["mcp-session-id"].to_str().expect("a text").to_owned();
        let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
        let answer = post(Some(&session), json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        answer.text().expect("a text")
    }
}

#[test]
#[ignore = "needs oidc-provider, which .ci/peers installs"]
fn upstream_sees_each_caller_through_an_exchanged_token_and_never_its_own() {
    // The crate's HTTP client has no cryptography provider in this workspace. A second installation returns an error, which is harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let [provider_port, port] = [free_port(), free_port()];
    let (issuer, url) = (format!("http://127.0.0.1:{provider_port}"), format!("http://127.0.0.1:{port}/mcp"));
    for format in ["jwt", "opaque"] {
        let mut provider = newer_node_script("oidc_exchange.mjs");
        provider.args([&provider_port.to_string(), format, SECRET, &url]);
        let _provider = Background::start(&mut provider).ready_on(provider_port);
        let config = json!({
            "credentials": { "secret": { "source": "env", "var": "CLIENT_SECRET" } },
            "upstreams": { "service": {
                "transport": "openapi",
                "base_url": &issuer,
                "schema_file": "service.json",
                "include_operations": ["whoami"],
                "auth": [{
                    "scheme": "oauth2", "grant": "token_exchange", "issuer": &issuer, "client_id": "gate", "binding": "secret",
                    "audience": format!("{issuer}/service"), "scopes": ["orders.read"],
                }],
                "allow_insecure_http": true,
                "allow_insecure_auth": true,
            } },
        });
        let document = json!({
            "openapi": "3.1.0",
            "info": { "title": "Service", "version": "1" },
            "paths": { "/whoami": { "get": { "operationId": "whoami", "summary": "Names the subject", "responses": { "200": { "description": "ok" } } } } },
        });
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("upstreams.json", config.to_string()), ("service.json", document.to_string())] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let mut server = Command::new(ptc_compile());
        server.args(["run", "upstreams.json", "--http", "--http-port", &port.to_string()]);
        server.args(["--http-oauth-issuer", &issuer, "--http-oauth-audience", &url]);
        if format == "opaque" {
            server.args(["--http-oauth-introspection-url", &format!("{issuer}/token/introspection")]);
            server.args(["--http-oauth-client-id", "gate", "--http-oauth-client-secret", SECRET]);
        }
        server.env("CLIENT_SECRET", SECRET).current_dir(folder.path());
        let _server = Background::start(&mut server).ready_on(port);

        let get = |path: &str| {
            reqwest::blocking::get(format!("{issuer}{path}")).and_then(reqwest::blocking::Response::text).expect("an answer")
        };
        let caller = |account: &str| Caller { url: url.clone(), token: get(&format!("/mint?account={account}")) };
        let (ada, ken, eve) = (caller("ada"), caller("ken"), caller("eve"));
        let program = "(tool/call {:server \"service\" :tool \"whoami\"})";
        for _ in 0..2 {
            for (caller, name) in [(&ada, "ada"), (&ken, "ken")] {
                let answer = caller.eval(program);
                assert!(answer.contains(&format!(r#"\"subject\" \"{name}\""#)), "{format} {name}: {answer}");
            }
            let answer = eve.eval(program);
            assert!(answer.contains(":auth_failed") && answer.contains("refused the client with `invalid_grant`"), "{answer}");
            assert!(answer.contains("the subject token may not be exchanged") && !answer.contains(&eve.token), "{answer}");
        }
        let seen: Value = serde_json::from_str(&get("/seen")).expect("an object");
        assert_eq!(seen["exchanges"], 2, "each caller has one token, which it uses twice");
        let tokens: Vec<&str> = seen["tokens"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert_eq!(tokens.len(), 4, "nothing is sent for eve");
        assert!(tokens[0] == tokens[2] && tokens[1] == tokens[3] && tokens[0] != tokens[1], "{tokens:?}");
        for caller in [&ada, &ken, &eve] {
            assert!(!tokens.contains(&caller.token.as_str()), "the token of a caller has reached the service");
        }
    }
}
