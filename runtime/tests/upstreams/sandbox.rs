//! The sandbox of a child: each attempt of the peer succeeds without one, and fails in it.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};

use ptc_catalog::{Era, McpStdio, Sandbox, Transport};
use serde_json::{Value, json};

use crate::peer;
use crate::world::{World, tool, upstream};

/// Performs what a test asks of the peer, and describes the outcome.
pub(crate) fn attempt(args: &Value) -> String {
    let target = args["target"].as_str().unwrap_or_default();
    let number = args["number"].as_u64().unwrap_or_default();
    let done: std::io::Result<String> = match args["what"].as_str().unwrap() {
        "read" => std::fs::read(target).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        "list" => std::fs::read_dir(target).map(|entries| entries.count().to_string()),
        "write" => std::fs::write(target, "written").map(|()| "written".to_owned()),
        "truncate" => truncate(target).map(|_| "truncated".to_owned()),
        "remove" => std::fs::remove_file(target).map(|()| "removed".to_owned()),
        "execute" => Command::new(target).stdin(Stdio::null()).output().map(|output| output.status.to_string()),
        "tcp" => TcpStream::connect(target).map(|_| "connected".to_owned()),
        "listen" => TcpListener::bind("127.0.0.1:0").map(|_| "listening".to_owned()),
        "udp" => UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"x", target)).map(|_| "sent".to_owned()),
        "local" => std::os::unix::net::UnixStream::connect(target).map(|_| "connected".to_owned()),
        "datagram" => UnixDatagram::pair().and_then(|(socket, _)| socket.send_to(b"x", target)).map(|_| "sent".to_owned()),
        "pair" => std::os::unix::net::UnixStream::pair().map(|_| "connected".to_owned()),
        "open" => (0..number)
            .map(|_| std::fs::File::open("/dev/null"))
            .collect::<Result<Vec<_>, _>>()
            .map(|files| files.len().to_string()),
        "allocate" => {
            let mut bytes: Vec<u8> = Vec::new();
            let reserved = bytes.try_reserve_exact(number as usize).map(|()| bytes.resize(number as usize, 1));
            reserved.map(|()| bytes.len().to_string()).map_err(|_| std::io::ErrorKind::OutOfMemory.into())
        }
        "spin" => {
            let mut sum = 0_u64;
            loop {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        }
        other => panic!("{other}"),
    };
    match done {
        Ok(text) => format!("done: {text}"),
        Err(why) => format!("refused: {:?}", why.kind()),
    }
}

/// Truncates a file that is opened for reading, which the first versions of Landlock permit everywhere.
fn truncate(path: &str) -> std::io::Result<std::fs::File> {
    let truncate = rustix::fs::OFlags::TRUNC.bits().cast_signed();
    std::fs::OpenOptions::new().read(true).custom_flags(truncate).open(path)
}

trait Attempts {
    fn attempt(&self, what: &str, target: &str) -> String;
}

impl Attempts for World {
    fn attempt(&self, what: &str, target: &str) -> String {
        self.program().call("peer", "attempt", &json!({"what": what, "target": target}).to_string())
    }
}

fn world(sandbox: Option<Sandbox>) -> World {
    let spec = McpStdio { era: Some(Era::Handshake), sandbox, ..peer::spec("plain") };
    World::new(vec![upstream("peer", Transport::McpStdio(spec), ["attempt", "echo"].map(tool).into())])
}

fn leaked(path: &Path) -> &'static str {
    path.to_str().unwrap().to_owned().leak()
}

fn listed(path: &Path) -> &'static [&'static str] {
    vec![leaked(path)].leak()
}

/// Whether this kernel enforces sandboxes. Elsewhere the tests that need one do nothing.
fn is_enforced() -> bool {
    let answer = world(Some(Sandbox::default())).program().call("peer", "echo", r#"{"message":"x"}"#);
    let is_enforced = !answer.contains("this kernel cannot enforce its sandbox");
    if !is_enforced {
        eprintln!("skipped: {answer}");
    }
    is_enforced
}

/// Folders `read`, `write` and `other`, each with a file `file` and a program `program`.
fn folders() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["read", "write", "other"] {
        let inner = folder.path().join(name);
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("file"), "content").unwrap();
        std::fs::copy("/bin/true", inner.join("program")).unwrap();
    }
    folder
}

const DENIED: &str = "text refused: PermissionDenied";

#[test]
fn files_are_accessible_only_as_listed_in_the_sandbox() {
    if !is_enforced() {
        return;
    }
    let operations: [(&str, &str, &str, [&str; 3]); 6] = [
        // What, file, outcome where permitted, outcome in the folders `read`, `write` and `other`.
        ("read", "file", "text done: content", ["", "", DENIED]),
        ("list", "", "text done: 2", ["", "", DENIED]),
        ("execute", "program", "text done: exit status: 0", ["", "", DENIED]),
        ("truncate", "file", "text done: truncated", [DENIED, "", DENIED]),
        ("write", "file", "text done: written", [DENIED, "", DENIED]),
        ("remove", "file", "text done: removed", [DENIED, "", DENIED]),
    ];
    let outside = folders();
    let free = world(None);
    let folder = folders();
    let (read, write) = (listed(&folder.path().join("read")), listed(&folder.path().join("write")));
    let confined = world(Some(Sandbox { read, write, ..Sandbox::default() }));
    for (what, file, permitted, outcomes) in operations {
        for (name, outcome) in ["read", "write", "other"].into_iter().zip(outcomes) {
            let target = |folder: &Path| folder.join(name).join(file).to_str().unwrap().to_owned();
            assert_eq!(free.attempt(what, &target(outside.path())), permitted, "{what} in {name} without a sandbox");
            let expected = if outcome.is_empty() { permitted } else { outcome };
            assert_eq!(confined.attempt(what, &target(folder.path())), expected, "{what} in {name}");
        }
    }
    assert_eq!(confined.attempt("write", "/dev/null"), "text done: written");
    assert_eq!(confined.attempt("execute", "/bin/true"), "text done: exit status: 0");
    let new = folder.path().join("write/new");
    assert_eq!(confined.attempt("write", leaked(&new)), "text done: written");
}

#[test]
fn environment_of_other_processes_is_not_readable() {
    if !is_enforced() {
        return;
    }
    let mut other = Command::new("sleep").arg("60").env("API_TOKEN", "of another").spawn().unwrap();
    let environ = format!("/proc/{}/environ", other.id());
    let (free, confined) = (world(None).attempt("read", &environ), world(Some(Sandbox::default())).attempt("read", &environ));
    let _ = other.kill();
    let _ = other.wait();
    assert!(free.contains("of another"), "{free}");
    assert_eq!(confined, DENIED);
}

#[test]
fn sockets_are_refused_without_network() {
    if !is_enforced() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _local = UnixListener::bind(&socket).unwrap();
    let datagrams = folder.path().join("datagrams");
    let _log = UnixDatagram::bind(&datagrams).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp, udp) = (tcp.local_addr().unwrap().to_string(), udp.local_addr().unwrap().to_string());
    let write = listed(folder.path());
    let online = world(Some(Sandbox { write, network: true, ..Sandbox::default() }));
    let offline = world(Some(Sandbox { write, ..Sandbox::default() }));
    let attempts = [
        ("tcp", &*tcp, "text done: connected"),
        ("udp", &udp, "text done: sent"),
        ("listen", "", "text done: listening"),
        ("local", socket.to_str().unwrap(), "text done: connected"),
        ("datagram", datagrams.to_str().unwrap(), "text done: sent"),
    ];
    for (what, target, outcome) in attempts {
        assert_eq!(online.attempt(what, target), outcome, "{what}");
        assert_eq!(offline.attempt(what, target), DENIED, "{what}");
    }
    assert_eq!(offline.attempt("pair", ""), "text done: connected");
}

#[test]
fn limits_apply_to_the_child() {
    if !is_enforced() {
        return;
    }
    let unlimited = world(Some(Sandbox::default()));
    let limits =
        Sandbox { memory_mb: Some(256), processes: Some(4321), open_files: Some(40), cpu_seconds: Some(1), ..Sandbox::default() };
    let limited = world(Some(limits));
    let attempt = |world: &World, what: &str, number: u64| {
        world.program().call("peer", "attempt", &json!({"what": what, "number": number}).to_string())
    };
    assert_eq!(attempt(&unlimited, "open", 50), "text done: 50");
    assert!(attempt(&limited, "open", 50).starts_with("text refused"), "more descriptors than the limit");
    assert_eq!(attempt(&unlimited, "allocate", 400 << 20), format!("text done: {}", 400 << 20));
    assert_eq!(attempt(&limited, "allocate", 400 << 20), "text refused: OutOfMemory");
    assert_eq!(attempt(&limited, "allocate", 1 << 20), format!("text done: {}", 1 << 20));
    let table = limited.attempt("read", "/proc/self/limits");
    let row = table.lines().find(|line| line.starts_with("Max processes")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["Max", "processes", "4321", "4321", "processes"]);
    let status = limited.attempt("read", "/proc/self/status");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(field("NoNewPrivs:"), "1");
    // Root keeps CAP_DAC_OVERRIDE (bit 1) and CAP_DAC_READ_SEARCH (bit 2) at most.
    assert_eq!(u64::from_str_radix(&field("CapPrm:"), 16).unwrap() & !0b110, 0);
    let spun = attempt(&limited, "spin", 0);
    assert!(spun.starts_with("upstream_unavailable: the process of 'peer' ended (signal: 24 (SIGXCPU)"), "{spun}");
    // The next call starts the child again.
    assert_eq!(attempt(&limited, "allocate", 1), "text done: 1");
}

#[test]
fn child_that_cannot_be_confined_is_not_started() {
    if !is_enforced() {
        return;
    }
    let missing = world(Some(Sandbox { read: &["/no/such/folder"], ..Sandbox::default() })).attempt("read", "/");
    let exe = peer::spec("plain").command;
    let expected = "its sandbox lists /no/such/folder, which cannot be opened: No such file or directory (os error 2)";
    assert_eq!(missing, format!("upstream_unavailable: cannot start '{exe}': {expected}"));

    let folder = tempfile::tempdir().unwrap();
    let (interpreter, script) = (folder.path().join("interpreter"), folder.path().join("script"));
    std::fs::copy("/bin/sh", &interpreter).unwrap();
    let mut file = std::fs::File::create(&script).unwrap();
    writeln!(file, "#!{}", interpreter.display()).unwrap();
    rustix::fs::fchmod(&file, rustix::fs::Mode::RWXU).unwrap();
    drop(file);
    let spec = McpStdio { sandbox: Some(Sandbox::default()), ..McpStdio::new(leaked(&script)) };
    let world = World::new(vec![upstream("peer", Transport::McpStdio(spec), vec![tool("x")])]);
    let answer = world.program().call("peer", "x", "{}");
    assert!(answer.contains("Permission denied (os error 13); its sandbox may lack a folder in `read`"), "{answer}");
}

/// Set for the process of [`start_is_refused_on_a_kernel_without_landlock`].
const NO_LANDLOCK: &str = "PTC_TEST_NO_LANDLOCK";

/// A process whose system calls of Landlock fail as on an older kernel calls a confined upstream and one without a sandbox.
#[test]
fn start_is_refused_on_a_kernel_without_landlock() {
    if std::env::var_os(NO_LANDLOCK).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["sandbox::start_is_refused_on_a_kernel_without_landlock", "--exact", "--nocapture"]).env(NO_LANDLOCK, "1");
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let denied = [(libc::SYS_landlock_create_ruleset, Vec::new())].into_iter().collect();
    let (allow, absent) = (seccompiler::SeccompAction::Allow, seccompiler::SeccompAction::Errno(libc::ENOSYS.cast_unsigned()));
    let arch = std::env::consts::ARCH.try_into().unwrap();
    let filter: seccompiler::BpfProgram =
        seccompiler::SeccompFilter::new(denied, allow, absent, arch).unwrap().try_into().unwrap();
    seccompiler::apply_filter(&filter).unwrap();
    let echo = |sandbox| world(sandbox).program().call("peer", "echo", r#"{"message":"x"}"#);
    let refused = echo(Some(Sandbox::default()));
    assert!(refused.starts_with("upstream_unavailable: cannot start '"), "{refused}");
    assert!(
        refused.contains("': this kernel cannot enforce its sandbox, which needs Landlock with ABI 3: Linux 6.2"),
        "{refused}"
    );
    assert_eq!(echo(None), "text x");
}

#[test]
fn paths_start_in_the_folder_of_the_config() {
    if !is_enforced() {
        return;
    }
    let folder = folders();
    let spec = McpStdio {
        era: Some(Era::Handshake),
        sandbox: Some(Sandbox { read: &["read"], ..Sandbox::default() }),
        ..peer::spec("plain")
    };
    let dir = folder.path().to_owned();
    let upstreams = vec![upstream("peer", Transport::McpStdio(spec), vec![tool("attempt")])];
    let world = World::with(upstreams, Vec::new(), |settings| settings.config_dir = dir);
    assert_eq!(world.attempt("read", leaked(&folder.path().join("read/file"))), "text done: content");
    assert_eq!(world.attempt("read", leaked(&folder.path().join("other/file"))), DENIED);
}
