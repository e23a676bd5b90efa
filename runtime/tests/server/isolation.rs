//! Programs in worker processes: the end of a worker, its confinement, and the differences to programs on threads.

use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{fs, io};

use ptc_schedule::fibers::Fibers;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

pub(crate) mod hostile;

use crate::Test;
use crate::http::site::Site;
use crate::peer::{Peer, server};

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("isolation::programs_over_http_run_in_processes_by_default", programs_over_http_run_in_processes_by_default),
    ("isolation::killed_worker_fails_its_own_call_only", killed_worker_fails_its_own_call_only),
    ("isolation::killed_worker_does_not_change_its_session", killed_worker_does_not_change_its_session),
    ("isolation::worker_has_no_secret_socket_or_file", worker_has_no_secret_socket_or_file),
    (
        "isolation::confined_process_has_no_access_to_files_sockets_or_processes",
        confined_process_has_no_access_to_files_sockets_or_processes,
    ),
    ("isolation::write_of_a_killed_worker_is_named", write_of_a_killed_worker_is_named),
    ("isolation::workers_end_with_their_server", workers_end_with_their_server),
    ("isolation::workers_that_do_not_read_end_with_their_server", workers_that_do_not_read_end_with_their_server),
    ("isolation::texts_of_a_worker_are_bounded", hostile::texts_of_a_worker_are_bounded),
    ("isolation::incomplete_messages_count_in_the_memory_budget", hostile::incomplete_messages_count_in_the_memory_budget),
    ("isolation::idle_worker_that_computes_is_killed", hostile::idle_worker_that_computes_is_killed),
];

const ENDLESS: &str = "(loop [i 0] (recur (inc i)))";
const PROCESS: &[&str] = &["--isolate", "process", "--program-timeout-ms", "60000"];

/// Returns the worker processes of a server.
fn workers(server: u32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{server}/task")).expect("it lives");
    let children = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let ids: Vec<i32> =
        children.flat_map(|ids| ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect();
    let is_worker =
        |id: &i32| fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains("--isolated-worker"));
    ids.into_iter().filter(is_worker).filter_map(Pid::from_raw).collect()
}

/// Returns the clock ticks that a process has computed.
fn ticks(process: Pid) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Waits until this number of workers compute, and returns them.
fn computing(server: u32, count: usize) -> Vec<Pid> {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let before: Vec<_> = workers(server).into_iter().map(|worker| (worker, ticks(worker))).collect();
        std::thread::sleep(Duration::from_millis(200));
        let found: Vec<_> =
            before.into_iter().filter(|(worker, before)| ticks(*worker) > *before).map(|(worker, _)| worker).collect();
        if found.len() == count {
            return found;
        }
        assert!(Instant::now() < until, "{} workers compute", found.len());
    }
}

fn programs_over_http_run_in_processes_by_default() {
    let start = |args: &[&str]| Site::start(&[&["--http-disable-auth"], args].concat());
    for (site, has_workers) in [(start(&[]), true), (start(&["--isolate", "thread"]), false)] {
        assert!(site.connected().eval("(+ 1 2)").contains("user=> 3"));
        assert_eq!(!workers(site.id()).is_empty(), has_workers);
    }
    let mut peer = Peer::start(&[]);
    assert!(peer.ask("1", "(+ 1 2)").contains("user=> 3"));
    assert!(workers(peer.id()).is_empty());
}

fn killed_worker_fails_its_own_call_only() {
    let mut server = Peer::start(PROCESS);
    for (signal, number, [one, other]) in [(Signal::KILL, 9, [1, 2]), (Signal::ABORT, 6, [3, 4])] {
        server.call(&one.to_string(), ENDLESS);
        server.call(&other.to_string(), ENDLESS);
        kill_process(computing(server.id(), 2)[0], signal).expect("it lives");
        let failed = server.receive();
        let expected = format!("worker_ended: the process that ran this program ended: it was killed by signal {number}");
        assert!(failed.contains(&expected), "{failed}");
        assert!(server.ask("9", "(+ 1 2)").contains("user=> 3"), "the next call succeeds");
        let left = if failed.contains(&format!("\"id\":{one},")) { other } else { one };
        server
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": left } }).to_string());
        server.ping();
    }
}

fn killed_worker_does_not_change_its_session() {
    let mut server = Peer::start(&[PROCESS, &["--sessions", "--response-profile", "structured"]].concat());
    let mut ask = |id: u32, tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        server.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
        if id == 3 {
            kill_process(computing(server.id(), 1)[0], Signal::KILL).expect("it lives");
        }
        let answer: Value = serde_json::from_str(&server.receive()).expect("JSON");
        answer["result"]["structuredContent"].clone()
    };
    let session = ask(1, "lisp_session_start", json!({}))["session_id"].clone();
    let eval = |program: &str| json!({ "session_id": session, "program": program });
    ask(2, "lisp_session_eval", eval("(def kept 41) (defn more [n] (+ n kept))"));
    let lost = ask(3, "lisp_session_eval", eval(&format!("(def kept 0) {ENDLESS}")));
    assert!(lost["message"].as_str().is_some_and(|text| text.contains("killed by signal 9")), "{lost}");
    let after = ask(4, "lisp_session_eval", eval("(more 1)"));
    assert_eq!(after["result"], "user=> 42", "{after}");
}

/// Returns what a process has open, except for sockets.
fn others_than_sockets(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(format!("{folder}/fd")).expect("it lives");
    let targets = entries.filter_map(|entry| Some(fs::read_link(entry.ok()?.path()).ok()?.to_string_lossy().into_owned()));
    targets.filter(|target| !target.starts_with("socket:")).collect()
}

/// Whether each of the two threads of a worker is confined.
fn is_confined_now(folder: &str) -> bool {
    let tasks = fs::read_dir(format!("{folder}/task")).expect("it lives");
    let statuses: Vec<String> = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok()).collect();
    let is_confined =
        |status: &String| ["Seccomp:\t2", "NoNewPrivs:\t1"].iter().all(|line| status.lines().any(|other| other == *line));
    statuses.len() == 2 && statuses.iter().all(is_confined)
}

fn worker_has_no_secret_socket_or_file() {
    for (isolate, is_confined) in [("process", true), ("process-unconfined", false)] {
        let mut command = server("plain");
        let mut server = Peer::of(command.env("SECRET_OF_THE_TEST", "not-a-secret").args(["--isolate", isolate]));
        assert!(server.ask("1", "(+ 1 2)").contains("user=> 3"));
        let workers = workers(server.id());
        assert!(!workers.is_empty());
        for worker in workers {
            let folder = format!("/proc/{}", worker.as_raw_nonzero());
            assert_eq!(fs::read_to_string(format!("{folder}/environ")).expect("it lives"), "", "no variable is inherited");
            // An idle worker may not have begun yet.
            let until = Instant::now() + Duration::from_secs(20);
            while others_than_sockets(&folder) != ["/dev/null", "/dev/null"] || is_confined_now(&folder) != is_confined {
                assert!(Instant::now() < until, "{isolate}: {:?}", others_than_sockets(&folder));
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Confines this process as a worker, and prints what its threads can still do.
#[expect(clippy::print_stdout, reason = "the test reads it")]
pub(crate) fn probe() -> ExitCode {
    let parent = std::os::unix::process::parent_id();
    let fibers = ptc_isolation::confinement::apply(1 << 20, Fibers::started).expect("the kernel confines it");
    for what in possible(parent) {
        println!("main thread: {what}");
    }
    // What an evaluation needs is still possible.
    let (send, receive) = channel();
    let work = move || (possible(parent), (1..=10).sum::<u32>());
    fibers.spawn(work, move |result| send.send(result.expect("it does not panic")).expect("it is received"));
    let (possible, computed) = receive.recv().expect("the thread of programs runs");
    for what in possible {
        println!("thread of programs: {what}");
    }
    println!("computed {computed}");
    ExitCode::SUCCESS
}

/// Returns what the calling thread can do of that which is denied to a worker.
fn possible(parent: u32) -> Vec<&'static str> {
    let parent_process = Pid::from_raw(parent.cast_signed()).expect("it has a parent");
    #[expect(unsafe_code, reason = "nothing uses the memory")]
    let shared =
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), 4096, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED) };
    // A file that may not be executed gives another error.
    let is_refused = |why: &io::Error| why.raw_os_error() == Some(1);
    #[expect(unsafe_code, reason = "the copy ends at once")]
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        std::process::exit(0);
    }
    let forked = (forked, io::Error::last_os_error());
    let attempts: [(&str, bool); 13] = [
        ("maps shared memory, which no limit counts", shared.is_ok()),
        ("opens a file", fs::File::open("/etc/passwd").is_ok()),
        ("lists a folder", fs::read_dir("/").is_ok()),
        ("writes a file", fs::write("/tmp/ptc-isolation-probe", "x").is_ok()),
        ("connects over TCP", TcpStream::connect("127.0.0.1:9").is_err_and(|why| why.raw_os_error() != Some(1))),
        ("opens a UDP socket", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("opens a local socket", UnixStream::pair().is_ok()),
        ("starts a thread", std::thread::Builder::new().spawn(|| ()).is_ok()),
        ("starts a process", Command::new("/bin/true").spawn().map_or_else(|why| !is_refused(&why), |_| true)),
        ("forks", forked.0 != -1 || !is_refused(&forked.1)),
        ("clears its parent-death signal", rustix::process::set_parent_process_death_signal(None).is_ok()),
        (
            "reads the environment or memory of its parent",
            ["environ", "mem", "maps"].iter().any(|file| fs::read(format!("/proc/{parent}/{file}")).is_ok()),
        ),
        ("signals its parent", test_kill_process(parent_process).is_ok()),
    ];
    attempts.into_iter().filter(|(_, succeeded)| *succeeded).map(|(what, _)| what).collect()
}

fn confined_process_has_no_access_to_files_sockets_or_processes() {
    // The order in which its threads start and are confined must not depend on chance.
    for _ in 0..20 {
        let output = server("probe").output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "computed 55\n", "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn write_of_a_killed_worker_is_named() {
    let mut server = Peer::start_as("aggregator", PROCESS);
    let program = format!(r#"(tool/call {{:server "child" :tool "echo" :args {{:text "x"}}}}) {ENDLESS}"#);
    server.call("1", &program);
    kill_process(computing(server.id(), 1)[0], Signal::KILL).expect("it lives");
    let answer = server.receive();
    assert!(answer.contains("killed by signal 9"), "{answer}");
    assert!(!answer.contains("nothing was written"), "the call may have had an effect: {answer}");
}

fn workers_end_with_their_server() {
    let mut server = Peer::start(PROCESS);
    assert!(server.ask("1", "(+ 1 2)").contains("user=> 3"));
    let workers = workers(server.id());
    server.signal(Signal::KILL);
    wait_for_end(&workers);
}

/// Waits until the processes have ended, whether they were reaped or not.
fn wait_for_end(workers: &[Pid]) {
    let until = Instant::now() + Duration::from_secs(20);
    let lives = |worker: &&Pid| {
        fs::read_to_string(format!("/proc/{}/cmdline", worker.as_raw_nonzero())).is_ok_and(|line| !line.is_empty())
    };
    while let Some(worker) = workers.iter().find(lives) {
        if Instant::now() > until {
            for worker in workers {
                let _ = kill_process(*worker, Signal::KILL);
            }
            panic!("{worker:?} lives on");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn workers_that_do_not_read_end_with_their_server() {
    let mut server = Peer::start(PROCESS);
    server.call("1", ENDLESS);
    server.call("2", ENDLESS);
    let workers = computing(server.id(), 2);
    // A stopped process does not notice the end of its socket, as one that a program has taken over.
    kill_process(workers[0], Signal::STOP).expect("it lives");
    server.signal(Signal::KILL);
    wait_for_end(&workers);
}
