//! What the runs of a process share: its processors and its memory.
//!
//! A scheduler implements [`Share`] once for each run and gives it to [`Run::share`](crate::Run::share). The run asks for a processor
//! before it computes, gives it back while it waits for an answer, and lets others go first once its time slice is over. Without a share
//! only the [limits](crate::Limits) of the run itself count.

use std::time::Instant;

use crate::host::Account;

/// A run's part of the processors and of the memory of a process. Methods are called from every thread of the run.
pub trait Share: Send + Sync {
    /// Called once, before the run starts, with the account of its memory. Through it a scheduler can end the run.
    fn begin_run(&self, account: &Account) {
        let _ = account;
    }

    /// Waits until the calling thread may use a processor. Returns without one at `deadline`, or when the run is
    /// [interrupted](Share::interrupt): the thread is about to end then.
    fn acquire(&self, deadline: Instant);

    /// Gives the processor of the calling thread back, if it has one.
    fn release(&self);

    /// Whether the calling thread has used its processor for a whole time slice while other threads wait for one, or other fibers for the
    /// thread.
    fn is_slice_over(&self) -> bool;

    /// Whether one more branch of the run may run beside the others. A later [`Share::end_branch`] takes it off the count.
    fn begin_branch(&self) -> bool;

    /// Called when a branch that [`Share::begin_branch`] has allowed is gone.
    fn end_branch(&self);

    /// Called when the live bytes of the run's threads have changed.
    fn report_bytes(&self, change: i64);

    /// Called when the bytes have changed that the run's [reservations](crate::host::Reservation) count: arguments and answers on their
    /// way. They may outlive the run. After a growth for which the process has no room, this run or another one is ended.
    fn report_reserved(&self, change: i64);

    /// Called before the run grows by `bytes`, and now and then with 0. Where the process has no room, waits for it until `deadline`, or
    /// has this run or another one ended through its [`Account`].
    fn make_room(&self, bytes: i64, deadline: Instant);

    /// Ends waits of all threads of the run: it was cancelled, or has run out of memory.
    fn interrupt(&self);
}
