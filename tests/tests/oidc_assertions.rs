//! Tests grants and clients that prove themselves with assertions of other issuers, with `oidc-provider` as the authorization server: tokens
//! that Kubernetes projects into a file, and assertions of an identity provider (ID-JAG).

#![expect(clippy::indexing_slicing, reason = "a test stops where a value lacks what it looks at")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers::newer_node_script;
use ptc_tests::process::{Background, free_port};
use serde_json::{Value, json};

use crate::oidc::{Caller, SECRET};

/// Lifetime of access tokens in seconds. The provider accepts an assertion once, so that a token must be valid until all calls with it are
/// made, also on a loaded machine.
const LIFETIME: u64 = 10;
const SERVICE_ACCOUNT: &str = "system:serviceaccount:tools:gate";

/// The authorization server and its service.
struct Site {
    issuer: String,
    _process: Background,
}

impl Site {
    fn start(format: &str, lifetime: u64, identity_provider: Option<&str>) -> Site {
        // The HTTP client of the tests has no cryptography provider. A second installation returns an error, which is harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let port = free_port();
        let mut script = newer_node_script("oidc_jwt_bearer.mjs");
        script.args([&port.to_string(), format, SECRET, &lifetime.to_string()]).args(identity_provider);
        Site { issuer: format!("http://127.0.0.1:{port}"), _process: Background::start(&mut script).ready_on(port) }
    }

    fn get(&self, path: &str) -> String {
        get(&format!("{}{path}", self.issuer))
    }

    /// Returns the ids of the accepted assertions, and the received access tokens.
    fn seen(&self) -> [Vec<String>; 2] {
        let seen: Value = serde_json::from_str(&self.get("/seen")).expect("an object");
        ["accepted", "received"].map(|name| serde_json::from_value(seen[name].clone()).expect("texts"))
    }

    /// Returns an entry of a config for the service.
    fn entry(&self, auth: &Value) -> Value {
        let mut auth = auth.clone();
        auth["scheme"] = "oauth2".into();
        auth["issuer"] = self.issuer.as_str().into();
        auth["scopes"] = json!(["orders.read"]);
        json!({
            "transport": "openapi",
            "base_url": self.issuer,
            "schema_file": "service.json",
            "include_operations": ["whoami"],
            "auth": [auth],
            "allow_insecure_http": true,
            "allow_insecure_auth": true,
        })
    }
}

fn get(url: &str) -> String {
    reqwest::blocking::get(url).and_then(reqwest::blocking::Response::text).expect("an answer")
}

fn write(folder: &Path, config: &Value) {
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Service", "version": "1" },
        "paths": { "/whoami": { "get": { "operationId": "whoami", "summary": "Names the subject", "responses": { "200": { "description": "ok" } } } } },
    });
    for (name, text) in [("upstreams.json", config), ("service.json", &document)] {
        std::fs::write(folder.join(name), text.to_string()).expect("a file");
    }
}

/// Writes files as the kubelet projects them: in a new folder, to which a symbolic link is switched atomically.
fn project(folder: &Path, version: &str, files: &[(&str, &str)]) {
    let data = folder.join(format!("..{version}"));
    std::fs::create_dir(&data).expect("a folder");
    for (name, text) in files {
        std::fs::write(data.join(name), text).expect("a file");
        let _ = std::os::unix::fs::symlink(format!("..data/{name}"), folder.join(name));
    }
    let next = folder.join("..data_tmp");
    std::os::unix::fs::symlink(format!("..{version}"), &next).expect("a link");
    std::fs::rename(next, folder.join("..data")).expect("a link");
}

fn shown(subject: &str) -> String {
    format!(r#"{{"subject" "{subject}"}}"#)
}

fn whoami(upstream: &str) -> String {
    format!("(tool/call {{:server \"{upstream}\" :tool \"whoami\"}})")
}

#[test]
#[ignore = "needs oidc-provider, which .ci/peers installs"]
fn token_that_kubernetes_projects_is_the_grant_or_the_client_and_is_read_again_after_its_rotation() {
    for format in ["jwt", "opaque"] {
        let site = Site::start(format, LIFETIME, None);
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = json!({
            "credentials": {
                "workload": { "source": "file", "path": "projected/workload" },
                "federated": { "source": "file", "path": "projected/federated" },
            },
        });
        config["upstreams"] = json!({
            "workload": site.entry(&json!({
                "grant": "jwt_bearer", "client_id": "workload", "client_auth": "none", "subject": "workload",
            })),
            "federated": site.entry(&json!({
                "grant": "client_credentials", "client_id": "federated", "client_auth": "client_assertion_file", "binding": "federated",
            })),
        });
        write(folder.path(), &config);
        let projected = folder.path().join("projected");
        std::fs::create_dir(&projected).expect("a folder");
        let rotate = |version: &str, lifetime: i32| {
            let workload = site.get(&format!("/project?sub={SERVICE_ACCOUNT}&ttl={lifetime}&n=workload-{version}"));
            let client = site.get(&format!("/project?sub=federated&iss=federated&ttl={lifetime}&n=client-{version}"));
            project(&projected, version, &[("workload", &workload), ("federated", &client)]);
        };
        rotate("1", 600);
        let mut server = Client::of(Command::new(ptc_compile()).args(["run", "upstreams.json"]).current_dir(folder.path()));
        server.initialize();
        let subjects = [("workload", SERVICE_ACCOUNT), ("federated", "federated")];
        for version in ["1", "2"] {
            if version == "2" {
                rotate(version, 600);
                std::thread::sleep(Duration::from_millis(LIFETIME * 1_000 + 200));
            }
            for (upstream, subject) in subjects {
                // The second call uses the token of the first.
                for _ in 0..2 {
                    let answer = server.eval(&whoami(upstream));
                    assert!(answer.contains(&shown(subject)), "{format} {version}: {answer}");
                }
            }
        }
        let [accepted, received] = site.seen();
        assert_eq!(accepted, ["workload-1", "client-1", "workload-2", "client-2"], "{format}");
        assert_eq!(received.len(), 8, "{received:?}");
        for version in ["1", "2"] {
            for name in ["workload", "federated"] {
                let text = std::fs::read_to_string(projected.join(format!("..{version}/{name}"))).expect("a token");
                assert!(!received.contains(&text), "the service has received the token in the file");
            }
        }

        // A kubelet that has stopped leaves a token that has expired. The next rotation repairs it without a restart.
        rotate("3", -60);
        std::thread::sleep(Duration::from_millis(LIFETIME * 1_000 + 200));
        let refused = server.eval(&whoami("workload"));
        for part in [":auth_failed", "refused the client with `invalid_grant`", "token in the file of the credential 'workload'"]
        {
            assert!(refused.contains(part), "{refused}");
        }
        let refused = server.eval(&whoami("federated"));
        for part in [":auth_failed", "refused the client with `invalid_client`", "`client_auth` and the credential 'federated'"] {
            assert!(refused.contains(part), "{refused}");
        }
        rotate("4", 600);
        for (upstream, subject) in subjects {
            let until = Instant::now() + Duration::from_secs(20);
            while !server.eval(&whoami(upstream)).contains(&shown(subject)) {
                assert!(Instant::now() < until, "{format}: the new token for {upstream} is not used");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }
}

/// Enterprise-managed authorization: the identity provider sees the caller's token, and the authorization server of the service only the
/// assertion that the identity provider has issued for it.
#[test]
#[ignore = "needs oidc-provider, which .ci/peers installs"]
fn identity_provider_issues_assertions_that_the_authorization_server_of_the_service_accepts() {
    for format in ["jwt", "opaque"] {
        let [provider_port, port] = [free_port(), free_port()];
        let (provider, url) = (format!("http://127.0.0.1:{provider_port}"), format!("http://127.0.0.1:{port}/mcp"));
        let site = Site::start(format, 600, Some(&provider));
        let mut script = newer_node_script("oidc_exchange.mjs");
        script.args([&provider_port.to_string(), format, SECRET, &url, &site.issuer]);
        let _provider = Background::start(&mut script).ready_on(provider_port);
        let auth = |resource: &str| {
            site.entry(&json!({
                "grant": "jwt_bearer", "client_id": "gate-at-service", "binding": "secret", "resource": format!("{}{resource}", site.issuer),
                "identity_provider": { "issuer": &provider, "client_id": "gate", "binding": "secret" },
            }))
        };
        let config = json!({
            "credentials": { "secret": { "source": "env", "var": "CLIENT_SECRET" } },
            "upstreams": { "service": auth("/service"), "foreign": auth("/other") },
        });
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), &config);
        let mut server = Command::new(ptc_compile());
        server.args(["run", "upstreams.json", "--http", "--http-port", &port.to_string()]);
        server.args(["--http-oauth-issuer", &provider, "--http-oauth-audience", &url]);
        if format == "opaque" {
            server.args(["--http-oauth-introspection-url", &format!("{provider}/token/introspection")]);
            server.args(["--http-oauth-client-id", "gate", "--http-oauth-client-secret", SECRET]);
        }
        server.env("CLIENT_SECRET", SECRET).current_dir(folder.path());
        let _server = Background::start(&mut server).ready_on(port);

        let caller = |account: &str| Caller { url: url.clone(), token: get(&format!("{provider}/mint?account={account}")) };
        let (ada, ken, eve) = (caller("ada"), caller("ken"), caller("eve"));
        for _ in 0..2 {
            for (caller, name) in [(&ada, "ada"), (&ken, "ken")] {
                let answer = caller.eval(&whoami("service"));
                assert!(answer.contains(&format!(r#"\"subject\" \"{name}\""#)), "{format} {name}: {answer}");
            }
            let answer = eve.eval(&whoami("service"));
            assert!(answer.contains(":auth_failed") && answer.contains("the subject token may not be exchanged"), "{answer}");
            assert!(!answer.contains(&eve.token), "{answer}");
        }
        // The authorization server compares the resource that the identity provider has put into the assertion.
        let answer = ada.eval(&whoami("foreign"));
        assert!(answer.contains(":auth_failed") && answer.contains("`invalid_target`"), "{answer}");
        let [accepted, received] = site.seen();
        assert_eq!(accepted.len(), 2, "each caller has one access token, which it uses twice: {accepted:?}");
        assert_eq!(received.len(), 4, "nothing is sent for eve: {received:?}");
        assert!(received[0] == received[2] && received[1] == received[3] && received[0] != received[1], "{received:?}");
        for caller in [&ada, &ken, &eve] {
            assert!(!received.contains(&caller.token), "the token of a caller has reached the service");
        }
    }
}
