//! Access tokens of upstreams: how they are requested, renewed, sent and redacted, and token endpoints that misbehave.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ptc_catalog::{Auth, Binding, ClientAuth, Era, GrantType, McpHttp, OAuth2, OpenApi, Operation, Source, Transport, Upstream};
use ptc_lisp::host::{Reply, WaitOutcome};
use ptc_runtime::upstream::http::access_token::AccessTokens;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED, ECDSA_P384_SHA384_FIXED_SIGNING, ED25519,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey,
    VerificationAlgorithm,
};
use serde_json::{Value, json};

use crate::http::handshaking;
use crate::web::{Answer, Asked, End, Web};
use crate::world::{World, described, eventually, operation, tool, upstream};

const SECRET: &str = "not-a-real+secret/of a client";

/// A token endpoint that issues `not-a-real-token-1`, `-2`, … with a lifetime in seconds, after a pause in ms.
fn provider(lifetime: Option<u64>, pause: u64) -> Web {
    let issued = AtomicUsize::new(0);
    Web::start(move |_| {
        let number = issued.fetch_add(1, Ordering::Relaxed) + 1;
        std::thread::sleep(Duration::from_millis(pause));
        grant(number, lifetime)
    })
}

pub(crate) fn grant(number: usize, lifetime: Option<u64>) -> Answer {
    let mut body = json!({ "access_token": format!("not-a-real-token-{number}"), "token_type": "Bearer" });
    if let Some(lifetime) = lifetime {
        body["expires_in"] = lifetime.into();
    }
    Answer::json(200, body)
}

pub(crate) fn oauth(provider: &Web) -> OAuth2 {
    OAuth2 {
        token_url: provider.url("/token?tenant=one"),
        client_id: "gate:1",
        client_auth: ClientAuth::SecretBasic,
        binding: "client",
        ..OAuth2::new(GrantType::ClientCredentials)
    }
}

/// Makes upstreams whose client has this secret.
pub(crate) fn world_with(upstreams: Vec<Upstream>, secret: &'static str, call_timeout: Duration) -> World {
    let credentials = vec![Binding { name: "client", source: Source::Literal { value: secret } }];
    World::with(upstreams, credentials, |settings| {
        settings.access_tokens = AccessTokens::new(Some(&ptc_oauth_client::OAUTH_CLIENT));
        settings.call_timeout = call_timeout;
        settings.max_calls_per_program = 5_000;
    })
}

/// Makes the service `api` with the operations `get` and `post`.
fn world(api: &Web, oauth: &OAuth2) -> World {
    let auth: &'static [Auth] = vec![Auth::OAuth2(*oauth)].leak();
    let spec = OpenApi { auth, ..OpenApi::new(api.url("")) };
    let tools = vec![
        operation("get", Operation::new("get", "/get")),
        operation("post", Operation { method: "POST", ..Operation::new("post", "/post") }),
    ];
    world_with(vec![upstream("api", Transport::OpenApi(spec), tools)], SECRET, Duration::from_mins(1))
}

/// A service that echoes the header `Authorization`.
pub(crate) fn echo() -> Web {
    Web::start(|asked| Answer::json(200, json!({ "authorization": asked.header("authorization") })))
}

pub(crate) fn form(asked: &Asked) -> Vec<(String, String)> {
    url::form_urlencoded::parse(asked.body.as_bytes()).into_owned().collect()
}

pub(crate) fn value<'f>(form: &'f [(String, String)], name: &str) -> Option<&'f str> {
    form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

#[test]
fn client_authenticates_with_its_secret_in_header_or_body() {
    let (provider, api) = (provider(None, 0), echo());
    let oauth = OAuth2 { scope: "read write", resource: "https://api.example/", ..oauth(&provider) };
    assert_eq!(world(&api, &oauth).program().call("api", "get", "{}"), r#"json {"authorization":"Bearer [REDACTED]"}"#);
    assert_eq!(api.requests().pop().unwrap().header("authorization"), Some("Bearer not-a-real-token-1"));
    let asked = provider.requests().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/token?tenant=one"));
    let pair = STANDARD.encode("gate%3A1:not-a-real%2Bsecret%2Fof+a+client");
    assert_eq!(asked.header("authorization"), Some(format!("Basic {pair}").as_str()));
    assert_eq!(asked.body, "grant_type=client_credentials&scope=read+write&resource=https%3A%2F%2Fapi.example%2F");

    let oauth = OAuth2 { client_auth: ClientAuth::SecretPost, ..oauth };
    assert!(world(&api, &oauth).program().call("api", "get", "{}").starts_with("json"));
    let asked = provider.requests().pop().unwrap();
    let form = form(&asked);
    assert_eq!(asked.header("authorization"), None);
    assert_eq!((value(&form, "client_id"), value(&form, "client_secret")), (Some("gate:1"), Some(SECRET)));
}

#[test]
fn header_with_the_client_secret_that_a_server_repeats_is_redacted() {
    let provider = Web::start(|asked| {
        let described = format!("unknown client: {}", asked.header("authorization").unwrap_or_default());
        Answer::json(401, json!({ "error": "invalid_client", "error_description": described }))
    });
    let api = echo();
    let shown = world(&api, &oauth(&provider)).program().call("api", "get", "{}");
    // What remains is the client's name and the colon.
    let name = STANDARD.encode("gate%3A1:");
    assert!(shown.contains(&format!("(unknown client: Basic {name}[REDACTED])")), "{shown}");
}

#[test]
fn client_authenticates_with_a_signed_assertion() {
    let (provider, api) = (provider(None, 0), echo());
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &SystemRandom::new()).unwrap();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(pkcs8.as_ref()));
    let pem: &'static str = pem.leak();
    let mut seen = Vec::new();
    for (key_id, issuer, audience) in
        [("k-1", "https://id.example", "https://id.example"), ("", "", provider.url("/token?tenant=one"))]
    {
        let auth: &'static [Auth] =
            vec![Auth::OAuth2(OAuth2 { client_auth: ClientAuth::PrivateKeyJwt, key_id, issuer, ..oauth(&provider) })].leak();
        let spec = OpenApi { auth, ..OpenApi::new(api.url("")) };
        let api = upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))]);
        let world = world_with(vec![api], pem, Duration::from_mins(1));
        assert!(world.program().call("api", "get", "{}").starts_with("json"));
        let form = form(&provider.requests().pop().unwrap());
        assert_eq!(value(&form, "client_id"), Some("gate:1"));
        assert_eq!(value(&form, "client_assertion_type"), Some("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
        let assertion = value(&form, "client_assertion").unwrap().to_owned();
        assert_eq!(world.upstreams.redactor().redact_str(&assertion), "[REDACTED]");
        let (message, signature) = assertion.rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref())
            .verify(message.as_bytes(), &signature)
            .unwrap();
        let decoded = |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
        let (header, claims) = message.split_once('.').unwrap();
        let (header, claims) = (decoded(header), decoded(claims));
        assert_eq!((&header["alg"], header["kid"].as_str().unwrap_or_default()), (&json!("ES256"), key_id));
        assert_eq!((&claims["iss"], &claims["sub"], &claims["aud"]), (&json!("gate:1"), &json!("gate:1"), &json!(audience)));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 120);
        seen.push(claims["jti"].clone());
    }
    assert_ne!(seen.first(), seen.last());
}

/// A private key with the algorithm of its signatures and with its public key.
struct ClientKey {
    pem: String,
    alg: &'static str,
    verification: &'static dyn VerificationAlgorithm,
    public: Vec<u8>,
}

impl ClientKey {
    fn all() -> Vec<ClientKey> {
        let pem = |pkcs8: &[u8]| format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(pkcs8));
        let random = SystemRandom::new();
        let curve = |signing: &'static EcdsaSigningAlgorithm, alg, verification| {
            let pkcs8 = EcdsaKeyPair::generate_pkcs8(signing, &random).unwrap();
            let public = EcdsaKeyPair::from_pkcs8(signing, pkcs8.as_ref(), &random).unwrap().public_key().as_ref().to_vec();
            ClientKey { pem: pem(pkcs8.as_ref()), alg, verification, public }
        };
        let edwards = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let edwards_public = Ed25519KeyPair::from_pkcs8(edwards.as_ref()).unwrap().public_key().as_ref().to_vec();
        let rsa = include_str!("keys/rsa.pem");
        let body: String = rsa.lines().skip_while(|line| !line.starts_with("-----")).filter(|line| !line.contains('-')).collect();
        let rsa_public = RsaKeyPair::from_pkcs8(&STANDARD.decode(body).unwrap()).unwrap().public_key().as_ref().to_vec();
        vec![
            curve(&ECDSA_P256_SHA256_FIXED_SIGNING, "ES256", &ECDSA_P256_SHA256_FIXED),
            curve(&ECDSA_P384_SHA384_FIXED_SIGNING, "ES384", &ECDSA_P384_SHA384_FIXED),
            ClientKey { pem: pem(edwards.as_ref()), alg: "EdDSA", verification: &ED25519, public: edwards_public },
            ClientKey { pem: rsa.to_owned(), alg: "RS256", verification: &RSA_PKCS1_2048_8192_SHA256, public: rsa_public },
        ]
    }
}

#[test]
fn assertion_is_signed_with_the_algorithm_of_the_key() {
    for ClientKey { pem, alg, verification, public } in ClientKey::all() {
        let (provider, api) = (provider(None, 0), echo());
        let auth: &'static [Auth] =
            vec![Auth::OAuth2(OAuth2 { client_auth: ClientAuth::PrivateKeyJwt, ..oauth(&provider) })].leak();
        let spec = OpenApi { auth, ..OpenApi::new(api.url("")) };
        let api = upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))]);
        let world = world_with(vec![api], pem.leak(), Duration::from_mins(1));
        let answer = world.program().call("api", "get", "{}");
        assert!(answer.starts_with("json"), "{alg}: {answer}");
        let form = form(&provider.requests().pop().unwrap());
        let (message, signature) = value(&form, "client_assertion").unwrap().rsplit_once('.').unwrap();
        let header = URL_SAFE_NO_PAD.decode(message.split_once('.').unwrap().0).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&header).unwrap()["alg"], alg);
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let verified = UnparsedPublicKey::new(verification, public).verify(message.as_bytes(), &signature);
        assert!(verified.is_ok(), "{alg}");
    }
}

#[test]
fn unusable_key_is_named_without_its_text() {
    let (provider, api) = (provider(None, 0), echo());
    let answer =
        world(&api, &OAuth2 { client_auth: ClientAuth::PrivateKeyJwt, ..oauth(&provider) }).program().call("api", "get", "{}");
    assert_eq!(
        answer,
        "auth_failed: no access token for 'api': the credential 'client' is not a private key as PEM (-----BEGIN PRIVATE KEY-----)"
    );
    assert!(provider.requests().is_empty() && api.requests().is_empty());
}

/// The token has expired when a thousand calls begin at the same time. One request is made, for which all of them wait.
#[test]
fn thousand_calls_wait_for_one_renewal_and_none_fails() {
    let issued = AtomicUsize::new(0);
    let provider = Web::start(move |_| {
        let number = issued.fetch_add(1, Ordering::Relaxed) + 1;
        std::thread::sleep(Duration::from_millis(300));
        grant(number, Some(if number == 1 { 1 } else { 3_600 }))
    });
    let api = echo();
    let world = world(&api, &oauth(&provider));
    thousand_calls_after_expiry(&world, Duration::from_secs(1));
    assert_eq!(provider.requests().len(), 2);
    assert_eq!(sent_with_token_2(&api), 1_000);
}

/// Makes a call, and a thousand at the same time after the lifetime of its token. None of them fails.
pub(crate) fn thousand_calls_after_expiry(world: &World, lifetime: Duration) {
    let program = world.program();
    assert!(program.call("api", "get", "{}").starts_with("json"));
    std::thread::sleep(lifetime + Duration::from_millis(100));
    let calls: Vec<_> = (0..1_000).map(|_| program.start("api", "get", "{}")).collect();
    for call in calls {
        match call.wait(Some(Instant::now() + Duration::from_mins(1))) {
            WaitOutcome::Reply(Reply::Http(_, reply)) => assert!(described(*reply).starts_with("json")),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn sent_with_token_2(api: &Web) -> usize {
    api.requests().iter().filter(|asked| asked.header("authorization") == Some("Bearer not-a-real-token-2")).count()
}

#[test]
fn refused_token_is_renewed_once_and_the_call_repeated() {
    let valid = Arc::new(Mutex::new("not-a-real-token-1".to_owned()));
    let (known, challenge) = (Arc::clone(&valid), Arc::new(AtomicBool::new(true)));
    let challenges = Arc::clone(&challenge);
    let provider = provider(None, 0);
    let api = Web::start(move |asked| {
        if asked.header("authorization") == Some(format!("Bearer {}", known.lock().unwrap()).as_str()) {
            return Answer::json(200, json!(asked.target));
        }
        let lines = challenges.load(Ordering::Relaxed).then(|| "WWW-Authenticate: Bearer error=\"invalid_token\"".to_owned());
        Answer::Full(401, lines.into_iter().collect(), Vec::new())
    });
    let world = world(&api, &oauth(&provider));
    let call = |tool: &str| world.program().call("api", tool, "{}");
    assert_eq!(call("get"), r#"json "/get""#);
    // A write is repeated too if the service challenges the client, since then it was not processed.
    "not-a-real-token-2".clone_into(&mut valid.lock().unwrap());
    assert_eq!(call("post"), r#"json "/post""#);
    assert_eq!((provider.requests().len(), api.requests().len()), (2, 3));
    // Without a challenge the write may have been processed, so that only the next call has the new token.
    std::thread::sleep(Duration::from_millis(1_100));
    "not-a-real-token-3".clone_into(&mut valid.lock().unwrap());
    challenge.store(false, Ordering::Relaxed);
    assert_eq!(call("post"), "auth_failed: HTTP 401 Unauthorized: the upstream refuses the credential");
    assert_eq!(call("post"), r#"json "/post""#);
    assert_eq!((provider.requests().len(), api.requests().len()), (3, 5));
    // A service that refuses every token does not cause a request for each call.
    std::thread::sleep(Duration::from_millis(2_100));
    "none".clone_into(&mut valid.lock().unwrap());
    for _ in 0..20 {
        assert!(call("get").starts_with("auth_failed: HTTP 401"));
    }
    assert_eq!(provider.requests().len(), 4);
}

#[test]
fn calls_continue_with_a_valid_token_while_the_provider_is_down() {
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let provider = Web::start(move |_| {
        if is_down.load(Ordering::Relaxed) {
            Answer::Full(503, Vec::new(), b"{\"error\":\"temporarily_unavailable\"}".to_vec())
        } else {
            grant(1, Some(6))
        }
    });
    let api = echo();
    let world = world(&api, &oauth(&provider));
    let call = || world.program().call("api", "get", "{}");
    let began = Instant::now();
    assert!(call().starts_with("json"));
    down.store(true, Ordering::Relaxed);
    // The token is renewed after four fifths of its lifetime, which fails, and is used until it expires.
    while began.elapsed() < Duration::from_millis(5_400) {
        assert!(call().starts_with("json"), "the token is valid");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!((2..=4).contains(&provider.requests().len()), "{}", provider.requests().len());
    eventually("the token expires", || !call().starts_with("json"));
    let before = provider.requests().len();
    let answers: Vec<String> = (0..500).map(|_| call()).collect();
    let address = provider.url("/token");
    let why = format!("upstream_unavailable: no access token for 'api': the token endpoint {address} answered with HTTP 503");
    assert!(answers.iter().all(|answer| answer.starts_with(&why)), "{}", answers[0]);
    assert!(provider.requests().len() <= before + 3, "{} requests after {before}", provider.requests().len());
    down.store(false, Ordering::Relaxed);
    eventually("the provider is asked again", || call().starts_with("json"));
}

#[test]
#[ignore = "takes a minute"]
fn provider_is_down_for_30_seconds() {
    const DOWN: Duration = Duration::from_secs(30);
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let provider = Web::start(move |asked| match (is_down.load(Ordering::Relaxed), &*asked.target) {
        (true, _) => Answer::Close,
        (false, "/long") => grant(1, Some(3_600)),
        (false, _) => grant(2, Some(3)),
    });
    let api = echo();
    let upstreams = ["long", "short"].map(|name| {
        let oauth = OAuth2 { token_url: provider.url(&format!("/{name}")), ..oauth(&provider) };
        let auth: &'static [Auth] = vec![Auth::OAuth2(oauth)].leak();
        let spec = OpenApi { auth, ..OpenApi::new(api.url("")) };
        upstream(name, Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))])
    });
    let world = world_with(upstreams.into(), SECRET, Duration::from_mins(1));
    let call = |name| world.program().call(name, "get", "{}");
    assert!(call("long").starts_with("json") && call("short").starts_with("json"));
    down.store(true, Ordering::Relaxed);
    let began = Instant::now();
    let mut calls = 0;
    while began.elapsed() < DOWN {
        assert!(call("long").starts_with("json"), "its token is valid");
        if began.elapsed() > Duration::from_secs(3) {
            let answer = call("short");
            let why = format!("upstream_unavailable: no access token for 'short': the token endpoint {}", provider.url("/short"));
            assert!(answer.starts_with(&why), "{answer}");
        }
        calls += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    // Pauses grow, so that the provider is not asked for each call.
    let asked = provider.requests().len();
    assert!(calls > 500 && asked < 20, "{calls} calls, {asked} requests");
    down.store(false, Ordering::Relaxed);
    let began = Instant::now();
    while !call("short").starts_with("json") {
        assert!(began.elapsed() < DOWN + Duration::from_secs(10), "the longest pause is over");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Status, header lines and body of an answer.
type FullAnswer = (u16, Vec<String>, Vec<u8>);

#[test]
fn hostile_answers_of_a_token_endpoint_are_refused() {
    let elsewhere = provider(None, 0);
    let other = elsewhere.url("/token");
    let token = |rest: &str| format!(r#"{{"access_token":"not-a-real-token-x"{rest}}}"#);
    let full = |status, body: &str| (status, Vec::new(), body.as_bytes().to_vec());
    let rows: Vec<(FullAnswer, &str)> = vec![
        (full(200, &format!("{}{}", token(r#","token_type":"bearer""#), " ".repeat(70_000))), "of more than 65536 bytes"),
        (full(200, "<html>not-a-real-token-x</html>"), "that is not a JSON object"),
        (full(200, &token("")), "that has no `token_type`"),
        (full(200, &token(r#","token_type":"mac""#)), "that has a `token_type` that is not supported"),
        (full(200, r#"{"token_type":"bearer"}"#), "that has no `access_token`"),
        (
            full(200, &token(r#","token_type":"bearer","expires_in":-5"#)),
            "that has an `expires_in` that is not a number of seconds",
        ),
        ((302, vec![format!("Location: {other}")], Vec::new()), "answered with HTTP 302, a redirect, which is not followed"),
        ((307, vec![format!("Location: {other}")], Vec::new()), "answered with HTTP 307, a redirect, which is not followed"),
        (full(404, "no"), "answered with HTTP 404 and no OAuth error: check `token_url`"),
        (
            full(401, r#"{"error":"invalid_client","error_description":"secret not-a-real+secret/of a client is\nwrong"}"#),
            "refused the client with `invalid_client`, HTTP 401 (secret [REDACTED] is wrong): check `client_id`, `client_auth` and the \
             credential 'client'",
        ),
        (full(400, r#"{"error":"invalid_scope"}"#), "refused the client with `invalid_scope`, HTTP 400: check `scopes`"),
    ];
    for ((status, lines, body), why) in rows {
        let provider = Web::start(move |_| Answer::Full(status, lines.clone(), body.clone()));
        let api = echo();
        let answer = world(&api, &oauth(&provider)).program().call("api", "get", "{}");
        assert!(answer.starts_with("auth_failed: no access token for 'api': the token endpoint "), "{answer}");
        assert!(answer.contains(why) && !answer.contains("token-x"), "{answer}");
        assert!(api.requests().is_empty(), "nothing is sent without a token");
    }
    assert!(elsewhere.requests().is_empty(), "the client's secret goes nowhere else");
}

#[test]
fn slow_or_lost_token_endpoint_takes_the_time_of_the_call_only() {
    let api = echo();
    let spec = |provider: &Web| {
        let auth: &'static [Auth] = vec![Auth::OAuth2(oauth(provider))].leak();
        let spec = OpenApi { auth, ..OpenApi::new(api.url("")) };
        upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))])
    };
    let slow = Web::start(|_| Answer::Hang);
    let world = world_with(vec![spec(&slow)], SECRET, Duration::from_millis(300));
    let answer = world.program().call("api", "get", "{}");
    assert!(answer.starts_with("timeout") && answer.contains("waiting for an access token"), "{answer}");
    assert!(world.program().call("api", "get", "{}").starts_with("timeout"));
    assert_eq!(slow.requests().len(), 1, "the second call waits for the same request");
    let lost = Web::start(|_| Answer::Close);
    let world = world_with(vec![spec(&lost)], SECRET, Duration::from_mins(1));
    let answer = world.program().call("api", "get", "{}");
    assert!(answer.starts_with("upstream_unavailable: no access token for 'api'"), "{answer}");
}

#[test]
fn token_goes_to_no_other_host_that_a_redirect_or_a_challenge_names() {
    let (provider, other) = (provider(None, 0), echo());
    let place = other.url("/elsewhere");
    for status in [301, 302, 303, 307, 308, 401, 403] {
        let api = Web::start(move |_| {
            let challenge =
                format!("WWW-Authenticate: Bearer resource_metadata=\"{place}\", error=\"insufficient_scope\", scope=\"a\"");
            Answer::Full(status, vec![format!("Location: {place}"), challenge], Vec::new())
        });
        let world = world(&api, &oauth(&provider));
        for tool in ["get", "post"] {
            let answer = world.program().call("api", tool, "{}");
            assert!(!answer.starts_with("json"), "{status} {tool}: {answer}");
        }
        let requests = api.requests();
        let has_token =
            |asked: &Asked| asked.header("authorization").is_some_and(|value| value.starts_with("Bearer not-a-real-token-"));
        assert!(requests.len() >= 2 && requests.iter().all(has_token), "{status}");
    }
    assert!(other.requests().is_empty());
}

/// An answer whose body comes one byte a second, for longer than any time limit of a request.
pub(crate) fn dripping() -> Answer {
    let head = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n".to_vec();
    let parts = std::iter::once((0, head)).chain(std::iter::repeat_n((1_000, b" ".to_vec()), 60));
    Answer::Raw(parts.collect(), End::Hang)
}

#[test]
fn dripping_metadata_and_tokens_are_given_up_within_the_limit_of_a_request() {
    let calls = ["/.well-known/oauth-authorization-server", "/token"].map(|slow| {
        std::thread::spawn(move || {
            let provider = Web::start(move |asked| {
                let issuer = format!("http://{}", asked.header("host").unwrap_or_default());
                match &*asked.target {
                    target if target == slow => dripping(),
                    _ => Answer::json(200, json!({ "issuer": issuer, "token_endpoint": format!("{issuer}/token") })),
                }
            });
            let api = echo();
            let oauth = OAuth2 { token_url: "", issuer: provider.url(""), ..oauth(&provider) };
            let began = Instant::now();
            let answer = world(&api, &oauth).program().call("api", "get", "{}");
            assert!(answer.starts_with("upstream_unavailable: no access token for 'api'") && answer.contains(slow), "{answer}");
            assert!(began.elapsed() < Duration::from_secs(20), "{slow}: {:?}", began.elapsed());
            assert!(api.requests().is_empty());
        })
    });
    for call in calls {
        call.join().unwrap();
    }
}

/// An MCP server gets a token with each request, also in the handshake, and an issued token is redacted wherever it is echoed.
#[test]
fn mcp_server_gets_a_token_with_each_request() {
    let provider = provider(None, 0);
    let server = Web::start(|asked| {
        let token = asked.header("authorization").unwrap_or_default().to_owned();
        handshaking(asked, |frame| {
            let encoded = STANDARD.encode(&token);
            let content = json!([{ "type": "text", "text": format!("{token} {encoded}") }]);
            Answer::json(200, json!({ "jsonrpc": "2.0", "id": frame["id"], "result": { "content": content } }))
        })
    });
    let auth: &'static [Auth] = vec![Auth::OAuth2(oauth(&provider))].leak();
    let spec = McpHttp { auth, era: Some(Era::Handshake), ..McpHttp::new(server.url("/mcp")) };
    let world = world_with(vec![upstream("web", Transport::McpHttp(spec), vec![tool("echo")])], SECRET, Duration::from_mins(1));
    let answer = world.program().call("web", "echo", "{}");
    assert!(answer.starts_with("text Bearer [REDACTED] ") && answer.matches("[REDACTED]").count() == 2, "{answer}");
    assert!(server.requests().iter().all(|asked| asked.header("authorization") == Some("Bearer not-a-real-token-1")));
    assert_eq!((provider.requests().len(), server.requests().len()), (1, 3));
}

#[test]
fn binary_without_the_oauth_client_says_so() {
    let (provider, api) = (provider(None, 0), echo());
    let auth: &'static [Auth] = vec![Auth::OAuth2(oauth(&provider))].leak();
    let spec = OpenApi { auth, ..OpenApi::new(api.url("")) };
    let api_upstream = upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))]);
    let credentials = vec![Binding { name: "client", source: Source::Literal { value: SECRET } }];
    let answer = World::with(vec![api_upstream], credentials, |_| {}).program().call("api", "get", "{}");
    assert!(answer.starts_with("auth_failed: this binary has no OAuth client (crate ptc-oauth-client)"), "{answer}");
    assert!(api.requests().is_empty());
}

/// The metadata of RFC 8414 comes first, then that of OpenID Connect. Metadata of another issuer is refused.
#[test]
fn token_endpoint_is_found_in_the_metadata_of_the_issuer() {
    for (path, named, is_found) in [
        ("/.well-known/oauth-authorization-server/tenant", "/tenant", true),
        ("/tenant/.well-known/openid-configuration", "/tenant", true),
        ("/.well-known/oauth-authorization-server/tenant", "/other", false),
        ("/nowhere", "/tenant", false),
    ] {
        let provider = Web::start(move |asked| {
            let issuer = format!("http://{}", asked.header("host").unwrap_or_default());
            match &*asked.target {
                "/token" => grant(1, None),
                target if target == path => Answer::json(
                    200,
                    json!({ "issuer": format!("{issuer}{named}"), "token_endpoint": format!("{issuer}/token") }),
                ),
                _ => Answer::Full(404, Vec::new(), Vec::new()),
            }
        });
        let api = echo();
        let oauth = OAuth2 { token_url: "", issuer: provider.url("/tenant"), ..oauth(&provider) };
        let answer = world(&api, &oauth).program().call("api", "get", "{}");
        assert_eq!(answer.starts_with("json"), is_found, "{path}: {answer}");
        assert_eq!(provider.requests().iter().filter(|asked| asked.target == "/token").count(), usize::from(is_found), "{path}");
        if !is_found {
            let why = format!(
                "upstream_unavailable: no access token for 'api': no token endpoint of the issuer {}",
                provider.url("/tenant")
            );
            assert!(answer.starts_with(&why) && api.requests().is_empty(), "{answer}");
        }
    }
}

/// The platform replaces the assertion, so that its file is read for each request.
#[test]
fn client_authenticates_with_the_current_assertion_of_a_file() {
    let (provider, api) = (provider(Some(1), 0), echo());
    let folder = tempfile::tempdir().unwrap();
    let path: &'static str = folder.path().join("assertion").to_str().unwrap().to_owned().leak();
    let oauth = OAuth2 { client_auth: ClientAuth::AssertionFile, ..oauth(&provider) };
    let auth: &'static [Auth] = vec![Auth::OAuth2(oauth)].leak();
    let spec = OpenApi { auth, ..OpenApi::new(api.url("")) };
    let service = upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))]);
    std::fs::write(path, "not-a-real-assertion-1\n").unwrap();
    let credentials = vec![Binding { name: "client", source: Source::File { path } }];
    let world = World::with(vec![service], credentials, |settings| {
        settings.access_tokens = AccessTokens::new(Some(&ptc_oauth_client::OAUTH_CLIENT));
    });
    let sent = || value(&form(&provider.requests().pop().unwrap()), "client_assertion").map(str::to_owned);
    assert!(world.program().call("api", "get", "{}").starts_with("json"));
    assert_eq!(sent().as_deref(), Some("not-a-real-assertion-1"));
    std::fs::write(path, "not-a-real-assertion-2\n").unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(world.program().call("api", "get", "{}").starts_with("json"));
    assert_eq!(sent().as_deref(), Some("not-a-real-assertion-2"));
    assert_eq!(world.upstreams.redactor().redact_str("not-a-real-assertion-2"), "[REDACTED]");
    std::fs::remove_file(path).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    let answer = world.program().call("api", "get", "{}");
    assert!(answer.ends_with("was not asked: the credential 'client' cannot be read from its file"), "{answer}");
}
