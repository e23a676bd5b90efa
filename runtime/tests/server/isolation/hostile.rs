//! Workers that a program has taken over. They send what they like.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ptc_catalog::Deployment;

use super::{wait_for_end, workers};
use crate::peer::Peer;

/// A deployment whose workers run [`work`].
pub(crate) static DEPLOYMENT: Deployment = Deployment { name: "hostile worker", compiler: "0.1.0+00ff", ..Deployment::EMPTY };

const UNCONFINED: &[&str] = &["--isolate", "process-unconfined", "--program-timeout-ms", "60000"];

/// Bytes of an incomplete message.
const INCOMPLETE_BYTES: u32 = 40 << 20;

/// Bytes of a long text.
const LONG_TEXT_BYTES: usize = 1 << 20;

/// Plays a worker. The text of a program says what it does.
pub(crate) fn work() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> std::io::Result<()> {
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    // The settings come first.
    receive(&mut socket)?;
    loop {
        let program = receive(&mut socket)?;
        let says = |what: &str| program.windows(what.len()).any(|part| part == what.as_bytes());
        let long = "x".repeat(LONG_TEXT_BYTES);
        if says("refuse") {
            // `Ready`, with an error.
            send(&mut socket, &[&[0, 1], &*text(&long)].concat())?;
        } else if says("panic") {
            send(&mut socket, &done("", Some(&long)))?;
        } else if says("babble") {
            send(&mut socket, &done(&long, None))?;
        } else if says("incomplete") {
            socket.write_all(&INCOMPLETE_BYTES.to_le_bytes())?;
            for _ in 1..INCOMPLETE_BYTES >> 20 {
                socket.write_all(long.as_bytes())?;
            }
        } else if says("spin") {
            send(&mut socket, &done("user=> nil", None))?;
            socket.shutdown(Shutdown::Read)?;
            #[expect(clippy::empty_loop, reason = "it computes")]
            loop {}
        } else {
            send(&mut socket, &done("user=> 3", None))?;
        }
    }
}

fn receive(socket: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut head = [0; 4];
    socket.read_exact(&mut head)?;
    let mut message = vec![0; u32::from_le_bytes(head) as usize];
    socket.read_exact(&mut message)?;
    Ok(message)
}

fn send(socket: &mut UnixStream, message: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(message.len()).map_err(std::io::Error::other)?;
    socket.write_all(&[&length.to_le_bytes(), message].concat())
}

/// Encodes a text as `postcard` does: its length as a variable-length integer, and its bytes.
fn text(text: &str) -> Vec<u8> {
    let (mut bytes, mut length) = (Vec::new(), text.len());
    while length >= 0x80 {
        bytes.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Encodes `Done` with a value whose preview is this text.
fn done(preview: &str, panic: Option<&str>) -> Vec<u8> {
    let panic = panic.map_or(vec![0], |message| [&[1], &*text(message)].concat());
    // After the preview come its two flags, and the twelve members of the evaluation and of its end. Only `has_run` is set.
    [&[6, 0], &*text(preview), &[0; 2], &[0; 12], &[1], &*panic].concat()
}

pub(super) fn texts_of_a_worker_are_bounded() {
    let mut server = Peer::start_as("hostile worker", UNCONFINED);
    let refused = server.ask("1", "refuse");
    assert!(refused.contains("worker_ended") && refused.contains("cannot confine it (xxx"), "{}", refused.len());
    let panicked = server.ask("2", "panic");
    assert!(!panicked.contains("worker_ended"), "{panicked}");
    let babbled = server.ask("3", "babble");
    assert!(babbled.contains("xxx"), "{babbled}");
    for answer in [refused, panicked, babbled] {
        assert!(answer.len() < 64 * 1024, "{}", answer.len());
    }
    drop(server.input.take());
    let (_, log) = server.end();
    assert!(log.contains("evaluation panicked") && log.contains("more bytes"), "{}", log.len());
    assert!(log.len() < 32 * 1024, "{}", log.len());
}

pub(super) fn incomplete_messages_count_in_the_memory_budget() {
    let budget = ["--memory-budget-bytes", "67108864", "--program-memory-limit-bytes", "50331648"];
    let mut server = Peer::start_as("hostile worker", &[UNCONFINED, &budget].concat());
    server.call("1", "incomplete");
    server.call("2", "incomplete");
    let answer = server.receive();
    assert!(answer.contains("memory budget"), "{answer}");
}

pub(super) fn idle_worker_that_computes_is_killed() {
    let mut server = Peer::start_as("hostile worker", UNCONFINED);
    let until = Instant::now() + Duration::from_secs(20);
    assert!(server.ask("1", "spin").contains("user=> nil"));
    let before = workers(server.id());
    let killed = loop {
        let now = workers(server.id());
        let killed: Vec<_> = before.iter().copied().filter(|worker| !now.contains(worker)).collect();
        if !killed.is_empty() {
            break killed;
        }
        assert!(Instant::now() < until, "it lives on");
        std::thread::sleep(Duration::from_millis(20));
    };
    wait_for_end(&killed);
    assert!(server.ask("2", "(+ 1 2)").contains("user=> 3"));
    drop(server.input.take());
    let (_, log) = server.end();
    assert!(log.contains("ms of processor time while it was idle"), "{log}");
}
