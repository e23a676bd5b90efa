//! HTTPS: whom it trusts, and many calls over one HTTP/2 connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use ptc_catalog::{OpenApi, Operation, Params, Transport};
use ptc_lisp::host::{Reply, Waited};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::world::{World, operation, upstream};

/// A server with a certificate of its own making, which is its PEM. It speaks HTTP/2 alone, and answers each request with the
/// number of connections that there were.
struct Secure {
    url: &'static str,
    certificate: String,
}

/// What speaks TLS for `localhost` with a certificate of its own making, and that as PEM.
pub(crate) fn acceptor(protocols: &[&[u8]]) -> (TlsAcceptor, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), made.cert.pem())
}

fn serve(world: &World) -> Secure {
    let (acceptor, certificate) = acceptor(&[b"h2"]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port()).leak();
    listener.set_nonblocking(true).unwrap();
    world.handle.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let connections = Arc::new(AtomicU32::new(0));
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, connections) = (acceptor.clone(), Arc::clone(&connections));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                connections.fetch_add(1, Ordering::SeqCst);
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    let body = connections.load(Ordering::SeqCst).to_string();
                    let head = http::Response::builder().header("content-type", "application/json").body(()).unwrap();
                    let mut stream = respond.send_response(head, false).unwrap();
                    stream.send_data(Bytes::from(body), true).unwrap();
                }
            });
        }
    });
    Secure { url, certificate }
}

#[test]
fn a_certificate_is_trusted_where_the_operator_says_so() {
    let home = World::new(Vec::new());
    let server = serve(&home);
    let world = |roots: Option<&str>| {
        let fine = operation("fine", Operation { id: "fine", path: "/", params: Params::NONE, default_args: &[] });
        let roots = roots.map(|pem| Arc::from(pem.as_bytes()));
        World::with(vec![upstream("api", Transport::OpenApi(OpenApi::new(server.url)), vec![fine])], Vec::new(), |settings| {
            settings.extra_roots = roots;
        })
    };
    let answer = world(None).program().call("api", "fine", "{}");
    assert!(answer.starts_with("upstream_unavailable: cannot connect: invalid peer certificate"), "{answer}");

    let trusting = world(Some(&server.certificate));
    let program = trusting.program();
    assert_eq!(program.call("api", "fine", "{}"), "json 1");
    let tickets: Vec<_> = (0..20).map(|_| program.start("api", "fine", "{}")).collect();
    for ticket in tickets {
        let waited = ticket.wait(None);
        assert!(matches!(&waited, Waited::Reply(Reply::Json(json)) if json == b"1"), "one connection carries all: {waited:?}");
    }
}
