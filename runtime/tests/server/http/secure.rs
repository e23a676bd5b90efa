//! HTTPS with a certificate from the settings.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

use super::site::Site;
use crate::Test;

pub(super) const TESTS: &[Test] = &[("http::https_with_the_certificate_of_the_settings", https)];

fn https() {
    let folder = std::env::temp_dir().join(format!("ptc-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let (certificate, key) = (certificate.to_str().expect("plain text"), key.to_str().expect("plain text"));
    let site = Site::start(&["--http-tls-cert", certificate, "--http-tls-key", key]);

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = StreamOwned::new(connection, TcpStream::connect(site.address).expect("it listens"));
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    // The server may close the connection without `close_notify`.
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(r#"{"status":"ok"}"#), "{answer}");
    // A client that does not use TLS gets no plain HTTP answer.
    let mut plain = site.client();
    plain.send("GET", "/health", &[], "");
    assert!(plain.try_receive().is_none_or(|answer| answer.status != 200));

    for (args, part) in [
        (&["--http", "--http-port", "0", "--http-tls-cert", certificate][..], "go together"),
        (&["--http", "--http-port", "0", "--http-tls-cert", key, "--http-tls-key", certificate], ".pem: "),
    ] {
        let done = crate::peer::server("plain").args(args).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(2) && said.contains(part), "{args:?}: {said}");
    }
    let _ = std::fs::remove_dir_all(&folder);
}
