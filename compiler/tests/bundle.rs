//! Tests the manifest of a desktop bundle, the entry in the MCP registry, and the options for both.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::process::{Command, Output};

use ptc_compiler::config;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::ir::Deployment;
use ptc_compiler::lock::Lock;
use ptc_compiler::lower;
use ptc_compiler::render::{self, Bundled, OfferedTool, Package, Release};
use ptc_compiler::source::Sources;
use serde_json::{Value, json};

const LINUX: &str = "x86_64-unknown-linux-gnu";

/// Returns the deployment of a config whose upstreams have no tools.
fn deployment(name: &str, config: &Value) -> Deployment {
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let file = sources.add("upstreams.json", config.to_string());
    let config = config::read(&sources, file, &mut diagnostics).unwrap();
    assert!(!diagnostics.has_errors(), "{:?}", diagnostics.sorted());
    lower::deployment(&config, &Lock::default(), name)
}

/// Returns a deployment with each kind of variable.
fn shop() -> Deployment {
    let config = json!({
        "credentials": {
            "token": { "source": "env", "var": "SHOP_TOKEN" },
            "proxy": { "source": "env", "var": "PROXY_LOGIN" },
            "unused": { "source": "env", "var": "UNUSED_KEY" },
        },
        "upstreams": {
            "files": { "transport": "mcp_stdio", "command": "npx", "args": ["-y", "files@1.2.3"], "inherit_env": ["FILES_REGION"],
                       "env": { "API_KEY": "${FILES_ACCOUNT}", "FOLDER": "${HOME}/x", "MODE": "${FILES_MODE}" } },
            "shop": { "transport": "mcp_http", "url": "https://shop.example/mcp", "description": "Orders of the shop.",
                      "auth": [{ "scheme": "bearer", "binding": "token" }],
                      "proxy": { "url": "http://proxy.example:3128", "auth": "proxy" } },
        },
    });
    deployment("My Shop", &config)
}

fn manifest(deployment: &Deployment, target: &str) -> Value {
    let release = Release { version: "1.2.3", author: None, description: None };
    let tools = [
        OfferedTool { name: "lisp_eval".into(), description: "Runs a program.\nIn a sandbox.\n\nUpstreams: …".into() },
        OfferedTool { name: "due".into(), description: String::new() },
    ];
    serde_json::from_str(&render::bundle_manifest(deployment, &release, target, &tools).unwrap()).unwrap()
}

#[test]
fn client_asks_for_the_variables_that_the_server_needs() {
    let deployment = shop();
    let manifest = manifest(&deployment, LINUX);
    let config = &manifest["server"]["mcp_config"];
    let placeholder = |name: &str| format!("${{user_config.{name}}}");
    // A variable that is only inherited may be missing, and clients set the home folder themselves.
    let asked = ["FILES_ACCOUNT", "FILES_MODE", "PROXY_LOGIN", "SHOP_TOKEN"];
    let env: Value = asked.iter().map(|name| ((*name).to_owned(), json!(placeholder(name)))).collect();
    assert_eq!(config["env"], env);
    assert_eq!(render::asked_variables(&deployment), asked);
    let options = manifest["user_config"].as_object().unwrap();
    assert_eq!(options.keys().collect::<Vec<_>>(), asked);
    // The child's name of a variable shows that it is a secret.
    let sensitive: Vec<&String> =
        options.iter().filter(|(_, option)| option["sensitive"] == true).map(|(name, _)| name).collect();
    assert_eq!(sensitive, ["FILES_ACCOUNT", "PROXY_LOGIN", "SHOP_TOKEN"]);
    let option =
        json!({ "type": "string", "title": "SHOP_TOKEN", "description": "Secret for shop", "sensitive": true, "required": true });
    assert_eq!(options["SHOP_TOKEN"], option);
    assert_eq!(options["FILES_MODE"]["description"], "Setting for files");
}

#[test]
fn manifest_describes_server_and_platform() {
    let manifest = manifest(&shop(), LINUX);
    assert_eq!((&manifest["name"], &manifest["display_name"]), (&json!("my-shop"), &json!("My Shop")));
    assert_eq!((&manifest["version"], &manifest["author"]["name"]), (&json!("1.2.3"), &json!("My Shop")));
    assert_eq!(manifest["description"], "Runs short programs over the tools of files and shop");
    assert!(manifest["long_description"].as_str().unwrap().contains("\n- shop (0 tools): Orders of the shop."), "{manifest:#}");
    let tools = json!([{ "name": "lisp_eval", "description": "Runs a program. In a sandbox." }, { "name": "due" }]);
    assert_eq!(manifest["tools"], tools);
    for (target, platform, program) in [
        (LINUX, "linux", "server/my-shop"),
        ("aarch64-apple-darwin", "darwin", "server/my-shop"),
        ("x86_64-pc-windows-msvc", "win32", "server/my-shop.exe"),
    ] {
        let manifest = self::manifest(&shop(), target);
        assert_eq!(manifest["compatibility"]["platforms"], json!([platform]));
        assert_eq!(manifest["server"]["entry_point"], program);
        assert_eq!(manifest["server"]["mcp_config"]["command"], format!("${{__dirname}}/{program}"));
    }

    let plain = deployment("plain", &json!({ "upstreams": {} }));
    let manifest = self::manifest(&plain, LINUX);
    assert_eq!((manifest.get("user_config"), &manifest["server"]["mcp_config"]["env"]), (None, &json!({})));
    assert_eq!(manifest["description"], "Runs short programs in a sandbox");
}

#[test]
fn default_description_fits_into_the_registry() {
    let upstreams: Value = (0..40)
        .map(|at| (format!("upstream-{at}"), json!({ "transport": "mcp_http", "url": "https://shop.example/mcp" })))
        .collect();
    let manifest = manifest(&deployment("many", &json!({ "upstreams": upstreams })), LINUX);
    let description = manifest["description"].as_str().unwrap();
    assert!(description.chars().count() <= render::MAX_DESCRIPTION && description.ends_with('…'), "{description}");
}

#[test]
fn registry_entry_lists_bundles_and_variables() {
    let deployment = shop();
    let package = |target: &str, url: &str, digit: &str| Package {
        url: url.to_owned(),
        sha256: digit.repeat(64),
        bundled: Bundled::read(manifest(&deployment, target).to_string().as_bytes()).unwrap(),
    };
    let first = package(LINUX, "https://example.com/linux.mcpb", "a");
    assert_eq!(first.bundled.target(), LINUX);
    assert_eq!(first.bundled.build_digest(), render::build_digest(&deployment).unwrap());
    let other = package("aarch64-apple-darwin", "https://example.com/mac.mcpb", "b");
    let entry = render::registry_entry(&deployment, "io.github.user/shop", &first, &[other]);
    let entry: Value = serde_json::from_str(&entry).unwrap();
    assert_eq!((&entry["name"], &entry["version"]), (&json!("io.github.user/shop"), &json!("1.2.3")));
    let packages = entry["packages"].as_array().unwrap();
    let files: Vec<(&str, &str)> = packages
        .iter()
        .map(|package| (package["identifier"].as_str().unwrap(), &package["fileSha256"].as_str().unwrap()[..2]))
        .collect();
    assert_eq!(files, [("https://example.com/linux.mcpb", "aa"), ("https://example.com/mac.mcpb", "bb")]);
    let variables: Vec<(&str, bool, bool)> = packages[1]["environmentVariables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| (v["name"].as_str().unwrap(), v["isRequired"] == true, v["isSecret"] == true))
        .collect();
    assert_eq!(
        variables,
        [
            ("FILES_ACCOUNT", true, true),
            ("FILES_MODE", true, false),
            ("FILES_REGION", false, false),
            ("PROXY_LOGIN", true, true),
            ("SHOP_TOKEN", true, true),
        ]
    );
    assert!(Bundled::read(br#"{ "version": "1.0.0", "description": "x" }"#).is_none(), "a bundle of another program");
}

/// Runs `ptc-compile` for a config without upstreams.
fn emit(options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("upstreams.json"), r#"{ "upstreams": {} }"#).unwrap();
    std::fs::write(folder.path().join("other.mcpb"), "not a zip").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
    command.current_dir(folder.path()).args(["upstreams.json", "--offline", "--emit"]).args(options).output().unwrap()
}

#[test]
fn options_that_do_not_fit_the_output_are_refused() {
    let name = ["--registry-name", "io.github.user/x"];
    for (options, message) in [
        (&["docs", "--bundle-version", "1.0.0"][..], "`--bundle-version` is an option of `--emit mcpb`"),
        (&["server-json", "--bundle-author", "Ada"], "`--bundle-author` is an option of `--emit mcpb`"),
        (&["mcpb", name[0], name[1]], "`--registry-name` is an option of `--emit server-json`"),
        (&["docs", "--output", "x"], "`--output` has no effect with `--emit`"),
        (&["server-json"], "needs the name of the server in the registry"),
        (&["server-json", name[0], name[1]], "needs a bundle"),
        (
            &["server-json", name[0], name[1], "--bundle", "other.mcpb=https://example.com/x.mcpb"],
            "`other.mcpb` is not a bundle of",
        ),
        (&["server-json", name[0], name[1], "--bundle", "absent.mcpb=https://example.com/x.mcpb"], "cannot read `absent.mcpb`"),
        (&["server-json", name[0], name[1], "--bundle", "other.mcpb=https://example.com/x.zip"], "contain `mcp`"),
        (&["mcpb", "--bundle-version", "1.0"], "expected a version such as 1.2.3"),
    ] {
        let output = emit(options);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {stderr}");
        assert!(stderr.contains(message), "{options:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{options:?}");
    }
}
