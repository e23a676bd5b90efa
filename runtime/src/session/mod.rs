//! Sessions: definitions, recent results and histories that outlive a call, within limits.
//!
//! - [`state`]: the state that a session keeps between evaluations.
//! - [`store`]: stores sessions by owner and id, with one evaluation at a time in each and expiry by age and idleness. Other crates
//!   implement stores that several replicas share.
//! - [`memory`]: the store in the memory of the process, which is the default.
//! - [`tools`]: the tools `lisp_session_start list eval inspect forget close`.
//! - [`inspect`]: the content of `lisp_session_inspect`.
//!
//! An evaluation works on a copy of the session's state. Only a successful evaluation replaces the state, so that a fault, a
//! cancelled call or an exceeded limit leaves the session unchanged.

pub mod inspect;
pub mod memory;
pub mod state;
pub mod store;
pub mod tools;

use std::fmt;

pub use state::SessionState;
pub use store::{Lease, Sessions};

pub use crate::settings::SessionLimits;
use ptc_engine::evaluation::Reason;

/// The error of a session tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The arguments are invalid, with a sentence.
    Args(String),
    /// The caller has no session with this id.
    NotFound,
    /// The session was closed by its owner or has expired.
    Closed,
    /// An evaluation runs in the session.
    Busy,
    /// A limit is reached, with a sentence.
    Limit(String),
    /// The store cannot represent a value of the new state, with a sentence.
    NotStorable(String),
    /// The store is unavailable, with a sentence.
    Unavailable(String),
    /// The stored state of this session cannot be used any more, with a sentence.
    StateLost(String),
}

impl Fault {
    /// The documented names of all errors.
    pub const REASONS: [&str; 8] = [
        "session_args_error",
        "session_not_found",
        "session_closed",
        "session_busy",
        "session_limit_exceeded",
        "session_not_storable",
        "session_store_unavailable",
        "session_lost",
    ];

    /// Returns the documented name.
    pub fn reason(&self) -> &'static str {
        let [args, not_found, closed, busy, limit, not_storable, unavailable, lost] = Self::REASONS;
        match self {
            Fault::Args(_) => args,
            Fault::NotFound => not_found,
            Fault::Closed => closed,
            Fault::Busy => busy,
            Fault::Limit(_) => limit,
            Fault::NotStorable(_) => not_storable,
            Fault::Unavailable(_) => unavailable,
            Fault::StateLost(_) => lost,
        }
    }

    /// Returns the reason of an evaluation whose state was not stored because of this error.
    fn of_evaluation(&self) -> Reason {
        match self {
            Fault::NotStorable(_) => Reason::SessionNotStorable,
            // Only the beginning of an evaluation reads a state, so that none ends with `StateLost`.
            Fault::Unavailable(_) | Fault::StateLost(_) => Reason::SessionStoreUnavailable,
            Fault::Args(_) | Fault::NotFound | Fault::Closed | Fault::Busy | Fault::Limit(_) => Reason::SessionLimitExceeded,
        }
    }

    /// Returns the error for a maximum number of sessions.
    pub fn full(whose: &str, count: usize) -> Fault {
        Fault::Limit(format!("{whose} {count} sessions, which is the most; lisp_session_close ends one"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Args(why) | Fault::Limit(why) | Fault::NotStorable(why) | Fault::Unavailable(why) | Fault::StateLost(why) => {
                f.write_str(why)
            }
            Fault::NotFound => {
                f.write_str("there is no such session; lisp_session_list shows yours, lisp_session_start opens one")
            }
            Fault::Closed => f.write_str("the session is closed; lisp_session_start opens another"),
            Fault::Busy => f.write_str("an evaluation of this session is running; wait for it, then send the same call again"),
        }
    }
}
