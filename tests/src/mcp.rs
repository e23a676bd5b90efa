//! A client that talks to a pinned binary over standard input and output, frame by frame.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::deployment::{path_of_commands, workspace};

/// A running server and the client's connection to it.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Client {
    /// Starts `binary` in the workspace's folder with these options. Its upstreams find this workspace's `ptc-compile`.
    pub fn start(binary: &Path, options: &[&str]) -> Client {
        let mut command = Command::new(binary);
        Client::of(command.current_dir(workspace()).env("PATH", path_of_commands()).args(options))
    }

    /// Starts a server with a command that has more than options.
    pub fn of(command: &mut Command) -> Client {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("standard output is a pipe"));
        Client { child, input, output, next_id: 1 }
    }

    /// Performs the handshake. Returns the server's result of `initialize`.
    pub fn initialize(&mut self) -> Value {
        let client = json!({ "name": "ptc-tests", "version": "0" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let answer = self.request("initialize", &params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer.get("result").cloned().unwrap_or(answer)
    }

    /// Sends a request and waits for its answer.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let frame = self.receive();
            if frame.get("id") == Some(&json!(id)) {
                return frame;
            }
        }
    }

    /// Evaluates a program with `lisp_eval`. Returns the text of the response.
    pub fn eval(&mut self, program: &str) -> String {
        let call = json!({ "name": "lisp_eval", "arguments": { "program": program } });
        let answer = self.request("tools/call", &call);
        let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
        text.unwrap_or_else(|| panic!("no text in {answer}")).to_owned()
    }

    /// Sends one frame.
    pub fn send(&mut self, frame: &Value) {
        let input = self.input.as_mut().expect("the input is open");
        writeln!(input, "{frame}").expect("the server reads");
    }

    /// Reads the next frame.
    pub fn receive(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
    }

    /// Reads the next frame as text.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the server writes");
        line
    }

    /// Returns the server's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input, waits for the server, and returns its exit code.
    pub fn finish(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().expect("the server ends").code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // After `finish` the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
