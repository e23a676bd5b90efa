//! Starts child processes and finds free ports.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Maximum time that a test waits for a condition. It is generous, because passing tests never wait that long.
const PATIENCE: Duration = Duration::from_mins(1);

/// The ports that [`free_port`] returns.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;

/// A child process that is killed when it is dropped.
pub struct Background(Child);

impl Background {
    /// Starts `command` without a terminal.
    pub fn start(command: &mut Command) -> Background {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Background(child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }

    /// Starts `command`, and returns its standard output.
    pub fn with_output(command: &mut Command) -> (Background, ChildStdout) {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let output = child.stdout.take().expect("standard output is a pipe");
        (Background(child), output)
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits at most a minute until `port` on loopback accepts connections.
    #[must_use]
    pub fn ready_on(mut self, port: u16) -> Background {
        let until = Instant::now() + Duration::from_mins(1);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Ok(Some(status)) = self.0.try_wait() {
                panic!("the process for port {port} ended with {status} before it listened");
            }
            assert!(Instant::now() < until, "nothing listens on port {port} after a minute");
            std::thread::sleep(Duration::from_millis(50));
        }
        self
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a loopback port on which nothing listens, for a program that cannot be given a listener.
///
/// A port is returned once in a process. The ports are below those that Linux assigns by itself (32768), so that no connection and
/// no server on port 0 takes one before the program listens.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    for _ in 0..PORTS {
        let offset = NEXT.fetch_add(1, Ordering::Relaxed);
        // Test programs that run at the same time begin at different ports.
        let port = FIRST_PORT + ((std::process::id() as u16).wrapping_mul(61).wrapping_add(offset) % PORTS);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("all ports from {FIRST_PORT} on are in use");
}

/// The result of a finished process.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Returns the standard output of a run that must have succeeded.
    pub fn success(self) -> String {
        assert_eq!(self.code, Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self.stdout
    }
}

/// Waits until a condition holds. The test fails if it takes too long.
pub fn wait_for(mut done: impl FnMut() -> bool, what: &str) {
    let until = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < until, "{what} is not there after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs `command` with empty input until it ends.
pub fn run(command: &mut Command) -> Finished {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Reads everything until the other side closes.
pub fn read_all(mut from: impl Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).expect("the stream ends as UTF-8");
    text
}
