//! HTTPS through a proxy, which sees where to and nothing else.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use ptc_catalog::{Era, McpHttp, Transport};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::http::handshaking;
use crate::tls::acceptor;
use crate::web::{Answer, Web};
use crate::world::{World, tool, upstream};

/// Listens on a port of its own; each connection is for `serve`.
fn listen<F: Future<Output = std::io::Result<()>> + Send + 'static>(
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

/// A proxy that opens tunnels, or answers with another status. It notes the head of each request and the bytes that went through.
struct Proxy {
    url: &'static str,
    heads: Arc<Mutex<Vec<String>>>,
    carried: Arc<Mutex<u64>>,
}

fn proxy(world: &World, status: &'static str) -> Proxy {
    let (heads, carried) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<u64>>::default());
    let (noted, counted) = (Arc::clone(&heads), Arc::clone(&carried));
    let address = listen(world, move |mut client| {
        let (noted, counted) = (Arc::clone(&noted), Arc::clone(&counted));
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await?);
            }
            let head = String::from_utf8(head).unwrap();
            let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
            noted.lock().unwrap().push(head);
            client.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await?;
            if !status.starts_with("200") {
                return Ok(());
            }
            let mut server = TcpStream::connect(target).await?;
            let (sent, _) = copy_bidirectional(&mut client, &mut server).await.unwrap_or_default();
            *counted.lock().unwrap() += sent;
            Ok(())
        }
    });
    Proxy { url: format!("http://{address}").leak(), heads, carried }
}

#[test]
fn a_proxy_carries_https_without_reading_it() {
    let home = World::new(Vec::new());
    let web = Web::start(|asked| {
        handshaking(asked, |frame| {
            let content = json!([{"type": "text", "text": "through the tunnel"}]);
            Answer::json(200, json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"content": content}}))
        })
    });
    // The server's TLS ends here.
    let (acceptor, certificate) = acceptor(&[b"http/1.1"]);
    let behind = web.address;
    let secure = listen(&home, move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(stream).await?;
            copy_bidirectional(&mut stream, &mut TcpStream::connect(behind).await?).await.map(drop)
        }
    });
    let url: &'static str = format!("https://localhost:{}/mcp", secure.port()).leak();
    let world = |proxy: &Proxy| {
        let spec = McpHttp { proxy: Some(proxy.url), era: Some(Era::Handshake), ..McpHttp::new(url) };
        let roots = Arc::from(certificate.as_bytes());
        World::with(vec![upstream("web", Transport::McpHttp(spec), vec![tool("echo")])], Vec::new(), |settings| {
            settings.extra_roots = Some(roots);
        })
    };
    let open = proxy(&home, "200 OK");
    let through = world(&open);
    assert_eq!(through.program().call("web", "echo", r#"{"message":"for the server alone"}"#), "text through the tunnel");
    let target = format!("localhost:{}", secure.port());
    for head in &*open.heads.lock().unwrap() {
        assert!(head.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")) && !head.contains("server alone"), "{head}");
    }
    assert!(web.requests().iter().any(|asked| asked.body.contains("for the server alone")));
    through.shutdown();
    drop(through);
    crate::world::eventually("the tunnel is closed", || *open.carried.lock().unwrap() > 0);

    let before = web.requests().len();
    let closed = proxy(&home, "407 Proxy Authentication Required");
    let answer = world(&closed).program().call("web", "echo", "{}");
    assert!(answer.starts_with("upstream_unavailable: cannot connect"), "{answer}");
    assert_eq!(web.requests().len(), before, "nothing goes around the proxy");
}
