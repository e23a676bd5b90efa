//! A forward proxy over sockets: `CONNECT` opens a tunnel, and a request with an absolute URL is forwarded.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A running proxy. It ends with the process.
pub(crate) struct ForwardProxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl ForwardProxy {
    /// Starts a proxy. If `login` is given, requests without this value of `Proxy-Authorization` are answered with 407.
    pub(crate) fn start(login: Option<&'static str>) -> ForwardProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || serve(&stream, login, &log));
            }
        });
        ForwardProxy { address, heads }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the request line and the headers of each request.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn serve(client: &TcpStream, login: Option<&str>, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut out = client;
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    log.lock().unwrap().push(lines.join("\r\n"));
    let header = |name: &str| {
        let pairs = lines.iter().skip(1).filter_map(|line| line.split_once(':'));
        pairs.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    };
    if login.is_some() && header("Proxy-Authorization") != login {
        return out.write_all(
            b"HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"proxy\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    let Some((method, rest)) = lines.first().and_then(|line| line.split_once(' ')) else { return Ok(()) };
    let target = rest.split(' ').next().unwrap_or_default();
    if method == "CONNECT" {
        let server = TcpStream::connect(target)?;
        out.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from_server, &mut to_client);
            let _ = to_client.shutdown(Shutdown::Both);
        });
        let _ = std::io::copy(&mut reader, &mut &server);
        return server.shutdown(Shutdown::Both);
    }
    let (authority, path) = target.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
    let mut body = vec![0; header("Content-Length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body)?;
    let mut server = TcpStream::connect(authority)?;
    let kept = lines.iter().skip(1).filter(|line| !line.to_ascii_lowercase().starts_with("proxy-"));
    let head = kept.fold(format!("{method} /{path} HTTP/1.1\r\n"), |head, line| head + line + "\r\n");
    server.write_all(&[head.as_bytes(), b"\r\n", &body].concat())?;
    server.shutdown(Shutdown::Write)?;
    // The connection serves one request.
    let mut response = BufReader::new(&server);
    let mut status = String::new();
    response.read_line(&mut status)?;
    out.write_all(format!("{status}Connection: close\r\n").as_bytes())?;
    std::io::copy(&mut response, &mut out).map(drop)
}
