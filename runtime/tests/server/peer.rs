//! A server process behind pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for an awaited line, after which a test fails. It is generous since no passing test depends on it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Peer {
    child: Child,
    pub(crate) input: Option<ChildStdin>,
    lines: Receiver<String>,
    log: Option<JoinHandle<String>>,
}

/// Variable with which all tests run their programs in worker processes, or on threads.
const ISOLATE: &str = "PTC_RUNNER_MCP_ISOLATE";

/// Returns the command of a server whose environment has only its role, [`ISOLATE`] and [`crate::LINKER`].
pub(crate) fn server(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
    command.env_clear().env(crate::ROLE, role);
    command.envs([ISOLATE, crate::LINKER].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}

/// Returns a command that starts a server under limits of the shell.
pub(crate) fn limited(limits: &str, of: &Command, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]).arg(of.get_program()).args(of.get_args()).args(args);
    shell.envs(of.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

/// Returns the peak resident memory of a process in kB.
pub(crate) fn peak_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

impl Peer {
    pub(crate) fn start(args: &[&str]) -> Peer {
        Peer::start_as("plain", args)
    }

    pub(crate) fn start_as(role: &str, args: &[&str]) -> Peer {
        Peer::of(server(role).args(args))
    }

    pub(crate) fn of(command: &mut Command) -> Peer {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example starts");
        let (send, lines) = channel();
        let output: ChildStdout = child.stdout.take().expect("it was piped");
        // A separate thread reads all output. A test can stop waiting for a line, and a server that writes much is never blocked.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut stderr = child.stderr.take().expect("it was piped");
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            stderr.read_to_string(&mut log).expect("logs are UTF-8");
            log
        });
        Peer { input: child.stdin.take(), lines, log: Some(log), child }
    }

    pub(crate) fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(line.as_bytes()).expect("the server reads");
        input.write_all(b"\n").expect("the server reads");
    }

    /// Sends a line to a server that may have ended.
    pub(crate) fn try_send(&mut self, line: &str) {
        if let Some(input) = self.input.as_mut() {
            let _ = input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n"));
        }
    }

    pub(crate) fn receive(&self) -> String {
        self.receive_within(PATIENCE).expect("an answer comes")
    }

    /// Returns the next line, or `None` if there is none in time.
    pub(crate) fn receive_within(&self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Returns the remaining answers until the server ends.
    pub(crate) fn rest(&self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok()).collect()
    }

    pub(crate) fn call(&mut self, id: &str, program: &str) {
        let program = serde_json::to_string(program).expect("text is JSON");
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"lisp_eval","arguments":{{"program":{program}}}}}}}"#
        ));
    }

    pub(crate) fn ask(&mut self, id: &str, program: &str) -> String {
        self.call(id, program);
        self.receive()
    }

    /// Waits until the server has read everything that was sent so far, since it reads in order. Nothing else may be answered
    /// meanwhile.
    pub(crate) fn ping(&mut self) {
        self.send(r#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#);
        let answer = self.receive();
        assert!(answer.contains(r#""id":"ping""#), "{answer}");
    }

    /// Repeats a request until the server is not busy.
    pub(crate) fn ask_until_free(&mut self, id: &str, program: &str) -> String {
        loop {
            let answer = self.ask(id, program);
            if !answer.contains("busy") {
                return answer;
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the server lives");
    }

    /// Waits for the end. Returns the status and the log.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("the server ends");
        (status, self.log.take().expect("it ends once").join().expect("logs are UTF-8"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
