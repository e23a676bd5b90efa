//! Tests the secrets of callers and clients: the caller's token, the tokens and assertions for which it is exchanged, assertions of clients,
//! and the key of a login. The authorization servers and upstreams repeat what they know, also in refusals.

#![expect(clippy::indexing_slicing, reason = "a test stops where a value lacks what it looks at")]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ptc_tests::deployment::ptc_compile;
use ptc_tests::process::run;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use super::binary::{Server, files};
use super::echoing::{self, OPERATIONS, TOOLS, assert_clean, known, programs};
use crate::web::{Answer, Asked, Web};

/// The access token with which the caller comes.
const CALLER: &str = "c4ller/c4nary-one+of.ada";
/// The tokens that a platform writes into files.
const WORKLOAD: &str = "w0rkload.c4nary-two_of.gate";
const ASSERTION: &str = "4ssertion.c4nary-three_of.gate";
const SECRET: &str = "cl1ent/c4nary+four&of=a=client";
const REGISTERED: &str = "r3gistered/c4nary&five";
/// Lifetime of the access tokens in seconds. After it the token endpoints refuse.
const LIFETIME: u64 = 6;

/// The APIs. Each has an authorization server, and `managed` and `assured` an identity provider too.
const APIS: [&str; 6] = ["assured", "exchanged", "federated", "managed", "signed", "workload"];

/// The secrets that each server has received and issued, by the first part of its path or, for authorization servers, by the whole path.
type Hoard = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

/// Returns what a server knows after it has learned more.
fn learn(hoard: &Hoard, path: &str, secrets: Vec<String>) -> Vec<String> {
    let mut hoard = hoard.lock().expect("no panic");
    let kept = hoard.entry(path.to_owned()).or_default();
    for secret in secrets {
        if !kept.contains(&secret) {
            kept.push(secret);
        }
    }
    kept.clone()
}

/// Answers as a token endpoint that issues one token, and then refuses. One at `/always` never refuses.
fn token(hoard: &Hoard, asked: &Asked) -> Answer {
    let pairs: Vec<(String, String)> = asked
        .body
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| {
            (name.to_owned(), percent_encoding::percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into())
        })
        .collect();
    let sent = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let received =
        ["subject_token", "assertion", "client_assertion", "client_secret", "device_code"].into_iter().filter_map(sent);
    let before = learn(hoard, &asked.target, Vec::new());
    let knows = learn(hoard, &asked.target, received.collect());
    let text = known(&knows).replace('\n', " ");
    if !before.is_empty() && !asked.target.ends_with("/always") {
        // Larger answers are not read.
        let description: String = text.chars().take(20_000).collect();
        return Answer::json(400, json!({ "error": "invalid_grant", "error_description": description }));
    }
    let issued = format!("1ssued{}-c4nary.{}~", asked.target.replace('/', "."), before.len());
    learn(hoard, &asked.target, vec![issued.clone()]);
    let is_assertion = sent("requested_token_type").is_some_and(|kind| kind.ends_with("id-jag"));
    let kind = if is_assertion { "id-jag" } else { "access_token" };
    let scheme = if is_assertion { "N_A" } else { "Bearer" };
    Answer::json(
        200,
        json!({
            "access_token": issued, "token_type": scheme, "expires_in": LIFETIME, "echo": text,
            "issued_token_type": format!("urn:ietf:params:oauth:token-type:{kind}"),
        }),
    )
}

/// Answers as an MCP server whose tokens are bound to a key, and as the authorization server that it names.
fn bound(hoard: &Hoard, base: &str, asked: &Asked) -> Answer {
    match &*asked.target {
        "/bound/resource" => Answer::json(
            200,
            json!({
                "resource": format!("{base}/bound/mcp"), "authorization_servers": [format!("{base}/bound")],
                "dpop_bound_access_tokens_required": true,
            }),
        ),
        "/.well-known/oauth-authorization-server/bound" => {
            let [issuer, token, device, register] =
                ["", "/token", "/device", "/register"].map(|path| format!("{base}/bound{path}"));
            Answer::json(
                200,
                json!({
                    "issuer": issuer, "token_endpoint": token, "device_authorization_endpoint": device,
                    "registration_endpoint": register, "dpop_signing_alg_values_supported": ["ES256"],
                    "token_endpoint_auth_methods_supported": ["client_secret_post"],
                }),
            )
        }
        "/bound/register" => Answer::json(201, json!({ "client_id": "canary", "client_secret": REGISTERED })),
        "/bound/device" => Answer::json(
            200,
            json!({
                "device_code": "d3vice-c4nary-six", "user_code": "U-1", "verification_uri": base, "expires_in": 60, "interval": 1,
            }),
        ),
        "/bound/token" => {
            let tokens = ["b0und-access-c4nary-seven", "b0und-refresh-c4nary-eight"];
            let [access, refresh] = tokens;
            learn(hoard, "bound", tokens.map(str::to_owned).to_vec());
            Answer::json(
                200,
                json!({ "access_token": access, "token_type": "DPoP", "refresh_token": refresh, "expires_in": 3_600 }),
            )
        }
        "/bound/mcp" if asked.header("authorization").is_none() => {
            let challenge = format!("WWW-Authenticate: DPoP resource_metadata=\"{base}/bound/resource\"");
            Answer::Full(401, vec![challenge], Vec::new())
        }
        "/bound/mcp" => {
            let asked = Asked { target: "/mcp".to_owned(), ..asked.clone() };
            echoing::web_knowing(&asked, &learn(hoard, "bound", Vec::new()))
        }
        _ => Answer::json(404, json!({})),
    }
}

fn site(hoard: &Hoard) -> Web {
    let hoard = Arc::clone(hoard);
    Web::start(move |asked| {
        let base = format!("http://{}", asked.header("host").unwrap_or_default());
        let parts: Vec<&str> = asked.target.trim_start_matches('/').splitn(3, '/').collect();
        match &*parts {
            ["introspect"] => {
                // It repeats the token that it is asked about.
                Answer::json(
                    200,
                    json!({ "active": true, "sub": "ada", "aud": "gate", "echo": asked.body, "scope": "mcp:call", "jti": "1" }),
                )
            }
            ["bound" | ".well-known", ..] => bound(&hoard, &base, asked),
            [_, "token" | "idp", ..] => token(&hoard, asked),
            [name, "api", operation] => {
                let moved = Asked { target: format!("/{operation}"), ..asked.clone() };
                let is_shared = matches!(*name, "federated" | "signed" | "workload");
                let path = format!("/{name}/token");
                echoing::web_knowing(&moved, &if is_shared { learn(&hoard, &path, Vec::new()) } else { Vec::new() })
            }
            _ => Answer::json(404, json!({})),
        }
    })
}

fn config(web: &Web) -> Value {
    let client = |auth: &str| json!({ "client_id": "gate", "client_auth": auth, "scheme": "oauth2" });
    let with = |name: &str, mut auth: Value, more: Value| {
        for (key, value) in more.as_object().expect("an object") {
            auth[key] = value.clone();
        }
        let path = if name == "assured" { "/always" } else { "" };
        auth["token_url"] = web.url(&format!("/{name}/token{path}")).into();
        json!({
            "transport": "openapi", "base_url": web.url(&format!("/{name}/api")), "schema_file": "api.json", "include_operations": OPERATIONS,
            "auth": [auth], "allow_insecure_http": true, "allow_insecure_auth": true,
        })
    };
    let managed = |name: &str, path: &str| {
        let provider = json!({ "token_url": web.url(&format!("/{name}/idp{path}")), "client_id": "gate", "binding": "secret" });
        let more = json!({ "grant": "jwt_bearer", "binding": "secret", "audience": "as", "identity_provider": provider });
        with(name, client("client_secret_post"), more)
    };
    let credentials = "client_credentials";
    json!({
        "credentials": {
            "secret": { "source": "env", "var": "CANARY_SECRET" },
            "workload": { "source": "file", "path": "workload" },
            "assertion": { "source": "file", "path": "assertion" },
            "key": { "source": "file", "path": "key.pem" },
        },
        "upstreams": {
            "assured": managed("assured", ""),
            "managed": managed("managed", "/always"),
            "exchanged": with("exchanged", client("client_secret_post"), json!({ "grant": "token_exchange", "binding": "secret" })),
            "workload": with("workload", client("none"), json!({ "grant": "jwt_bearer", "subject": "workload" })),
            "federated": with("federated", client("client_assertion_file"), json!({ "grant": credentials, "binding": "assertion" })),
            "signed": with("signed", client("private_key_jwt"), json!({ "grant": credentials, "binding": "key" })),
            "bound": {
                "transport": "mcp_http", "url": web.url("/bound/mcp"), "allow_insecure_http": true, "allow_insecure_auth": true,
                "auth": [{ "scheme": "oauth2", "grant": "device_code" }],
            },
        },
    })
}

/// Asks as a client over HTTP, in one session. Returns the answers.
fn converse(address: &str, questions: &[Value]) -> Vec<String> {
    let client = reqwest::blocking::Client::new();
    let mut session = None;
    let initialize = json!({
        "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "canary", "version": "1" } },
    });
    let ask = |question: &Value| {
        let mut question = question.clone();
        question["jsonrpc"] = "2.0".into();
        question["id"] = 1.into();
        let mut request = client.post(format!("http://{address}/mcp")).bearer_auth(CALLER).json(&question);
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(id) = &session {
            request = request.header("mcp-session-id", id).header("mcp-protocol-version", "2025-11-25");
        }
        let answer = request.send().expect("an answer");
        let headers = format!("{:?}\n", answer.headers());
        session = session.take().or_else(|| Some(answer.headers().get("mcp-session-id")?.to_str().ok()?.to_owned()));
        headers + &answer.text().expect("a text")
    };
    std::iter::once(&initialize).chain(questions).map(ask).collect()
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

#[test]
fn no_output_contains_a_token_of_a_caller_an_assertion_or_the_key_of_a_login() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (folder, hoard) = (tempfile::tempdir().expect("a folder"), Hoard::default());
    let web = site(&hoard);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
    let paths = OPERATIONS.map(|name| {
        let success = json!({ "description": "Says it.", "content": { "application/json": {} } });
        (format!("/{name}"), json!({ "get": { "operationId": name, "responses": { "200": success } } }))
    });
    let paths: serde_json::Map<String, Value> = paths.into_iter().collect();
    let document = json!({ "openapi": "3.0.3", "info": { "title": "a", "version": "1" }, "paths": paths }).to_string();
    let config = config(&web).to_string();
    for (name, text) in [
        ("workload", WORKLOAD),
        ("assertion", ASSERTION),
        ("key.pem", &*key),
        ("api.json", &*document),
        ("upstreams.json", &*config),
    ] {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let command = |args: &[&str]| {
        let mut command = Command::new(ptc_compile());
        command.args(args).current_dir(folder.path()).env("CANARY_SECRET", SECRET);
        command.env("PTC_RUNNER_MCP_TOKEN_STORE", folder.path().join("tokens"));
        command
    };
    let login = run(&mut command(&["login", "upstreams.json", "bound"]));
    assert_eq!(login.code, Some(0), "{}", login.stderr);
    // The upstream reads the store, as a file server on the same machine can.
    let stored: Vec<Value> = std::fs::read_dir(folder.path().join("tokens"))
        .expect("the store")
        .filter_map(|file| serde_json::from_str(&std::fs::read_to_string(file.ok()?.path()).ok()?).ok())
        .collect();
    let found = stored.iter().find_map(|login| login.get("found")).expect("a login");
    let proof_key = found["proof_key"].as_str().expect("a key").to_owned();
    assert_eq!(found["client_secret"], REGISTERED);
    learn(&hoard, "bound", vec![REGISTERED.to_owned(), proof_key]);

    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).expect("a folder");
    let mut serve = command(&["run", "upstreams.json", "--http", "--http-port", "0", "--http-oauth-issuer", web.url("")]);
    serve.args(["--http-oauth-audience", "gate", "--http-oauth-resource", "https://gate.example/mcp"]);
    serve.args(["--http-oauth-introspection-url", web.url("/introspect"), "--http-oauth-client-id", "gate"]);
    serve.args(["--http-oauth-client-secret", SECRET, "--response-profile", "debug", "--log-level", "debug", "--sessions"]);
    serve
        .args(["--debug-tool", "--max-debug-response-bytes", "10000000", "--trace-payloads", "full", "--trace-dir"])
        .arg(&traces);
    let mut server = Server::start(&mut serve, folder.path().join("log"));
    let address = server.address();

    let eval = |program: &String| call("lisp_eval", &json!({ "program": program }));
    let servers: Vec<(&str, &[&str])> = APIS.into_iter().map(|name| (name, &OPERATIONS[..])).collect();
    let first: Vec<Value> = APIS.map(|name| eval(&format!("(println (tool/call {{:server \"{name}\" :tool \"json\"}}))"))).into();
    let mut said = converse(&address, &first);
    for (name, answer) in APIS.iter().zip(&said[1..]) {
        assert!(answer.contains(":ok true") && answer.contains("[REDACTED]"), "{name}: {answer}");
    }
    said.extend(converse(&address, &programs(&servers).iter().map(eval).collect::<Vec<_>>()));
    said.extend(converse(&address, &programs(&[("bound", &TOOLS)]).iter().map(eval).collect::<Vec<_>>()));
    let is_called = |answer: &String| answer.contains(r#""server":"bound","tool":"text","status":"ok""#);
    assert!(said.iter().any(is_called), "the login is used: {}", server.said());
    std::thread::sleep(Duration::from_secs(LIFETIME));
    let last = APIS.map(|name| eval(&format!("(println (:message (tool/call {{:server \"{name}\" :tool \"json\"}})))")));
    let last = converse(&address, &last);
    for (name, answer) in APIS.iter().zip(&last[1..]) {
        assert!(answer.contains("refused the client with") && answer.contains("[REDACTED]"), "{name}: {answer}");
    }
    said.extend(last);
    let more = [json!({ "op": "recent", "limit": 200 }), json!({ "op": "stats" })].map(|op| call("lisp_debug", &op));
    said.extend(converse(&address, &more));

    let mut secrets: Vec<String> = hoard.lock().expect("no panic").values().flatten().cloned().collect();
    secrets.extend([CALLER, WORKLOAD, ASSERTION, SECRET].map(str::to_owned));
    secrets.push(key.lines().nth(1).expect("a line of the key").to_owned());
    secrets.sort();
    secrets.dedup();
    assert!(secrets.len() >= 18, "{secrets:?}");
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let (said, log, traces) = (said.concat(), server.said(), files(&traces));
    for (what, text, least) in
        [("an answer", &said, 100), ("the log", &log, 5), ("a trace", &traces, 100), ("the login", &login.stderr, 0)]
    {
        assert!(text.matches("[REDACTED]").count() >= least, "{what} was redacted less than {least} times: {text}");
        assert_clean(&secrets, what, text);
    }
}
