//! The worker's end of the socket.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use litemap::LiteMap;
use ptc_lisp::fiber;
use ptc_lisp::host::{Account, Reply, ReplySender, Reservation};

use crate::message::{self, Answer, FromWorker, Question, WireReply};

/// The `Link` header of an answer, once there is one.
pub(crate) type LinkHeader = Arc<OnceLock<String>>;

/// Sends messages to the server, and gives its answers to those who wait for them.
pub(crate) struct Connection {
    output: Mutex<UnixStream>,
    next: AtomicU64,
    asked: Mutex<LiteMap<u64, Arc<AnswerSlot>>>,
    calls: Mutex<LiteMap<u64, PendingCall>>,
}

/// A call that waits for its reply.
pub(crate) struct PendingCall {
    pub(crate) answer: ReplySender,
    pub(crate) link: Option<LinkHeader>,
    pub(crate) account: Option<Account>,
    /// Counts the bytes of the request.
    pub(crate) _request: Option<Reservation>,
}

/// An answer, or the fiber that waits for it.
#[derive(Default)]
struct AnswerSlot(Mutex<(Option<Answer>, Option<Waker>)>);

impl Connection {
    pub(crate) fn new(output: UnixStream) -> Connection {
        Connection { output: Mutex::new(output), next: AtomicU64::new(1), asked: Mutex::default(), calls: Mutex::default() }
    }

    /// Returns an id for a question or a call.
    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a message. Without the server there is nothing to do, so that the process ends.
    pub(crate) fn send(&self, message: &FromWorker) {
        let sent = message::encode(message).and_then(|bytes| lock(&self.output).write_all(&bytes));
        if sent.is_err() {
            std::process::exit(1);
        }
    }

    /// Asks a question and waits for its answer on the calling fiber.
    pub(crate) fn ask(&self, id: u64, question: Question) -> Answer {
        let slot = Arc::new(AnswerSlot::default());
        lock(&self.asked).insert(id, Arc::clone(&slot));
        lock(&slot.0).1 = Some(fiber::waker());
        self.send(&FromWorker::Ask { id, question });
        loop {
            if let Some(answer) = lock(&slot.0).0.take() {
                return answer;
            }
            fiber::park(None);
        }
    }

    /// Gives an answer to the fiber that waits for it.
    pub(crate) fn answered(&self, id: u64, answer: Answer) {
        let Some(slot) = lock(&self.asked).remove(&id) else { return };
        let mut state = lock(&slot.0);
        state.0 = Some(answer);
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Registers a call, before it is made.
    pub(crate) fn register(&self, id: u64, call: PendingCall) {
        lock(&self.calls).insert(id, call);
    }

    /// Forgets a call that is not made or not waited for. It is returned, so that it is dropped without the lock.
    pub(crate) fn forget(&self, id: u64) -> Option<PendingCall> {
        lock(&self.calls).remove(&id)
    }

    /// Gives a reply to the program. Its bytes count until the program takes it.
    pub(crate) fn replied(&self, id: u64, reply: WireReply, link: Option<String>) {
        let Some(call) = lock(&self.calls).remove(&id) else { return };
        if let (Some(wanted), Some(header)) = (call.link, link) {
            let _ = wanted.set(header);
        }
        let reply = Reply::from(reply);
        let reservation = call.account.map(|account| account.reserve(reply.payload_bytes()));
        match reservation.transpose() {
            Ok(reservation) => call.answer.send_counted(reply, reservation),
            Err(fault) => call.answer.send(Reply::Refused(fault)),
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the socket that the server has passed as standard input.
pub(crate) fn socket() -> io::Result<UnixStream> {
    use std::os::fd::AsFd;
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}
