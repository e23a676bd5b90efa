//! MCP over Streamable HTTP, as a thin layer over the dispatcher.
//!
//! - [`listener`]: sockets and connections, and their shutdown.
//! - [`route`]: routes a request to its endpoint and logs it.
//! - `cors`: lets pages of the allowed origins call.
//! - [`guard`]: checks `Host`, `Origin` and media types.
//! - [`access_token`]: access tokens of an authorization server.
//! - [`auth`]: bearer tokens. `tokens_file`: those of several owners. `throttle`: the delay of replies to wrong ones.
//! - [`body`]: reads bodies within limits of size, time and memory.
//! - [`write_timeout`]: a stream with a write timeout.
//! - [`reply`]: an HTTP reply, independent of hyper.
//! - [`post`]: passes a posted message to the dispatcher and returns its answer.
//! - [`header_validation`]: headers of the stateless era that repeat parts of the body.
//! - `tls`: HTTPS, with the feature `https-server`.
//! - `unix_socket`: a socket that only its owner can connect to.
//! - [`sessions`]: protocol sessions of the era with `initialize`.
//!
//! Answers are JSON documents, not event streams, since the server sends no messages before an answer. `GET` therefore returns
//! 405.

pub mod access_token;
pub mod auth;
pub mod body;
mod cors;
pub mod guard;
pub mod header_validation;
pub mod listener;
pub mod post;
pub mod reply;
pub mod route;
pub mod sessions;
mod throttle;
#[cfg(feature = "https-server")]
mod tls;
mod tokens_file;
mod unix_socket;
pub mod write_timeout;

use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use litemap::LiteMap;

pub use listener::Listener;

use super::Server;
use super::identity::Owner;
use super::in_flight::InFlight;
use crate::log::{self, Field, Level};
use crate::settings::HttpSettings;
use access_token::TokenVerifier;
use auth::{Authenticator, Peer};
use body::BodyMemory;
use reply::Reply;
use sessions::ProtocolSessions;

/// Pages for people that the listener of clients serves, such as the trace viewer.
pub trait Pages: Send + Sync {
    /// Whether a path belongs to the pages.
    fn handles(&self, path: &str) -> bool;

    /// Answers a request to one of these paths. Also returns the owner, if the request was authenticated.
    fn respond<'a>(
        &'a self,
        settings: &'a HttpSettings,
        authenticator: &'a Authenticator,
        peer: &'a Peer,
        request: &'a Parts,
    ) -> Pin<Box<dyn Future<Output = (Reply, Option<Owner>)> + Send + 'a>>;
}

/// Makes the pages that show traces. A crate above this one implements it.
pub trait TraceViewer: Debug + Sync {
    /// Returns the path of the page.
    fn path(&self) -> &'static str;

    /// Returns the pages that show the traces of a folder.
    fn pages(&self, folder: &Path) -> Arc<dyn Pages>;
}

/// State that all connections share.
pub struct HttpState {
    server: Arc<Server>,
    settings: HttpSettings,
    max_body_bytes: usize,
    body_memory: BodyMemory,
    instance: String,
    /// Prefix of the ids of this process's requests.
    id_prefix: String,
    next_id: AtomicU64,
    authenticator: Authenticator,
    sessions: ProtocolSessions,
    /// Unanswered requests of the stateless era.
    stateless_calls: Mutex<LiteMap<u64, Arc<InFlight>>>,
    draining: AtomicBool,
    /// Number of requests that are read on threads that may block. Their calls are not in flight yet.
    reading: AtomicUsize,
    /// Pages beside the endpoint of the protocol.
    pages: Option<Arc<dyn Pages>>,
}

impl HttpState {
    /// Creates the state of a listener for `server`, which also serves `pages`. `verifier` verifies access tokens.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the file of tokens is invalid, or if the operating system provides no random bytes.
    pub fn new(
        server: Arc<Server>,
        pages: Option<Arc<dyn Pages>>,
        verifier: Option<Arc<dyn TokenVerifier>>,
    ) -> Result<Arc<HttpState>, String> {
        let settings = server.settings().http.clone();
        let instance = settings.instance_label.clone().unwrap_or_else(host_name);
        let max_body_bytes = settings.max_body_bytes.unwrap_or(server.settings().max_frame_bytes);
        Ok(Arc::new(HttpState {
            max_body_bytes,
            body_memory: BodyMemory::new(server.scheduler().limits().memory_budget_bytes.value, max_body_bytes),
            instance,
            id_prefix: crate::secrets::random::text::<6>().map_err(|fault| format!("cannot start: {fault}"))?,
            next_id: AtomicU64::new(1),
            authenticator: Authenticator::new(&settings, verifier)?,
            sessions: ProtocolSessions::new(&settings),
            stateless_calls: Mutex::default(),
            draining: AtomicBool::new(false),
            reading: AtomicUsize::new(0),
            pages,
            settings,
            server,
        }))
    }

    /// Whether the process is shutting down and refuses new calls.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Reads the file of tokens again, and logs the result.
    pub fn reload(&self) {
        match self.authenticator.reload() {
            Ok(None) => {}
            Ok(Some(count)) => log::record(Level::Info, "tokens loaded", &[("tokens", Field::Number(count as u64))]),
            Err(why) => {
                log::line(Level::Error, "tokens not loaded", &[("reason", &why), ("hint", "the earlier tokens stay valid")]);
            }
        }
    }

    /// Refuses new calls from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether no call is in flight, queued or about to be.
    pub fn is_idle(&self) -> bool {
        self.reading.load(Ordering::Acquire) == 0 && self.server.is_idle()
    }

    /// Cancels every call.
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
