//! Tests the model of valid configs: values, defaults, and the remaining parts of a config with a fault.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ptc_catalog::{ClientAuth, GrantType, IdentityProvider, OAuth2, TokenType};
use ptc_compiler::config;
use ptc_compiler::config::model::{Auth, Config, CredentialSource, EnvPart, InheritEnv, SchemaSource, Transport};
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::source::Sources;

fn read(text: &str) -> (Config, Diagnostics) {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = sources.add("upstreams.json", text);
    let config = config::read(&sources, file, &mut diagnostics).expect("something of the config can be read");
    (config, diagnostics)
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/check").join(name).join("upstreams.json");
    fs::read_to_string(path).expect("the fixture can be read")
}

#[test]
fn every_key_is_read_into_the_config_model() {
    let (config, diagnostics) = read(&fixture("good_all_keys"));
    assert_eq!(diagnostics.worst(), None);
    assert_eq!(
        config.upstreams.keys().collect::<Vec<_>>(),
        ["delegated", "files", "github", "issued", "local", "older", "shop", "signed"]
    );

    let files = config.upstreams.get("files").expect("files");
    assert_eq!(files.description.as_deref(), Some("Files below /srv."));
    let granted: Vec<&str> = files.include_tools.iter().flatten().map(|tool| tool.value.as_str()).collect();
    assert_eq!(granted, ["read_file", "list_directory"]);
    let Transport::McpStdio(stdio) = &files.transport else { panic!("files is started as a process") };
    assert_eq!(
        (stdio.command.value.as_str(), stdio.args.len(), stdio.cd.as_ref().map(|cd| cd.value.as_str())),
        ("npx", 3, Some("work"))
    );
    let sandbox = stdio.sandbox.as_ref().expect("a sandbox");
    assert_eq!(sandbox.paths().map(|path| path.value.as_str()).collect::<Vec<_>>(), ["/usr", "."]);
    assert_eq!(
        (sandbox.network, sandbox.memory_mb, sandbox.processes, sandbox.open_files, sandbox.cpu_seconds),
        (true, Some(512), Some(1000), Some(256), Some(600))
    );
    let text = |text: &str| EnvPart::Text(text.to_owned());
    let var = |name: &str| EnvPart::Var(name.to_owned());
    assert_eq!(
        stdio.env,
        BTreeMap::from([
            ("MODE".to_owned(), vec![text("read-"), var("MODE"), text("-only")]),
            ("PRICE".to_owned(), vec![text("5 $")]),
            ("TOKEN".to_owned(), vec![var("FILES_TOKEN")]),
        ])
    );
    assert_eq!(stdio.inherit_env, InheritEnv::Names(vec!["NODE_PATH".to_owned()]));
    assert_eq!((stdio.handshake_timeout_ms, stdio.max_response_bytes), (20_000, 1_048_576));
    assert_eq!(stdio.idle_timeout_ms, Some(600_000));

    let Some(Transport::McpHttp(github)) = config.upstreams.get("github").map(|u| &u.transport) else {
        panic!("github is reached over HTTP")
    };
    assert_eq!(
        github.http.auth,
        [
            Auth::Bearer { binding: "pat".to_owned() },
            Auth::CustomHeader { header: "X-Api-Key".to_owned(), binding: "key".to_owned() },
        ]
    );
    let oauth = |name: &str| {
        let auth = config.upstreams.get(name).and_then(|upstream| upstream.transport.http()).map(|http| http.auth.as_slice());
        auth.and_then(|auth| auth.first()?.oauth().cloned()).unwrap_or_else(|| panic!("{name} has access tokens"))
    };
    let issued = OAuth2 {
        grant: GrantType::ClientCredentials,
        token_url: "https://id.example.com/oauth2/token?tenant=one".to_owned(),
        client_id: "gate".to_owned(),
        client_auth: ClientAuth::SecretPost,
        binding: "client".to_owned(),
        key_id: String::new(),
        issuer: String::new(),
        scope: "notes.read notes.write".to_owned(),
        resource: "https://issued.example.com".to_owned(),
        pinned_issuer: String::new(),
        pinned_resource: String::new(),
        pinned_proof: false,
        audience: String::new(),
        subject: String::new(),
        subject_type: TokenType::AccessToken,
        identity_provider: None,
    };
    assert_eq!(oauth("issued"), issued);
    let signed = OAuth2 {
        token_url: String::new(),
        client_auth: ClientAuth::PrivateKeyJwt,
        binding: "client-key".to_owned(),
        key_id: "2026-01".to_owned(),
        issuer: "https://id.example.com".to_owned(),
        scope: String::new(),
        resource: "https://signed.example.com/mcp".to_owned(),
        ..issued
    };
    assert_eq!(oauth("signed"), signed);
    let delegated = OAuth2 {
        grant: GrantType::JwtBearer,
        client_auth: ClientAuth::SecretBasic,
        binding: "client".to_owned(),
        key_id: String::new(),
        issuer: "https://auth.delegated.example.com".to_owned(),
        resource: "https://delegated.example.com/mcp".to_owned(),
        audience: "https://auth.delegated.example.com/tenant".to_owned(),
        subject: "identity".to_owned(),
        subject_type: TokenType::IdToken,
        identity_provider: Some(IdentityProvider {
            token_url: "https://id.example.com/token".to_owned(),
            client_id: "gate-at-idp".to_owned(),
            client_auth: ClientAuth::PrivateKeyJwt,
            binding: "client-key".to_owned(),
            key_id: "2026-01".to_owned(),
            issuer: "https://id.example.com".to_owned(),
        }),
        ..signed
    };
    assert_eq!(oauth("delegated"), delegated);
    let proxy = github.http.proxy.as_ref().expect("a proxy");
    assert_eq!((proxy.url.value.as_str(), &proxy.auth, proxy.no_proxy.len()), ("http://proxy.example.com:3128", &None, 0));

    let Some(Transport::McpHttp(older)) = config.upstreams.get("older").map(|u| &u.transport) else {
        panic!("older is reached over HTTP")
    };
    assert!(older.is_sse && !github.is_sse);
    assert_eq!(
        (config.upstreams["older"].transport.name(), older.url.value.as_str()),
        ("mcp_sse", "https://older.example.com/sse")
    );
    assert_eq!(older.http.static_headers.len(), 1);
    let proxy = older.http.proxy.as_ref().expect("a proxy");
    assert_eq!(
        (proxy.auth.as_deref(), proxy.no_proxy.as_slice()),
        (Some("login"), &["internal.example.com", "10.0.0.0/8"].map(str::to_owned)[..])
    );

    let Some(Transport::OpenApi(shop)) = config.upstreams.get("shop").map(|u| &u.transport) else {
        panic!("shop has a document")
    };
    assert_eq!(shop.base_url.value, "https://shop.example.com/v1", "without the slash at its end");
    assert_eq!(shop.schema.value, SchemaSource::File("shop.openapi.json".to_owned()));
    let orders = shop.operation_overrides.get("listOrders").expect("an override");
    let limit = orders.default_args.as_ref().and_then(|args| args.get("limit"));
    assert_eq!(limit.map(|limit| limit.value.canonical()).as_deref(), Some("20"));
    assert!(orders.allow_deprecated);
    assert_eq!(shop.http.proxy.as_ref().map(|proxy| proxy.url.value.as_str()), Some("http://proxy.example.com:3128"));

    assert!(matches!(
        config.credentials.get("pat").map(|binding| &binding.source),
        Some(CredentialSource::Env { var }) if var == "GITHUB_PAT"
    ));
}

#[test]
fn omitted_keys_have_their_defaults() {
    let (config, diagnostics) = read(
        r#"{ "upstreams": {
            "a": { "transport": "mcp_stdio", "command": "a" },
            "b": { "transport": "mcp_http", "url": "https://example.com/mcp" },
            "c": { "transport": "openapi", "base_url": "https://example.com", "schema_url": "https://example.com/c.json",
                   "include_operations": ["x"] } } }"#,
    );
    assert_eq!(diagnostics.worst(), None);
    let transport = |name: &str| config.upstreams.get(name).map(|upstream| &upstream.transport);
    let Some(Transport::McpStdio(a)) = transport("a") else { panic!("a") };
    assert_eq!((a.handshake_timeout_ms, a.max_response_bytes, &a.inherit_env), (10_000, 2_097_152, &InheritEnv::Base));
    assert_eq!(a.idle_timeout_ms, None, "its process is not ended");
    let Some(Transport::McpHttp(b)) = transport("b") else { panic!("b") };
    let http = (b.http.request_timeout_ms, b.http.connect_timeout_ms, b.http.max_response_bytes);
    assert_eq!((b.handshake_timeout_ms, http), (10_000, (30_000, 5_000, 2_097_152)));
    let Some(Transport::OpenApi(c)) = transport("c") else { panic!("c") };
    assert_eq!((c.http.request_timeout_ms, c.http.connect_timeout_ms), (30_000, 5_000));
    assert_eq!(c.schema_max_bytes, 33_554_432);
    let calls = (a.max_concurrent_calls, b.http.max_concurrent_calls, c.http.max_concurrent_calls);
    assert_eq!(calls, (100, 1_000, 1_000), "calls in flight");
    assert!(config.upstreams.values().all(|upstream| upstream.include_tools.is_none()), "all tools are granted");
}

#[test]
fn invalid_entries_are_omitted_and_valid_ones_remain() {
    let (config, diagnostics) = read(
        r#"{ "upstreams": {
            "good": { "transport": "mcp_stdio", "command": "a" },
            "bad": { "transport": "mcp_stdio", "comand": "a" },
            "worse": 1 },
          "credentials": { "x": { "source": "env" } } }"#,
    );
    assert!(diagnostics.has_errors());
    assert_eq!(config.upstreams.keys().collect::<Vec<_>>(), ["good"]);
    assert!(config.credentials.is_empty());
}

#[test]
fn user_and_password_form_one_secret() {
    let (config, _) = read(&fixture("credentials_literal_object"));
    let Some(CredentialSource::Literal { value }) = config.credentials.get("a").map(|binding| &binding.source) else {
        panic!("a is a literal")
    };
    let pair: serde_json::Value = serde_json::from_str(value).expect("JSON");
    assert_eq!(pair["user"], "anna");
    assert_eq!(format!("{:?}", config.credentials.get("a").map(|binding| &binding.source)), "Some(Literal { .. })");
}
