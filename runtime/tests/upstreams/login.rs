//! Tokens of logins: where they are stored, how they are renewed, and when a person is needed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_catalog::{Auth, GrantType, OAuth2, OpenApi, Operation, Proxy, Transport, Upstream};
use ptc_oauth_client::login::LoginClient;
use ptc_oauth_client::redirect::RedirectError;
use ptc_runtime::secrets::Secrets;
use ptc_runtime::upstream::http::access_token::{AccessTokens, TokenSourceConfig};
use serde_json::{Value, json};

use crate::oauth::{sent_with_token_2, thousand_calls_after_expiry};
use crate::web::{Answer, Asked, Web};
use crate::world::{World, operation, upstream};

const FIRST: &str = "not-a-real-refresh-token-0";

/// A token endpoint that accepts only the newest refresh token, and replaces it. Access tokens are valid for `lifetime` seconds.
fn provider(lifetime: u64) -> Web {
    provider_with(move |_| lifetime)
}

/// The same with a lifetime for each number of a token, which is called before the answer is sent.
fn provider_with(lifetime: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Web {
    let issued = Mutex::new(0);
    Web::start(move |asked| {
        let mut issued = issued.lock().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        if !asked.body.contains(&format!("refresh_token=not-a-real-refresh-token-{issued}&client_id=gate")) {
            return Answer::json(400, json!({ "error": "invalid_grant" }));
        }
        *issued += 1;
        Answer::json(
            200,
            json!({
                "access_token": format!("not-a-real-token-{issued}"), "token_type": "Bearer", "expires_in": lifetime(*issued),
                "refresh_token": format!("not-a-real-refresh-token-{issued}"),
            }),
        )
    })
}

fn echo() -> Web {
    Web::start(|asked| Answer::json(200, json!({ "authorization": asked.header("authorization"), "path": asked.target })))
}

fn service(api: &Web, provider: &Web) -> Upstream {
    let oauth = OAuth2 { token_url: provider.url("/token"), client_id: "gate", ..OAuth2::new(GrantType::RefreshToken) };
    let auth: &'static [Auth] = vec![Auth::OAuth2(oauth)].leak();
    let spec = OpenApi { auth, ..OpenApi::new(api.url("")) };
    upstream("api", Transport::OpenApi(spec), vec![operation("get", Operation::new("get", "/get"))])
}

fn world(api: &Web, provider: &Web, store: &Path) -> World {
    let store = store.to_owned();
    World::with(vec![service(api, provider)], Vec::new(), move |settings| {
        settings.access_tokens = AccessTokens::new(Some(&ptc_oauth_client::OAUTH_CLIENT)).with_store(Some(store));
        settings.max_calls_per_program = 5_000;
    })
}

/// Logs in with the first refresh token, as `ptc-compile login` does.
fn log_in(api: &Web, provider: &Web, store: &Path) {
    let upstream: &'static Upstream = Box::leak(Box::new(service(api, provider)));
    let secrets = Secrets::resolve_for(&[], &[upstream], Path::new(".")).unwrap_or_else(|_| panic!("it has no secrets"));
    let config = TokenSourceConfig::of_upstream(upstream, Some(store.to_owned()), &secrets).unwrap().unwrap();
    let client = LoginClient::new(&config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert!(runtime.block_on(client.redeem(FIRST)).is_ok_and(|login| login.has_refresh_token()));
}

fn call(world: &World) -> String {
    world.program().call("api", "get", "{}")
}

#[test]
fn refresh_token_is_rotated_in_a_private_file_and_redacted() {
    let (provider, api, folder) = (provider(1), echo(), tempfile::tempdir().unwrap());
    log_in(&api, &provider, folder.path());
    let world = world(&api, &provider, folder.path());
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(1_100));
        assert!(call(&world).contains("Bearer [REDACTED]"));
    }
    let sent: Vec<_> = api.requests().iter().map(|asked| asked.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer not-a-real-token-2", "Bearer not-a-real-token-3", "Bearer not-a-real-token-4"]);
    let redactor = world.upstreams.redactor();
    assert_eq!(redactor.redact_str("not-a-real-refresh-token-4"), "[REDACTED]");
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().all(|file| file.metadata().unwrap().permissions().mode() & 0o777 == 0o600), "{files:?}");
    let texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert_eq!(texts.iter().filter(|text| text.contains("not-a-real-refresh-token-4")).count(), 1, "{files:?}");
}

/// Each world has sources of its own, as a process has. The lock is that of the kernel.
#[test]
fn servers_that_renew_at_once_make_one_request() {
    let (provider, api, folder) = (provider(3_600), echo(), tempfile::tempdir().unwrap());
    log_in(&api, &provider, folder.path());
    for file in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(r#""expires_in":3600"#, r#""expires_in":0"#)).unwrap();
    }
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let world = world(&api, &provider, folder.path());
            std::thread::spawn(move || call(&world))
        })
        .collect();
    for thread in threads {
        assert!(thread.join().unwrap().starts_with("json"));
    }
    assert_eq!(provider.requests().len(), 2, "one for the login, one for all servers");
    assert!(api.requests().iter().all(|asked| asked.header("authorization") == Some("Bearer not-a-real-token-2")));
}

/// The provider refuses a refresh token that it has replaced, so that a second renewal would fail calls.
#[test]
fn thousand_calls_wait_for_one_rotation_of_the_refresh_token_and_none_fails() {
    let (api, folder) = (echo(), tempfile::tempdir().unwrap());
    let provider = provider_with(|number| if number == 1 { 3 } else { 3_600 });
    log_in(&api, &provider, folder.path());
    thousand_calls_after_expiry(&world(&api, &provider, folder.path()), Duration::from_secs(3));
    assert_eq!(provider.requests().len(), 2, "one for the login, one for all calls");
    assert_eq!(sent_with_token_2(&api), 1_000);
}

/// A store can fail after its check, such as a keyring that is locked meanwhile. Here the file is a folder for a while.
#[test]
fn renewed_tokens_that_cannot_be_stored_are_kept_until_a_renewal_can_store_its_own() {
    for meanwhile in ["nothing", "a logout", "a refusal"] {
        let (api, folder) = (echo(), tempfile::tempdir().unwrap());
        let file = Arc::new(Mutex::new(PathBuf::new()));
        let aside = folder.path().join("aside");
        let (breaking, moved) = (Arc::clone(&file), aside.clone());
        let provider = provider_with(move |number| {
            if number == 2 {
                let file = breaking.lock().unwrap();
                std::fs::rename(&*file, &moved).unwrap();
                std::fs::create_dir(&*file).unwrap();
            }
            1
        });
        log_in(&api, &provider, folder.path());
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let stored = files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "json")).unwrap();
        stored.clone_into(&mut file.lock().unwrap());
        let world = world(&api, &provider, folder.path());
        let renewed = || {
            std::thread::sleep(Duration::from_millis(1_100));
            let answer = call(&world);
            assert!(answer.contains("Bearer [REDACTED]"), "{answer}");
            api.requests().pop().unwrap().header("authorization").unwrap().to_owned()
        };
        assert_eq!(renewed(), "Bearer not-a-real-token-2");
        assert_eq!(world.upstreams.redactor().redact_str("not-a-real-refresh-token-2"), "[REDACTED]");
        assert_eq!(renewed(), "Bearer not-a-real-token-3", "the store cannot be read either");
        std::fs::remove_dir(&stored).unwrap();
        if meanwhile == "a logout" {
            std::thread::sleep(Duration::from_millis(1_100));
            let answer = call(&world);
            assert!(answer.starts_with("auth_expired: no access token for 'api': nothing is stored for it"), "{answer}");
            continue;
        }
        std::fs::rename(&aside, &stored).unwrap();
        let text = || std::fs::read_to_string(&stored).unwrap();
        assert!(text().contains("not-a-real-refresh-token-1"));
        if meanwhile == "a refusal" {
            // Another process has sent the replaced refresh token.
            std::fs::write(&stored, text().replace("not-a-real-refresh-token-1", "")).unwrap();
        }
        assert_eq!(renewed(), "Bearer not-a-real-token-4");
        assert!(text().contains("not-a-real-refresh-token-4"));
    }
}

#[test]
fn call_without_a_valid_login_fails_with_the_command_to_run() {
    let (provider, api, folder) = (provider(1), echo(), tempfile::tempdir().unwrap());
    let command = format!("a person must run `ptc-compile login CONFIG api --store {}`", folder.path().display());
    let refused = |answer: String, why: &str| {
        assert!(
            answer.starts_with(&format!("auth_expired: no access token for 'api': {why}")) && answer.contains(&command),
            "{answer}"
        );
    };
    refused(call(&world(&api, &provider, folder.path())), "nothing is stored for it");
    log_in(&api, &provider, folder.path());
    // A refresh token that the server does not know any more is sent once.
    for file in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("refresh-token-1", "refresh-token-7")).unwrap();
    }
    std::thread::sleep(Duration::from_millis(1_100));
    refused(call(&world(&api, &provider, folder.path())), "the authorization server refuses the refresh token");
    refused(call(&world(&api, &provider, folder.path())), "there is no valid refresh token");
    assert_eq!(provider.requests().len(), 2);
    assert!(api.requests().is_empty());
}

#[test]
fn login_of_one_host_or_server_is_not_used_for_another() {
    let (provider, api, folder) = (provider(3_600), echo(), tempfile::tempdir().unwrap());
    log_in(&api, &provider, folder.path());
    let (other_api, other_provider) = (echo(), self::provider(3_600));
    for (api, provider) in [(&other_api, &provider), (&api, &other_provider)] {
        let answer = call(&world(api, provider, folder.path()));
        assert!(answer.starts_with("auth_expired: no access token for 'api': nothing is stored for it"), "{answer}");
    }
    assert!(other_api.requests().is_empty() && other_provider.requests().is_empty() && api.requests().is_empty());
    // A file that other users can read is not used.
    for file in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let answer = call(&world(&api, &provider, folder.path()));
    assert!(answer.contains("can be read by other users"), "{answer}");
}

/// The metadata of an issuer at its own address, and the answers of its other endpoints.
pub(crate) fn issuer(members: Value, mut answers: impl FnMut(&Asked) -> Answer + Send + 'static) -> Web {
    let answers = Mutex::new(Box::new(move |asked: &Asked| answers(asked)) as Box<dyn FnMut(&Asked) -> Answer + Send>);
    Web::start(move |asked| {
        if asked.target != "/.well-known/oauth-authorization-server" {
            return answers.lock().unwrap()(asked);
        }
        let origin = format!("http://{}", asked.header("host").unwrap_or_default());
        let mut metadata = json!({ "issuer": origin });
        for (name, value) in members.as_object().unwrap() {
            let is_path = value.as_str().is_some_and(|text| text.starts_with('/'));
            metadata[name] = if is_path { format!("{origin}{}", value.as_str().unwrap()).into() } else { value.clone() };
        }
        Answer::json(200, metadata)
    })
}

/// Runs a part of a login at an issuer with `api` as the upstream.
fn at_issuer<T>(issuer: &Web, store: &Path, work: impl AsyncFnOnce(LoginClient) -> T) -> T {
    let oauth = OAuth2 {
        client_id: "gate",
        issuer: issuer.url(""),
        scope: "notes.read offline_access",
        resource: "https://api.example",
        ..OAuth2::new(GrantType::DeviceCode)
    };
    let auth: &'static [Auth] = vec![Auth::OAuth2(oauth)].leak();
    with_client(OpenApi { auth, ..OpenApi::new("https://api.example") }, store, work)
}

/// Runs a part of a login for a service.
fn with_client<T>(spec: OpenApi, store: &Path, work: impl AsyncFnOnce(LoginClient) -> T) -> T {
    let upstream: &'static Upstream = Box::leak(Box::new(upstream("api", Transport::OpenApi(spec), Vec::new())));
    let secrets = Secrets::resolve_for(&[], &[upstream], Path::new(".")).unwrap_or_else(|_| panic!("it has no secrets"));
    let config = TokenSourceConfig::of_upstream(upstream, Some(store.to_owned()), &secrets).unwrap().unwrap();
    let client = LoginClient::new(&config).unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work(client))
}

#[test]
fn request_for_a_code_has_pkce_and_its_answer_must_name_the_issuer() {
    let folder = tempfile::tempdir().unwrap();
    let members = |methods: Value| {
        json!({
            "authorization_endpoint": "/authorize", "token_endpoint": "/token", "code_challenge_methods_supported": methods,
            "authorization_response_iss_parameter_supported": true,
        })
    };
    let plain = issuer(members(json!(["plain"])), |_| Answer::json(404, json!({})));
    let refused =
        at_issuer(&plain, folder.path(), async |client| client.authorization("http://127.0.0.1:1/callback".into()).await);
    assert!(refused.is_err_and(|why| why.message.contains("lacks `S256`")));

    let issuer = issuer(members(json!(["S256"])), |_| {
        Answer::json(200, json!({ "access_token": "not-a-real-token", "token_type": "bearer" }))
    });
    at_issuer(&issuer, folder.path(), async |client| {
        let request = client.authorization("http://127.0.0.1:1/callback".into()).await.unwrap_or_else(|why| panic!("{why}"));
        let pairs: Vec<(String, String)> = request.url.query_pairs().into_owned().collect();
        let of = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap_or_default();
        assert_eq!((of("code_challenge_method").as_str(), of("resource").as_str()), ("S256", "https://api.example"));
        let target = format!("/callback?code=c-1&state={}", of("state"));
        assert_eq!(request.code(&target), Err(RedirectError::OtherIssuer), "the issuer names itself in its answers");
        let named = format!("{target}&iss={}", issuer.url(""));
        assert_eq!(request.code(&named).as_deref(), Ok("c-1"));
        let login = client.exchange(&request, "c-1").await.unwrap_or_else(|why| panic!("{why}"));
        assert!(!login.has_refresh_token());
        let sent: Vec<(String, String)> =
            url::form_urlencoded::parse(issuer.requests().pop().unwrap().body.as_bytes()).into_owned().collect();
        let verifier = sent.iter().find(|(key, _)| key == "code_verifier").map(|(_, value)| value.clone()).unwrap_or_default();
        let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
        assert_eq!(of("code_challenge"), URL_SAFE_NO_PAD.encode(digest));
    });
}

#[test]
fn device_code_is_asked_for_at_the_interval_until_the_person_has_answered() {
    let refusal = |code: &'static str| Answer::json(400, json!({ "error": code }));
    for (codes, seconds, expected) in [
        (vec!["authorization_pending", ""], 2, None),
        // The interval grows by five seconds (RFC 8628, section 3.5).
        (vec!["slow_down", ""], 7, None),
        (vec!["access_denied"], 1, Some("`access_denied`")),
        (vec!["expired_token"], 1, Some("`expired_token`")),
        (vec!["authorization_pending"; 9], 2, Some("the device code has expired")),
    ] {
        let expires_in = if codes.len() == 9 { 3 } else { 60 };
        let mut left = codes.clone().into_iter();
        let issuer = issuer(json!({ "device_authorization_endpoint": "/device", "token_endpoint": "/token" }), move |asked| {
            if asked.target == "/device" {
                return Answer::json(
                    200,
                    json!({ "device_code": "not-a-real-code", "user_code": "AB-CD", "verification_uri": "https://id.example/device",
                        "expires_in": expires_in, "interval": 1 }),
                );
            }
            match left.next() {
                Some("") => Answer::json(200, json!({ "access_token": "not-a-real-token", "token_type": "bearer" })),
                code => refusal(code.unwrap_or("invalid_request")),
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let outcome = at_issuer(&issuer, folder.path(), async |client| {
            let device = client.device().await.unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(device.codes.user_code, "AB-CD");
            client.wait_for(&device).await.err().map(|why| why.message.into_owned())
        });
        assert_eq!(outcome.is_none(), expected.is_none(), "{codes:?}: {outcome:?}");
        assert!(expected.is_none_or(|part| outcome.as_ref().is_some_and(|found| found.contains(part))), "{outcome:?}");
        assert!(began.elapsed() >= Duration::from_secs(seconds), "{codes:?} took {:?}", began.elapsed());
    }
}

/// A proxy answers for all hosts, so that the issuer can be at a public address.
#[test]
fn endpoint_at_a_private_address_in_the_metadata_of_a_public_issuer_is_not_asked() {
    const ISSUER: &str = "http://203.0.113.7";
    for token_url in ["", "http://10.0.0.5/token"] {
        for (revocation, revoked) in [("http://203.0.113.8/revoke", true), ("http://10.0.0.6/revoke", false)] {
            let proxy = Web::start(move |asked| match &*asked.target {
                "http://203.0.113.7/.well-known/oauth-authorization-server" => Answer::json(
                    200,
                    json!({
                        "issuer": ISSUER, "token_endpoint": "http://203.0.113.7/token", "revocation_endpoint": revocation,
                    }),
                ),
                target if target.ends_with("/token") => Answer::json(
                    200,
                    json!({ "access_token": "not-a-real-token", "token_type": "Bearer", "refresh_token": "not-a-real-refresh-token" }),
                ),
                _ => Answer::json(200, "{}"),
            });
            let oauth = OAuth2 { token_url, client_id: "gate", issuer: ISSUER, ..OAuth2::new(GrantType::RefreshToken) };
            let auth: &'static [Auth] = vec![Auth::OAuth2(oauth)].leak();
            let spec = OpenApi { auth, proxy: Some(Proxy::new(proxy.url(""))), ..OpenApi::new("https://10.0.0.9") };
            let folder = tempfile::tempdir().unwrap();
            let outcome = with_client(spec, folder.path(), async |client| {
                if let Err(why) = client.redeem(FIRST).await {
                    panic!("{why}");
                }
                client.logout().await.unwrap()
            });
            let asked: Vec<String> = proxy.requests().into_iter().map(|asked| asked.target).collect();
            assert_eq!(outcome, Some(revoked), "{asked:?}");
            assert_eq!(asked.iter().any(|target| target == revocation), revoked, "{asked:?}");
            assert!(token_url.is_empty() || asked.iter().any(|target| target == token_url), "{asked:?}");
        }
    }
}

/// The issuer is in the network of the operator, which gives an upstream elsewhere no access to it.
#[test]
fn upstream_elsewhere_cannot_name_metadata_in_the_network_of_a_private_issuer() {
    const UPSTREAM: &str = "http://203.0.113.9/mcp";
    for (metadata, scope) in [("http://203.0.113.9/metadata", Some("notes.read")), ("http://10.0.0.6/metadata", None)] {
        let proxy = Web::start(move |asked| match &*asked.target {
            UPSTREAM => Answer::Full(401, vec![format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"")], Vec::new()),
            "http://10.0.0.5/.well-known/oauth-authorization-server" => Answer::json(
                200,
                json!({
                    "issuer": "http://10.0.0.5", "token_endpoint": "http://10.0.0.5/token",
                    "authorization_endpoint": "http://10.0.0.5/authorize",
                }),
            ),
            target if target.ends_with("/metadata") => Answer::json(
                200,
                json!({ "resource": UPSTREAM, "authorization_servers": ["http://10.0.0.5"], "scopes_supported": ["notes.read"] }),
            ),
            _ => Answer::json(404, json!({})),
        });
        let oauth = OAuth2 {
            issuer: "http://10.0.0.5",
            client_id: "gate",
            resource: UPSTREAM,
            ..OAuth2::new(GrantType::AuthorizationCode)
        };
        let auth: &'static [Auth] = vec![Auth::OAuth2(oauth)].leak();
        let spec = OpenApi { auth, proxy: Some(Proxy::new(proxy.url(""))), ..OpenApi::new(UPSTREAM) };
        let folder = tempfile::tempdir().unwrap();
        let url =
            with_client(spec, folder.path(), async |client| match client.authorization("http://127.0.0.1:1/".into()).await {
                Ok(request) => request.url,
                Err(why) => panic!("{why}"),
            });
        let found = url.query_pairs().find(|(name, _)| name == "scope").map(|(_, scope)| scope.into_owned());
        let is_asked = proxy.requests().iter().any(|asked| asked.target == metadata);
        assert_eq!((found.as_deref(), is_asked), (scope, scope.is_some()), "{metadata}");
    }
}
