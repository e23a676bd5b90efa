//! MCP over standard input and output.
//!
//! Descriptors are blocking: one thread reads, and the threads with answers write. This is as fast as a pipe permits. It does not
//! need `O_NONBLOCK`, which is a property of the open file and would also affect a shared standard error, and it works for files
//! and terminals too.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::caller::{Caller, ResponseSink};
use super::dispatch::{Next, Server};
use super::identity::Identity;
use super::in_flight::InFlight;
use crate::schedule::{ClientKey, session_number};
use ptc_engine::protocol::frame::{Frame, Frames};

/// Returns standard input without the buffer and lock of the standard library.
///
/// # Errors
///
/// Returns an error if the descriptor of standard input cannot be duplicated.
pub fn input() -> std::io::Result<File> {
    Ok(File::from(std::io::stdin().as_fd().try_clone_to_owned()?))
}

/// Returns standard output without the line buffer of the standard library.
///
/// # Errors
///
/// Returns an error if the descriptor of standard output cannot be duplicated.
pub fn output() -> std::io::Result<File> {
    Ok(File::from(std::io::stdout().as_fd().try_clone_to_owned()?))
}

/// The owner of the single client.
const OWNER: &str = "stdio";

/// Returns the single client of standard input.
pub fn caller() -> Caller {
    let identity = Identity::of_owner(OWNER);
    let client_key = ClientKey { owner: Arc::clone(&identity.owner.id), session: session_number() };
    Caller { identity, calls: InFlight::new(client_key), origin: None }
}

/// The reason why serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The input ended.
    Input,
    /// The client sent the notification `exit`.
    ExitNotification,
}

impl End {
    /// Returns the reason for the log.
    pub fn reason(self) -> &'static str {
        match self {
            End::Input => "end of input",
            End::ExitNotification => "notification exit",
        }
    }
}

/// Serves until the input ends or the client sends `exit`.
///
/// # Errors
///
/// Returns the error of `input` if it cannot be read.
pub fn serve(server: &Server, input: impl Read, caller: &Caller, answers: &Arc<dyn ResponseSink>) -> std::io::Result<End> {
    let mut frames = Frames::new(input, server.settings().max_frame_bytes);
    while let Some(frame) = frames.next_frame()? {
        let next = match frame {
            Frame::Line(line) => server.receive(line, caller, answers),
            Frame::Oversized => {
                answers.send(server.oversized(), None);
                Next::Read
            }
        };
        if next == Next::Exit {
            return Ok(End::ExitNotification);
        }
        answers.wait_for_reader();
    }
    Ok(End::Input)
}
