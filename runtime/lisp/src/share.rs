//! Processors and memory that the runs of a process share.
//!
//! A scheduler implements [`Share`] once for each run and passes it to [`Run::share`](crate::Run::share). The run acquires a
//! processor before it computes, releases it while it waits for a reply, and yields to others once its time slice is over.
//! Without a share only the [limits](crate::Limits) of the run itself apply.

use std::time::Instant;

use crate::host::Account;

/// A run's share of the processors and the memory of a process. Methods are called from every thread of the run.
pub trait Share: Send + Sync {
    /// Called once before the run starts, with its memory account. Through it a scheduler can end the run.
    fn begin_run(&self, account: &Account) {
        let _ = account;
    }

    /// Blocks until the calling thread may use a processor. Returns without one at `deadline`, or when the run is
    /// [interrupted](Share::interrupt). In both cases the thread is about to end.
    fn acquire(&self, deadline: Instant);

    /// Releases the processor of the calling thread, if it has one.
    fn release(&self);

    /// Whether the calling thread has used its processor for a whole time slice while other threads wait for a processor, or
    /// other fibers wait for the thread.
    fn is_slice_over(&self) -> bool;

    /// Whether one more branch of the run may run in parallel. A later [`Share::end_branch`] decrements the count.
    fn begin_branch(&self) -> bool;

    /// Called when a branch that [`Share::begin_branch`] permitted has ended.
    fn end_branch(&self);

    /// Called when the live bytes of the run's threads, including granted growths, have changed.
    fn report_bytes(&self, change: i64);

    /// Called when the bytes of the run's [reservations](crate::host::Reservation) have changed. They count arguments and replies
    /// in transit and may outlive the run. If the process has no memory for a growth, this run or another one is ended.
    fn report_reserved(&self, change: i64);

    /// Called before the run grows by `bytes`, and regularly with 0. If the process has no memory, blocks until `deadline` for
    /// it, or ends this run or another one through its [`Account`]. True if the run may grow. Then the bytes count as live, and
    /// a later [`Share::report_bytes`] subtracts them once the allocation is reported.
    fn reserve_growth(&self, bytes: i64, deadline: Instant) -> bool;

    /// Ends the waits of all threads of the run, because it was cancelled or has run out of memory.
    fn interrupt(&self);
}
