//! Runs programs in Python against the upstreams of a [`World`].

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::corpus;
use super::world::World;

/// A Python interpreter that runs programs one after the other.
pub(crate) struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Names of all tools as `upstream/tool`.
    tools: Vec<String>,
}

impl Python {
    pub(crate) fn start(world: &World) -> Python {
        let mut command = Command::new("python3");
        command.arg(corpus::folder().join("both/run.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 can be started");
        let input = child.stdin.take().expect("standard input");
        let output = BufReader::new(child.stdout.take().expect("standard output"));
        Python { child, input, output, tools: world.tools() }
    }

    /// Runs the body of a function, and returns its result or the exception.
    pub(crate) fn run(&mut self, body: &str, world: &World) -> Result<Value, String> {
        self.send(&json!(body));
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("a line");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
            let member = |name: &str| message.get(name).cloned();
            let Some(Value::String(name)) = member("call") else {
                return member("value").ok_or_else(|| message.to_string());
            };
            // CodeMode joins the names of server and tool with an underscore.
            let tool = self.tools.iter().find(|tool| tool.replace(['/', '-'], "_") == name);
            let (server, tool) = tool.and_then(|tool| tool.split_once('/')).unwrap_or_else(|| panic!("there is no tool {name}"));
            let call = json!({ "server": server, "tool": tool, "args": member("args") });
            let answer = match world.json("(tool/value {:server data/server :tool data/tool :args data/args})", &call) {
                Ok(value) => json!({ "value": value }),
                Err(error) => json!({ "error": error }),
            };
            self.send(&answer);
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("python3 reads");
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
