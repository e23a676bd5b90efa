//! Tests the files that `ptc-compile` writes for containers and clusters with a linter and with the schemas of Kubernetes.

use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_compiler::lock::{self, Lock, LockedUpstream};
use ptc_tests::deployment::{ptc_compile, workspace};
use ptc_tests::peers::{newer_node_script, python_program};
use ptc_tests::process::{Background, Finished, free_port, run};
use serde_json::{Value, json};

fn emitted(config: &Path, what: &str) -> Finished {
    run(Command::new(ptc_compile()).arg(config).args(["--offline", "--emit", what]))
}

/// Writes a config with every kind of upstream and secret, and its lock file.
fn everything(folder: &Path) -> PathBuf {
    let document = json!({
        "openapi": "3.0.3",
        "info": { "title": "x", "version": "1" },
        "paths": { "/x": { "get": { "operationId": "x",
            "responses": { "200": { "description": "x", "content": { "application/json": {} } } } } } },
    });
    std::fs::create_dir(folder.join("docs")).expect("a folder");
    std::fs::write(folder.join("docs/the api.json"), document.to_string()).expect("a document");
    std::fs::write(folder.join("due.clj"), "(+ 1 2)").expect("a program");
    let stdio = |command: &str, args: Value, env: Value| json!({ "transport": "mcp_stdio", "command": command, "args": args, "env": env });
    let config = json!({
        "credentials": {
            "api key": { "source": "file", "path": "secrets/key.txt" },
            "token": { "source": "env", "var": "WEB_TOKEN" },
        },
        "upstreams": {
            "files": stdio("npx", json!(["-y", "some-server@1.2.3"]), json!({ "KEY": "${FILES_KEY}" })),
            "git": stdio("uvx", json!(["mcp-server-git==1.2.3"]), json!({})),
            "own": stdio("./own-server", json!([]), json!({})),
            "web": { "transport": "openapi", "base_url": "https://web.example", "schema_file": "docs/the api.json", "include_operations": ["x"],
                     "auth": [{ "scheme": "bearer", "binding": "token" },
                              { "scheme": "custom_header", "header": "X-Key", "binding": "api key" }] },
        },
        "programs": { "due": { "file": "due.clj" } },
    });
    let path = folder.join("9 Lives.json");
    std::fs::write(&path, config.to_string()).expect("a config");
    pin(&folder.join("9 Lives.lock.json"), &["files", "git", "own"]);
    path
}

/// Writes a lock file in which these upstreams have no tools.
fn pin(path: &Path, names: &[&str]) {
    let mut pinned = Lock::default();
    for name in names {
        let none = LockedUpstream { transport: "mcp_stdio".into(), all_tools: true, ..LockedUpstream::default() };
        pinned.upstreams.insert((*name).to_owned(), none);
    }
    std::fs::write(path, lock::write::write(&pinned)).expect("a lock file");
}

/// Returns the instructions of a Dockerfile, without comments.
fn instructions(dockerfile: &str) -> Vec<&str> {
    dockerfile.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect()
}

#[test]
fn image_has_what_its_upstreams_need_and_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let dockerfile = emitted(&everything(folder.path()), "container").success();
    let lines = instructions(&dockerfile);
    let has = |line: &str| assert!(lines.contains(&line), "lacks {line}:\n{dockerfile}");
    has("FROM node:24-trixie-slim");
    has("FROM ghcr.io/astral-sh/uv:0.9 AS uv");
    has(r#"COPY ["9 Lives.json", "9 Lives.json"]"#);
    has(r#"COPY ["docs/the api.json", "docs/the api.json"]"#);
    has(r#"COPY ["due.clj", "due.clj"]"#);
    has("USER 65532:65532");
    has(r#"ENTRYPOINT ["/app/9 Lives"]"#);
    assert!(dockerfile.contains("which are not in the image yet: ./own-server\n"), "{dockerfile}");
    has(r#"RUN ["npm", "install", "--prefix", "/app", "--no-fund", "--no-audit", "some-server@1.2.3"]"#);
    has(r#"RUN ["uv", "tool", "install", "mcp-server-git==1.2.3"]"#);
    assert!(!lines.iter().any(|line| line.contains("FILES_KEY") || line.contains("WEB_TOKEN")), "{dockerfile}");

    let quickstart = emitted(&workspace().join("fixtures/quickstart/upstreams.json"), "container").success();
    assert!(instructions(&quickstart).contains(&"FROM debian:trixie-slim") && !quickstart.contains("node:"), "{quickstart}");

    let petstore = workspace().join("macros/tests/configs/petstore.json");
    let plain = emitted(&petstore, "container").success();
    assert!(instructions(&plain).contains(&"FROM gcr.io/distroless/cc-debian13:nonroot"), "{plain}");
}

#[test]
fn base_images_are_pinned_by_given_digests() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = everything(folder.path());
    let emit = |images: &[&str]| {
        let mut command = Command::new(ptc_compile());
        command.arg(&config).args(["--offline", "--emit", "container"]);
        run(command.args(images.iter().flat_map(|image| ["--base-image", image])))
    };
    let digest = |letter: &str| format!("sha256:{}", letter.repeat(64));
    let images = [("build", "rust:slim", "a"), ("runtime", "registry.example/node:24", "b"), ("uv", "ghcr.io/astral-sh/uv", "c")];
    let given = images.map(|(stage, name, letter)| format!("{stage}={name}@{}", digest(letter)));
    let pinned = emit(&given.each_ref().map(String::as_str));
    let from: Vec<&str> = pinned.stdout.lines().filter(|line| line.starts_with("FROM ")).collect();
    let expected = given.each_ref().map(|image| format!("FROM {}", image.split_once('=').expect("a stage").1));
    assert_eq!(from, [format!("{} AS build", expected[0]), format!("{} AS uv", expected[2]), expected[1].clone()]);
    assert!(!pinned.stderr.contains("PTC0906") && !pinned.stdout.contains("can move"), "{}{}", pinned.stderr, pinned.stdout);

    let partly = emit(&[&given[0]]);
    assert_eq!(partly.code, Some(0), "a note: {}", partly.stderr);
    assert!(
        partly.stderr.contains("note[PTC0906]") && partly.stderr.contains("`node:24-trixie-slim` of the stage runtime"),
        "{}",
        partly.stderr
    );
    assert!(partly.stdout.contains("\n#   --base-image uv=ghcr.io/astral-sh/uv:0.9@sha256:…\n"), "{}", partly.stdout);
    assert!(!partly.stdout.contains("--base-image build="), "{}", partly.stdout);

    assert_eq!(emit(&["build=rust:slim"]).code, Some(2));
    let petstore = workspace().join("macros/tests/configs/petstore.json");
    let mut command = Command::new(ptc_compile());
    let no_stage = run(command.arg(petstore).args(["--offline", "--emit", "container", "--base-image", &given[2]]));
    assert_eq!(no_stage.code, Some(2));
    assert!(no_stage.stderr.contains("has no stage `uv`"), "{}", no_stage.stderr);
}

#[test]
fn dockerignore_permits_what_the_dockerfile_copies() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = everything(folder.path());
    let ignored = emitted(&config, "dockerignore").success();
    let rules: Vec<&str> = ignored.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rules, ["*", "!ptc-compile", "!9 Lives.json", "!9 Lives.lock.json", "!docs/the api.json", "!due.clj"]);
    let dockerfile = emitted(&config, "container").success();
    for rule in &rules[1..] {
        assert!(dockerfile.contains(&format!("COPY [\"{}\"", &rule[1..])), "{rule} in {dockerfile}");
    }
}

/// Returns the image's name and tag from the header of the Dockerfile and from the manifests.
fn images(config: &Path) -> (String, String) {
    let dockerfile = emitted(config, "container").success();
    let header = dockerfile.lines().find_map(|line| line.strip_prefix("#   docker build --tag ")).expect("the header");
    let manifests = emitted(config, "k8s").success();
    let image = manifests.lines().find_map(|line| line.strip_prefix("          image: ")).expect("an image");
    (header.trim_end_matches(" .").to_owned(), image.trim_matches('"').to_owned())
}

#[test]
fn tag_depends_on_all_inputs_of_the_binary() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = everything(folder.path());
    let mut tags = std::collections::BTreeSet::new();
    let mut tag = |what: &str| {
        let (header, manifest) = images(&config);
        assert_eq!(header, manifest, "{what}");
        assert!(tags.insert(header.clone()), "{what} gives the image {header} again");
        header
    };
    let first = tag("the config");
    assert!(first.starts_with("d-9-lives:") && first.len() == "d-9-lives:".len() + 12, "{first}");
    assert_eq!(images(&config).0, first, "the same files give the same tag");
    std::fs::write(folder.path().join("due.clj"), "(+ 1 3)").expect("a program");
    tag("another stored program");
    for (from, to) in [("https://web.example", "https://other.example"), ("some-server@1.2.3", "some-server@1.2.4")] {
        let text = std::fs::read_to_string(&config).expect("the config");
        std::fs::write(&config, text.replacen(from, to, 1)).expect("a config");
        tag(to);
    }
}

#[test]
fn file_outside_of_the_build_context_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).expect("a folder");
    std::fs::write(folder.path().join("due.clj"), "(+ 1 2)").expect("a program");
    let config = json!({ "upstreams": { "own": { "transport": "mcp_stdio", "command": "own" } }, "programs": { "due": { "file": "../due.clj" } } });
    std::fs::write(inner.join("upstreams.json"), config.to_string()).expect("a config");
    pin(&inner.join("upstreams.lock.json"), &["own"]);
    let refused = emitted(&inner.join("upstreams.json"), "container");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    assert!(refused.stderr.contains("`../due.clj` is outside of the config's folder"), "{}", refused.stderr);
}

#[test]
fn containers_run_without_root_and_secrets_are_mounted() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifests = emitted(&everything(folder.path()), "k8s").success();
    for line in [
        "            - name: \"FILES_KEY\"",
        "            - name: \"WEB_TOKEN\"",
        "              mountPath: \"/app/secrets/key.txt\"",
        "              subPath: api-key",
        "            readOnlyRootFilesystem: true",
        "        runAsNonRoot: true",
        "#     --from-literal=PTC_RUNNER_MCP_SESSION_STORE=\"redis://:$password@d-9-lives-sessions:6379\" \\",
        "                  key: PTC_RUNNER_MCP_SESSION_STORE",
        "                  key: session-store-password",
        "            - name: PTC_RUNNER_MCP_SESSION_KEY",
        "                  key: PTC_RUNNER_MCP_SESSION_KEY",
        "              path: /ready",
    ] {
        assert!(manifests.lines().any(|found| found == line), "lacks {line}:\n{manifests}");
    }
    assert!(!manifests.contains("kind: Secret\n"), "{manifests}");
}

/// A Redis with the arguments of the manifests answers only with the password of the secret.
#[test]
#[ignore = "needs what .ci/peers installs"]
fn session_store_of_the_manifests_needs_its_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifests = emitted(&everything(folder.path()), "k8s").success();
    let password = "a-password-of-this-test";
    let args = manifests.lines().find_map(|line| line.trim().strip_prefix("args: [valkey-server, ")).expect("the arguments");
    let args = args.trim_end_matches(']').replace("$(PASSWORD)", password);
    let port = free_port();
    let mut store = Command::new("redis-server");
    store.args(args.split(", ").map(|arg| arg.trim_matches('"'))).args(["--port", &port.to_string()]).current_dir(folder.path());
    let _store = Background::start(&mut store).ready_on(port);

    // The URL of the secret has the same password, without a user.
    assert!(manifests.contains("PTC_RUNNER_MCP_SESSION_STORE=\"redis://:$password@"), "{manifests}");
    let ping = |options: &[&str]| {
        let answer =
            run(Command::new("redis-cli").args(["-p", &port.to_string(), "--no-auth-warning"]).args(options).arg("ping"));
        format!("{}{}", answer.stdout, answer.stderr)
    };
    assert!(ping(&[]).contains("NOAUTH"), "{}", ping(&[]));
    assert_eq!(ping(&["-a", password]).trim(), "PONG");
}

/// Texts that would become an instruction, a key, a directive or a command if they were written unescaped.
const HOSTILE: &[&str] = &[
    "x\nRUN evil",
    "x\r\nkind: Evil\n#",
    "x\"\n  evil: \"y",
    "syntax=evil/image",
    "x: {evil: 1}",
    "- evil\n---\nkind: Evil",
    "{{ evil }} {% evil %} */ --> `evil` $(evil) ; evil",
    "\u{2028}evil\u{202e}\\",
];

/// Returns a config that has `text` at a position where the operator may choose the text.
fn hostile_config(position: &str, text: &str) -> (String, Value, Vec<&'static str>) {
    let at = |wanted: &str, plain: &str| if position == wanted { text.to_owned() } else { plain.to_owned() };
    let config = json!({
        "credentials": {
            at("credential", "token"): { "source": "env", "var": at("variable", "WEB_TOKEN") },
            "key": { "source": "file", "path": at("path", "secrets/key.txt") },
        },
        "upstreams": {
            "own": { "transport": "mcp_stdio", "command": at("command", "own"), "args": [at("argument", "x")],
                     "description": at("description", "x"), "env": { "A": at("value", "x") }, "inherit_env": [at("inherited", "LC_ALL")] },
            "web": { "transport": "openapi", "base_url": "https://web.example", "schema_file": "api.json", "include_operations": ["x"],
                     "static_headers": { "X-Own": at("header", "x") },
                     "auth": [{ "scheme": "bearer", "binding": at("credential", "token") },
                              { "scheme": "custom_header", "header": "X-Key", "binding": "key" }] },
        },
        "programs": { "due": { "file": "due.clj", "description": at("program", "x") } },
    });
    (at("config", "upstreams"), config, vec!["own"])
}

fn write_config(folder: &Path, name: &str, config: &Value, stdio: &[&str]) -> Option<PathBuf> {
    let document = json!({
        "openapi": "3.0.3",
        "info": { "title": "x", "version": "1" },
        "paths": { "/x": { "get": { "operationId": "x",
            "responses": { "200": { "description": "x", "content": { "application/json": {} } } } } } },
    });
    std::fs::write(folder.join("api.json"), document.to_string()).expect("a document");
    std::fs::write(folder.join("due.clj"), "(+ 1 2)").expect("a program");
    let path = folder.join(format!("{name}.json"));
    // With a slash the name is a path in a folder that does not exist.
    std::fs::write(&path, config.to_string()).ok()?;
    pin(&folder.join(format!("{name}.lock.json")), stdio);
    Some(path)
}

/// Returns the words with which instructions begin. Comments that are directives count too.
fn instruction_words(dockerfile: &str) -> Vec<String> {
    let mut continued = false;
    let mut words = Vec::new();
    for line in dockerfile.lines() {
        let directive = line.strip_prefix('#').and_then(|rest| rest.split_once('=')).map(|(name, _)| name.trim());
        if directive.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
            words.push(format!("directive {line}"));
        }
        if !continued && !line.starts_with('#') && !line.is_empty() {
            words.push(line.split_whitespace().next().unwrap_or_default().to_owned());
        }
        continued = line.ends_with('\\') && !line.starts_with('#');
    }
    words
}

/// Returns every key of the documents with its depth.
fn yaml_keys(text: &str) -> Vec<(usize, String)> {
    use saphyr::LoadableYamlNode as _;
    fn walk(node: &saphyr::Yaml<'_>, depth: usize, keys: &mut Vec<(usize, String)>) {
        for (key, value) in node.as_mapping().into_iter().flatten() {
            keys.push((depth, key.as_str().unwrap_or_default().to_owned()));
            walk(value, depth + 1, keys);
        }
        for value in node.as_sequence().into_iter().flatten() {
            walk(value, depth + 1, keys);
        }
    }
    let documents = saphyr::Yaml::load_from_str(text).unwrap_or_else(|fault| panic!("{fault}:\n{text}"));
    let mut keys = Vec::new();
    for document in &documents {
        keys.push((0, "---".to_owned()));
        walk(document, 1, &mut keys);
    }
    keys
}

#[test]
fn texts_of_a_config_inject_nothing_into_emitted_files() {
    let emit = |position: &str, text: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let (name, config, stdio) = hostile_config(position, text);
        let path = write_config(folder.path(), &name, &config, &stdio)?;
        let (container, manifests) = (emitted(&path, "container"), emitted(&path, "k8s"));
        assert_eq!(container.code, manifests.code, "{position} {text:?}: {} {}", container.stderr, manifests.stderr);
        assert!(matches!(container.code, Some(0..=2)), "{}", container.stderr);
        (container.code == Some(0)).then_some((container.stdout, manifests.stdout))
    };
    let (container, manifests) = emit("none", "").expect("nothing is wrong with it");
    let (words, keys) = (instruction_words(&container), yaml_keys(&manifests));
    assert!(words.len() > 8 && keys.len() > 100, "{words:?} {keys:?}");
    let positions = [
        "config",
        "credential",
        "variable",
        "path",
        "command",
        "argument",
        "description",
        "value",
        "inherited",
        "header",
        "program",
    ];
    let mut accepted = 0;
    for position in positions {
        for text in HOSTILE {
            let Some((container, manifests)) = emit(position, text) else { continue };
            accepted += 1;
            assert_eq!(instruction_words(&container), words, "{position} {text:?}:\n{container}");
            assert_eq!(yaml_keys(&manifests), keys, "{position} {text:?}:\n{manifests}");
        }
        assert!(!matches!(position, "variable" | "inherited") || emit(position, HOSTILE[0]).is_none(), "{position}");
    }
    assert!(accepted > 30, "{accepted} were accepted");
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn emitted_files_pass_linters_and_schemas() {
    let folder = tempfile::tempdir().expect("a folder");
    let configs = [
        (everything(folder.path()), "d-9-lives"),
        (workspace().join("fixtures/quickstart/upstreams.json"), "quickstart"),
        (workspace().join("macros/tests/configs/petstore.json"), "petstore"),
    ];
    for (config, name) in configs {
        let dockerfile = folder.path().join("Dockerfile");
        std::fs::write(&dockerfile, emitted(&config, "container").success()).expect("a Dockerfile");
        let linted = run(python_program("hadolint").args(["--format", "json"]).arg(&dockerfile));
        assert_eq!((linted.code, linted.stdout.trim()), (Some(0), "[]"), "{}", linted.stderr);

        let manifests = folder.path().join("k8s.yaml");
        std::fs::write(&manifests, emitted(&config, "k8s").success()).expect("manifests");
        let found: Value =
            serde_json::from_str(&run(newer_node_script("kubernetes.mjs").arg(&manifests)).success()).expect("JSON");
        let sessions = format!("{name}-sessions");
        let expected = json!([
            ["apps/v1", "Deployment", name],
            ["v1", "Service", name],
            ["autoscaling/v2", "HorizontalPodAutoscaler", name],
            ["policy/v1", "PodDisruptionBudget", name],
            ["apps/v1", "Deployment", sessions],
            ["v1", "Service", sessions],
            ["networking.k8s.io/v1", "NetworkPolicy", sessions],
        ]);
        assert_eq!(found, expected);
    }
}

#[test]
#[ignore = "needs what .ci/peers installs"]
fn linters_and_schemas_refuse_faulty_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong");
    std::fs::write(&wrong, "FROM debian\nRUN cd /tmp\n").expect("a file");
    assert_eq!(run(python_program("hadolint").arg(&wrong)).code, Some(1));
    let petstore = workspace().join("macros/tests/configs/petstore.json");
    let manifests = emitted(&petstore, "k8s").success();
    for (from, to) in [("containerPort: 7332", "containerPort: seven"), ("minReplicas: 2", "minReplica: 2")] {
        std::fs::write(&wrong, manifests.replacen(from, to, 1)).expect("a file");
        assert_ne!(run(newer_node_script("kubernetes.mjs").arg(&wrong)).code, Some(0), "{to}");
    }
}
