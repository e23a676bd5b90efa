//! Tests the files of the generated crate.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use ptc_catalog::{Sandbox, Transport};
use ptc_compiler::config;
use ptc_compiler::diag::{Code, Diagnostics};
use ptc_compiler::ir::Deployment;
use ptc_compiler::lock::{Address, Lock};
use ptc_compiler::render::{Abilities, Manifest, Serve, SessionStore};
use ptc_compiler::source::Sources;
use ptc_compiler::{leak, lower, render};

/// Returns the `Cargo.toml` of a deployment with these entries of `upstreams`.
fn manifest(upstreams: &str, abilities: impl Into<Abilities>) -> String {
    file("Cargo.toml", upstreams, abilities)
}

/// Returns a generated file of a deployment with these entries of `upstreams`.
fn file(path: &str, upstreams: &str, abilities: impl Into<Abilities>) -> String {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("upstreams.json", format!("{{\"upstreams\": {{{upstreams}}}}}"));
    let config = config::read(&sources, file, &mut diagnostics).unwrap();
    assert!(!diagnostics.has_errors(), "{:?}", diagnostics.sorted());
    let deployment = lower::deployment(&config, &Lock::default(), "gate");
    let files = render::files(&deployment, &Manifest::new("ptc-gate", &deployment, abilities, "[profile.release]")).unwrap();
    files.into_iter().find(|file| file.path == path).unwrap().text
}

#[test]
fn only_http_upstreams_enable_the_http_client() {
    const STDIO: &str = r#""a": {"transport": "mcp_stdio", "command": "a"}"#;
    const HTTP: &str = r#""b": {"transport": "mcp_http", "url": "https://b.example/mcp"}"#;
    const OPENAPI: &str = r#""c": {"transport": "openapi", "base_url": "https://c.example", "schema_file": "c.json",
                                   "include_operations": ["list"]}"#;
    for (upstreams, features) in [
        (String::new(), r#"features = ["http-server"]"#),
        (STDIO.to_owned(), r#"features = ["http-server"]"#),
        (HTTP.to_owned(), r#"features = ["http", "http-server"]"#),
        (OPENAPI.to_owned(), r#"features = ["http", "http-server"]"#),
        (format!("{STDIO}, {OPENAPI}"), r#"features = ["http", "http-server"]"#),
    ] {
        let text = manifest(&upstreams, Serve::Http);
        assert_eq!(text.contains("\ntracing = "), features.contains("\"http\""), "{upstreams}: {text}");
        let runtime = text.lines().find(|line| line.starts_with("ptc-runtime = ")).unwrap();
        assert!(runtime.contains("default-features = false") && runtime.contains(features), "{upstreams}: {runtime}");
    }
}

#[test]
fn generated_manifest_enables_the_requested_features() {
    let edited = Abilities { line_editing: true, ..Serve::Stdio.into() };
    for (abilities, features) in [
        (Serve::Stdio.into(), "features = []"),
        (Serve::Http.into(), r#"features = ["http-server"]"#),
        (Serve::Https.into(), r#"features = ["https-server"]"#),
        (edited, r#"features = ["line-editing"]"#),
        (Abilities { otlp: true, ..Serve::Stdio.into() }, r#"features = ["http"]"#),
    ] {
        let text = manifest("", abilities);
        assert!(text.contains(features), "{text}");
    }
}

#[test]
fn optional_parts_are_dependencies_that_main_passes() {
    let main = |abilities: Abilities| file("src/main.rs", "", abilities);
    let plain = Abilities::from(Serve::Http);
    assert!(!manifest("", plain).contains("ptc-session") && main(plain).contains("ptc_runtime::main(&catalog::DEPLOYMENT)"));
    let shared = Abilities { session_store: SessionStore::Redis, ..plain };
    let encrypted = Abilities { session_store: SessionStore::Rediss, ..plain };
    for (abilities, dependency, field) in [
        (shared, r#"ptc-session-redis = { version = "=0.1.0" }"#, "session_stores: Some(&ptc_session_redis::REDIS)"),
        (
            encrypted,
            r#"ptc-session-redis = { version = "=0.1.0", features = ["tls"] }"#,
            "session_stores: Some(&ptc_session_redis::REDIS)",
        ),
        (
            Abilities { recording: true, ..plain },
            r#"ptc-cassette = { version = "=0.1.0" }"#,
            "recorder: Some(&ptc_cassette::RECORDER)",
        ),
        (Abilities { viewer: true, ..plain }, r#"ptc-viewer = { version = "=0.1.0" }"#, "viewer: Some(&ptc_viewer::VIEWER)"),
        (Abilities { otlp: true, ..plain }, r#"ptc-otlp = { version = "=0.1.0" }"#, "exporter: Some(&ptc_otlp::OTLP)"),
    ] {
        let (manifest, main) = (manifest("", abilities), main(abilities));
        assert!(manifest.lines().any(|line| line == dependency), "{manifest}");
        assert!(main.contains(field) && main.contains("ptc_runtime::main_with(&catalog::DEPLOYMENT, &PARTS)"), "{main}");
    }
}

#[test]
fn planner_is_generated_only_on_request() {
    const STDIO: &str = r#""a": {"transport": "mcp_stdio", "command": "a"}"#;
    let text = manifest(STDIO, Abilities { agentic: true, ..Serve::Stdio.into() });
    assert!(text.contains(r#"features = ["agentic", "http"]"#) && text.contains("\ntracing = "), "{text}");
}

#[test]
fn credentials_that_no_upstream_uses_belong_to_the_planner() {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let text = r#"{"credentials": {"planner-key": {"source": "env", "var": "KEY"}}, "upstreams": {}}"#;
    let file = sources.add("upstreams.json", text.to_owned());
    let config = config::read(&sources, file, &mut diagnostics).unwrap();
    let is_told = |diagnostics: &Diagnostics| diagnostics.sorted().iter().any(|found| found.code == Code::UnusedBinding);
    assert!(is_told(&diagnostics));
    diagnostics.forget(Code::UnusedBinding);
    assert!(!is_told(&diagnostics));
    assert!(lower::deployment(&config, &Lock::default(), "gate").credentials.is_empty());
    assert_eq!(lower::credentials(&config, |_| true)[0].name, "planner-key");
}

#[test]
fn proxy_is_in_the_tables_without_its_password() {
    let deployment = |proxy: &str| {
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let text = format!(
            r#"{{"credentials": {{"corp": {{"source": "env", "var": "PROXY_LOGIN"}}}}, "upstreams": {{"a": {{"transport": "openapi",
                "base_url": "https://a.example", "schema_file": "a.json", "include_operations": ["x"], "proxy": {proxy}}}}}}}"#
        );
        let file = sources.add("upstreams.json", text);
        let config = config::read(&sources, file, &mut diagnostics).unwrap();
        assert!(!diagnostics.has_errors(), "{:?}", diagnostics.sorted());
        lower::deployment(&config, &Lock::default(), "gate")
    };
    let tables = |deployment| render::catalog(deployment).unwrap().split_whitespace().collect::<String>();
    let with_login =
        deployment(r#"{"url": "http://proxy.example:3128", "auth": "corp", "no_proxy": ["b.example", "10.0.0.0/8"]}"#);
    let text = tables(&with_login);
    let expected =
        r#"proxy:Some(ptc::Proxy{url:"http://proxy.example:3128",auth:Some("corp"),no_proxy:&["b.example","10.0.0.0/8"],}),"#;
    assert!(text.contains(expected), "{text}");
    assert_eq!(with_login.credentials.len(), 1, "the binary resolves the credential");
    let leaked = leak::leak_static(&with_login).catalog.upstreams.first().unwrap().transport.proxy().unwrap();
    let no_proxy: &[&str] = &["b.example", "10.0.0.0/8"];
    assert_eq!((leaked.url, leaked.auth, leaked.no_proxy), ("http://proxy.example:3128", Some("corp"), no_proxy));
    let other = deployment(r#""http://proxy.example:3128""#);
    assert!(tables(&other).contains(r#"proxy:Some(ptc::Proxy{url:"http://proxy.example:3128",auth:None,no_proxy:&[],}),"#));
    assert_ne!(other.config_digest, with_login.config_digest);
}

#[test]
fn sandbox_is_in_the_tables_and_not_in_the_identity() {
    let deployment = |sandbox: &str| {
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let text = format!(r#"{{"upstreams": {{"a": {{"transport": "mcp_stdio", "command": "a"{sandbox}}}}}}}"#);
        let file = sources.add("upstreams.json", text);
        let config = config::read(&sources, file, &mut diagnostics).unwrap();
        assert!(!diagnostics.has_errors(), "{:?}", diagnostics.sorted());
        lower::deployment(&config, &Lock::default(), "gate")
    };
    let confined = deployment(r#", "sandbox": {"read": ["/srv"], "write": ["out"], "memory_mb": 512, "cpu_seconds": 9}"#);
    let free = deployment("");
    let tables = |deployment| render::catalog(deployment).unwrap().split_whitespace().collect::<String>();
    let expected = concat!(
        r#"sandbox:Some(ptc::Sandbox{read:&["/srv"],write:&["out"],network:false,memory_mb:Some(512),"#,
        "processes:None,open_files:None,cpu_seconds:Some(9),}),"
    );
    let text = tables(&confined);
    assert!(text.contains(expected), "{text}");
    assert!(tables(&free).contains("sandbox:None,"));
    let Transport::McpStdio(leaked) = &leak::leak_static(&confined).catalog.upstreams.first().unwrap().transport else {
        panic!("a child process")
    };
    let limits = Sandbox { memory_mb: Some(512), cpu_seconds: Some(9), ..Sandbox::default() };
    assert_eq!(leaked.sandbox, Some(Sandbox { read: &["/srv"], write: &["out"], ..limits }));
    let address = |deployment: &Deployment| Address::from_transport(&deployment.upstreams.first().unwrap().transport);
    assert_eq!(address(&confined), address(&free));
}

#[test]
fn upstream_with_access_tokens_links_the_oauth_client() {
    const ISSUED: &str = r#""b": {"transport": "mcp_http", "url": "https://b.example/mcp/?readonly=1", "auth": [{"scheme": "oauth2",
        "grant": "client_credentials", "token_url": "https://id.example/token", "client_id": "gate", "binding": "s",
        "client_auth": "client_secret_post", "scopes": ["read", "write"]}]}}, "credentials": {"s": {"source": "env", "var": "S"}"#;
    let (manifest, main) = (manifest(ISSUED, Serve::Stdio), file("src/main.rs", ISSUED, Serve::Stdio));
    assert!(manifest.lines().any(|line| line == r#"ptc-oauth-client = { version = "=0.1.0" }"#), "{manifest}");
    assert!(main.contains("oauth_client: Some(&ptc_oauth_client::OAUTH_CLIENT)"), "{main}");
    let with_keyring = file("Cargo.toml", ISSUED, Abilities { keyring: true, ..Serve::Stdio.into() });
    let line = r#"ptc-oauth-client = { version = "=0.1.0", features = ["keyring"] }"#;
    assert!(with_keyring.lines().any(|found| found == line), "{with_keyring}");
    let tables = file("src/catalog.rs", ISSUED, Serve::Stdio).split_whitespace().collect::<String>();
    let element = r#"ptc::Auth::OAuth2(ptc::OAuth2{grant:ptc::GrantType::ClientCredentials,token_url:"https://id.example/token",
        client_id:"gate",client_auth:ptc::ClientAuth::SecretPost,binding:"s",key_id:"",issuer:"",scope:"readwrite",
        resource:"https://b.example/mcp/",audience:"",subject:"",subject_type:ptc::TokenType::AccessToken,identity_provider:None,pinned_issuer:"",pinned_resource:"",pinned_proof:false,})"#;
    assert!(tables.contains(&element.split_whitespace().collect::<String>()), "{tables}");
    assert!(!file("Cargo.toml", "", Serve::Http).contains("oauth"));
}
