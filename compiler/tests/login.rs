//! Tests the messages of `ptc-compile login`. What is stored and sent is tested with the crate `ptc-oauth-client`.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tiny_http::{Response, Server};
use url::Url;

const SECRET: &str = "not-a-real+client/secret";
/// `gate` and the form-encoded secret, as a header has them.
const BASIC: &str = "Z2F0ZTpub3QtYS1yZWFsJTJCY2xpZW50JTJGc2VjcmV0";
const REFRESH_TOKEN: &str = "not-a-real-refresh-token";

/// The authorization server repeats the form and the header of the client in its refusal.
#[test]
fn secrets_that_a_refusal_repeats_are_not_printed() {
    for client_auth in ["client_secret_basic", "client_secret_post"] {
        let server = Server::http("127.0.0.1:0").unwrap();
        let token_url = format!("http://{}/token", server.server_addr().to_ip().unwrap());
        let refusing = std::thread::spawn(move || {
            let mut asked = server.recv().unwrap();
            let mut form = String::new();
            asked.as_reader().read_to_string(&mut form).unwrap();
            let header = asked.headers().iter().find(|header| header.field.equiv("Authorization"));
            let repeated = format!("{} {form}", header.map_or("", |header| header.value.as_str()));
            let body = json!({ "error": "invalid_grant", "error_description": repeated }).to_string();
            asked.respond(Response::from_string(body).with_status_code(400)).unwrap();
        });
        let config = json!({ "upstreams": { "crm": {
            "transport": "mcp_http", "url": "http://127.0.0.1:9/mcp", "allow_insecure_http": true, "allow_insecure_auth": true,
            "auth": [{ "scheme": "oauth2", "grant": "refresh_token", "token_url": token_url, "client_id": "gate",
                "client_auth": client_auth, "binding": "client" }],
        } }, "credentials": { "client": { "source": "env", "var": "CLIENT_SECRET" } } });
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("upstreams.json"), config.to_string()).unwrap();
        fs::write(folder.path().join("token"), REFRESH_TOKEN).unwrap();
        let login = Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
            .args(["login", "upstreams.json", "--store", "tokens"])
            .env("CLIENT_SECRET", SECRET)
            .current_dir(folder.path())
            .stdin(Stdio::from(fs::File::open(folder.path().join("token")).unwrap()))
            .output()
            .unwrap();
        let shown = format!("{}{}", String::from_utf8_lossy(&login.stdout), String::from_utf8_lossy(&login.stderr));
        assert_eq!(login.status.code(), Some(2), "{shown}");
        refusing.join().unwrap();
        assert!(shown.contains("invalid_grant") && shown.contains("refresh_token=[REDACTED]"), "{shown}");
        for secret in [SECRET, "not-a-real%2Bclient%2Fsecret", BASIC, REFRESH_TOKEN] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
    }
}

/// The tokens are not requested if they cannot be stored.
#[test]
#[cfg(target_os = "linux")]
fn absent_keyring_is_reported_before_a_token_is_sent() {
    let server = Server::http("127.0.0.1:0").unwrap();
    let token_url = format!("http://{}/token", server.server_addr().to_ip().unwrap());
    let config = json!({ "upstreams": { "crm": {
        "transport": "mcp_http", "url": "http://127.0.0.1:9/mcp", "allow_insecure_http": true, "allow_insecure_auth": true,
        "auth": [{ "scheme": "oauth2", "grant": "refresh_token", "token_url": token_url, "client_id": "gate", "client_auth": "none" }],
    } } });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("upstreams.json"), config.to_string()).unwrap();
    fs::write(folder.path().join("token"), REFRESH_TOKEN).unwrap();
    for args in [&["login"][..], &["login", "--status"], &["logout"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_ptc-compile"))
            .args(args)
            .args(["upstreams.json", "--store", "keyring"])
            .env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", folder.path().join("bus").display()))
            .env("XDG_STATE_HOME", folder.path().join("state"))
            .current_dir(folder.path())
            .stdin(Stdio::from(fs::File::open(folder.path().join("token")).unwrap()))
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        let advice = "log in to a desktop session that has one, or keep the tokens in files (`--store FOLDER`";
        let has_all = message.contains("the keyring of the system cannot be reached: ") && message.contains(advice);
        assert!(has_all, "{args:?}: {message}");
    }
    assert!(server.try_recv().unwrap().is_none(), "no request was sent");
    assert!(!folder.path().join("keyring").exists(), "it is not the name of a folder");
}

/// An authorization server that records the forms of requests for tokens. It ends with the process.
fn authorization_server() -> (String, Arc<Mutex<Vec<String>>>) {
    let server = Server::http("127.0.0.1:0").unwrap();
    let issuer = format!("http://{}", server.server_addr().to_ip().unwrap());
    let forms = Arc::new(Mutex::new(Vec::new()));
    let (named, recorded) = (issuer.clone(), Arc::clone(&forms));
    std::thread::spawn(move || {
        for mut asked in server.incoming_requests() {
            let body = if asked.url() == "/token" {
                let mut form = String::new();
                asked.as_reader().read_to_string(&mut form).unwrap();
                recorded.lock().unwrap().push(form);
                json!({ "access_token": "not-a-real-token", "token_type": "Bearer", "expires_in": 3_600 })
            } else {
                json!({
                    "issuer": named,
                    "authorization_endpoint": format!("{named}/authorize"),
                    "token_endpoint": format!("{named}/token"),
                    "authorization_response_iss_parameter_supported": true,
                })
            };
            asked.respond(Response::from_string(body.to_string())).unwrap();
        }
    });
    (issuer, forms)
}

/// A running login, the port of its listener, and the state of its request.
struct Login {
    process: Child,
    messages: BufReader<ChildStderr>,
    port: u16,
    state: String,
}

impl Login {
    fn start(folder: &Path) -> Login {
        let mut login = Command::new(env!("CARGO_BIN_EXE_ptc-compile"));
        login.args(["login", "upstreams.json", "--store", "tokens", "--no-browser", "--timeout-s", "60"]).current_dir(folder);
        let mut process = login.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        messages.read_line(&mut line).unwrap();
        let url = Url::parse(line.trim().strip_prefix("crm: open ").unwrap_or_else(|| panic!("{line}"))).unwrap();
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let value = |name: &str| pairs.iter().find(|(key, _)| key == name).unwrap().1.clone();
        let port = Url::parse(&value("redirect_uri")).unwrap().port().unwrap();
        Login { process, messages, port, state: value("state") }
    }

    /// Sends a request to the listener. Returns the answer, or `None` without a listener.
    fn ask(&self, method: &str, target: &str) -> Option<String> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(connection, "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            .ok()?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).ok()?;
        assert!(!answer.to_ascii_lowercase().contains("location:"), "the listener redirects nowhere: {answer}");
        Some(answer)
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut shown = String::new();
        self.messages.read_to_string(&mut shown).unwrap();
        (self.process.wait().unwrap().code(), shown)
    }
}

/// Any page that the person opens can send requests to the listener.
#[test]
fn listener_of_a_login_takes_only_the_answer_to_its_own_request() {
    let (issuer, forms) = authorization_server();
    let config = json!({ "upstreams": { "crm": {
        "transport": "mcp_http", "url": "http://127.0.0.1:9/mcp", "allow_insecure_http": true, "allow_insecure_auth": true,
        "auth": [{ "scheme": "oauth2", "grant": "authorization_code", "issuer": issuer, "client_id": "gate", "client_auth": "none" }],
    } } });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("upstreams.json"), config.to_string()).unwrap();
    let login = Login::start(folder.path());
    let (state, iss) = (login.state.clone(), issuer.replace(':', "%3A").replace('/', "%2F"));
    let right = format!("/callback?code=right&state={state}&iss={iss}");
    for (method, target, status) in [
        ("POST", right.clone(), "405"),
        ("GET", "/".to_owned(), "404"),
        ("GET", format!("/callback?code=evil&state=other&iss={iss}"), "404"),
        ("GET", format!("/callback?code=evil&iss={iss}"), "404"),
        ("GET", format!("/callback?code=evil&state={state}&state={state}&iss={iss}"), "404"),
        ("GET", format!("//evil.example/callback?code=evil&state={state}&iss={iss}"), "404"),
        ("GET", format!("http://evil.example/callback?code=evil&state={state}&iss={iss}"), "404"),
        ("GET", format!("/callback/../x?code=evil&state={state}&iss={iss}"), "404"),
    ] {
        let answer = login.ask(method, &target).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && !answer.contains("evil"), "{method} {target}: {answer}");
    }
    assert!(forms.lock().unwrap().is_empty(), "no code has been exchanged");
    assert!(login.ask("GET", &right).unwrap().starts_with("HTTP/1.1 200"));
    // The same answer again finds no listener, or is not read: then the listener's library answers with an empty 500.
    let again = login.ask("GET", &right).unwrap_or_default();
    assert!(again.is_empty() || again.starts_with("HTTP/1.1 500") && again.contains("Content-Length: 0"), "{again}");
    let (code, shown) = login.end();
    assert_eq!(code, Some(0), "{shown}");
    let exchanged = std::mem::take(&mut *forms.lock().unwrap());
    assert!(
        exchanged.len() == 1 && exchanged[0].contains("code=right") && exchanged[0].contains("code_verifier="),
        "{exchanged:?}"
    );

    // The state of an earlier login is that of another request. An answer of another issuer ends the login.
    let login = Login::start(folder.path());
    assert_ne!(login.state, state);
    assert!(login.ask("GET", &right).unwrap().starts_with("HTTP/1.1 404"));
    let foreign = format!("/callback?code=evil&state={}&iss=https%3A%2F%2Fevil.example", login.state);
    assert!(login.ask("GET", &foreign).unwrap().starts_with("HTTP/1.1 400"));
    let (code, shown) = login.end();
    assert!(code == Some(2) && shown.contains("issuer"), "{shown}");
    assert!(forms.lock().unwrap().is_empty(), "no code has been exchanged");
}
