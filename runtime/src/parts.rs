//! The optional parts of a server. Each is a crate above this one, so that a binary links only the parts that its `main` passes.

use crate::session::store::SessionStores;
use crate::settings::LinkedParts;

/// The optional parts that a binary links, which its `main` passes to [`main_with`](crate::main_with).
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// Opens the stores of `--session-store`: `ptc_session_redis::REDIS`.
    pub session_stores: Option<&'static dyn SessionStores>,
}

impl Parts {
    /// No part.
    pub const NONE: Parts = Parts { session_stores: None };

    /// Returns which parts there are.
    pub fn linked(&self) -> LinkedParts {
        LinkedParts {
            session_redis: self.session_stores.is_some(),
            session_redis_tls: self.session_stores.is_some_and(SessionStores::has_tls),
        }
    }
}
