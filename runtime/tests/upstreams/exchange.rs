//! Access tokens for which a token of the caller or of the platform is exchanged: what is sent, who gets which token, and refusals.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ptc_catalog::{
    Auth, Binding, ClientAuth, Era, GrantType, HttpTransport, IdentityProvider, McpHttp, OAuth2, OpenApi, Operation, Source,
    TokenType, Transport, Upstream,
};
use ptc_lisp::host::{Reply, WaitOutcome};
use ptc_runtime::upstream::http::access_token::AccessTokens;
use serde_json::json;

use crate::http::handshaking;
use crate::http_sse::Server;
use crate::oauth::{echo, form, oauth, value, world_with};
use crate::web::{Answer, Asked, Web};
use crate::world::{World, described, eventually, operation, tool, upstream};

const SECRET: &str = "not-a-real-secret-of-a-client";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// An authorization server that issues `issued-token-N-for-WHOM`, where the name is the last word of the exchanged token.
fn exchanger(lifetime: u64) -> Web {
    let issued = AtomicUsize::new(0);
    Web::start(move |asked| {
        let form = form(asked);
        let subject = value(&form, "subject_token").or_else(|| value(&form, "assertion")).unwrap_or_default();
        if subject == "not-a-real-refused-token" {
            let description = format!("the subject {subject} is not known");
            return Answer::json(400, json!({ "error": "invalid_grant", "error_description": description }));
        }
        let whom = subject.rsplit('-').next().unwrap_or_default();
        let token = format!("issued-token-{}-for-{whom}", issued.fetch_add(1, Ordering::Relaxed) + 1);
        Answer::json(
            200,
            json!({
                "access_token": token, "token_type": "Bearer", "expires_in": lifetime,
                "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            }),
        )
    })
}

fn exchange(provider: &Web) -> OAuth2 {
    OAuth2 { grant: GrantType::TokenExchange, ..oauth(provider) }
}

fn service(api: &Web, oauth: &OAuth2) -> Upstream {
    let spec = OpenApi { auth: vec![Auth::OAuth2(*oauth)].leak(), ..OpenApi::new(api.url("")) };
    upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))])
}

fn world(api: &Web, oauth: &OAuth2) -> World {
    world_with(vec![service(api, oauth)], SECRET, Duration::from_mins(1))
}

fn sent(web: &Web) -> Vec<String> {
    web.requests().iter().map(|asked| asked.header("authorization").unwrap_or_default().to_owned()).collect()
}

#[test]
fn token_of_each_caller_is_exchanged_once_and_goes_to_the_token_endpoint_only() {
    let (provider, api) = (exchanger(600), echo());
    let oauth = OAuth2 { scope: "read write", audience: "crm", resource: "https://api.example/", ..exchange(&provider) };
    let world = world(&api, &oauth);
    for _ in 0..2 {
        for caller in ["not-a-real-token-of-ada", "not-a-real-token-of-ken"] {
            let answer = world.program_of(caller).call("api", "get", "{}");
            assert_eq!(answer, r#"json {"authorization":"Bearer [REDACTED]"}"#);
        }
    }
    assert_eq!(provider.requests().len(), 2, "the token is used again");
    let asked = form(&provider.requests()[0]);
    for (name, expected) in [
        ("grant_type", EXCHANGE),
        ("subject_token", "not-a-real-token-of-ada"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
        ("audience", "crm"),
        ("scope", "read write"),
        ("resource", "https://api.example/"),
    ] {
        assert_eq!(value(&asked, name), Some(expected), "{name}");
    }
    let (ada, ken) = ("Bearer issued-token-1-for-ada", "Bearer issued-token-2-for-ken");
    assert_eq!(sent(&api), [ada, ken, ada, ken]);
}

#[test]
fn caller_without_a_token_is_told_why_the_call_fails() {
    let (provider, api) = (exchanger(600), echo());
    for grant in [GrantType::TokenExchange, GrantType::JwtBearer] {
        let answer = world(&api, &OAuth2 { grant, ..exchange(&provider) }).program().call("api", "get", "{}");
        let why = "auth_failed: no access token for 'api': it is called on behalf of the caller";
        assert!(answer.starts_with(why) && answer.contains("--http-oauth-issuer"), "{answer}");
    }
    assert!(provider.requests().is_empty() && api.requests().is_empty());
}

/// The refusal concerns one caller, so that the upstream is not reported as down.
#[test]
fn refused_exchange_fails_the_calls_of_its_caller_only() {
    let (provider, api) = (exchanger(600), echo());
    let world = world(&api, &exchange(&provider));
    for attempt in 0..2 {
        let answer = world.program_of("not-a-real-refused-token").call("api", "get", "{}");
        assert!(
            answer.contains("refused the client with `invalid_grant`, HTTP 400 (the subject [REDACTED] is not known)"),
            "{answer}"
        );
        assert!(answer.contains("it does not accept the access token with which the caller came"), "{answer}");
        assert_eq!(answer.contains("the next token is requested in"), attempt == 1, "{answer}");
    }
    assert!(api.requests().is_empty());
    assert!(world.program_of("not-a-real-token-of-ada").call("api", "get", "{}").starts_with("json"));
    assert_eq!(provider.requests().len(), 2);
    assert!(world.upstreams.health().all(|(_, health)| health.down_within(Duration::MAX).is_none()));
}

#[test]
fn calls_of_one_caller_share_an_exchange_and_expired_tokens_are_exchanged_again() {
    let (provider, api) = (exchanger(1), echo());
    let world = world(&api, &exchange(&provider));
    let program = world.program_of("not-a-real-token-of-ada");
    let pending: Vec<_> = (0..50).map(|_| program.start("api", "get", "{}")).collect();
    for reply in pending {
        let WaitOutcome::Reply(Reply::Http(_, reply)) = reply.wait(None) else { panic!("there is no reply") };
        assert!(described(*reply).starts_with("json"));
    }
    assert_eq!(provider.requests().len(), 1);
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(world.program_of("not-a-real-token-of-ada").call("api", "get", "{}").starts_with("json"));
    assert_eq!(provider.requests().len(), 2);
}

/// The number of tokens that are kept is limited: the caller that came least recently causes another exchange.
#[test]
fn tokens_of_many_callers_take_limited_memory() {
    let (provider, api) = (exchanger(600), echo());
    let world = world(&api, &exchange(&provider));
    let call = |number: usize| world.program_of(&format!("not-a-real-token-of-caller-{number:03}")).call("api", "get", "{}");
    for number in 0..=128 {
        assert!(call(number).starts_with("json"));
    }
    assert!(call(128).starts_with("json"));
    assert_eq!(provider.requests().len(), 129);
    assert!(call(0).starts_with("json"));
    assert_eq!(provider.requests().len(), 130);
    assert_eq!(sent(&api).pop().as_deref(), Some("Bearer issued-token-130-for-000"));
}

/// Redactors of large tokens are given up before their number reaches the limit.
#[test]
#[ignore = "slow: builds large tables"]
fn redactors_of_many_callers_take_limited_bytes() {
    let issued = AtomicUsize::new(0);
    let provider = Web::start(move |_| {
        let number = issued.fetch_add(1, Ordering::Relaxed) as u64;
        let text: Vec<String> =
            (0..1_000).map(|n: u64| format!("{:016x}", (n + number * 7_919).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        Answer::json(200, json!({ "access_token": text.concat(), "token_type": "Bearer", "expires_in": 600 }))
    });
    let api = echo();
    let world = world(&api, &exchange(&provider));
    let call = |number: usize| world.program_of(&format!("not-a-real-token-of-caller-{number}")).call("api", "get", "{}");
    for number in (0..6).chain([5, 4, 0]) {
        assert_eq!(call(number), r#"json {"authorization":"Bearer [REDACTED]"}"#);
    }
    assert_eq!(provider.requests().len(), 7, "those of 5 and 4 are used again, that of 0 was given up");
}

/// A server of MCP binds a session to the user of its first request, so that callers share no session.
#[test]
fn each_caller_has_its_own_session_with_an_mcp_server() {
    let provider = exchanger(600);
    let server = Web::start(|asked| {
        let token = asked.header("authorization").unwrap_or_default().to_owned();
        let session = format!("session-of-{}", token.replace("Bearer ", ""));
        let is_first = asked.json()["method"] == "initialize";
        if !is_first && asked.header("mcp-session-id") != Some(&session) {
            return Answer::json(403, json!({ "error": "the session of another user" }));
        }
        let answer = handshaking(asked, |frame| {
            let content = json!([{ "type": "text", "text": json!({ "sent": token, "status": "ok" }).to_string() }]);
            Answer::json(200, json!({ "jsonrpc": "2.0", "id": frame["id"], "result": { "content": content } }))
        });
        match answer {
            Answer::Full(status, mut headers, body) if is_first => {
                headers.push(format!("Mcp-Session-Id: {session}"));
                Answer::Full(status, headers, body)
            }
            answer => answer,
        }
    });
    let auth: &'static [Auth] = vec![Auth::OAuth2(exchange(&provider))].leak();
    let spec = McpHttp { auth, era: Some(Era::Handshake), ..McpHttp::new(server.url("/mcp")) };
    let world = world_with(vec![upstream("web", Transport::McpHttp(spec), vec![tool("echo")])], SECRET, Duration::from_mins(1));
    for _ in 0..2 {
        for caller in ["not-a-real-token-of-ada", "not-a-real-token-of-ken"] {
            let answer = world.program_of(caller).call("web", "echo", "{}");
            assert_eq!(answer, r#"text {"sent":"Bearer [REDACTED]","status":"ok"}"#);
        }
    }
    let initialized = server.requests().iter().filter(|asked| asked.json()["method"] == "initialize").count();
    assert_eq!((initialized, provider.requests().len()), (2, 2));
    assert!(sent(&server).iter().all(|sent| sent.starts_with("Bearer issued-")));
    let answer = world.program().call("web", "echo", "{}");
    assert!(answer.starts_with("auth_failed: no access token for 'web'"), "{answer}");
    world.shutdown();
}

/// Answers are redacted on other threads if they are long, and by the reader of the stream over HTTP+SSE.
#[test]
fn token_of_a_caller_is_redacted_in_long_events_and_failures() {
    let provider = exchanger(600);
    let streamable = Web::start(|asked| {
        let sent = asked.header("authorization").unwrap_or_default().to_owned();
        handshaking(asked, |frame| {
            let is_error = frame["params"]["name"] == "failed";
            let content = json!([{ "type": "text", "text": format!("{sent} {}", "x".repeat(20_000)) }]);
            let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
            let result = json!({ "isError": is_error, "content": content });
            let response = json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result });
            Answer::Stream(vec![(0, format!("data: {ping}\n\ndata: {response}\n\n"))])
        })
    });
    let (_server, sse) = Server::start("messages");
    let auth: &'static [Auth] = vec![Auth::OAuth2(exchange(&provider))].leak();
    let specs = [
        McpHttp { auth, era: Some(Era::Handshake), ..McpHttp::new(streamable.url("/mcp")) },
        McpHttp { auth, http_transport: Some(HttpTransport::Sse), ..McpHttp::new(sse.url("/sse")) },
    ];
    for (spec, web) in specs.into_iter().zip([&streamable, &sse]) {
        let tools = ["long", "failed"].map(tool).into();
        let world = world_with(vec![upstream("web", Transport::McpHttp(spec), tools)], SECRET, Duration::from_mins(1));
        let program = world.program_of("not-a-real-token-of-ada");
        let answer = program.call("web", "failed", "{}");
        assert!(answer.starts_with("tool_error: Bearer [REDACTED] xxx"), "{answer:.200}");
        if web.address == streamable.address {
            let answer = program.call("web", "long", "{}");
            assert!(answer.starts_with("text Bearer [REDACTED] xxx"), "{answer:.200}");
        }
        eventually("the answer to the server's ping, on behalf of the caller", || {
            web.requests().iter().any(|asked| {
                asked.json()["id"] == "p" && asked.header("authorization").is_some_and(|sent| sent.starts_with("Bearer issued-"))
            })
        });
        world.shutdown();
    }
}

#[test]
fn cancellation_is_sent_on_behalf_of_the_caller() {
    let provider = exchanger(600);
    let server = Web::start(|asked| handshaking(asked, |_| Answer::Hang));
    let auth: &'static [Auth] = vec![Auth::OAuth2(exchange(&provider))].leak();
    let spec = McpHttp { auth, era: Some(Era::Handshake), request_timeout_ms: 200, ..McpHttp::new(server.url("/mcp")) };
    let world = world_with(vec![upstream("web", Transport::McpHttp(spec), vec![tool("hang")])], SECRET, Duration::from_mins(1));
    let answer = world.program_of("not-a-real-token-of-ada").call("web", "hang", "{}");
    assert!(answer.starts_with("timeout: "), "{answer}");
    eventually("the cancellation", || {
        server.requests().iter().any(|asked| {
            let is_cancellation = asked.json()["method"] == "notifications/cancelled";
            is_cancellation && asked.header("authorization") == Some("Bearer issued-token-1-for-ada")
        })
    });
    world.shutdown();
}

fn files(service: Upstream, credentials: Vec<Binding>) -> World {
    World::with(vec![service], credentials, |settings| {
        settings.access_tokens = AccessTokens::new(Some(&ptc_oauth_client::OAUTH_CLIENT));
    })
}

/// The token of a workload is the same for all callers, and its file is read for each request.
#[test]
fn token_in_a_file_is_exchanged_or_is_the_assertion() {
    let folder = tempfile::tempdir().unwrap();
    let path: &'static str = folder.path().join("workload").to_str().unwrap().to_owned().leak();
    for grant in [GrantType::TokenExchange, GrantType::JwtBearer] {
        let (provider, api) = (exchanger(1), echo());
        let oauth = OAuth2 {
            grant,
            client_id: "",
            client_auth: ClientAuth::None,
            binding: "",
            subject: "workload",
            subject_type: TokenType::Jwt,
            scope: "read",
            ..oauth(&provider)
        };
        std::fs::write(path, "not-a-real-workload-token-1\n").unwrap();
        let world = files(service(&api, &oauth), vec![Binding { name: "workload", source: Source::File { path } }]);
        assert!(world.program().call("api", "get", "{}").starts_with("json"));
        let asked = form(&provider.requests().pop().unwrap());
        let expected: &[(&str, &str)] = match grant {
            GrantType::JwtBearer => &[
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", "not-a-real-workload-token-1"),
                ("scope", "read"),
            ],
            _ => &[
                ("grant_type", EXCHANGE),
                ("subject_token", "not-a-real-workload-token-1"),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
                ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
                ("scope", "read"),
            ],
        };
        assert_eq!(asked, expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>());
        std::fs::write(path, "another-made-up-token-2\n").unwrap();
        std::thread::sleep(Duration::from_millis(1_100));
        assert!(world.program_of("not-a-real-token-of-ada").call("api", "get", "{}").starts_with("json"));
        assert_eq!(sent(&api).pop().as_deref(), Some("Bearer issued-token-2-for-2"));
        assert_eq!(world.upstreams.redactor().redact_str("another-made-up-token-2"), "[REDACTED]");
    }
}

/// The identity provider gets the token of the caller, and the authorization server of the upstream only the assertion.
#[test]
fn assertion_of_an_identity_provider_is_the_grant_at_another_authorization_server() {
    let answered = |kind: &'static str| {
        move |asked: &Asked| {
            let subject = form(asked).into_iter().find(|(name, _)| name == "subject_token").map(|(_, value)| value);
            let assertion = format!("assertion-for-{}", subject.unwrap_or_default());
            Answer::json(200, json!({ "access_token": assertion, "token_type": "N_A", "issued_token_type": kind }))
        }
    };
    for (kind, is_assertion) in
        [("urn:ietf:params:oauth:token-type:id-jag", true), ("urn:ietf:params:oauth:token-type:access_token", false)]
    {
        let (provider, server, api) = (Web::start(answered(kind)), exchanger(600), echo());
        let oauth = OAuth2 {
            grant: GrantType::JwtBearer,
            subject_type: TokenType::IdToken,
            audience: "https://tracker.example",
            resource: "https://api.example/",
            scope: "read",
            identity_provider: Some(IdentityProvider {
                token_url: provider.url("/exchange"),
                client_id: "gate-at-idp",
                client_auth: ClientAuth::None,
                binding: "",
                key_id: "",
                issuer: "",
            }),
            ..oauth(&server)
        };
        let world = world(&api, &oauth);
        let answer = world.program_of("not-a-real-token-of-ada").call("api", "get", "{}");
        let asked = form(&provider.requests().pop().unwrap());
        for (name, expected) in [
            ("grant_type", EXCHANGE),
            ("subject_token", "not-a-real-token-of-ada"),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
            ("audience", "https://tracker.example"),
            ("resource", "https://api.example/"),
            ("scope", "read"),
            ("client_id", "gate-at-idp"),
        ] {
            assert_eq!(value(&asked, name), Some(expected), "{name}");
        }
        if !is_assertion {
            assert!(answer.contains("gave an answer that has another `issued_token_type`"), "{answer}");
            assert!(server.requests().is_empty());
            continue;
        }
        assert_eq!(answer, r#"json {"authorization":"Bearer [REDACTED]"}"#);
        let asked = server.requests().pop().unwrap();
        assert!(asked.header("authorization").is_some_and(|sent| sent.starts_with("Basic ")), "{asked:?}");
        let asked = form(&asked);
        assert_eq!(value(&asked, "assertion"), Some("assertion-for-not-a-real-token-of-ada"));
        assert_eq!((value(&asked, "subject_token"), value(&asked, "audience")), (None, None));
    }
}
