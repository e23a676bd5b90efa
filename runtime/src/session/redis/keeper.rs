//! The thread that keeps rights alive while programs run, and finds out how the store is before a call has to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ptc_lisp::limits::Cancel;

use super::scripts::{COUNT, RENEW};
use super::{LEASE, Shared, owner_key};
use crate::session::store::Turn;

/// Between two rounds. Four of them fit into a lease.
const ROUND: Duration = Duration::from_secs(2);

/// What this process holds.
#[derive(Default)]
pub(super) struct Keeper {
    held: Mutex<Vec<Held>>,
    /// Sessions at the last round.
    sessions: AtomicUsize,
}

/// A right that this process has.
#[derive(Clone)]
struct Held {
    turn: Turn,
    holder: String,
    /// Stops what runs under it.
    cancel: Cancel,
}

impl Keeper {
    /// Keeps a right alive from now on.
    pub(super) fn hold(&self, turn: &Turn, holder: String, cancel: &Cancel) {
        self.held().push(Held { turn: turn.clone(), holder, cancel: cancel.clone() });
    }

    /// Stops what runs in a session that has ended.
    pub(super) fn cancel(&self, owner: &str, id: &str) {
        let running = |held: &&Held| held.turn.owner == owner && held.turn.id == id;
        let ended: Vec<Cancel> = self.held().iter().filter(running).map(|held| held.cancel.clone()).collect();
        for cancel in ended {
            cancel.cancel();
        }
    }

    /// Lets it go; the name under which it was held.
    pub(super) fn release(&self, turn: &Turn) -> String {
        let mut held = self.held();
        let at = held.iter().position(|held| held.turn.id == turn.id && held.turn.fence == turn.fence);
        at.map_or_else(String::new, |at| held.swap_remove(at).holder)
    }

    /// Sessions of all owners, as of the last round.
    pub(super) fn count(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    fn held(&self) -> MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread. It ends with the store.
pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<()> {
    let shared = Arc::downgrade(shared);
    let rounds = move || {
        while let Some(shared) = shared.upgrade() {
            round(&shared);
            let pause = shared.link.pause();
            drop(shared);
            thread::sleep(if pause.is_zero() { ROUND } else { pause });
        }
    };
    thread::Builder::new().name("session-store".into()).spawn(rounds).map(drop)
}

fn round(shared: &Shared) {
    let held = shared.keeper.held().clone();
    for Held { turn, holder, cancel } in held {
        let (fence, lease) = (turn.fence.to_string(), LEASE.as_millis().to_string());
        let more = [holder.as_bytes(), fence.as_bytes(), lease.as_bytes()];
        let renewed = shared.run(&RENEW, &owner_key(&turn.owner), &turn.id, &more);
        // Another replica closed it or has the right, or its time is over: nothing of this will be kept. Anything else is for the
        // end of the evaluation to find out.
        if renewed.is_ok_and(|reply| ["closed", "missing", "lost"].contains(&reply.word())) {
            cancel.cancel();
        }
    }
    if let Ok(count) = shared.run(&COUNT, "", "", &[]).and_then(|mut reply| reply.number()) {
        shared.keeper.sessions.store(usize::try_from(count).unwrap_or(usize::MAX), Ordering::Relaxed);
    }
}
