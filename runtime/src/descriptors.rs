//! The limit of open file descriptors.
//!
//! Systems start processes with a low soft limit, so that programs that still use `select` work. A server needs one descriptor for
//! each connection: it raises the soft limit to the hard one, and gives its children the limit that it was started with.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections of clients leave to upstreams, pipes of children, traces and the admin listener.
const RESERVE: u64 = 128;

static INHERITED: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard one. Has no effect where the system refuses.
pub(crate) fn raise_limit() {
    let inherited = getrlimit(Resource::Nofile);
    if INHERITED.set(inherited).is_ok() && inherited.current != inherited.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: inherited.maximum, ..inherited });
    }
}

/// Connections of clients that fit below the limit: at most `most`, with a reserve of 128 descriptors or, below 256, of half of them.
pub(crate) fn connections_that_fit(most: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit - RESERVE.min(limit / 2)).clamp(1, most)
}

#[cfg(target_os = "linux")]
/// Sets the limit that this process was started with. For a child between `fork` and `exec`: one system call, no allocation.
pub(crate) fn restore_inherited_limit() -> std::io::Result<()> {
    match INHERITED.get() {
        Some(inherited) => Ok(setrlimit(Resource::Nofile, *inherited)?),
        None => Ok(()),
    }
}
