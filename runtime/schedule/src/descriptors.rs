//! The limit of open file descriptors.
//!
//! Systems start processes with a low soft limit for programs that still use `select`. A server needs one descriptor per
//! connection. It raises the soft limit to the hard limit, and starts its children with the original limit.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of descriptors that are reserved for upstreams, pipes of children, traces and the admin listener.
const RESERVE: u64 = 128;

static INHERITED: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit to the hard limit. Failures are ignored.
pub fn raise_limit() {
    let inherited = getrlimit(Resource::Nofile);
    if INHERITED.set(inherited).is_ok() && inherited.current != inherited.maximum {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: inherited.maximum, ..inherited });
    }
}

/// Returns the maximum number of client connections: at most `most`, and at most the limit less 128 descriptors, or half of a
/// limit below 256.
pub fn connections_that_fit(most: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (limit - RESERVE.min(limit / 2)).clamp(1, most)
}

#[cfg(target_os = "linux")]
/// Restores the limit with which this process was started. It is called in a child between `fork` and `exec`, and makes one
/// system call without allocating.
///
/// # Errors
///
/// Returns the error of `setrlimit`. Without an earlier [`raise_limit`] there is nothing to restore, which is not an error.
pub fn restore_inherited_limit() -> std::io::Result<()> {
    match INHERITED.get() {
        Some(inherited) => Ok(setrlimit(Resource::Nofile, *inherited)?),
        None => Ok(()),
    }
}
