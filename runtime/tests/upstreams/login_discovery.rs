//! Logins at an authorization server that the upstream names: what is found, bound, refused, and asked for.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_catalog::{Auth, ClientAuth, GrantType, OAuth2, OpenApi, Operation, Transport, Upstream};
use ptc_oauth_client::login::LoginClient;
use ptc_runtime::secrets::Secrets;
use ptc_runtime::upstream::http::access_token::{AccessTokens, TokenSourceConfig};
use serde_json::{Value, json};

use crate::login::issuer;
use crate::oauth::dripping;
use crate::web::{Answer, Asked, Web};
use crate::world::{World, operation, upstream};

const REDIRECT: &str = "http://127.0.0.1:1/callback";
const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// Answers the request for the metadata of an upstream.
type Metadata = Box<dyn Fn(&Asked) -> Answer + Send + Sync>;

/// A protected upstream. `metadata` answers the request for its metadata, and `call` a call with a token.
fn protected(
    metadata: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    call: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
) -> Web {
    Web::start(move |asked| match (&*asked.method, &*asked.target) {
        ("POST", "/mcp") => {
            assert!(asked.header("authorization").is_none(), "the first request has no token");
            let place = format!("http://{}{METADATA}", asked.header("host").unwrap_or_default());
            let challenge = format!("WWW-Authenticate: Bearer resource_metadata=\"{place}\", scope=\"notes.read\"");
            Answer::Full(401, vec![challenge], Vec::new())
        }
        ("GET", METADATA) => metadata(asked),
        ("GET", "/mcp/get") => call(asked),
        _ => Answer::json(404, json!({})),
    })
}

/// The metadata of an upstream with an authorization server.
fn naming(asked: &Asked, server: &str) -> Answer {
    let resource = format!("http://{}/mcp", asked.header("host").unwrap_or_default());
    Answer::json(200, json!({ "resource": resource, "authorization_servers": [server] }))
}

/// An authorization server that registers clients and issues numbered tokens.
fn server(more: &Value, lifetime: u64) -> Web {
    let mut members = json!({
        "authorization_endpoint": "/authorize", "token_endpoint": "/token", "registration_endpoint": "/register",
        "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["client_secret_basic"],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        members[name] = value.clone();
    }
    let mut issued = 0;
    issuer(members, move |asked| match &*asked.target {
        "/register" => Answer::json(201, json!({ "client_id": "registered", "client_secret": "not-a-real-client-secret" })),
        "/token" => {
            issued += 1;
            let token = format!("not-a-real-token-{issued}");
            let refresh = format!("not-a-real-refresh-token-{issued}");
            let kind = if asked.header("dpop").is_some() { "DPoP" } else { "Bearer" };
            Answer::json(
                200,
                json!({ "access_token": token, "token_type": kind, "expires_in": lifetime, "refresh_token": refresh }),
            )
        }
        _ => Answer::json(404, json!({})),
    })
}

fn service(api: &Web) -> Upstream {
    let oauth = OAuth2 { resource: api.url("/mcp"), ..OAuth2::new(GrantType::AuthorizationCode) };
    let auth: &'static [Auth] = vec![Auth::OAuth2(oauth)].leak();
    let spec = OpenApi { auth, ..OpenApi::new(api.url("/mcp")) };
    upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))])
}

/// Logs in. Returns the parameters of the request for a code, or why there is no login.
fn log_in(api: &Web, store: &Path) -> Result<Vec<(String, String)>, String> {
    log_in_to(service(api), store)
}

fn log_in_to(upstream: Upstream, store: &Path) -> Result<Vec<(String, String)>, String> {
    let upstream: &'static Upstream = Box::leak(Box::new(upstream));
    let secrets = Secrets::resolve_for(&[], &[upstream], Path::new(".")).unwrap_or_else(|_| panic!("it has no secrets"));
    let config = TokenSourceConfig::of_upstream(upstream, Some(store.to_owned()), &secrets).unwrap().unwrap();
    let client = LoginClient::new(&config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let request = client.authorization(REDIRECT.into()).await.map_err(|why| why.message.into_owned())?;
        client.exchange(&request, "c-1").await.map_err(|why| why.message.into_owned())?;
        let mut pairs: Vec<(String, String)> = request.url.query_pairs().into_owned().collect();
        pairs.extend(request.server().map(|server| ("server".to_owned(), server)));
        Ok(pairs)
    })
}

fn of<'p>(pairs: &'p [(String, String)], name: &str) -> &'p str {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| &**value).unwrap_or_default()
}

fn world(api: &Web, store: &Path) -> World {
    let store = store.to_owned();
    World::with(vec![service(api)], Vec::new(), move |settings| {
        settings.access_tokens = AccessTokens::new(Some(&ptc_oauth_client::OAUTH_CLIENT)).with_store(Some(store));
    })
}

fn call(api: &Web, store: &Path) -> String {
    world(api, store).program().call("api", "get", "{}")
}

#[test]
fn registered_client_renews_tokens_until_the_upstream_names_another_server() {
    let (first, second) = (server(&json!({}), 1), server(&json!({}), 1));
    let named = Arc::new(Mutex::new(first.url("").to_owned()));
    let naming_now = Arc::clone(&named);
    let api = protected(
        move |asked| naming(asked, &naming_now.lock().unwrap()),
        |asked| Answer::json(200, json!({ "authorization": asked.header("authorization") })),
    );
    let folder = tempfile::tempdir().unwrap();
    let request = log_in(&api, folder.path()).unwrap();
    assert_eq!((of(&request, "client_id"), of(&request, "scope")), ("registered", "notes.read"));
    assert_eq!((of(&request, "resource"), of(&request, "redirect_uri")), (api.url("/mcp"), REDIRECT));
    let shown = format!("the authorization server is {}; the upstream asks for the scopes `notes.read`", first.url(""));
    assert_eq!(of(&request, "server"), shown);

    std::thread::sleep(Duration::from_millis(1_100));
    let answer = call(&api, folder.path());
    assert!(answer.contains("Bearer [REDACTED]"), "{answer}");
    let renewal = first.requests().pop().unwrap();
    assert!(renewal.body.contains("refresh_token=not-a-real-refresh-token-1"), "{}", renewal.body);
    let basic = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "registered:not-a-real-client-secret");
    assert_eq!(renewal.header("authorization"), Some(&*format!("Basic {basic}")));

    second.url("").clone_into(&mut named.lock().unwrap());
    std::thread::sleep(Duration::from_millis(1_100));
    let asked = first.requests().len();
    let answer = call(&api, folder.path());
    assert!(answer.starts_with("auth_expired:") && answer.contains("names another authorization server"), "{answer}");
    assert!(answer.contains("ptc-compile login CONFIG api"), "{answer}");
    assert_eq!((first.requests().len(), second.requests().len()), (asked, 0), "no token has left for either server");

    let request = log_in(&api, folder.path()).unwrap();
    let expected = format!("the authorization server is now {}, and was {}", second.url(""), first.url(""));
    assert!(of(&request, "server").starts_with(&expected), "{request:?}");
    assert!(second.requests().iter().any(|asked| asked.target == "/register"));
    assert!(second.requests().iter().all(|asked| !asked.body.contains("refresh-token-")));
}

#[test]
fn client_is_registered_where_its_metadata_document_is_not_supported() {
    const DOCUMENT: &str = "https://app.example.com/client.json";
    for (supported, client) in [(json!({ "client_id_metadata_document_supported": true }), DOCUMENT), (json!({}), "registered")] {
        let server = server(&supported, 3_600);
        let url = server.url("").to_owned();
        let api = protected(move |asked| naming(asked, &url), |_| Answer::json(200, json!({})));
        let oauth = OAuth2 { resource: api.url("/mcp"), client_id: DOCUMENT, ..OAuth2::new(GrantType::AuthorizationCode) };
        let auth: &'static [Auth] = vec![Auth::OAuth2(oauth)].leak();
        let spec = OpenApi { auth, ..OpenApi::new(api.url("/mcp")) };
        let service = upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))]);
        let folder = tempfile::tempdir().unwrap();
        let request = log_in_to(service, folder.path()).unwrap();
        assert_eq!(of(&request, "client_id"), client);
        let registered = server.requests().iter().filter(|asked| asked.target == "/register").count();
        assert_eq!(registered, usize::from(client == "registered"));
    }
}

#[test]
fn login_at_the_issuer_of_the_config_requests_the_scopes_that_the_upstream_asks_for() {
    let (known, other) = (server(&json!({}), 3_600), server(&json!({}), 3_600));
    let named = [known.url("").to_owned(), other.url("").to_owned()];
    for (named, scopes, expected) in [(&named[0], "", "notes.read"), (&named[1], "", ""), (&named[0], "own", "own")] {
        let names = named.clone();
        let api = protected(move |asked| naming(asked, &names), |_| Answer::json(200, json!({})));
        let Transport::OpenApi(spec) = service(&api).transport else { panic!("a service") };
        let oauth = OAuth2 {
            issuer: known.url(""),
            client_id: "gate",
            client_auth: ClientAuth::None,
            scope: scopes.to_owned().leak(),
            ..*spec.auth[0].oauth().unwrap()
        };
        let spec = OpenApi { auth: vec![Auth::OAuth2(oauth)].leak(), ..spec };
        let service = upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))]);
        let request = log_in_to(service, tempfile::tempdir().unwrap().path()).unwrap();
        assert_eq!((of(&request, "client_id"), of(&request, "scope")), ("gate", expected), "{named}");
        let server = of(&request, "server");
        assert_eq!(server == "the upstream asks for the scopes `notes.read`", expected == "notes.read", "{server}");
    }
}

#[test]
fn missing_scope_names_the_command_and_the_next_login_requests_all_scopes() {
    let server = server(&json!({}), 3_600);
    let place = server.url("");
    let api = protected(
        move |asked| naming(asked, place),
        |asked| {
            if asked.header("authorization") == Some("Bearer not-a-real-token-1") {
                let challenge = "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"notes.write `x`\"";
                return Answer::Full(403, vec![challenge.into()], Vec::new());
            }
            Answer::json(200, json!({ "ok": true }))
        },
    );
    let folder = tempfile::tempdir().unwrap();
    log_in(&api, folder.path()).unwrap();
    let running = world(&api, folder.path());
    let answer = running.program().call("api", "get", "{}");
    assert!(answer.starts_with("auth_expired:") && answer.contains("notes.write"), "{answer}");
    assert!(answer.contains(&format!("`ptc-compile login CONFIG api --store {}`", folder.path().display())), "{answer}");
    assert_eq!(api.requests().iter().filter(|asked| asked.target == "/mcp/get").count(), 1, "the call is not sent again");
    let request = log_in(&api, folder.path()).unwrap();
    assert_eq!(of(&request, "scope"), "notes.read notes.write `x`");
    assert!(of(&request, "server").ends_with("the upstream asks for the scopes `notes.read notes.write `x``"), "{request:?}");
    assert!(running.program().call("api", "get", "{}").contains("ok"), "the running server uses the new login");
    assert!(call(&api, folder.path()).contains("ok"));
}

/// Returns the header and the claims of the proof of a request.
fn proof(asked: &Asked) -> (Value, Value) {
    let proof = asked.header("dpop").unwrap_or_else(|| panic!("{} has no proof", asked.target));
    let part = |at| {
        let part = proof.split('.').nth(at).expect("three parts");
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    (part(0), part(1))
}

#[test]
fn tokens_are_bound_to_one_key_if_the_upstream_needs_this() {
    let bound = json!({ "dpop_signing_alg_values_supported": ["RS256", "ES256"] });
    let server = server(&bound, 1);
    let place = server.url("").to_owned();
    let needing = move |asked: &Asked| {
        let resource = format!("http://{}/mcp", asked.header("host").unwrap_or_default());
        let members = json!({
            "resource": resource, "authorization_servers": [place], "dpop_bound_access_tokens_required": true,
        });
        Answer::json(200, members)
    };
    let api = protected(needing, |asked| {
        let nonce = proof(asked).1["nonce"].clone();
        let new = "DPoP-Nonce: n-1".to_owned();
        if nonce == "n-1" {
            return Answer::json(200, json!({ "authorization": asked.header("authorization") }));
        }
        Answer::Full(401, vec![new, "WWW-Authenticate: Bearer, DPoP error=\"use_dpop_nonce\"".to_owned()], Vec::new())
    });
    let folder = tempfile::tempdir().unwrap();
    log_in(&api, folder.path()).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    let running = world(&api, folder.path());
    for _ in 0..2 {
        let answer = running.program().call("api", "get", "{}");
        assert!(answer.contains("DPoP [REDACTED]"), "{answer}");
    }
    let calls: Vec<Asked> = api.requests().into_iter().filter(|asked| asked.target == "/mcp/get").collect();
    assert_eq!(calls.len(), 3, "only the first call lacks the nonce");
    let requests: Vec<Asked> = server.requests().into_iter().filter(|asked| asked.target == "/token").collect();
    assert_eq!(requests.len(), 2, "a login and a renewal");
    let key = proof(&requests[0]).0["jwk"].clone();
    let mut numbers = Vec::new();
    for (asked, web) in calls.iter().map(|call| (call, &api)).chain(requests.iter().map(|request| (request, &server))) {
        let (header, claims) = proof(asked);
        assert_eq!((&header["jwk"], &claims["htm"]), (&key, &json!(asked.method)));
        assert_eq!(claims["htu"], web.url(&asked.target));
        numbers.push(claims["jti"].clone());
    }
    assert!((1..numbers.len()).all(|at| !numbers[..at].contains(&numbers[at])), "each proof is new: {numbers:?}");

    // An issuer that ignores the proof issues a token that anyone can use.
    let plain = issuer(
        json!({
            "authorization_endpoint": "/authorize", "token_endpoint": "/token", "registration_endpoint": "/register",
            "code_challenge_methods_supported": ["S256"], "dpop_signing_alg_values_supported": ["ES256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }),
        |asked| match &*asked.target {
            "/register" => Answer::json(201, json!({ "client_id": "registered", "token_endpoint_auth_method": "none" })),
            _ => Answer::json(200, json!({ "access_token": "not-a-real-token-x", "token_type": "Bearer" })),
        },
    );
    let place = plain.url("").to_owned();
    let challenging = Web::start(move |asked| match &*asked.target {
        "/mcp" => Answer::Full(401, vec!["WWW-Authenticate: DPoP algs=\"ES256\"".to_owned()], Vec::new()),
        METADATA => naming(asked, &place),
        _ => Answer::json(404, json!({})),
    });
    let why = log_in(&challenging, tempfile::tempdir().unwrap().path()).unwrap_err();
    assert!(why.contains("`token_type` other than `DPoP`"), "{why}");
}

#[test]
fn request_for_tokens_is_repeated_with_a_new_proof_after_a_lost_connection() {
    let mut asked_before = false;
    let members = json!({
        "authorization_endpoint": "/authorize", "token_endpoint": "/token", "registration_endpoint": "/register",
        "code_challenge_methods_supported": ["S256"], "dpop_signing_alg_values_supported": ["ES256"],
        "token_endpoint_auth_methods_supported": ["none"],
    });
    let server = issuer(members, move |asked| match &*asked.target {
        "/register" => Answer::json(201, json!({ "client_id": "registered", "token_endpoint_auth_method": "none" })),
        _ if !std::mem::replace(&mut asked_before, true) => Answer::Close,
        _ => Answer::json(200, json!({ "access_token": "not-a-real-token-x", "token_type": "DPoP" })),
    });
    let place = server.url("").to_owned();
    let api = Web::start(move |asked| match &*asked.target {
        "/mcp" => Answer::Full(401, vec!["WWW-Authenticate: DPoP algs=\"ES256\"".to_owned()], Vec::new()),
        METADATA => naming(asked, &place),
        _ => Answer::json(404, json!({})),
    });
    log_in(&api, tempfile::tempdir().unwrap().path()).unwrap();
    let sent: Vec<Value> =
        server.requests().iter().filter(|asked| asked.target == "/token").map(|asked| proof(asked).1["jti"].clone()).collect();
    assert!(sent.len() == 2 && sent[0] != sent[1], "{sent:?}");
}

#[test]
fn metadata_that_never_ends_ends_a_login_in_time() {
    let metadata: [fn(&Asked) -> Answer; 2] = [|_| Answer::Hang, |_| dripping()];
    let logins = metadata.map(|metadata| {
        std::thread::spawn(move || {
            let folder = tempfile::tempdir().unwrap();
            let api = protected(metadata, |_| Answer::json(200, json!({})));
            let began = Instant::now();
            let why = log_in(&api, folder.path()).unwrap_err();
            assert!(why.contains(api.url(METADATA)), "{why}");
            assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
        })
    });
    for login in logins {
        login.join().unwrap();
    }
}

/// The new place of the metadata names the server of the login, or another one.
#[test]
fn metadata_that_moves_is_found_again_before_a_renewal() {
    for is_other in [false, true] {
        let (first, second) = (server(&json!({}), 1), server(&json!({}), 1));
        let is_moved = Arc::new(AtomicBool::new(false));
        let (moved, servers) = (Arc::clone(&is_moved), [first.url(""), if is_other { second.url("") } else { first.url("") }]);
        let api = Web::start(move |asked| {
            let is_moved = moved.load(Ordering::Relaxed);
            let path = if is_moved { "/moved" } else { METADATA };
            match (&*asked.method, &*asked.target) {
                ("POST", "/mcp") => {
                    let place = format!("http://{}{path}", asked.header("host").unwrap_or_default());
                    Answer::Full(401, vec![format!("WWW-Authenticate: Bearer resource_metadata=\"{place}\"")], Vec::new())
                }
                ("GET", "/mcp/get") => Answer::json(200, json!({})),
                ("GET", target) if target == path => naming(asked, servers[usize::from(is_moved)]),
                _ => Answer::json(404, json!({})),
            }
        });
        let folder = tempfile::tempdir().unwrap();
        log_in(&api, folder.path()).unwrap();
        is_moved.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1_100));
        let asked = first.requests().len();
        let answer = call(&api, folder.path());
        if is_other {
            assert!(answer.starts_with("auth_expired:") && answer.contains("names another authorization server"), "{answer}");
            assert_eq!((first.requests().len(), second.requests().len()), (asked, 0), "no token has left for either server");
        } else {
            assert_eq!(answer, "json {}");
        }
    }
}

#[test]
fn hostile_metadata_is_refused_before_a_person_is_asked() {
    let authorization_server = |more: Value| server(&more, 1).url("").to_owned();
    let good = authorization_server(json!({}));
    let elsewhere = Web::start(|_| Answer::json(200, json!({})));
    let redirect = format!("Location: {}", elsewhere.url("/"));
    let resource = |members: Value| Box::new(move |_: &Asked| Answer::json(200, members.clone()));
    let named = |server: &str| {
        let server = server.to_owned();
        Box::new(move |asked: &Asked| naming(asked, &server))
    };
    let cases: Vec<(Metadata, &str)> = vec![
        (resource(json!({ "resource": "https://evil.example/mcp", "authorization_servers": [good] })), "of another resource"),
        (resource(json!({ "authorization_servers": [good] })), "has no `resource`"),
        (
            Box::new(|asked| {
                Answer::json(200, json!({ "resource": format!("http://{}", asked.header("host").unwrap_or_default()) }))
            }),
            "has no `authorization_servers`",
        ),
        (Box::new(move |_| Answer::Full(302, vec![redirect.clone()], Vec::new())), "HTTP 302"),
        (Box::new(|_| Answer::Full(200, Vec::new(), vec![b' '; 300 * 1024])), "larger than"),
        (Box::new(|_| Answer::Full(200, Vec::new(), b"<html>".to_vec())), "is not a JSON object"),
        (Box::new(|_| Answer::json(500, json!({}))), "HTTP 500"),
        (Box::new(|_| Answer::json(404, json!({}))), "HTTP 404"),
        (
            Box::new({
                let good = good.clone();
                move |asked| {
                    let resource = format!("http://{}/mcp", asked.header("host").unwrap_or_default());
                    let servers = [&good];
                    let members = json!({
                        "resource": resource, "authorization_servers": servers, "dpop_bound_access_tokens_required": true,
                    });
                    Answer::json(200, members)
                }
            }),
            "lacks `ES256`",
        ),
        (named("http://id.example"), "does not use TLS"),
        (named("ftp://id.example"), "does not use TLS"),
        (named("https://user:password@id.example"), "a user or a password"),
        (named("id.example"), "is not a URL"),
        (named("https://evil.example/\u{1b}[2K"), "is not a URL"),
        (named("https://evil.example/\u{202e}"), "is not a URL"),
        (named(&authorization_server(json!({ "issuer": "https://evil.example" }))), "of another issuer"),
        (named(&format!("{good}/")), "of another issuer"),
        (named(&authorization_server(json!({ "code_challenge_methods_supported": ["plain"] }))), "lacks `S256`"),
        (named(&authorization_server(json!({ "code_challenge_methods_supported": null }))), "lacks `S256`"),
        (named(&authorization_server(json!({ "authorization_endpoint": "javascript:alert(1)" }))), "without TLS"),
        (named(&authorization_server(json!({ "token_endpoint": "file:///etc/passwd" }))), "without TLS"),
        (named(&authorization_server(json!({ "registration_endpoint": "http://id.example/register" }))), "does not use TLS"),
    ];
    for (metadata, expected) in cases {
        let api = protected(metadata, |_| Answer::json(200, json!({})));
        let folder = tempfile::tempdir().unwrap();
        let why = log_in(&api, folder.path()).err().unwrap_or_else(|| panic!("{expected}: there is a login"));
        assert!(why.contains(expected), "{expected}: {why}");
    }
    assert!(elsewhere.requests().is_empty(), "redirects are not followed");
}
