//! Tests the authorization servers that upstreams name: the lock file has them, changes are reported, and a login at another one is
//! refused.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tiny_http::{Header, Request, Response, Server};

/// What the upstream says now.
struct Said {
    /// The paths of the issuers that it names, separated by spaces. It has no metadata if this is empty.
    issuer: &'static str,
    scope: &'static str,
    /// Whether it requires tokens that are bound to a key.
    dpop: bool,
    /// Whether it accepts the tokens that were issued until now.
    accepts: bool,
    /// The paths that were requested.
    requests: Vec<String>,
}

/// An MCP server, and the two authorization servers at `/a` and `/b` of the same origin.
struct Service {
    url: String,
    said: Arc<Mutex<Said>>,
}

impl Service {
    fn start() -> Service {
        let server = Server::http("127.0.0.1:0").unwrap();
        let url = format!("http://{}", server.server_addr().to_ip().unwrap());
        let said =
            Arc::new(Mutex::new(Said { issuer: "/a", scope: "notes.read", dpop: false, accepts: true, requests: Vec::new() }));
        let (base, shared) = (url.clone(), Arc::clone(&said));
        std::thread::spawn(move || {
            for request in server.incoming_requests() {
                answer(request, &base, &mut shared.lock().unwrap());
            }
        });
        Service { url, said }
    }

    fn set(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.said.lock().unwrap());
    }

    fn requests(&self, path: &str) -> usize {
        self.said.lock().unwrap().requests.iter().filter(|requested| *requested == path).count()
    }
}

fn answer(mut request: Request, base: &str, said: &mut Said) {
    let path = request.url().to_owned();
    said.requests.push(path.clone());
    let has_proof = request.headers().iter().any(|header| header.field.equiv("DPoP"));
    let authorized = request.headers().iter().any(|header| header.field.equiv("Authorization"));
    let mut body = String::new();
    request.as_reader().read_to_string(&mut body).unwrap();
    let found = |value: Value| (200, Some(value));
    let (status, value) = match path.as_str() {
        "/mcp" if authorized && said.accepts => mcp(&serde_json::from_str(&body).unwrap_or_default()),
        "/mcp" => {
            let challenge = format!("Bearer scope=\"{}\"", said.scope);
            let header = Header::from_bytes("WWW-Authenticate", challenge).unwrap();
            return request.respond(Response::empty(401).with_header(header)).unwrap();
        }
        "/.well-known/oauth-protected-resource/mcp" if !said.issuer.is_empty() => found(json!({
            "resource": format!("{base}/mcp"),
            "authorization_servers": said.issuer.split(' ').map(|path| format!("{base}{path}")).collect::<Vec<_>>(),
            "dpop_bound_access_tokens_required": said.dpop,
        })),
        "/.well-known/oauth-authorization-server/a" | "/.well-known/oauth-authorization-server/b" => {
            let issuer = format!("{base}{}", path.strip_prefix("/.well-known/oauth-authorization-server").unwrap());
            found(json!({
                "issuer": issuer,
                "token_endpoint": format!("{issuer}/token"),
                "device_authorization_endpoint": format!("{issuer}/device"),
                "dpop_signing_alg_values_supported": ["ES256"],
            }))
        }
        "/a/device" | "/b/device" => found(json!({
            "device_code": "d-1", "user_code": "U-1", "verification_uri": base, "expires_in": 60, "interval": 1,
        })),
        "/a/token" | "/b/token" => {
            // A token of a server that the upstream does not name does not help.
            said.accepts |= path.starts_with(said.issuer);
            let kind = if has_proof { "DPoP" } else { "Bearer" };
            let token = format!("not-a-real-token-of{}", path.replace('/', "-"));
            found(json!({ "access_token": token, "token_type": kind, "expires_in": 3_600, "refresh_token": format!("{token}-r"),
                    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" }))
        }
        _ => (404, None),
    };
    let header = Header::from_bytes("Content-Type", "application/json").unwrap();
    let text = value.map(|value| value.to_string()).unwrap_or_default();
    request.respond(Response::from_string(text).with_status_code(status).with_header(header)).unwrap();
}

fn mcp(message: &Value) -> (u16, Option<Value>) {
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "notes", "version": "1" },
        }),
        Some("tools/list") => {
            json!({ "tools": [{ "name": "read", "description": "Reads.", "inputSchema": { "type": "object" } }] })
        }
        _ if message["id"].is_null() => return (202, None),
        _ => {
            let error = json!({ "code": -32601, "message": "unknown method" });
            return (200, Some(json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })));
        }
    };
    (200, Some(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })))
}

/// A folder with a config that leaves the authorization server open.
fn folder(service: &Service) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path(), service, &json!({}));
    folder
}

/// Writes a config whose `auth` has these keys too.
fn write_config(folder: &Path, service: &Service, keys: &Value) {
    let mut auth = json!({ "scheme": "oauth2", "grant": "device_code", "client_id": "gate", "client_auth": "none" });
    auth.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let config = json!({ "upstreams": { "notes": {
        "transport": "mcp_http", "url": format!("{}/mcp", service.url), "allow_insecure_http": true, "allow_insecure_auth": true,
        "auth": [auth],
    } } });
    fs::write(folder.join("upstreams.json"), config.to_string()).unwrap();
}

/// Removes the authorization server from the lock file, as older compilers wrote it. Returns the file as it was.
fn remove_pin(folder: &Path) -> String {
    let path = folder.join("upstreams.lock.json");
    let complete = fs::read_to_string(&path).unwrap();
    let mut sources = ptc_compiler::source::Sources::default();
    let mut found = ptc_compiler::diag::Diagnostics::default();
    let file = sources.add("upstreams.lock.json", complete.as_str());
    let mut older = ptc_compiler::lock::read::read(&sources, file, &mut found).unwrap();
    older.upstreams.get_mut("notes").unwrap().authorization = None;
    fs::write(&path, ptc_compiler::lock::write::write(&older)).unwrap();
    complete
}

/// Returns the exit code and all output.
fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
    let output = command.args(args).env("PTC_RUNNER_MCP_TOKEN_STORE", "tokens").current_dir(folder).output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn lock(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("upstreams.lock.json")).unwrap()).unwrap()
}

#[test]
fn moved_authorization_server_is_drift_and_no_login_there_is_possible_before_an_update() {
    let service = Service::start();
    let folder = folder(&service);
    let folder = folder.path();
    let [a, b] = ["/a", "/b"].map(|path| format!("{}{path}", service.url));
    let (code, said) = run(folder, &["login", "upstreams.json"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(folder, &["update", "upstreams.json"]);
    assert_eq!(code, Some(0), "{said}");
    let pinned = json!({ "issuer": a, "resource": format!("{}/mcp", service.url), "scopes": ["notes.read"] });
    assert_eq!(lock(folder)["upstreams"]["notes"]["authorization"], pinned);
    let (code, said) = run(folder, &["diff", "upstreams.json"]);
    assert_eq!((code, said.lines().last()), (Some(0), Some("nothing changed")), "{said}");
    let (code, said) = run(folder, &["--check", "--locked", "upstreams.json"]);
    assert!(code == Some(0) && !said.contains("PTC0630"), "{said}");

    service.set(|said| (said.issuer, said.scope) = ("/b", "notes.write notes.read"));
    let (code, said) = run(folder, &["diff", "upstreams.json"]);
    assert_eq!(code, Some(1), "{said}");
    let moved = format!("names the authorization server `{b}`, which was `{a}`");
    for part in [
        "notes 1: its authorization server changed (breaking), its scopes changed".to_owned(),
        format!("  error[PTC0634]: `notes` {moved}"),
        "  warning[PTC0635]: `notes` asks for the scopes `notes.read notes.write`, which was `notes.read`".to_owned(),
        "1 upstream changed".to_owned(),
    ] {
        assert!(said.contains(&part), "{part}\n{said}");
    }
    for format in ["json", "sarif", "markdown"] {
        let (_, said) = run(folder, &["diff", "upstreams.json", "--format", format]);
        assert!(said.contains("PTC0634") && said.contains("PTC0635") && said.contains(&b), "{said}");
    }

    let (code, said) = run(folder, &["login", "upstreams.json"]);
    assert_eq!(code, Some(2), "{said}");
    let refused = format!("names the authorization server {b}, and the lock file has {a}");
    assert!(said.contains(&refused) && said.contains("`ptc-compile update CONFIG notes`"), "{said}");
    assert_eq!((service.requests("/b/device"), service.requests("/b/token")), (0, 0));

    // The upstream refuses tokens of the former server, so that its tools cannot be listed before the login.
    service.set(|said| said.accepts = false);
    let before = lock(folder);
    let (code, said) = run(folder, &["update", "upstreams.json", "--format", "short"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("warning[PTC0606]") && said.contains(&moved), "{said}");
    let after = lock(folder);
    assert_eq!(after["upstreams"]["notes"]["authorization"]["issuer"], b);
    assert_eq!(after["upstreams"]["notes"]["tools"], before["upstreams"]["notes"]["tools"]);
    assert_ne!(after["catalog_digest"], before["catalog_digest"]);

    // A server does not use the login at the former one.
    let program = "(tool/call {:server \"notes\" :tool \"read\"})";
    let (_, said) = run(folder, &["repl", "upstreams.json", "--catalog-snapshot-mode", "frozen", "-e", program]);
    let refused = format!("the login is for the authorization server {a}, and the lock file has {b}");
    assert!(said.contains(":auth_expired") && said.contains(&refused), "{said}");
    let (code, said) = run(folder, &["login", "upstreams.json"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(folder, &["update", "upstreams.json"]);
    assert_eq!((code, said.lines().last()), (Some(0), Some("nothing changed")), "{said}");
}

#[test]
fn end_of_tokens_that_are_bound_to_a_key_is_drift_and_needs_an_update() {
    let service = Service::start();
    let folder = folder(&service);
    let folder = folder.path();
    service.set(|said| said.dpop = true);
    for command in ["login", "update"] {
        let (code, said) = run(folder, &[command, "upstreams.json"]);
        assert_eq!(code, Some(0), "{said}");
    }
    let before = lock(folder);
    assert_eq!(before["upstreams"]["notes"]["authorization"]["dpop"], true);

    service.set(|said| said.dpop = false);
    let (code, said) = run(folder, &["diff", "upstreams.json"]);
    let change = "error[PTC0634]: `notes` accepts tokens that are not bound to a key (DPoP), which it required";
    assert!(code == Some(1) && said.contains(change), "{said}");
    let asked = service.requests("/a/device");
    let (code, said) = run(folder, &["login", "upstreams.json"]);
    let refused = "with tokens that are not bound to a key (DPoP), and the lock file requires this";
    assert!(code == Some(2) && said.contains(refused), "{said}");
    assert_eq!(service.requests("/a/device"), asked);

    let (code, said) = run(folder, &["update", "upstreams.json"]);
    assert_eq!(code, Some(0), "{said}");
    let after = lock(folder);
    assert_eq!(after["upstreams"]["notes"]["authorization"].get("dpop"), None);
    assert_ne!(after["catalog_digest"], before["catalog_digest"]);
    let (code, said) = run(folder, &["login", "upstreams.json"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn update_lists_tools_on_behalf_of_the_person_whose_token_is_in_the_environment() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let config = json!({
        "credentials": { "gate": { "source": "env", "var": "GATE_SECRET" } },
        "upstreams": { "notes": {
            "transport": "mcp_http", "url": format!("{}/mcp", service.url), "allow_insecure_http": true, "allow_insecure_auth": true,
            "auth": [{
                "scheme": "oauth2", "grant": "token_exchange", "token_url": format!("{}/a/token", service.url), "client_id": "gate",
                "binding": "gate",
            }],
        } },
    });
    fs::write(folder.path().join("upstreams.json"), config.to_string()).unwrap();
    let update = |token: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
        command.args(["update", "upstreams.json"]).env("PTC_RUNNER_MCP_CALLER_TOKEN", token);
        let output = command.env("GATE_SECRET", "not-a-real-secret").current_dir(folder.path()).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (is_done, said) = update("");
    assert!(!is_done && said.contains("called on behalf of the caller"), "{said}");
    assert_eq!(service.requests("/a/token"), 0);
    let (is_done, said) = update("not-a-real-token-of-ada");
    assert!(is_done, "{said}");
    assert_eq!(service.requests("/a/token"), 1);
    assert!(lock(folder.path())["upstreams"]["notes"]["tools"].to_string().contains("read"));
    assert!(!fs::read_to_string(folder.path().join("upstreams.lock.json")).unwrap().contains("not-a-real"));
}

#[test]
fn lock_without_an_authorization_server_is_valid_and_is_completed_by_an_update() {
    let service = Service::start();
    let folder = folder(&service);
    let folder = folder.path();
    for command in ["login", "update"] {
        let (code, said) = run(folder, &[command, "upstreams.json"]);
        assert_eq!(code, Some(0), "{said}");
    }
    let path = folder.join("upstreams.lock.json");
    let complete = remove_pin(folder);

    let (code, said) = run(folder, &["--check", "--locked", "upstreams.json", "--format", "short"]);
    let warning = "warning[PTC0630]: the lock file does not have the authorization server of `notes`";
    assert!(code == Some(0) && said.contains(warning), "{said}");
    let (code, said) = run(folder, &["update", "upstreams.json"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), complete);

    // A lock file is not written without the authorization server.
    service.set(|said| said.issuer = "/none");
    let (code, said) = run(folder, &["update", "upstreams.json", "--format", "short"]);
    assert!(code == Some(1) && said.contains("could not be asked for its authorization server"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), complete);
}

#[test]
fn issuer_of_the_config_that_the_upstream_no_longer_names_is_drift_until_it_is_pinned() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [a, b] = ["/a", "/b"].map(|path| format!("{}{path}", service.url));
    write_config(folder, &service, &json!({ "issuer": a }));
    for command in ["login", "update"] {
        let (code, said) = run(folder, &[command, "upstreams.json"]);
        assert_eq!(code, Some(0), "{said}");
    }
    let pinned = json!({ "issuer": a, "resource": format!("{}/mcp", service.url), "scopes": ["notes.read"] });
    assert_eq!(lock(folder)["upstreams"]["notes"]["authorization"], pinned);

    // It still names the server among others, or it has no metadata.
    let before = fs::read_to_string(folder.join("upstreams.lock.json")).unwrap();
    for issuers in ["/a", "/b /a", ""] {
        service.set(|said| said.issuer = issuers);
        for command in ["diff", "update"] {
            let (code, said) = run(folder, &[command, "upstreams.json"]);
            assert_eq!((code, said.lines().last()), (Some(0), Some("nothing changed")), "{issuers}: {said}");
        }
        assert_eq!(fs::read_to_string(folder.join("upstreams.lock.json")).unwrap(), before);
    }

    service.set(|said| said.issuer = "/b");
    let moved = format!(
        "names the authorization server `{b}`, and not `{a}`, the `issuer` of the config: ask the operator of the upstream, then write the \
         new value into the config; `update` does not change it"
    );
    let (code, said) = run(folder, &["diff", "upstreams.json"]);
    assert_eq!(code, Some(1), "{said}");
    for part in ["notes 1: its authorization server changed (breaking)", &format!("  error[PTC0634]: `notes` {moved}")] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    for format in ["json", "sarif", "markdown", "github", "short"] {
        let (code, said) = run(folder, &["diff", "upstreams.json", "--format", format]);
        assert!(code == Some(1) && said.contains("PTC0634") && said.contains(&b) && said.contains(&a), "{format}: {said}");
    }

    // The upstream refuses tokens of the former server, so that its tools cannot be listed.
    service.set(|said| said.accepts = false);
    let config = fs::read_to_string(folder.join("upstreams.json")).unwrap();
    let (code, said) = run(folder, &["update", "upstreams.json", "--format", "short"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("warning[PTC0606]") && said.contains("write it into the config") && said.contains(&moved), "{said}");
    assert_eq!(lock(folder)["upstreams"]["notes"]["authorization"]["issuer"], b);
    assert_eq!(fs::read_to_string(folder.join("upstreams.json")).unwrap(), config);

    // The change was reviewed in the lock file. Logins are still those of the config.
    service.set(|said| said.accepts = true);
    let (code, said) = run(folder, &["diff", "upstreams.json"]);
    assert_eq!((code, said.lines().last()), (Some(0), Some("nothing changed")), "{said}");
    let note = format!("note[PTC0637]: the config of `notes` has the `issuer` `{a}`, and the lock file has `{b}`");
    let check = || run(folder, &["--check", "upstreams.json", "--format", "short"]);
    let (code, said) = check();
    assert!(code == Some(0) && said.contains(&note), "{said}");
    assert_eq!(service.requests("/b/device"), 0);
    write_config(folder, &service, &json!({ "issuer": b }));
    for command in ["login", "update"] {
        let (code, said) = run(folder, &[command, "upstreams.json"]);
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(service.requests("/b/device"), 1);
    let (code, said) = check();
    assert!(code == Some(0) && !said.contains("PTC0637"), "{said}");
}

#[test]
fn server_or_resource_other_than_in_the_config_is_drift_without_a_pin() {
    let service = Service::start();
    service.set(|said| said.issuer = "/b");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let [a, b] = ["/a", "/b"].map(|path| format!("{}{path}", service.url));
    write_config(folder, &service, &json!({ "issuer": a, "resource": "https://notes.example" }));
    let (code, said) = run(folder, &["login", "upstreams.json"]);
    assert_eq!(code, Some(0), "{said}");
    let server = format!("`notes` names the authorization server `{b}`, and not `{a}`, the `issuer` of the config: ask ");
    let resource = format!(
        "`notes` has tokens issued for the resource `{}/mcp`, and not `https://notes.example`, the `resource` of the config: ask ",
        service.url
    );
    // The first lock file, and one of an older compiler.
    let (code, said) = run(folder, &["update", "upstreams.json"]);
    assert!(code == Some(0) && said.contains(&server) && said.contains(&resource), "{said}");
    let complete = remove_pin(folder);
    let (code, said) = run(folder, &["diff", "upstreams.json"]);
    assert!(code == Some(1) && said.contains(&server) && said.contains(&resource), "{said}");
    let (code, said) = run(folder, &["update", "upstreams.json"]);
    assert!(code == Some(0) && said.contains(&server) && said.contains(&resource), "{said}");
    assert_eq!(fs::read_to_string(folder.join("upstreams.lock.json")).unwrap(), complete);
    let (code, said) = run(folder, &["update", "upstreams.json"]);
    assert_eq!((code, said.lines().last()), (Some(0), Some("nothing changed")), "{said}");
}
