//! MCP over Streamable HTTP: a thin layer over the dispatcher.
//!
//! - [`listener`]: sockets, connections, their end.
//! - [`route`]: a request to its endpoint, and what is written of it.
//! - [`guard`]: who may ask, in which form: `Host`, `Origin`, media types.
//! - [`auth`]: bearer tokens, and the throttle on wrong ones.
//! - [`body`]: body_memory within bounds of size and time.
//! - [`write_timeout`]: writing within a bound of time.
//! - `reply`: an answer before it becomes hyper's.
//! - [`post`]: a message to the dispatcher, its answer back.
//! - [`header_validation`]: headers of the stateless era that repeat what the body says.
//! - `tls`: HTTPS, where the feature `https-server` is on.
//! - `unix_socket`: a socket that only its owner can connect to.
//! - [`sessions`]: protocol sessions of the era with `initialize`.
//!
//! Answers are JSON, never streams: nothing is ever told before an answer, so that `GET` has no stream to offer and says 405.

pub mod auth;
pub mod body;
pub mod guard;
pub mod header_validation;
pub mod listener;
pub mod post;
pub(crate) mod reply;
pub mod route;
pub mod sessions;
#[cfg(feature = "https-server")]
mod tls;
mod unix_socket;
pub mod write_timeout;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use litemap::LiteMap;

pub use listener::Listener;

use super::Server;
use super::in_flight::InFlight;
use crate::settings::HttpSettings;
use auth::Authenticator;
use body::BodyMemory;
use sessions::ProtocolSessions;

/// Bytes of bodies that are being read at a time, of all connections; a body of the largest size always fits.
const MAX_BODY_MEMORY: usize = 64 * 1024 * 1024;

/// What all connections share.
pub struct HttpState {
    server: Arc<Server>,
    settings: HttpSettings,
    max_body_bytes: usize,
    body_memory: BodyMemory,
    instance: String,
    /// Begins the ids of this process's requests.
    id_prefix: String,
    next_id: AtomicU64,
    authenticator: Authenticator,
    sessions: ProtocolSessions,
    /// Requests of the stateless era that are not answered yet.
    stateless_calls: Mutex<LiteMap<u64, Arc<InFlight>>>,
    draining: AtomicBool,
    /// The page of traces.
    #[cfg(feature = "viewer")]
    viewer: Option<Arc<crate::viewer::Viewer>>,
}

impl HttpState {
    /// A site that hands requests to `server`.
    pub fn new(server: Arc<Server>) -> std::io::Result<Arc<HttpState>> {
        let settings = server.settings().http.clone();
        let instance = settings.instance_label.clone().unwrap_or_else(host_name);
        let max_body_bytes = settings.max_body_bytes.unwrap_or(server.settings().max_frame_bytes);
        Ok(Arc::new(HttpState {
            max_body_bytes,
            body_memory: BodyMemory::new(MAX_BODY_MEMORY.max(max_body_bytes)),
            instance,
            id_prefix: crate::random::text::<6>()?,
            next_id: AtomicU64::new(1),
            authenticator: Authenticator::new(&settings),
            sessions: ProtocolSessions::new(&settings),
            stateless_calls: Mutex::default(),
            draining: AtomicBool::new(false),
            #[cfg(feature = "viewer")]
            viewer: server.settings().traces_to_view().map(crate::viewer::Viewer::new),
            settings,
            server,
        }))
    }

    /// Whether the process is about to end and takes no new calls.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Takes no new calls from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Stops every call.
    pub fn cancel_all(&self) {
        self.sessions.cancel_all();
        let stateless_calls: Vec<_> = self.stateless_calls().values().cloned().collect();
        for calls in stateless_calls {
            calls.cancel_all();
        }
    }

    fn stateless_calls(&self) -> MutexGuard<'_, LiteMap<u64, Arc<InFlight>>> {
        self.stateless_calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
