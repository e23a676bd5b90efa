//! A server in a container that allows few threads. The test needs permission to create control groups, so that it is ignored by
//! default.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::site::{Client, Site, call};
use crate::Test;
use crate::peer::server;

pub(super) const TESTS: &[Test] =
    &[("http::few_threads_of_a_container_carry_many_waiting_programs", few_threads_of_a_container_carry_many_waiting_programs)];

/// A control group, removed when it is dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a group that allows this number of threads: in version 1 of cgroups, otherwise in version 2.
    fn with_max_threads(name: &str, threads: usize) -> std::io::Result<Cgroup> {
        let mounts = Path::new("/sys/fs/cgroup");
        let parent = if mounts.join("pids").is_dir() { mounts.join("pids") } else { mounts.to_owned() };
        let group = Cgroup(parent.join(format!("ptc-{name}-{}", std::process::id())));
        std::fs::create_dir(&group.0)?;
        std::fs::write(group.0.join("pids.max"), threads.to_string())?;
        Ok(group)
    }

    /// Returns the command that runs `command` in this group.
    fn run(&self, command: &Command) -> Command {
        let mut inside = Command::new("/bin/sh");
        inside.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs")).arg(command.get_program());
        inside.args(command.get_args()).env_clear();
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside
    }

    fn number(&self, file: &str, before: &str) -> usize {
        let text = std::fs::read_to_string(self.0.join(file)).expect("the group has this file");
        text.trim().trim_start_matches(before).trim().parse().unwrap_or_else(|_| panic!("{file}: {text}"))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A child of the server may end just after it.
        for _ in 0..200 {
            if std::fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

fn few_threads_of_a_container_carry_many_waiting_programs() {
    const MOST: usize = 48;
    const PROGRAMS: usize = 200;
    let group = Cgroup::with_max_threads("threads", MOST).expect("control groups are writable");
    let traces = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("threads-{}", std::process::id()));
    let limits = group.run(server("aggregator").args(["version", "--json"])).output().expect("it runs").stdout;
    let limits = serde_json::from_slice::<Value>(&limits).expect("an object")["limits"].clone();
    for (name, value) in [("threads", 8), ("blocking_threads", 4), ("store_threads", 2)] {
        assert_eq!(limits[name], json!({ "value": value, "source": "cgroup pids.max" }), "{limits}");
    }
    // With traces, each call is read on a thread that may block, and a long context takes a while to read.
    let patient = ["--program-timeout-ms", "60000", "--upstream-call-timeout-ms", "60000", "--queue-timeout-ms", "60000"];
    let args = ["--http", "--http-disable-auth", "--http-port", "0", "--http-request-timeout-ms", "60000", "--trace-dir"];
    let site = Site::of(&mut group.run(server("aggregator").args(args).arg(&traces).args(patient)));
    let session = site.connected();
    let nap = r#"(tool/call {:server "child" :tool "nap" :args {}})"#;
    let mut call = call(0, &format!("(count (filter :ok (pmap (fn [_] {nap}) (range 3))))"));
    call["params"]["arguments"]["context"] = json!({ "x": vec![json!([0]); 20_000] });
    let mut waiting: Vec<(Client, String)> = (0..PROGRAMS)
        .map(|id| {
            call["id"] = id.into();
            (site.beside(&session), call.to_string())
        })
        .collect();
    for (client, body) in &mut waiting {
        client.send("POST", "/mcp", &[], body);
    }
    for (client, _) in &mut waiting {
        assert_eq!(client.receive().text(), "user=> 3");
    }
    let (threads, refused) = (group.number("pids.current", ""), group.number("pids.events", "max"));
    assert!(refused == 0 && threads <= MOST, "{threads} threads, and {refused} could not be started");
    drop(site);
    let _ = std::fs::remove_dir_all(traces);
}
