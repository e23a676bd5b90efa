//! A listening server that stores its sessions in Redis, and its clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ptc_tests::deployment::plain;
use ptc_tests::process::{free_port, run, wait_for};
use serde_json::{Value, json};

use super::Redis;

pub(crate) const PASSWORD: &str = "not-a-secret-of-anybody";
/// Seals the sessions of all replicas.
pub(crate) const SESSION_KEY: &str = "not-a-secret-session-key-of-anybody";
/// Maximum time that a test waits for a condition. It is generous, because passing tests never wait that long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A server process that stores its sessions in Redis.
pub(crate) struct Replica {
    pub(crate) child: Child,
    pub(crate) port: u16,
}

impl Replica {
    pub(crate) fn start(redis: &Redis, options: &[&str]) -> Replica {
        Replica::with_key(redis, SESSION_KEY, options)
    }

    pub(crate) fn with_key(redis: &Redis, key: &str, options: &[&str]) -> Replica {
        let port = free_port();
        let mut command = replica(port, &redis.url(&format!(":{PASSWORD}@")), options);
        let child = command.env("PTC_RUNNER_MCP_SESSION_KEY", key).stderr(Stdio::null()).spawn();
        let replica = Replica { child: child.expect("the server starts"), port };
        wait_for(|| TcpStream::connect(("127.0.0.1", port)).is_ok(), "the server");
        replica
    }

    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut client = Client { stream: BufReader::new(stream), protocol_session: String::new() };
        let about = json!({ "name": "ptc-tests", "version": "0" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
        client.protocol_session = client.post("initialize", &params).0;
        client
    }

    pub(crate) fn ready(&self) -> String {
        self.get("/ready")
    }

    /// Returns the used bytes of the memory budget.
    pub(crate) fn used_bytes(&self) -> u64 {
        let metrics = self.get("/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix("ptc_memory_used_bytes "));
        line.and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
    }

    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    pub(crate) fn signal(&self, name: &str) {
        run(Command::new("kill").args([name, &self.child.id().to_string()])).success();
    }
}

pub(crate) fn replica(port: u16, store: &str, options: &[&str]) -> Command {
    let mut command = Command::new(plain());
    command
        .args([
            "--http",
            "--http-disable-auth",
            "--http-port",
            &port.to_string(),
            "--sessions",
            "--response-profile",
            "structured",
        ])
        .args(options);
    command
        .env("PTC_RUNNER_MCP_SESSION_STORE", store)
        .env("PTC_RUNNER_MCP_SESSION_KEY", SESSION_KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
    pub(crate) protocol_session: String,
}

impl Client {
    pub(crate) fn send(&mut self, method: &str, params: &Value) {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let session = match self.protocol_session.as_str() {
            "" => String::new(),
            id => format!("Mcp-Session-Id: {id}\r\n"),
        };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n{session}\r\n",
            body.len()
        );
        self.stream.get_mut().write_all((head + &body).as_bytes()).expect("the server reads");
    }

    /// Reads a response. Returns its protocol session and its body.
    pub(crate) fn receive(&mut self) -> (String, Value) {
        let (mut length, mut session) = (0, String::new());
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("the server answers");
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().expect("a length"),
                Some(("mcp-session-id", value)) => value.clone_into(&mut session),
                None if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a whole body");
        (session, serde_json::from_slice(&body).expect("JSON"))
    }

    pub(crate) fn post(&mut self, method: &str, params: &Value) -> (String, Value) {
        self.send(method, params);
        self.receive()
    }

    pub(crate) fn data(&mut self, tool: &str, arguments: &Value) -> Value {
        let (_, answer) = self.post("tools/call", &json!({ "name": tool, "arguments": arguments }));
        answer.pointer("/result/structuredContent").unwrap_or_else(|| panic!("{tool}: {answer}")).clone()
    }

    pub(crate) fn open(&mut self) -> String {
        let opened = self.data("lisp_session_start", &json!({ "title": "shared" }));
        opened.get("session_id").and_then(Value::as_str).unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    pub(crate) fn eval(&mut self, session: &str, program: &str) -> Value {
        self.data("lisp_session_eval", &json!({ "session_id": session, "program": program }))
    }

    /// Evaluates a program as soon as the session is free, and returns its result. The program must succeed.
    pub(crate) fn result(&mut self, session: &str, program: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.eval(session, program);
            match reason(&answer) {
                "session_busy" | "busy" if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                "" => return answer.get("result").and_then(Value::as_str).unwrap_or_default().to_owned(),
                _ => panic!("{program}: {answer}"),
            }
        }
    }

    /// Starts a program, and waits until it runs.
    pub(crate) fn begin(&mut self, session: &str, program: &str, beside: &mut Client) {
        let arguments = json!({ "session_id": session, "program": program });
        self.send("tools/call", &json!({ "name": "lisp_session_eval", "arguments": arguments }));
        wait_for(|| beside.status(session) == "running", "the evaluation");
    }

    pub(crate) fn status(&mut self, session: &str) -> String {
        let all = self.data("lisp_session_list", &json!({}));
        let all = all.get("sessions").and_then(Value::as_array).cloned().unwrap_or_default();
        let own = all.into_iter().find(|each| each.get("session_id").and_then(Value::as_str) == Some(session));
        own.and_then(|own| Some(own.get("eval_status")?.as_str()?.to_owned())).unwrap_or_default()
    }
}

pub(crate) fn reason(answer: &Value) -> &str {
    answer.get("reason").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn message(answer: &Value) -> &str {
    answer.get("message").and_then(Value::as_str).unwrap_or_default()
}
