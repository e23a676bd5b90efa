//! A pool of connections to the Redis server, with back-off while it cannot be reached.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ptc_runtime::log::{self, Level};
use ptc_runtime::session::Fault;
use ptc_runtime::settings::StoreUrl;
use redis::{Client, Connection, ConnectionLike, ErrorKind, RedisError, RedisResult, ServerErrorKind};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
/// Back-off after the first failure. It doubles with each further one.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
/// Maximum back-off.
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// Maximum number of idle connections.
const MAX_IDLE_CONNECTIONS: usize = 16;

/// A pool of connections to the server.
pub(crate) struct RedisPool {
    client: Client,
    /// The URL of the server, without user and password.
    address: String,
    idle: Mutex<Vec<Connection>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last error, until the next success.
    health_error: Option<String>,
    failures: u32,
    /// No attempt is made before this time.
    backoff_until: Option<Instant>,
}

impl RedisPool {
    /// Makes a pool without connections.
    pub(crate) fn new(url: &StoreUrl, roots: Option<&Path>) -> Result<RedisPool, String> {
        let client = open(url, roots)?.map_err(|why| format!("--session-store {url}: {}", said(&why)))?;
        Ok(RedisPool { client, address: url.to_string(), idle: Mutex::default(), state: Mutex::default() })
    }

    /// Tests the server at start. Wrong credentials are an error; other failures may be temporary.
    pub(crate) fn ping(&self) -> Result<(), String> {
        match self.try_once(false, |connection| redis::cmd("PING").query::<String>(connection)) {
            Err((why, _)) if refuses(&why) || why.kind() == ErrorKind::Server(ServerErrorKind::ResponseError) => {
                Err(format!("--session-store {}: {}", self.address, said(&why)))
            }
            Err((why, _)) => {
                self.failed(&why);
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Returns the error of the last attempt, if it failed.
    pub(crate) fn health_error(&self) -> Option<String> {
        self.state().health_error.clone()
    }

    /// Returns the remaining back-off after a failure.
    pub(crate) fn backoff(&self) -> Duration {
        let ends = self.state().backoff_until;
        ends.map_or(Duration::ZERO, |ends| ends.saturating_duration_since(Instant::now()))
    }

    /// Runs `work` on a connection. If an idle connection turns out to be dead, `work` runs a second time on a new one; it must
    /// be idempotent.
    pub(crate) fn with<T>(&self, work: impl Fn(&mut Connection) -> RedisResult<T>) -> Result<T, Fault> {
        if let (Some(health_error), backoff) = (self.health_error(), self.backoff())
            && !backoff.is_zero()
        {
            return Err(unavailable(&self.address, &health_error));
        }
        let mut result = self.try_once(true, &work);
        if let Err((why, true)) = &result
            && broken(why)
        {
            // The other idle connections are as old.
            self.idle().clear();
            result = self.try_once(false, &work);
        }
        match result {
            Ok(value) => {
                let had_trouble = std::mem::take(&mut *self.state()).health_error.is_some();
                if had_trouble {
                    log::line(Level::Info, "session store is back", &[("store", &self.address)]);
                }
                Ok(value)
            }
            Err((why, _)) => Err(self.failed(&why)),
        }
    }

    /// Runs `work` once, with `idle` on an idle connection if there is one. The error includes whether the connection was an idle
    /// one.
    fn try_once<T>(&self, idle: bool, work: impl Fn(&mut Connection) -> RedisResult<T>) -> Result<T, (RedisError, bool)> {
        let kept = if idle { self.idle().pop() } else { None };
        let was_idle = kept.is_some();
        let mut connection = kept.map_or_else(|| self.connect(), Ok).map_err(|why| (why, false))?;
        let result = work(&mut connection).map_err(|why| (why, was_idle));
        let mut idle = self.idle();
        // After a timeout, the late reply would be taken for the next one.
        let usable = connection.is_open() && !result.as_ref().is_err_and(|(why, _)| broken(why));
        if usable && idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
        result
    }

    fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(CONNECT_TIMEOUT)?;
        connection.set_read_timeout(Some(REPLY_TIMEOUT))?;
        connection.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(connection)
    }

    /// Records a failure and starts the back-off.
    fn failed(&self, why: &RedisError) -> Fault {
        let health_error = said(why);
        let mut state = self.state();
        if state.health_error.as_ref() != Some(&health_error) {
            log::line(Level::Warn, "session store unavailable", &[("store", &self.address), ("reason", &health_error)]);
        }
        let backoff = MIN_BACKOFF.saturating_mul(1 << state.failures.min(10)).min(MAX_BACKOFF);
        state.failures += 1;
        state.backoff_until = Instant::now().checked_add(backoff);
        state.health_error = Some(health_error.clone());
        unavailable(&self.address, &health_error)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a client. With TLS, the certificates in `roots` replace those of the system: the library has no way to combine them, and
/// a store with private certificates does not need the others.
#[cfg(feature = "tls")]
fn open(url: &StoreUrl, roots: Option<&Path>) -> Result<RedisResult<Client>, String> {
    // This fails if a provider is already installed, which is sufficient.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let read = |path: &Path| std::fs::read(path).map_err(|why| format!("--ca-file {}: {why}", path.display()));
    match roots.filter(|_| url.has_tls()).map(read).transpose()? {
        None => Ok(Client::open(url.text())),
        Some(pem) => Ok(Client::build_with_tls(url.text(), redis::TlsCertificates { client_tls: None, root_cert: Some(pem) })),
    }
}

#[cfg(not(feature = "tls"))]
fn open(url: &StoreUrl, _: Option<&Path>) -> Result<RedisResult<Client>, String> {
    Ok(Client::open(url.text()))
}

fn unavailable(address: &str, health_error: &str) -> Fault {
    Fault::Unavailable(format!("the session store {address} cannot be used: {health_error}; send the same call again later"))
}

/// Whether the connection is unusable, as opposed to an error reply of the server.
fn broken(why: &RedisError) -> bool {
    why.is_io_error() || why.is_timeout() || why.is_connection_dropped() || why.kind() == ErrorKind::Parse
}

/// Whether the server rejects the credentials.
fn refuses(why: &RedisError) -> bool {
    why.kind() == ErrorKind::AuthenticationFailed
        || why.kind() == ErrorKind::Server(ServerErrorKind::NoPerm)
        || matches!(why.code(), Some("NOAUTH" | "WRONGPASS"))
}

/// Formats an error as a sentence. A server's message never contains the password.
fn said(why: &RedisError) -> String {
    if refuses(why) {
        return format!("the server refuses the user or the password ({})", why.code().unwrap_or("authentication failed"));
    }
    why.to_string()
}
