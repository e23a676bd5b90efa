//! A listening server process, and a client that sends exact bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time limit for an awaited event, after which a test fails. It is generous since no passing test depends on it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const TOKEN: &str = "0123456789abcdef-0123456789abcdef-0123456789abcdef";

/// A program that ends only when it is stopped.
pub(crate) const ENDLESS: &str = "(loop [i 0] (recur (inc i)))";

/// A listening server.
pub(crate) struct Site {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Address of the admin listener, if there is one.
    pub(crate) admin: Option<SocketAddr>,
    log: Receiver<String>,
    seen: Vec<String>,
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Headers with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A keep-alive connection.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
    pub(crate) session: Option<String>,
    pub(crate) token: Option<&'static str>,
}

impl Site {
    pub(crate) fn start(args: &[&str]) -> Site {
        let mut command = crate::peer::server("plain");
        command.args(["--http", "--http-port", "0"]).args(args);
        if !args.iter().any(|arg| arg.starts_with("--http-auth-token")) {
            command.arg("--http-disable-auth");
        }
        Site::of(&mut command)
    }

    pub(crate) fn of(command: &mut Command) -> Site {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the server starts");
        let (send, log) = channel();
        let stderr = child.stderr.take().expect("it was piped");
        std::thread::spawn(move || BufReader::new(stderr).lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        let mut site = Site { child, address: ([127, 0, 0, 1], 0).into(), admin: None, log, seen: Vec::new() };
        let serving = site.logged("serving");
        let address = |name: &str| {
            let url = serving[name].as_str()?;
            url.trim_start_matches("https://").trim_start_matches("http://").split('/').next()?.parse().ok()
        };
        // A Unix socket has no address.
        site.address = address("url").unwrap_or(site.address);
        site.admin = address("admin_url");
        site
    }

    /// Returns the next line of the log with this event.
    pub(crate) fn logged(&mut self, event: &str) -> Value {
        loop {
            let line = self.log.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {event} in {:?}", self.seen));
            self.seen.push(line.clone());
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            if line["event"] == event {
                return line;
            }
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Returns the lines of the log so far.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Returns a client after the handshake.
    pub(crate) fn connected(&self) -> Client {
        let mut client = self.client();
        client.initialize();
        client
    }

    /// Returns a client with a token, after the handshake.
    pub(crate) fn authenticated(&self, token: &'static str) -> Client {
        let mut client = self.client();
        client.token = Some(token);
        client.initialize();
        client
    }

    /// Returns a new connection in another client's session.
    pub(crate) fn beside(&self, other: &Client) -> Client {
        Client { session: other.session.clone(), token: other.token, ..self.client() }
    }

    /// Waits until a metric has this value.
    pub(crate) fn until(&self, name: &str, value: u64) {
        let (mut client, began) = (self.client(), Instant::now());
        while client.count(name) != value {
            assert!(began.elapsed() < PATIENCE, "{name} is never {value}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the session of a client and its calls.
    pub(crate) fn close_session(&self, client: &Client) {
        assert_eq!(self.beside(client).ask("DELETE", "/mcp", &[], "").status, 204);
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("the server lives");
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end. Returns the status and the log.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.wait().expect("the server ends");
        let mut seen = std::mem::take(&mut self.seen);
        seen.extend(self.log.iter());
        (status, seen)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|fault| panic!("{fault} in {self:?}"))
    }

    /// Returns the text of a tool's result.
    pub(crate) fn text(&self) -> String {
        self.json()["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {self:?}")).to_owned()
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a time limit");
        stream.set_nodelay(true).expect("a socket takes it");
        Client { stream: BufReader::new(stream), session: None, token: None }
    }

    /// Writes a request. `headers` precede the default headers and replace those with equal names.
    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut all: Vec<(String, String)> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let length = body.len().to_string();
        let authorization = self.token.map(|token| format!("Bearer {token}"));
        let usual = [
            ("Host", Some("localhost")),
            ("Content-Type", Some("application/json").filter(|_| method == "POST")),
            ("Accept", Some("application/json, text/event-stream")),
            ("Content-Length", Some(length.as_str()).filter(|_| method == "POST")),
            ("Authorization", authorization.as_deref()),
            ("Mcp-Session-Id", self.session.as_deref()),
        ];
        for (name, value) in usual {
            let given = all.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
            all.extend(value.filter(|_| !given).map(|value| (name.to_owned(), value.to_owned())));
        }
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in all.iter().filter(|(_, value)| !value.is_empty()) {
            text.extend([name.as_str(), ": ", value, "\r\n"]);
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.write(text.as_bytes());
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("the server reads");
    }

    pub(crate) fn receive(&mut self) -> Answer {
        self.try_receive().expect("an answer comes")
    }

    /// Returns the next answer, or `None` if the server closed the connection. Panics after the time limit.
    pub(crate) fn try_receive(&mut self) -> Option<Answer> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match self.stream.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(why) if why.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(why) => panic!("neither an answer nor the end: {why}"),
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let status = lines.first()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .iter()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, n)| n.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        Some(Answer { status, headers, body: String::from_utf8(body).expect("UTF-8") })
    }

    /// Whether the next answer begins, or the connection ends, within this time.
    pub(crate) fn is_answered_within(&self, time: Duration) -> bool {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(Some(time)).expect("a socket takes a time limit");
        let waits = |why: &std::io::Error| matches!(why.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
        let answered = !self.stream.buffer().is_empty() || !stream.peek(&mut [0]).is_err_and(|why| waits(&why));
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a time limit");
        answered
    }

    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send(method, path, headers, body);
        self.receive()
    }

    pub(crate) fn post(&mut self, message: &Value) -> Answer {
        self.ask("POST", "/mcp", &[], &message.to_string())
    }

    /// Returns the value of a metric.
    pub(crate) fn metric(&mut self, name: &str) -> f64 {
        let text = self.ask("GET", "/metrics", &[], "").body;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
    }

    /// Returns the value of a metric that is a count.
    pub(crate) fn count(&mut self, name: &str) -> u64 {
        self.metric(name) as u64
    }

    pub(crate) fn initialize(&mut self) -> Answer {
        let answer = self.post(&json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
        }));
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        answer
    }

    pub(crate) fn send_eval(&mut self, id: u64, program: &str) {
        self.send("POST", "/mcp", &[], &call(id, program).to_string());
    }

    pub(crate) fn eval(&mut self, program: &str) -> String {
        self.send_eval(1, program);
        self.receive().text()
    }
}

pub(crate) fn call(id: u64, program: &str) -> Value {
    let params = json!({ "name": "lisp_eval", "arguments": { "program": program } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Returns headers and body of a request of the stateless era.
pub(crate) fn stateless(id: u64, method: &str, mut params: Value) -> (Vec<(String, String)>, String) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers =
        vec![("MCP-Protocol-Version".to_owned(), "2026-07-28".to_owned()), ("Mcp-Method".to_owned(), method.to_owned())];
    headers.extend(params["name"].as_str().map(|name| ("Mcp-Name".to_owned(), name.to_owned())));
    (headers, json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
}
