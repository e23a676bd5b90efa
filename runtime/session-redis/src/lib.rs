//! Sessions in a Redis or Valkey server (Redis 5 or later, one primary), so that every replica of a deployment serves them.
//!
//! - `scripts`: the atomic steps that run inside the server.
//! - `pool`: connections, and back-off while the server cannot be reached.
//! - `lease_renewer`: the thread that renews leases and checks the server's health.
//! - `form`: the stored form of a session's state, and the limits of its size.
//! - `seal`: encrypts and authenticates states and titles.
//!
//! A server has these sessions if its `main` passes [`REDIS`] in [`Parts::session_stores`](ptc_runtime::Parts::session_stores).
//!
//! A session is a hash that expires after its lifetime or its idle timeout. The lease to evaluate is a lock that expires `LEASE`
//! after the last renewal. It has a fencing token that grows with every lease: a write is rejected if a later lease exists,
//! however late it arrives. Every step is idempotent, since a reply can be lost and the request repeated.
//!
//! The server stores states and titles sealed. In plain text it has only names of keys with the ids of sessions and digests of
//! owners, times, sizes and counts.

mod form;
mod lease_renewer;
mod pool;
mod scripts;
mod seal;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ptc_lisp::limits::Cancel;

use ptc_runtime::digest::{hex, sha256, short};
use ptc_runtime::log::{self, Level};
use ptc_runtime::schedule::Scheduler;
use ptc_runtime::secrets::random;
use ptc_runtime::session::store::{EvalLease, LeaseOutcome, Metadata, SessionStores, Store};
use ptc_runtime::session::{Fault, SessionLimits, SessionState};
use ptc_runtime::settings::{Settings, StoreUrl};

use self::form::Codec;
use self::lease_renewer::LeaseRenewer;
use self::pool::RedisPool;
use self::scripts::{Reply, Step};
use self::seal::{Sealer, SessionRef};

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use form::decode_sealed;

/// Duration of a lease after its last renewal.
const LEASE: Duration = Duration::from_secs(10);

/// Opens stores of sessions in Redis or Valkey: the part that `main` passes to the runtime.
pub static REDIS: RedisStores = RedisStores;

/// Opens stores of sessions in Redis or Valkey.
#[derive(Debug)]
pub struct RedisStores;

impl SessionStores for RedisStores {
    fn has_tls(&self) -> bool {
        cfg!(feature = "tls")
    }

    fn open(
        &self,
        url: &StoreUrl,
        deployment: &str,
        settings: &Settings,
        scheduler: &Arc<Scheduler>,
    ) -> Result<Box<dyn Store>, String> {
        Ok(Box::new(Redis::open(url, deployment, settings, scheduler)?))
    }
}

/// The store of sessions in a Redis server.
pub struct Redis {
    shared: Arc<Shared>,
    codec: Codec,
    limits: SessionLimits,
    /// The scheduler whose memory budget includes replies and commands.
    scheduler: Arc<Scheduler>,
}

/// State shared with the thread that renews leases.
struct Shared {
    pool: RedisPool,
    lease_renewer: LeaseRenewer,
    /// Prefix of every key. It contains the deployment's name, so that deployments can share a server.
    prefix: String,
    /// The name of this process as a holder of leases.
    holder: String,
    idle: Duration,
    /// Maximum size of a stored state in bytes.
    max_bytes: u64,
}

impl Redis {
    /// Opens the store at `url` for the deployment with this name.
    ///
    /// # Errors
    ///
    /// Returns a sentence if there is no key, or if the URL or the credentials are rejected. An unreachable server is not an error,
    /// since it may become available later.
    pub fn open(url: &StoreUrl, deployment: &str, settings: &Settings, scheduler: &Arc<Scheduler>) -> Result<Redis, String> {
        // The settings have rejected a store without a key before.
        let keys = settings.sealing_keys().ok_or("--session-store needs --session-key-file")?;
        let codec = Codec::new(Sealer::new(deployment, &keys), settings.limits());
        let limits = &settings.session_limits;
        let holder = random::text::<18>().map_err(|why| format!("no random name: {why}"))?;
        let shared = Arc::new(Shared {
            pool: RedisPool::new(url, settings.ca_file.as_deref())?,
            lease_renewer: LeaseRenewer::default(),
            prefix: format!("ptc:{deployment}:"),
            holder,
            idle: limits.idle,
            max_bytes: codec.max_bytes(),
        });
        shared.pool.ping()?;
        lease_renewer::start(&shared).map_err(|why| format!("--session-store: {why}"))?;
        Ok(Redis { shared, codec, limits: limits.clone(), scheduler: Arc::clone(scheduler) })
    }

    fn ask(&self, step: &Step, owner: &str, id: &str, more: &[&[u8]]) -> Result<Reply, Fault> {
        let mut reply = self.shared.run(step, &owner_key(owner), id, more)?;
        match reply.word() {
            "closed" => Err(Fault::Closed),
            "missing" => Err(Fault::NotFound),
            "busy" => Err(Fault::Busy),
            "too large" => {
                let size = reply.number()?;
                log_loss(id, Err(self.codec.too_large(size)))
            }
            "full" => Err(Fault::full("the server has", self.limits.sessions)),
            "full for owner" => Err(Fault::full("you have", self.limits.sessions_per_owner)),
            _ => Ok(reply),
        }
    }

    /// Reads the metadata that every step returns, in the order of the scripts.
    fn metadata(&self, owner: &str, reply: &mut Reply) -> Result<Metadata, Fault> {
        let session_id = reply.text()?;
        let title = self.codec.decode_title(SessionRef { owner, id: &session_id }, reply.bytes()?);
        let numbers = [(); 7].map(|()| reply.number());
        let [created, updated, expires, turn, bindings, bytes, running] = numbers;
        let time = |micros: Result<u64, Fault>| {
            let micros = i64::try_from(micros?).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
            micros.map(|at| at.to_string()).ok_or_else(scripts::unexpected)
        };
        let small = |number: Result<u64, Fault>| number.map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok(Metadata {
            session_id,
            title,
            turn: turn?,
            binding_count: small(bindings)?,
            memory_bytes: small(bytes)?,
            eval_status: Metadata::status(running? == 1),
            created_at: time(created)?,
            updated_at: time(updated)?,
            expires_at: time(expires)?,
        })
    }
}

impl Shared {
    /// Runs a step. All steps have the same keys and first arguments. `more` are the arguments that follow.
    fn run(&self, step: &Step, owner: &str, id: &str, more: &[&[u8]]) -> Result<Reply, Fault> {
        let key = |kind: &str, name: &str| format!("{}{kind}{name}", self.prefix);
        let keys = [key("session:", id), key("right:", id), key("owner:", owner), key("all", "")];
        let (idle, max_bytes) = (self.idle.as_millis().to_string(), self.max_bytes.to_string());
        let fixed: [&[u8]; 4] = [id.as_bytes(), owner.as_bytes(), idle.as_bytes(), max_bytes.as_bytes()];
        let reply = self.pool.with(|connection| {
            let mut invocation = step.prepare_invoke();
            for key in &keys {
                invocation.key(key);
            }
            for argument in fixed.iter().chain(more) {
                invocation.arg(*argument);
            }
            invocation.invoke(connection)
        });
        Ok(Reply::new(reply?))
    }
}

impl Store for Redis {
    fn is_remote(&self) -> bool {
        true
    }

    fn health_error(&self) -> Option<String> {
        self.shared.pool.health_error()
    }

    fn count(&self) -> usize {
        self.shared.lease_renewer.count()
    }

    fn start(&self, owner: &str, id: &str, title: Option<&str>, ttl: Duration) -> Result<Metadata, Fault> {
        let ttl = ttl.as_millis().to_string();
        let (mine, all) = (self.limits.sessions_per_owner.to_string(), self.limits.sessions.to_string());
        let title = self.codec.encode_title(SessionRef { owner, id }, title)?;
        let more = [ttl.as_bytes(), mine.as_bytes(), all.as_bytes(), &title];
        self.metadata(owner, &mut self.ask(&scripts::START, owner, id, &more)?)
    }

    fn list(&self, owner: &str) -> Result<Vec<Metadata>, Fault> {
        let mut reply = self.ask(&scripts::LIST, owner, "", &[])?;
        let mut all = Vec::new();
        while !reply.is_done() {
            // A session whose numbers were changed in the store must not hide the others.
            all.extend(self.metadata(owner, &mut reply));
        }
        all.sort_by(|a, b| (&a.created_at, &a.session_id).cmp(&(&b.created_at, &b.session_id)));
        Ok(all)
    }

    fn peek(&self, owner: &str, id: &str) -> Result<(Metadata, SessionState), Fault> {
        let mut reply = self.ask(&scripts::LOOK, owner, id, &[])?;
        let _memory = self.scheduler.hold(reply.len());
        let metadata = self.metadata(owner, &mut reply)?;
        let state = self.codec.decode(SessionRef { owner, id }, reply.bytes()?, &Cancel::default());
        Ok((metadata, log_loss(id, state)?))
    }

    fn close(&self, owner: &str, id: &str) -> Result<(), Fault> {
        self.ask(&scripts::CLOSE, owner, id, &[])?;
        self.shared.lease_renewer.cancel(owner, id);
        Ok(())
    }

    fn begin(&self, owner: &str, id: &str, cancel: &Cancel) -> Result<(EvalLease, SessionState), Fault> {
        // Each lease has a different holder, so that two evaluations of one process exclude each other like those of two
        // processes.
        let nonce = random::text::<6>().map_err(|why| Fault::Unavailable(format!("no random name for a right: {why}")))?;
        let holder = format!("{}.{nonce}", self.shared.holder);
        let lease_ms = LEASE.as_millis().to_string();
        let mut reply = self.ask(&scripts::BEGIN, owner, id, &[holder.as_bytes(), lease_ms.as_bytes()])?;
        let _memory = self.scheduler.hold(reply.len());
        let fence = reply.number()?;
        let granted = EvalLease { owner: owner.to_owned(), id: id.to_owned(), fence };
        self.shared.lease_renewer.track(&granted, holder, cancel);
        let state = reply.bytes().and_then(|sealed| self.codec.decode(SessionRef { owner, id }, sealed, cancel));
        match log_loss(id, state) {
            Ok(kept) => Ok((granted, kept)),
            Err(fault) => {
                let _ = self.end(&granted, LeaseOutcome::Unchanged);
                Err(fault)
            }
        }
    }

    fn end(&self, lease: &EvalLease, outcome: LeaseOutcome<'_>) -> Result<Option<Metadata>, Fault> {
        let session = SessionRef { owner: &lease.owner, id: &lease.id };
        let stored = match outcome {
            LeaseOutcome::Unchanged => None,
            LeaseOutcome::Evaluated(kept) | LeaseOutcome::Changed(kept) => Some((self.codec.encode(session, kept)?, kept)),
        };
        // The encoded state, and the command that contains it.
        let _memory = stored.as_ref().map(|(stored, _)| self.scheduler.hold(2 * stored.len()));
        // The lease is no longer renewed. If the server does not receive the end, the lease expires.
        let holder = self.shared.lease_renewer.release(lease);
        let fence = lease.fence.to_string();
        let turns = u8::from(matches!(outcome, LeaseOutcome::Evaluated(_))).to_string();
        let numbers = stored.as_ref().map(|(_, kept)| (kept.bindings.len().to_string(), kept.bindings.bytes().to_string()));
        let mut more = vec![holder.as_bytes(), fence.as_bytes()];
        if let (Some((stored, _)), Some((count, bytes))) = (&stored, &numbers) {
            more.extend([turns.as_bytes(), count.as_bytes(), bytes.as_bytes()]);
            more.push(stored);
        }
        match self.ask(&scripts::END, &lease.owner, &lease.id, &more) {
            Ok(reply) if reply.word() == "lost" => Err(Fault::Unavailable(
                "the session went on elsewhere while the session store was out of reach; nothing of this was kept".into(),
            )),
            Ok(mut reply) => self.metadata(&lease.owner, &mut reply).map(Some),
            Err(Fault::Closed | Fault::NotFound) => Ok(None),
            Err(Fault::Unavailable(why)) if stored.is_some() => Err(Fault::Unavailable(format!(
                "{why}; whether this was kept is unknown: lisp_session_list shows the session's turn once the store is back"
            ))),
            Err(fault) => Err(fault),
        }
    }
}

/// Logs that the state of a session is lost, if that is the error.
fn log_loss<T>(id: &str, read: Result<T, Fault>) -> Result<T, Fault> {
    if let Err(Fault::StateLost(why)) = &read {
        log::line(Level::Warn, "session lost", &[("session", &short(id)), ("reason", why)]);
    }
    read
}

/// Hashes an owner, which is a digest of a secret or a word, so that keys do not reveal it.
fn owner_key(owner: &str) -> String {
    hex(&sha256(owner.as_bytes()))
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("prefix", &self.shared.prefix).finish_non_exhaustive()
    }
}
