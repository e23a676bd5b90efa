//! The two halves of a call that waits for its answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::ThreadId;
use std::time::Instant;

use super::{Reply, Reservation};
use crate::Value;
use crate::fiber;
use crate::interrupt::Interrupt;

/// The waiting half of a call.
pub struct PendingReply {
    slot: Arc<Slot>,
    held: Value,
    handed_over: usize,
}

/// The answering half of a call. If it is dropped without an answer, the reply is `upstream_unavailable`.
pub struct ReplySender {
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The reply, with the reservation that counts its bytes until the program takes it.
    reply: Option<(Reply, Option<Reservation>)>,
    /// The waker of the waiting evaluation.
    waiting: Option<Waker>,
    answered_by: Option<ThreadId>,
    interrupted: bool,
    abandoned: bool,
    on_abandon: Option<Box<dyn FnOnce() + Send>>,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the waiting evaluation. Must be called without the lock.
    fn wake(&self) {
        let waiting = self.lock().waiting.take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

/// How a wait ended.
#[derive(Debug)]
pub enum WaitOutcome {
    /// The reply arrived.
    Reply(Reply),
    /// The deadline passed first.
    DeadlinePassed,
    /// [`Interrupt::interrupt`] was called first.
    Interrupted,
}

impl PendingReply {
    /// Makes both halves of a call.
    pub fn pair() -> (ReplySender, PendingReply) {
        let slot = Arc::new(Slot::default());
        (ReplySender { slot: Arc::clone(&slot) }, PendingReply { slot, held: Value::Nil, handed_over: 0 })
    }

    /// Makes a pending reply that is already answered.
    pub fn ready(reply: Reply) -> PendingReply {
        let (answer, pending) = PendingReply::pair();
        answer.send(reply);
        pending
    }

    /// Returns a handle that ends the wait from another thread.
    pub fn interrupter(&self) -> Interrupt {
        let slot = Arc::clone(&self.slot);
        Interrupt::by(move || {
            slot.lock().interrupted = true;
            slot.wake();
        })
    }

    /// Keeps `args` alive until the wait ends. Memory is accounted per thread, so that a value must be dropped on the thread that
    /// allocated it.
    #[must_use]
    pub fn holding(mut self, args: Value) -> PendingReply {
        self.held = args;
        self
    }

    /// Records that the submitting thread allocated `bytes` for the call that another thread will free. They are counted by a
    /// [`Reservation`], so that the gauge of the submitting thread must not count them as well.
    #[must_use]
    pub fn handing_over(mut self, bytes: usize) -> PendingReply {
        self.handed_over = bytes;
        self
    }

    /// Bytes passed to [`PendingReply::handing_over`].
    pub(crate) fn handed_over(&self) -> usize {
        self.handed_over
    }

    /// Takes the reply, with the reservation that counts its bytes, if there is one. Otherwise `waker` is woken when it arrives.
    /// A host that waits for several replies at the same time uses this instead of [`PendingReply::wait`].
    pub fn poll(&mut self, waker: &Waker) -> Option<(Reply, Option<Reservation>)> {
        let mut state = self.slot.lock();
        let reply = state.reply.take();
        if reply.is_none() {
            state.waiting = Some(waker.clone());
        }
        reply
    }

    /// Blocks until the reply, the deadline or an interruption.
    pub fn wait(self, deadline: Option<Instant>) -> WaitOutcome {
        self.wait_weighed(deadline).0
    }

    /// Like [`PendingReply::wait`], but also returns the bytes of a reply that another thread allocated. The caller must count
    /// them, since no reservation does so any more.
    pub(crate) fn wait_weighed(self, deadline: Option<Instant>) -> (WaitOutcome, usize) {
        loop {
            let mut state = self.slot.lock();
            if let Some((reply, reservation)) = state.reply.take() {
                let is_foreign = state.answered_by != Some(std::thread::current().id());
                drop(state);
                drop(reservation);
                let bytes = if is_foreign { reply.payload_bytes() } else { 0 };
                return (WaitOutcome::Reply(reply), bytes);
            }
            if state.interrupted {
                return (WaitOutcome::Interrupted, 0);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return (WaitOutcome::DeadlinePassed, 0);
            }
            if state.waiting.is_none() {
                state.waiting = Some(fiber::waker());
            }
            drop(state);
            fiber::park(deadline);
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.abandoned = true;
        let on_abandon = state.on_abandon.take();
        let answered = state.reply.is_some();
        drop(state);
        if let Some(run) = on_abandon.filter(|_| !answered) {
            run();
        }
    }
}

impl ReplySender {
    /// Sends the reply and wakes the waiting evaluation.
    pub fn send(self, reply: Reply) {
        self.put(reply, None);
    }

    /// Sends a reply whose bytes are counted by `reservation` until the evaluation takes it.
    pub fn send_counted(self, reply: Reply, reservation: Option<Reservation>) {
        self.put(reply, reservation);
    }

    /// Whether the evaluation has stopped waiting.
    pub fn is_abandoned(&self) -> bool {
        self.slot.lock().abandoned
    }

    /// Calls `then` when the evaluation stops waiting before the reply, or at once if it has already stopped.
    pub fn on_abandon(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.slot.lock();
        if state.abandoned {
            drop(state);
            then();
        } else {
            state.on_abandon = Some(Box::new(then));
        }
    }

    fn put(&self, reply: Reply, reservation: Option<Reservation>) {
        let mut state = self.slot.lock();
        if state.reply.is_none() {
            state.reply = Some((reply, reservation));
            state.answered_by = Some(std::thread::current().id());
        }
        state.on_abandon = None;
        drop(state);
        self.slot.wake();
    }
}

impl Drop for ReplySender {
    fn drop(&mut self) {
        // After `send` the slot holds the reply, or the waiter has taken it. Then there is nothing to do.
        let state = self.slot.lock();
        let open = state.reply.is_none() && !state.abandoned;
        drop(state);
        if open {
            let message = "the call was dropped without an answer".into();
            self.put(Reply::Failed { reason: "upstream_unavailable", message }, None);
        }
    }
}
