//! Tests the messages of `ptc-compile login`. What is stored and sent is tested with the crate `ptc-oauth-client`.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;
use tiny_http::{Response, Server};

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
