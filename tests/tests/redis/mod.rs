//! Runs a real `redis-server`, which `.ci/peers` installs.

pub(crate) mod replica;

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ptc_tests::process::{free_port, run, wait_for};

/// A `redis-server` that persists its data on disk.
#[derive(Debug)]
pub(crate) struct Redis {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
    password: String,
}

impl Redis {
    /// Starts a server with this password, and waits until it listens.
    pub(crate) fn start(password: &str) -> Redis {
        let (port, folder) = (free_port(), tempfile::tempdir().expect("a folder"));
        let child = Redis::child(port, folder.path(), password);
        Redis { child, port, folder, password: password.to_owned() }
    }

    fn child(port: u16, folder: &Path, password: &str) -> Child {
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--requirepass", password, "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(folder);
        let child =
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("redis-server starts: run .ci/peers first");
        wait_for(|| TcpStream::connect(("127.0.0.1", port)).is_ok(), "redis-server");
        child
    }

    /// Kills the server, as a power failure would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Sends it a signal, such as `-STOP`.
    pub(crate) fn signal(&self, name: &str) {
        run(Command::new("kill").args([name, &self.child.id().to_string()])).success();
    }

    /// Restarts the server with its previous data.
    pub(crate) fn restart(&mut self) {
        self.child = Redis::child(self.port, self.folder.path(), &self.password);
    }

    /// Returns the URL of its second database with these credentials.
    pub(crate) fn url(&self, credentials: &str) -> String {
        format!("redis://{credentials}127.0.0.1:{}/1", self.port)
    }

    /// Returns the output of `redis-cli`.
    pub(crate) fn cli(&self, command: &[&str]) -> String {
        let mut cli = Command::new("redis-cli");
        cli.args(["-p", &self.port.to_string(), "-n", "1"]).args(command).env("REDISCLI_AUTH", &self.password);
        run(&mut cli).success()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
