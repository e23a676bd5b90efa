//! HTTPS through a proxy, which sees only the destination.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use ptc_catalog::{Era, McpHttp, Proxy as Entry, Transport};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::http::handshaking;
use crate::tls::acceptor;
use crate::web::{Answer, Web};
use crate::world::{World, tool, upstream};

/// Listens on a new port and calls `serve` for each connection.
pub(crate) fn listen<F: Future<Output = std::io::Result<()>> + Send + 'static>(
    world: &World,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    world.handle.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Listens on a new port, terminates TLS, and forwards to `behind`. Returns the address, and the certificate as PEM.
pub(crate) fn listen_with_tls(world: &World, behind: SocketAddr) -> (SocketAddr, String) {
    let (acceptor, certificate) = acceptor(&[b"http/1.1"]);
    let address = listen(world, move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(stream).await?;
            copy_bidirectional(&mut stream, &mut TcpStream::connect(behind).await?).await.map(drop)
        }
    });
    (address, certificate)
}

/// A proxy that opens tunnels, or answers with another status. It records the head of each request and the number of closed
/// tunnels.
struct Proxy {
    url: &'static str,
    heads: Arc<Mutex<Vec<String>>>,
    closed: Arc<Mutex<u32>>,
}

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Both for S {}

/// Starts a proxy, which uses TLS if an acceptor is given.
fn proxy(world: &World, status: &'static str, tls: Option<TlsAcceptor>) -> Proxy {
    let (heads, closed) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<u32>>::default());
    let (noted, counted) = (Arc::clone(&heads), Arc::clone(&closed));
    let scheme = if tls.is_some() { "https" } else { "http" };
    let address = listen(world, move |client| {
        let (noted, counted, tls) = (Arc::clone(&noted), Arc::clone(&counted), tls.clone());
        async move {
            let mut client: Box<dyn Both> = match tls {
                Some(tls) => Box::new(tls.accept(client).await?),
                None => Box::new(client),
            };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await?);
            }
            let head = String::from_utf8(head).unwrap();
            let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
            noted.lock().unwrap().push(head);
            client.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await?;
            if !status.starts_with("200") {
                return client.shutdown().await;
            }
            let mut server = TcpStream::connect(target).await?;
            // A TLS connection closed without `close_notify` is an error here, but counts as closed.
            let _ = copy_bidirectional(&mut client, &mut server).await;
            *counted.lock().unwrap() += 1;
            Ok(())
        }
    });
    Proxy { url: format!("{scheme}://localhost:{}", address.port()).leak(), heads, closed }
}

#[test]
fn https_passes_a_proxy_encrypted() {
    let home = World::new(Vec::new());
    let web = Web::start(|asked| {
        handshaking(asked, |frame| {
            let content = json!([{"type": "text", "text": "through the tunnel"}]);
            Answer::json(200, json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"content": content}}))
        })
    });
    let (secure, certificate) = listen_with_tls(&home, web.address);
    let url: &'static str = format!("https://localhost:{}/mcp", secure.port()).leak();
    // The connection to the proxy uses HTTP/1.1, even if the proxy supports HTTP/2.
    let (of_proxy, more) = crate::tls::acceptor(&[b"h2", b"http/1.1"]);
    let world = |proxy: &Proxy| {
        let spec = McpHttp { proxy: Some(Entry::new(proxy.url)), era: Some(Era::Handshake), ..McpHttp::new(url) };
        let roots = Arc::from(format!("{certificate}{more}").as_bytes());
        World::with(vec![upstream("web", Transport::McpHttp(spec), vec![tool("echo")])], Vec::new(), |settings| {
            settings.extra_roots = Some(roots);
        })
    };
    for tls in [None, Some(of_proxy)] {
        let open = proxy(&home, "200 OK", tls);
        let through = world(&open);
        let before = web.requests().len();
        assert_eq!(through.program().call("web", "echo", r#"{"message":"for the server alone"}"#), "text through the tunnel");
        let target = format!("localhost:{}", secure.port());
        let heads = open.heads.lock().unwrap().clone();
        assert!(!heads.is_empty());
        for head in heads {
            assert!(head.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")) && !head.contains("server alone"), "{head}");
        }
        let requests = web.requests().split_off(before);
        assert!(requests.iter().any(|asked| asked.body.contains("for the server alone")));
        assert!(requests.iter().all(|asked| asked.header("proxy-authorization").is_none()), "the proxy's alone");
        through.shutdown();
        drop(through);
        crate::world::eventually("the tunnel is closed", || *open.closed.lock().unwrap() > 0);
    }

    let before = web.requests().len();
    let closed = proxy(&home, "403 Forbidden", None);
    let answer = world(&closed).program().call("web", "echo", "{}");
    assert!(answer.starts_with("upstream_unavailable: cannot connect"), "{answer}");
    assert_eq!(web.requests().len(), before, "nothing goes around the proxy");
}
