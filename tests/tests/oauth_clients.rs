//! Tests that clients of the official SDKs find the authorization server of our server, register themselves there, let a person log
//! in, and call with the access token that they get; and that `ptc-compile login` does the same for servers of the official SDKs.
//! The authorization server is `oidc-provider`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use ptc_tests::deployment::ptc_compile;
use ptc_tests::mcp::Client;
use ptc_tests::peers::{newer_node_script, python_script};
use ptc_tests::process::{Background, free_port, run};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthorizationRequest, OAuthState};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::json;

use crate::oidc;

/// A secret that is obviously fake.
const SECRET: &str = "not-a-real-secret-of-the-gate-and-long-enough";

/// Where browsers are sent. Nothing listens there: the address is read from the redirect.
const CALLBACK: &str = "http://127.0.0.1:9/callback";

const PROGRAM: &str = "(+ 40 2)";
const ANSWER: &str = "user=> 42";

/// A server that accepts the access tokens of an authorization server, and both processes.
struct Protected {
    url: String,
    _processes: [Background; 2],
}

/// Starts an authorization server that issues access tokens in a format. Returns its issuer.
fn start_issuer(format: &str) -> (String, Background) {
    let port = free_port();
    let mut provider = newer_node_script("oidc_resource.mjs");
    let provider = Background::start(provider.args([&port.to_string(), format, SECRET])).ready_on(port);
    (format!("http://127.0.0.1:{port}"), provider)
}

/// Starts an authorization server that issues access tokens in a format, and a server that accepts them.
fn start(format: &str) -> Protected {
    let (issuer, provider) = start_issuer(format);
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut server = Command::new(ptc_compile());
    server.args(["run", "--http", "--http-port", &port.to_string(), "--http-oauth-scope", "mcp:call"]);
    server.args(["--http-oauth-issuer", &issuer, "--http-oauth-audience", &url]);
    if format == "opaque" {
        server.args(["--http-oauth-introspection-url", &format!("{issuer}/token/introspection")]);
        server.args(["--http-oauth-client-id", "gate", "--http-oauth-client-secret", SECRET]);
    }
    Protected { url, _processes: [provider, Background::start(&mut server).ready_on(port)] }
}

/// Logs in as a person would, and returns the URL to which the browser was sent.
fn log_in(url: &str) -> String {
    run(newer_node_script("browser.mjs").args([url, CALLBACK])).success()
}

/// Runs a client that prints the URL to open, reads the URL to which the browser was sent, and prints the answer.
fn call_with(client: &mut Command, server: &Protected) {
    client.args([&server.url, PROGRAM, CALLBACK]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = client.spawn().expect("the client starts");
    let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
    let Some(url) = lines.next() else {
        panic!("the client has printed no URL: {:?}", process.wait_with_output());
    };
    let answered = log_in(&url);
    process.stdin.take().expect("it is piped").write_all(answered.as_bytes()).expect("the client reads");
    let rest: Vec<_> = lines.collect();
    assert_eq!(rest, [ANSWER], "{:?}", process.wait_with_output());
}

#[test]
#[ignore = "needs oidc-provider and the SDKs, which .ci/peers installs"]
fn clients_of_the_official_sdks_log_in_and_call() {
    for format in ["jwt", "opaque"] {
        let server = start(format);
        call_with(&mut newer_node_script("oauth_client.mjs"), &server);
        call_with(&mut python_script("oauth_client.py"), &server);
        // The crate's HTTP client has no cryptography provider in this workspace. A second installation returns an error, which is
        // harmless.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(call_with_the_rust_sdk(&server));
    }
}

async fn call_with_the_rust_sdk(server: &Protected) {
    let mut state = OAuthState::new(&server.url, None).await.expect("it starts");
    let request = AuthorizationRequest::new(CALLBACK).with_client_name("ptc-tests").with_application_type("native");
    state.start_authorization(request).await.expect("the authorization server is found, and registers the client");
    let url = state.get_authorization_url().await.expect("a URL");
    state.handle_callback_url(log_in(&url).trim()).await.expect("a token");
    let client = AuthClient::new(reqwest::Client::new(), state.into_authorization_manager().expect("it has a token"));
    let config = StreamableHttpClientTransportConfig::with_uri(&*server.url);
    let client = ().serve(StreamableHttpClientTransport::with_client(client, config)).await.expect("it connects");
    let arguments = [("program".to_owned(), PROGRAM.into())].into_iter().collect();
    let result = client.call_tool(CallToolRequestParams::new("lisp_eval").with_arguments(arguments)).await.expect("a result");
    let text = result.content.first().and_then(|content| content.as_text()).map(|text| text.text.as_str());
    assert_eq!(text, Some(ANSWER));
    client.cancel().await.expect("it ends");
}

#[test]
#[ignore = "needs oidc-provider and the SDKs, which .ci/peers installs"]
fn our_client_logs_in_to_servers_of_the_official_sdks() {
    let (issuer, _issuer) = start_issuer("jwt");
    for mut server in [newer_node_script("protected_server.mjs"), python_script("protected_server.py")] {
        let port = free_port();
        let _server = Background::start(server.args([&port.to_string(), &issuer])).ready_on(port);
        let config = json!({ "upstreams": { "protected": {
            "transport": "mcp_http",
            "url": format!("http://127.0.0.1:{port}/mcp"),
            "auth": [{ "scheme": "oauth2", "grant": "authorization_code" }],
            "allow_insecure_http": true,
            "allow_insecure_auth": true,
        } } });
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("upstreams.json"), config.to_string()).expect("a file");
        oidc::log_in(folder.path(), "protected");
        let mut server = Command::new(ptc_compile());
        server
            .args(["run", "upstreams.json", "--token-store", "tokens", "--catalog-snapshot-mode", "live"])
            .current_dir(folder.path());
        let mut server = Client::of(&mut server);
        server.initialize();
        let answer = server.eval("(tool/call {:server \"protected\" :tool \"add\" :args {:a 40 :b 2}})");
        assert!(answer.contains("42"), "{answer}");
    }
}
