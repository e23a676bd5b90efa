//! Tests access tokens with a third-party authorization server: `oidc-provider`, in each form of client authentication.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers::newer_node_script;
use ptc_tests::process::{Background, free_port};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use serde_json::json;

/// A secret that is obviously fake, with characters that a form encodes.
const SECRET: &str = "not-a-real+secret/of:a=client-and-long-enough";

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
        std::thread::sleep(std::time::Duration::from_millis(2_200));
    }
}
