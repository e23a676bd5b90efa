//! Sessions: definitions, recent results and histories that outlive a call, each within its caps.
//!
//! - [`limits`]: the caps, and what a client is told of them.
//! - [`state`]: the state that a session keeps between evaluations.
//! - [`store`]: where sessions live, by owner and id: one evaluation at a time in each, closed by age and by idleness.
//! - [`memory`]: in the process, the default.
//! - `redis`: in a Redis or Valkey server, for several replicas, where the feature `session-redis` is on.
//! - [`tools`]: the tools `lisp_session_start list eval inspect forget close`.
//! - [`inspect`]: what `lisp_session_inspect` shows.
//!
//! An evaluation works on a copy of what its session keeps; only a whole success replaces it, so that a fault, a cancelled call or
//! a cap leaves the session as it was.

pub mod inspect;
pub mod limits;
pub mod memory;
#[cfg(feature = "session-redis")]
pub mod redis;
pub mod state;
pub mod store;
pub mod tools;

use std::fmt;
use std::path::Path;

pub use limits::SessionLimits;
pub use state::SessionState;
pub use store::{Lease, Sessions};

use crate::evaluation::Reason;
use crate::settings::StoreUrl;
use store::Store;

/// The store at a URL; `roots` are certificates for a connection with TLS.
#[cfg(feature = "session-redis")]
fn remote(url: &StoreUrl, deployment: &str, limits: &SessionLimits, roots: Option<&Path>) -> Result<Box<dyn Store>, String> {
    Ok(Box::new(redis::Redis::open(url, deployment, limits, roots)?))
}

#[cfg(not(feature = "session-redis"))]
fn remote(_: &StoreUrl, _: &str, _: &SessionLimits, _: Option<&Path>) -> Result<Box<dyn Store>, String> {
    // The settings have refused it before.
    Err("--session-store: this binary was built without a store beside its memory".into())
}

/// Why a session tool has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The arguments are wrong; the sentence says how.
    Args(String),
    /// No session of that id belongs to the caller.
    NotFound,
    /// It was closed, by its owner, by age or by idleness.
    Closed,
    /// An evaluation of it runs.
    Busy,
    /// A cap is reached; the sentence says which.
    Limit(String),
    /// A value is to be kept that the store cannot hold; the sentence says which.
    NotStorable(String),
    /// The store cannot be used; the sentence says why.
    Unavailable(String),
}

impl Fault {
    /// Every name of one.
    pub const REASONS: [&str; 7] = [
        "session_args_error",
        "session_not_found",
        "session_closed",
        "session_busy",
        "session_limit_exceeded",
        "session_not_storable",
        "session_store_unavailable",
    ];

    /// Its documented name.
    pub fn reason(&self) -> &'static str {
        let [args, not_found, closed, busy, limit, not_storable, unavailable] = Self::REASONS;
        match self {
            Fault::Args(_) => args,
            Fault::NotFound => not_found,
            Fault::Closed => closed,
            Fault::Busy => busy,
            Fault::Limit(_) => limit,
            Fault::NotStorable(_) => not_storable,
            Fault::Unavailable(_) => unavailable,
        }
    }

    /// The reason of an evaluation of which nothing is kept for it.
    fn of_evaluation(&self) -> Reason {
        match self {
            Fault::NotStorable(_) => Reason::SessionNotStorable,
            Fault::Unavailable(_) => Reason::SessionStoreUnavailable,
            Fault::Args(_) | Fault::NotFound | Fault::Closed | Fault::Busy | Fault::Limit(_) => Reason::SessionLimitExceeded,
        }
    }

    /// As many sessions are open as may be.
    fn full(whose: &str, count: usize) -> Fault {
        Fault::Limit(format!("{whose} {count} sessions, which is the most; lisp_session_close ends one"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Args(why) | Fault::Limit(why) | Fault::NotStorable(why) | Fault::Unavailable(why) => f.write_str(why),
            Fault::NotFound => {
                f.write_str("there is no such session; lisp_session_list shows yours, lisp_session_start opens one")
            }
            Fault::Closed => f.write_str("the session is closed; lisp_session_start opens another"),
            Fault::Busy => f.write_str("an evaluation of this session is running; wait for it, then send the same call again"),
        }
    }
}
