//! Connections to the server, and what happens while there are none.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::{Client, Connection, ConnectionLike, ErrorKind, RedisError, RedisResult, ServerErrorKind};

use crate::log::{self, Level};
use crate::session::Fault;
use crate::settings::StoreUrl;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);
/// The first pause after a failure; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Connections that are kept for the next step.
const KEPT: usize = 16;

/// The way to the server.
pub(super) struct Link {
    client: Client,
    /// Where it leads, without user and password.
    place: String,
    idle: Mutex<Vec<Connection>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What went wrong last, until something goes well.
    trouble: Option<String>,
    failures: u32,
    /// Nobody knocks before.
    pause_ends: Option<Instant>,
}

impl Link {
    /// No connection yet.
    pub(super) fn new(url: &StoreUrl, roots: Option<&Path>) -> Result<Link, String> {
        let client = open(url, roots)?.map_err(|why| format!("--session-store {url}: {}", said(&why)))?;
        Ok(Link { client, place: url.to_string(), idle: Mutex::default(), state: Mutex::default() })
    }

    /// A first look: wrong credentials are the operator's matter and do not get better, everything else may.
    pub(super) fn look_in(&self) -> Result<(), String> {
        match self.try_once(false, |connection| redis::cmd("PING").query::<String>(connection)) {
            Err((why, _)) if refuses(&why) || why.kind() == ErrorKind::Server(ServerErrorKind::ResponseError) => {
                Err(format!("--session-store {}: {}", self.place, said(&why)))
            }
            Err((why, _)) => {
                self.failed(&why);
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Why it cannot be used, where the last try has shown that.
    pub(super) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// How long the pause after a failure still is.
    pub(super) fn pause(&self) -> Duration {
        let ends = self.state().pause_ends;
        ends.map_or(Duration::ZERO, |ends| ends.saturating_duration_since(Instant::now()))
    }

    /// Does `work` on a connection. It is done twice where an idle connection turns out to be dead, which is no sign of trouble:
    /// `work` has to bear that.
    pub(super) fn with<T>(&self, work: impl Fn(&mut Connection) -> RedisResult<T>) -> Result<T, Fault> {
        if let (Some(trouble), pause) = (self.trouble(), self.pause())
            && !pause.is_zero()
        {
            return Err(unavailable(&self.place, &trouble));
        }
        let mut result = self.try_once(true, &work);
        if let Err((why, true)) = &result
            && broken(why)
        {
            // The others are no younger.
            self.idle().clear();
            result = self.try_once(false, &work);
        }
        match result {
            Ok(value) => {
                let had_trouble = std::mem::take(&mut *self.state()).trouble.is_some();
                if had_trouble {
                    log::line(Level::Info, "session store is back", &[("store", &self.place)]);
                }
                Ok(value)
            }
            Err((why, _)) => Err(self.failed(&why)),
        }
    }

    /// The error comes with whether the connection was an idle one.
    fn try_once<T>(&self, idle: bool, work: impl Fn(&mut Connection) -> RedisResult<T>) -> Result<T, (RedisError, bool)> {
        let kept = if idle { self.idle().pop() } else { None };
        let was_idle = kept.is_some();
        let mut connection = kept.map_or_else(|| self.connect(), Ok).map_err(|why| (why, false))?;
        let result = work(&mut connection).map_err(|why| (why, was_idle));
        let mut idle = self.idle();
        // After an answer that did not come in time, the next one would be taken for it.
        let usable = connection.is_open() && !result.as_ref().is_err_and(|(why, _)| broken(why));
        if usable && idle.len() < KEPT {
            idle.push(connection);
        }
        result
    }

    fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(CONNECT)?;
        connection.set_read_timeout(Some(ANSWER))?;
        connection.set_write_timeout(Some(ANSWER))?;
        Ok(connection)
    }

    /// Notes a failure, and how long to leave the server alone.
    fn failed(&self, why: &RedisError) -> Fault {
        let trouble = said(why);
        let mut state = self.state();
        if state.trouble.as_ref() != Some(&trouble) {
            log::line(Level::Warn, "session store unavailable", &[("store", &self.place), ("reason", &trouble)]);
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(10)).min(LONGEST_PAUSE);
        state.failures += 1;
        state.pause_ends = Instant::now().checked_add(pause);
        state.trouble = Some(trouble.clone());
        unavailable(&self.place, &trouble)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With TLS, the certificates in `roots` stand in place of the system's: that is what the library offers, and who names some for a
/// store of its own needs no others there.
#[cfg(feature = "session-redis-tls")]
fn open(url: &StoreUrl, roots: Option<&Path>) -> Result<RedisResult<Client>, String> {
    // Fails where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let read = |path: &Path| std::fs::read(path).map_err(|why| format!("--ca-file {}: {why}", path.display()));
    match roots.filter(|_| url.has_tls()).map(read).transpose()? {
        None => Ok(Client::open(url.text())),
        Some(pem) => Ok(Client::build_with_tls(url.text(), redis::TlsCertificates { client_tls: None, root_cert: Some(pem) })),
    }
}

#[cfg(not(feature = "session-redis-tls"))]
fn open(url: &StoreUrl, _: Option<&Path>) -> Result<RedisResult<Client>, String> {
    Ok(Client::open(url.text()))
}

fn unavailable(place: &str, trouble: &str) -> Fault {
    Fault::Unavailable(format!("the session store {place} cannot be used: {trouble}; send the same call again later"))
}

/// Whether the connection is of no use any more, as opposed to an answer that says no.
fn broken(why: &RedisError) -> bool {
    why.is_io_error() || why.is_timeout() || why.is_connection_dropped() || why.kind() == ErrorKind::Parse
}

/// Whether the server lets nobody in with these credentials.
fn refuses(why: &RedisError) -> bool {
    why.kind() == ErrorKind::AuthenticationFailed
        || why.kind() == ErrorKind::Server(ServerErrorKind::NoPerm)
        || matches!(why.code(), Some("NOAUTH" | "WRONGPASS"))
}

/// An error in words. What a server says never repeats a password.
fn said(why: &RedisError) -> String {
    if refuses(why) {
        return format!("the server refuses the user or the password ({})", why.code().unwrap_or("authentication failed"));
    }
    why.to_string()
}
