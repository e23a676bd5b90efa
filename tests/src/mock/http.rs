//! Serves a function over HTTP/1.1, with a thread for each connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

const MAX_BODY: u64 = 1024 * 1024;

/// A request.
#[derive(Debug)]
pub struct Received {
    /// The method, such as `GET`.
    pub method: String,
    /// Path and query.
    pub url: String,
    /// The body of the request.
    pub body: Vec<u8>,
}

/// Serves on a free port until the process ends, and returns the port. A response is a status and JSON.
pub fn serve(answer: impl Fn(&Received) -> (u16, String) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // Ignore the error of a client that disconnects.
            std::thread::spawn(move || drop(serve_connection(&connection, answer.as_ref())));
        }
    });
    port
}

fn serve_connection(connection: &TcpStream, answer: &dyn Fn(&Received) -> (u16, String)) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut input = BufReader::new(connection);
    let mut output = connection;
    while let Some(received) = receive(&mut input)? {
        let (status, text) = answer(&received);
        let kind = if text.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        let whole = format!("HTTP/1.1 {status} -\r\n{kind}Content-Length: {}\r\n\r\n{text}", text.len());
        output.write_all(whole.as_bytes())?;
    }
    Ok(())
}

/// Reads the next request. Returns `None` at the end of the connection.
fn receive(input: &mut impl BufRead) -> std::io::Result<Option<Received>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut parts = line.split_whitespace().map(str::to_owned);
    let (method, url) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut length = 0;
    loop {
        let mut header = String::new();
        if input.read_line(&mut header)? <= 2 {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    input.take(length.min(MAX_BODY)).read_to_end(&mut body)?;
    Ok(Some(Received { method, url, body }))
}
