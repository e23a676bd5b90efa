//! Certificates of clients, and certificates that are replaced while the server runs.

use std::io::{Read as _, Write as _};
#[cfg(feature = "agentic")]
use std::net::TcpListener;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

#[cfg(feature = "agentic")]
use super::separation::{address_of, check_separation};
#[cfg(feature = "agentic")]
use super::site::Client;
use super::site::{Site, TOKEN, stateless};
use crate::Test;
use crate::peer::server;
use crate::policy::{COUNT, called, count_file};

pub(super) const TESTS: &[Test] = &[
    ("http::subject_of_a_certificate_is_the_owner", subject_of_a_certificate_is_the_owner),
    ("http::policy_names_the_subject_of_a_certificate", policy_names_the_subject_of_a_certificate),
    ("http::token_replaces_a_certificate", token_replaces_a_certificate),
    #[cfg(feature = "agentic")]
    ("http::owner_of_a_certificate_finds_nothing_of_another", owner_of_a_certificate_finds_nothing_of_another),
    ("http::certificates_are_read_again_on_hangup", certificates_are_read_again_on_hangup),
];

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

/// A certificate with its key.
struct Credential {
    certificate: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = params(Some(name), &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let (pem, der) = (certificate.pem(), certificate.der().clone());
        Authority { issuer: Issuer::new(params, key), certificate: der, pem }
    }

    fn issue(&self, subject: Option<&str>, names: &[&str]) -> Credential {
        let key = KeyPair::generate().expect("a key");
        let certificate = params(subject, names).signed_by(&key, &self.issuer).expect("a certificate");
        Credential { certificate: certificate.der().clone(), pem: certificate.pem(), key }
    }
}

fn params(subject: Option<&str>, names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name = DistinguishedName::new();
    if let Some(subject) = subject {
        params.distinguished_name.push(DnType::CommonName, subject);
    }
    params
}

/// The files of a server.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Files {
        let folder = std::env::temp_dir().join(format!("ptc-certificates-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Files(folder)
    }

    fn path(&self, name: &str) -> &'static str {
        self.0.join(name).to_str().expect("plain text").to_owned().leak()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(Path::new(self.path(name)), text).expect("a file");
    }

    fn serve_as(&self, credential: &Credential) {
        self.write("cert.pem", &credential.pem);
        self.write("key.pem", &credential.key.serialize_pem());
    }

    fn start(&self, more: &[&str]) -> Site {
        Site::of(self.command("plain").args(more))
    }

    fn command(&self, deployment: &str) -> Command {
        let mut command = server(deployment);
        command.args(["--http", "--http-port", "0"]).args(self.options());
        command
    }

    fn options(&self) -> [&'static str; 6] {
        let [cert, key, clients] = ["cert.pem", "key.pem", "clients.pem"].map(|name| self.path(name));
        ["--http-tls-cert", cert, "--http-tls-key", key, "--http-tls-client-ca", clients]
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the settings of a client that trusts an authority.
fn config(server: &Authority, client: Option<&Credential>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(server.certificate.clone()).expect("a root");
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    match client {
        None => builder.with_no_client_auth(),
        Some(Credential { certificate, key, .. }) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
            builder.with_client_auth_cert(vec![certificate.clone()], key).expect("a certificate with its key")
        }
    }
}

/// Sends a request over a new connection. Returns the answer, or an empty text if there is no connection.
fn ask(address: SocketAddr, server: &Authority, client: Option<&Credential>, request: &str) -> String {
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config(server, client)), name).expect("a client");
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).expect("it listens"));
    let mut answer = String::new();
    if stream.write_all(request.as_bytes()).is_ok() {
        // The server may close the connection without `close_notify`.
        let _ = stream.read_to_string(&mut answer);
    }
    answer
}

/// Returns the call of a tool as a request.
fn tool(name: &str, arguments: &Value, token: Option<&str>) -> String {
    let (headers, body) = stateless(1, "tools/call", json!({ "name": name, "arguments": arguments }));
    let mut request =
        String::from("POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n");
    let token = token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
    for (name, value) in headers.into_iter().chain(token) {
        request.extend([&*name, ": ", &*value, "\r\n"]);
    }
    request + &format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

fn status(answer: &str) -> Option<u16> {
    answer.split(' ').nth(1)?.parse().ok()
}

fn content(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}")).1;
    serde_json::from_str::<Value>(body).expect("JSON")["result"]["structuredContent"].clone()
}

fn subject_of_a_certificate_is_the_owner() {
    let (authority, other, files) = (Authority::new("authority"), Authority::new("other"), Files::new("owner"));
    files.serve_as(&authority.issue(Some("localhost"), &["localhost"]));
    files.write("clients.pem", &authority.pem);
    let site = files.start(&["--sessions", "--http-admin-port", "0"]);
    let send = |client: Option<&Credential>, name: &str, arguments: Value| {
        ask(site.address, &authority, client, &tool(name, &arguments, None))
    };
    let (alice, bob) = (authority.issue(Some("alice"), &[]), authority.issue(Some("bob"), &[]));
    let session = content(&send(Some(&alice), "lisp_session_start", json!({})))["session_id"].clone();
    assert!(session.is_string());
    // The owner is the subject and not the certificate, which is renewed.
    let renewed = authority.issue(Some("alice"), &["alice.example"]);
    assert_eq!(content(&send(Some(&renewed), "lisp_session_list", json!({})))["sessions"][0]["session_id"], session);
    assert_eq!(content(&send(Some(&bob), "lisp_session_list", json!({})))["sessions"], json!([]));
    assert_eq!(
        content(&send(Some(&bob), "lisp_session_inspect", json!({ "session_id": session })))["reason"],
        "session_not_found"
    );
    // All certificates without a subject would be one owner.
    assert_eq!(status(&send(Some(&authority.issue(None, &["alice"])), "lisp_eval", json!({ "program": "1" }))), Some(401));
    for (client, what) in
        [(None, "no certificate"), (Some(&other.issue(Some("alice"), &[])), "a certificate of another authority")]
    {
        assert_eq!(send(client, "lisp_eval", json!({ "program": "1" })), "", "{what}");
    }
    let health = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let admin = site.admin.expect("an admin listener");
    assert_eq!(status(&ask(admin, &authority, None, health)), Some(200), "a probe has no certificate");
}

fn policy_names_the_subject_of_a_certificate() {
    let (authority, files, count) = (Authority::new("authority"), Files::new("policy"), count_file("certificate"));
    files.serve_as(&authority.issue(Some("localhost"), &["localhost"]));
    files.write("clients.pem", &authority.pem);
    let site = Site::of(files.command("policy").env(COUNT, &count).args(["--response-profile", "structured"]));
    let request = tool("lisp_eval", &json!({ "program": r#"(tool/value {:server "billing" :tool "refund"})"# }), None);
    let send = |subject| content(&ask(site.address, &authority, Some(&authority.issue(Some(subject), &[])), &request));
    let answer = send("carol");
    assert_eq!(answer["status"], "ok", "{answer}");
    for other in ["bob", "Carol", "carol,O=Acme"] {
        let answer = send(other);
        assert_eq!(answer["message"], "unknown_tool: no upstream 'billing' configured", "{other}: {answer}");
    }
    assert_eq!(called(&count), ["refund"]);
    std::fs::remove_file(&count).expect("it is there");
}

fn token_replaces_a_certificate() {
    let (authority, files) = (Authority::new("authority"), Files::new("token"));
    files.serve_as(&authority.issue(Some("localhost"), &["localhost"]));
    files.write("clients.pem", &authority.pem);
    let site = files.start(&["--http-auth-token", TOKEN, "--sessions"]);
    let alice = authority.issue(Some("alice"), &[]);
    let send = |client, name: &str, token| ask(site.address, &authority, client, &tool(name, &json!({}), token));
    let wrong = "a-wrong-token-0123456789-0123456789-0123456789";
    for (client, token, expected) in [
        (None, Some(TOKEN), 200),
        (Some(&alice), None, 200),
        (Some(&alice), Some(TOKEN), 200),
        (None, None, 401),
        (None, Some(wrong), 401),
        (Some(&alice), Some(wrong), 401),
    ] {
        assert_eq!(status(&send(client, "lisp_session_list", token)), Some(expected), "{} {token:?}", client.is_some());
    }
    // With both, the owner is that of the token.
    let session = content(&send(Some(&alice), "lisp_session_start", Some(TOKEN)))["session_id"].clone();
    assert_eq!(content(&send(None, "lisp_session_list", Some(TOKEN)))["sessions"][0]["session_id"], session);
    assert_eq!(content(&send(Some(&alice), "lisp_session_list", None))["sessions"], json!([]));
}

#[cfg(feature = "agentic")]
fn owner_of_a_certificate_finds_nothing_of_another() {
    let (authority, files) = (Authority::new("authority"), Files::new("separate"));
    files.serve_as(&authority.issue(Some("localhost"), &["localhost"]));
    files.write("clients.pem", &authority.pem);
    let options = files.options();
    let owners = ["alice", "bob"].map(|name| authority.issue(Some(name), &[]));
    check_separation("separate", "certificate:CN=alice", &options, &|site, surface, who| {
        Client::connect(tunnel(address_of(site, surface), config(&authority, Some(&owners[who]))))
    });
}

/// Returns the address of a listener that forwards one connection over TLS.
#[cfg(feature = "agentic")]
fn tunnel(to: SocketAddr, config: ClientConfig) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (plain, _) = listener.accept().expect("a connection");
            plain.set_nonblocking(true).expect("a socket takes it");
            let mut plain = tokio::net::TcpStream::from_std(plain).expect("a socket");
            let server = tokio::net::TcpStream::connect(to).await.expect("it listens");
            let name = ServerName::try_from("localhost").expect("a name");
            let secure = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, server).await;
            // Either side may end the connection.
            let _ = tokio::io::copy_bidirectional(&mut plain, &mut secure.expect("a handshake")).await;
        });
    });
    address
}

fn certificates_are_read_again_on_hangup() {
    let (first, second, files) = (Authority::new("first"), Authority::new("second"), Files::new("reload"));
    files.serve_as(&first.issue(Some("localhost"), &["localhost"]));
    files.write("clients.pem", &first.pem);
    let mut site = files.start(&[]);
    let (old, new) = (first.issue(Some("alice"), &[]), second.issue(Some("alice"), &[]));
    let request = tool("lisp_eval", &json!({ "program": "(+ 1 2)" }), None);
    let address = site.address;
    let is_served = |server: &Authority, client: &Credential| status(&ask(address, server, Some(client), &request)) == Some(200);
    assert!(is_served(&first, &old) && !is_served(&first, &new));
    for (file, text) in [("cert.pem", "not a certificate"), ("clients.pem", ""), ("key.pem", &new.key.serialize_pem())] {
        let before = std::fs::read_to_string(files.path(file)).expect("a file");
        files.write(file, text);
        site.signal(Signal::HUP);
        let refused = site.logged("certificates not loaded");
        assert!(refused["reason"].as_str().is_some_and(|reason| reason.contains(".pem: ")), "{refused}");
        assert!(is_served(&first, &old), "{file}");
        files.write(file, &before);
    }
    files.serve_as(&second.issue(Some("localhost"), &["localhost"]));
    files.write("clients.pem", &second.pem);
    site.signal(Signal::HUP);
    site.logged("certificates loaded");
    assert!(is_served(&second, &new));
    assert!(!is_served(&second, &old) && !is_served(&first, &new) && !is_served(&first, &old));
    site.signal(Signal::TERM);
    assert!(site.end().0.success());
    for (args, part) in [
        (&["--http-tls-client-ca", files.path("clients.pem")][..], "--http-tls-client-ca needs --http-tls-cert"),
        (&["--http-tls-client-ca", "/nonexistent"], "expected an existing file"),
    ] {
        let refused = server("plain").args(["--http", "--http-port", "0"]).args(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(part), "{said}");
    }
}
