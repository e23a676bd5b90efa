//! A small HTTP/1.1 server over a socket: one thread per connection, answers from a function.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// Headers with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body as text; invalid UTF-8 is replaced.
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }
}

/// The answer to a request.
pub(crate) enum Answer {
    /// Status, header lines and body.
    Full(u16, Vec<String>, Vec<u8>),
    /// An event stream: chunks with a pause in ms before each, closed at the end.
    Stream(Vec<(u64, String)>),
    /// An event stream: chunks as they are received, closed when the sender is dropped.
    Events(mpsc::Receiver<String>),
    /// Raw bytes with a pause in ms before each part, and the way it ends.
    Raw(Vec<(u64, Vec<u8>)>, End),
    /// No answer, until the client gives up.
    Hang,
    /// The connection is closed without an answer.
    Close,
}

/// The end of a raw answer.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// The connection is closed in order.
    Close,
    /// The connection is reset.
    Reset,
    /// The connection stays open until the client gives up.
    Hang,
}

impl Answer {
    pub(crate) fn json(status: u16, body: impl std::fmt::Display) -> Answer {
        Answer::Full(status, vec!["Content-Type: application/json".into()], body.to_string().into_bytes())
    }
}

/// A running server. It ends with the process.
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

impl Web {
    pub(crate) fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                std::thread::spawn(move || {
                    let _ = serve(&stream, &*answer, &log);
                });
            }
        });
        Web { address, asked }
    }

    pub(crate) fn url(&self, path: &str) -> &'static str {
        format!("http://{}{path}", self.address).leak()
    }

    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Drops the received requests, which may be large.
    #[allow(dead_code, reason = "this file is part of two tests, one of which does not use it")]
    pub(crate) fn forget(&self) {
        self.asked.lock().unwrap().clear();
    }
}

fn serve(stream: &TcpStream, answer: &dyn Fn(&Asked) -> Answer, log: &Mutex<Vec<Asked>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut out = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut parts = line.split_whitespace();
        let (method, target) = (parts.next().unwrap_or_default().to_owned(), parts.next().unwrap_or_default().to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(n, _)| n == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let asked = Asked { method, target, headers, body: String::from_utf8_lossy(&body).into_owned(), bytes: body };
        log.lock().unwrap().push(asked.clone());
        match answer(&asked) {
            Answer::Full(status, lines, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
                for line in lines {
                    head.push_str(&line);
                    head.push_str("\r\n");
                }
                out.write_all(&[head.as_bytes(), b"\r\n", &body].concat())?;
            }
            Answer::Stream(chunks) => {
                out.write_all(
                    b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n",
                )?;
                for (pause, chunk) in chunks {
                    std::thread::sleep(std::time::Duration::from_millis(pause));
                    out.write_all(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes())?;
                }
                out.write_all(b"0\r\n\r\n")?;
            }
            Answer::Events(chunks) => {
                out.write_all(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                for chunk in chunks {
                    out.write_all(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes())?;
                }
                out.write_all(b"0\r\n\r\n")?;
            }
            Answer::Raw(parts, end) => {
                for (pause, part) in parts {
                    std::thread::sleep(std::time::Duration::from_millis(pause));
                    out.write_all(&part)?;
                }
                match end {
                    End::Close => {}
                    End::Reset => rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO))?,
                    End::Hang => drop(reader.read(&mut [0; 1])),
                }
                return Ok(());
            }
            Answer::Hang => {
                let _ = reader.read(&mut [0; 1]);
                return Ok(());
            }
            Answer::Close => return Ok(()),
        }
    }
}
