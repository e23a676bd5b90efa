//! One HTTP/1.1 connection of the generator. Requests are bytes that were built in advance. Only the needed parts of an answer
//! are parsed.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum idle time of a connection that is used again. Servers close idle connections after a time of their own.
const MAX_IDLE: Duration = Duration::from_secs(3);

/// A keep-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes of the current answer.
    received: Vec<u8>,
    /// The body of a chunked answer, with its chunks joined.
    joined: Vec<u8>,
    used: Instant,
}

/// An answer, borrowed from its connection.
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    pub(crate) session: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// The parsed head of an answer.
struct Head {
    length: usize,
    status: u16,
    content_length: usize,
    chunked: bool,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, received: Vec::new(), joined: Vec::new(), used: Instant::now() })
    }

    /// Whether another request can be sent on the connection. Unsolicited bytes are an error.
    pub(crate) fn is_usable(&self) -> io::Result<bool> {
        match self.stream.try_read(&mut [0; 1]) {
            Ok(0) => Ok(false),
            Ok(_) => Err(error("an answer without a request")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(self.used.elapsed() < MAX_IDLE),
            Err(_) => Ok(false),
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<Reply<'_>> {
        self.received.clear();
        self.stream.write_all(request).await?;
        let head = loop {
            if let Some(head) = Head::parse(&self.received)? {
                break head;
            }
            self.receive().await?;
        };
        let end = if head.chunked {
            self.join_chunks(head.length).await?
        } else {
            let end = head.length + head.content_length;
            while self.received.len() < end {
                self.receive().await?;
            }
            end
        };
        if self.received.len() > end {
            return Err(error("more than one answer to one request"));
        }
        self.used = Instant::now();
        let body = if head.chunked { &self.joined } else { &self.received[head.length..] };
        let session = header_lines(&self.received[..head.length]).find_map(|(name, value)| {
            name.eq_ignore_ascii_case(b"mcp-session-id").then(|| std::str::from_utf8(value).ok()).flatten()
        });
        Ok(Reply { status: head.status, session, body })
    }

    async fn receive(&mut self) -> io::Result<()> {
        if self.stream.read_buf(&mut self.received).await? == 0 {
            return Err(error("the server closed the connection"));
        }
        Ok(())
    }

    /// Joins the chunks that begin at offset `at`. Returns the offset of their end.
    async fn join_chunks(&mut self, mut at: usize) -> io::Result<usize> {
        self.joined.clear();
        loop {
            let Some(line) = memmem::find(&self.received[at..], b"\r\n") else {
                self.receive().await?;
                continue;
            };
            let size = std::str::from_utf8(&self.received[at..at + line]).ok();
            let size = size.and_then(|text| usize::from_str_radix(text.split(';').next()?.trim(), 16).ok());
            let size = size.ok_or_else(|| error("a chunk without a size"))?;
            let begin = at + line + 2;
            while self.received.len() < begin + size + 2 {
                self.receive().await?;
            }
            self.joined.extend_from_slice(&self.received[begin..begin + size]);
            at = begin + size + 2;
            if size == 0 {
                return Ok(at);
            }
        }
    }
}

impl Head {
    /// Parses the head of an answer. Returns `None` while it is incomplete.
    fn parse(received: &[u8]) -> io::Result<Option<Head>> {
        let Some(end) = memmem::find(received, b"\r\n\r\n") else { return Ok(None) };
        let length = end + 4;
        let status = received.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let status = status.ok_or_else(|| error("an answer without a status"))?;
        let mut head = Head { length, status, content_length: 0, chunked: false };
        for (name, value) in header_lines(&received[..length]) {
            if name.eq_ignore_ascii_case(b"content-length") {
                let value = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                head.content_length = value.ok_or_else(|| error("an invalid Content-Length"))?;
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                head.chunked = value.eq_ignore_ascii_case(b"chunked");
            }
        }
        Ok(Some(head))
    }
}

fn header_lines(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

fn error(message: &'static str) -> io::Error {
    io::Error::other(message)
}
