//! The thread that renews leases while programs run, and checks the store between calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ptc_lisp::limits::Cancel;

use ptc_runtime::session::store::EvalLease;

use crate::scripts::{COUNT, RENEW};
use crate::{LEASE, Shared, owner_key};

/// Interval between two renewals. A lease lasts four of them.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);

/// The leases that this process holds.
#[derive(Default)]
pub(crate) struct LeaseRenewer {
    held: Mutex<Vec<HeldLease>>,
    /// Number of sessions at the last renewal.
    sessions: AtomicUsize,
}

/// A lease that this process holds.
#[derive(Clone)]
struct HeldLease {
    lease: EvalLease,
    holder: String,
    /// Cancels the evaluation under the lease.
    cancel: Cancel,
}

impl LeaseRenewer {
    /// Renews a lease from now on.
    pub(crate) fn track(&self, lease: &EvalLease, holder: String, cancel: &Cancel) {
        self.held().push(HeldLease { lease: lease.clone(), holder, cancel: cancel.clone() });
    }

    /// Cancels the evaluation in a session that has ended.
    pub(crate) fn cancel(&self, owner: &str, id: &str) {
        let running = |held: &&HeldLease| held.lease.owner == owner && held.lease.id == id;
        let ended: Vec<Cancel> = self.held().iter().filter(running).map(|held| held.cancel.clone()).collect();
        for cancel in ended {
            cancel.cancel();
        }
    }

    /// Stops renewing a lease. Returns the name of its holder.
    pub(crate) fn release(&self, lease: &EvalLease) -> String {
        let mut held = self.held();
        let at = held.iter().position(|held| held.lease.id == lease.id && held.lease.fence == lease.fence);
        at.map_or_else(String::new, |at| held.swap_remove(at).holder)
    }

    /// Returns the number of sessions of all owners at the last renewal.
    pub(crate) fn count(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    fn held(&self) -> MutexGuard<'_, Vec<HeldLease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread. It ends with the store.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<()> {
    let shared = Arc::downgrade(shared);
    let rounds = move || {
        while let Some(shared) = shared.upgrade() {
            renew_all(&shared);
            let pause = shared.pool.backoff();
            drop(shared);
            thread::sleep(if pause.is_zero() { RENEW_INTERVAL } else { pause });
        }
    };
    thread::Builder::new().name("session-store".into()).spawn(rounds).map(drop)
}

fn renew_all(shared: &Shared) {
    let held = shared.lease_renewer.held().clone();
    for HeldLease { lease, holder, cancel } in held {
        let (fence, lease_ms) = (lease.fence.to_string(), LEASE.as_millis().to_string());
        let more = [holder.as_bytes(), fence.as_bytes(), lease_ms.as_bytes()];
        let renewed = shared.run(&RENEW, &owner_key(&lease.owner), &lease.id, &more);
        // The session was closed, another replica holds the lease, or the session expired: the result cannot be stored. Other
        // errors appear when the evaluation ends.
        if renewed.is_ok_and(|reply| ["closed", "missing", "lost"].contains(&reply.word())) {
            cancel.cancel();
        }
    }
    if let Ok(count) = shared.run(&COUNT, "", "", &[]).and_then(|mut reply| reply.number()) {
        shared.lease_renewer.sessions.store(usize::try_from(count).unwrap_or(usize::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};

    use super::*;
    use crate::RedisPool;
    use crate::scripts::{BEGIN, END, START, Step};
    use ptc_runtime::settings::StoreUrl;

    #[test]
    #[ignore = "needs what .ci/peers installs"]
    fn renewal_that_arrives_after_the_end_does_not_block_the_session() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let mut redis = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts: run .ci/peers first");
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            thread::sleep(Duration::from_millis(10));
        }
        let url = StoreUrl::parse(&format!("redis://127.0.0.1:{port}")).expect("a URL");
        let shared = Shared {
            pool: RedisPool::new(&url, None).expect("a pool"),
            lease_renewer: LeaseRenewer::default(),
            prefix: "ptc:test:".to_owned(),
            holder: String::new(),
            idle: Duration::from_mins(1),
            max_bytes: 1 << 20,
        };
        let word = |step: &Step, more: &[&str]| {
            let more: Vec<_> = more.iter().map(|each| each.as_bytes()).collect();
            shared.run(step, "owner", "ptcs_1", &more).expect("a reply").word().to_owned()
        };
        let words = [
            word(&START, &["60000", "8", "8", ""]),
            word(&BEGIN, &["first", "10000"]),
            word(&RENEW, &["first", "1", "10000"]),
            word(&END, &["first", "1"]),
            word(&RENEW, &["first", "1", "10000"]),
            word(&BEGIN, &["second", "10000"]),
        ];
        redis.kill().and_then(|()| redis.wait()).expect("it ends");
        assert_eq!(words, ["ok", "ok", "ok", "ok", "ended", "ok"]);
    }
}
