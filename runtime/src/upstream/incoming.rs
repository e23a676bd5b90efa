//! The bytes of answers that are still being read: those of one program together are bounded by its memory, as the answers are that it
//! has.
//!
//! As with a [`stage`](super::stage), they belong to the task that makes the call: whatever runs inside [`Incoming::counts`] says with
//! [`hold`] how much it holds, however deep it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::fault::{Reason, WorldFault};

/// What the calls of one program hold together. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Incoming(Arc<Together>);

#[derive(Debug)]
struct Together {
    most: u64,
    bytes: AtomicU64,
    exceeded: AtomicBool,
}

/// What one call holds; given back when it is dropped.
struct Held {
    bytes: AtomicU64,
    of: Incoming,
}

tokio::task_local! {
    static HELD: Held;
}

impl Incoming {
    pub(super) fn of(most: u64) -> Incoming {
        Incoming(Arc::new(Together { most, bytes: AtomicU64::new(0), exceeded: AtomicBool::new(false) }))
    }

    /// Runs a call of the program.
    pub(super) fn counts<T>(&self, work: impl Future<Output = T>) -> impl Future<Output = T> {
        HELD.scope(Held { bytes: AtomicU64::new(0), of: self.clone() }, work)
    }

    /// The bound, where calls would have held more.
    pub(super) fn exceeded(&self) -> Option<u64> {
        self.0.exceeded.load(Ordering::Relaxed).then_some(self.0.most)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.0.bytes.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// Says how much of its answer the call of this task holds now. A fault where that is too much together with the program's other calls.
#[cfg_attr(not(any(feature = "http", test)), expect(dead_code, reason = "a child's answers come through one buffer"))]
pub(crate) fn hold(bytes: u64) -> Result<(), WorldFault> {
    let hold = |held: &Held| {
        let before = held.bytes.swap(bytes, Ordering::Relaxed);
        let all = &held.of.0;
        let together =
            all.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed).wrapping_add(bytes.wrapping_sub(before));
        if together <= all.most {
            return Ok(());
        }
        all.exceeded.store(true, Ordering::Relaxed);
        let message = format!("the answers that the program waits for are larger than {} bytes together", all.most);
        Err(WorldFault { refused_bytes: bytes, ..WorldFault::new(Reason::ResponseTooLarge, message) })
    };
    HELD.try_with(hold).unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_share_a_bound_and_give_back_what_they_held() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            assert_eq!(hold(1_000), Ok(()), "nobody counts");
            let incoming = Incoming::of(100);
            for _ in 0..2 {
                let both = incoming.counts(async {
                    assert_eq!(hold(70), Ok(()));
                    assert_eq!(hold(60), Ok(()), "less than before");
                    incoming.counts(async { hold(40) }).await
                });
                assert_eq!(both.await, Ok(()));
            }
            assert_eq!(incoming.exceeded(), None);
            let (first, second) = (incoming.counts(async { hold(60) }), incoming.counts(async { hold(101) }));
            assert_eq!(first.await, Ok(()));
            assert!(second.await.is_err_and(|fault| fault.refused_bytes == 101));
            assert_eq!(incoming.exceeded(), Some(100));
            assert_eq!(incoming.0.bytes.load(Ordering::Relaxed), 0);
        });
    }
}
