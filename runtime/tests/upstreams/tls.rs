//! HTTPS: trusted certificates, and many calls over one HTTP/2 connection.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use ptc_catalog::{Auth, Binding, McpHttp, OpenApi, Operation, Proxy, Source, Transport};
use ptc_lisp::host::{Reply, WaitOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::world::{World, operation, upstream};

/// A server with a self-signed certificate. It supports only HTTP/2 and answers each request with the number of connections so
/// far, unless its path has a special meaning.
struct Secure {
    url: &'static str,
    certificate: String,
    /// Paths of the received requests.
    asked: Arc<Mutex<Vec<String>>>,
}

/// Returns a TLS acceptor for `localhost` with a self-signed certificate, and the certificate as PEM.
pub(crate) fn acceptor(protocols: &[&[u8]]) -> (TlsAcceptor, String) {
    acceptor_for(protocols, None)
}

/// Like [`acceptor`], for a server that demands a certificate of its clients if `client` is given.
fn acceptor_for(protocols: &[&[u8]], client: Option<CertificateDer<'static>>) -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let builder = match client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let mut roots = RootCertStore::empty();
            roots.add(client).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

fn serve(world: &World) -> Secure {
    let (acceptor, certificate) = acceptor(&[b"h2"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port()).leak();
    listener.set_nonblocking(true).unwrap();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&asked);
    world.handle.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let connections = Arc::new(AtomicU32::new(0));
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, connections, log) = (acceptor.clone(), Arc::clone(&connections), Arc::clone(&log));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                connections.fetch_add(1, Ordering::SeqCst);
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let path = request.uri().path().to_owned();
                    let before = log.lock().unwrap().iter().filter(|asked| **asked == path).count();
                    log.lock().unwrap().push(path.clone());
                    match path.as_str() {
                        "/refused-once" if before == 0 => {
                            respond.send_reset(h2::Reason::REFUSED_STREAM);
                            continue;
                        }
                        "/given-up" => {
                            respond.send_reset(h2::Reason::INTERNAL_ERROR);
                            continue;
                        }
                        "/torn" => return,
                        _ => {}
                    }
                    let body = connections.load(Ordering::SeqCst).to_string();
                    let head = http::Response::builder().header("content-type", "application/json").body(()).unwrap();
                    let mut stream = respond.send_response(head, false).unwrap();
                    stream.send_data(Bytes::from(body), true).unwrap();
                }
            });
        }
    });
    Secure { url, certificate, asked }
}

#[test]
fn certificate_is_trusted_if_the_operator_lists_it() {
    let home = World::new(Vec::new());
    let server = serve(&home);
    let world = |roots: Option<&str>| {
        let fine = operation("fine", Operation::new("fine", "/"));
        let roots = roots.map(|pem| Arc::from(pem.as_bytes()));
        World::with(vec![upstream("api", Transport::OpenApi(OpenApi::new(server.url)), vec![fine])], Vec::new(), |settings| {
            settings.extra_roots = roots;
        })
    };
    let answer = world(None).program().call("api", "fine", "{}");
    assert!(answer.starts_with("upstream_unavailable: cannot connect to 'api': invalid peer certificate"), "{answer}");

    let trusting = world(Some(&server.certificate));
    let program = trusting.program();
    assert_eq!(program.call("api", "fine", "{}"), "json 1");
    let tickets: Vec<_> = (0..20).map(|_| program.start("api", "fine", "{}")).collect();
    for ticket in tickets {
        let waited = ticket.wait(None);
        assert!(
            matches!(&waited, WaitOutcome::Reply(Reply::Http(_, reply)) if matches!(&**reply, Reply::Json(json) if json == b"1")),
            "one connection carries all: {waited:?}"
        );
    }
}

#[test]
fn read_over_http2_is_retried_once_if_stream_or_connection_fails() {
    let home = World::new(Vec::new());
    let server = serve(&home);
    for (path, told, times) in [
        ("/refused-once", "json ", 2),
        ("/given-up", "upstream_unavailable: the request failed: ", 2),
        ("/torn", "upstream_unavailable: the request failed: ", 2),
    ] {
        let fine = operation("fine", Operation::new("fine", path));
        let roots = Arc::from(server.certificate.as_bytes());
        let api = upstream("api", Transport::OpenApi(OpenApi::new(server.url)), vec![fine]);
        let world = World::with(vec![api], Vec::new(), |settings| settings.extra_roots = Some(roots));
        let answer = world.program().call("api", "fine", "{}");
        assert!(answer.starts_with(told), "{path}: {answer}");
        assert_eq!(server.asked.lock().unwrap().iter().filter(|asked| *asked == path).count(), times, "{path}");
    }
}

#[test]
fn client_certificate_is_presented() {
    let client = rcgen::generate_simple_self_signed(["client".to_owned()]).unwrap();
    let (acceptor, certificate) = acceptor_for(&[b"http/1.1"], Some(client.cert.der().clone()));
    let home = World::new(Vec::new());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url: &'static str = format!("https://localhost:{}", listener.local_addr().unwrap().port()).leak();
    listener.set_nonblocking(true).unwrap();
    home.handle.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let _ = stream.read(&mut [0; 4096]).await;
                let answer =
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\nConnection: close\r\n\r\n7";
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    let call = |secret: Option<String>| {
        let auth: &[Auth] = if secret.is_some() { &[Auth::ClientCertificate { binding: "certificate" }] } else { &[] };
        let value: &'static str = secret.unwrap_or_default().leak();
        let api = Transport::OpenApi(OpenApi { auth, ..OpenApi::new(url) });
        let bindings = vec![Binding { name: "certificate", source: Source::Literal { value } }];
        let roots = Arc::from(certificate.as_bytes());
        let tools = vec![operation("fine", Operation::new("fine", "/"))];
        let world = World::with(vec![upstream("api", api, tools)], bindings, |settings| settings.extra_roots = Some(roots));
        world.program().call("api", "fine", "{}")
    };
    let pem = format!("{}{}", client.cert.pem(), client.signing_key.serialize_pem());
    assert_eq!(call(Some(pem.clone())), "json 7");
    let without = call(None);
    assert!(without.starts_with("upstream_unavailable: "), "{without}");
    // A proxy with TLS does not get it for an upstream without TLS.
    let value: &'static str = pem.leak();
    let auth: &[Auth] = &[Auth::ClientCertificate { binding: "certificate" }];
    let api = Transport::McpHttp(McpHttp { auth, proxy: Some(Proxy::new(url)), ..McpHttp::new("http://api.example.com/mcp") });
    let bindings = vec![Binding { name: "certificate", source: Source::Literal { value } }];
    let tools = vec![operation("fine", Operation::new("fine", "/"))];
    let roots = Arc::from(certificate.as_bytes());
    let world = World::with(vec![upstream("api", api, tools)], bindings, |settings| settings.extra_roots = Some(roots));
    let refused = world.program().call("api", "fine", "{}");
    assert!(refused.contains("a client certificate needs a URL with https://"), "{refused}");
    let unread = call(Some(client.cert.pem()));
    assert!(
        unread.starts_with("auth_failed: credential binding 'certificate' is not a PEM certificate with its private key"),
        "{unread}"
    );
}
