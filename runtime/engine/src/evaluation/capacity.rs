//! Failures for lack of capacity.

use super::{Failure, Reason};
use ptc_schedule::UnreadLimitExceeded;
use ptc_schedule::{ProcessorLease, Rejection};

impl Failure {
    /// Creates a failure for lack of capacity.
    fn busy(message: impl Into<String>, retry_after_ms: u64) -> Self {
        let feedback = format!("Wait {retry_after_ms} ms, then send the same call again.");
        Failure { feedback, retry_after_ms: Some(retry_after_ms), ..Failure::plain(Reason::Busy, message) }
    }

    /// Creates the failure of a call that was not admitted.
    pub fn rejected(why: Rejection, retry_after_ms: u64) -> Self {
        match why {
            Rejection::Cancelled => Failure::plain(Reason::Cancelled, "the call was cancelled"),
            Rejection::TimedOut => Failure::busy(
                "server busy: the call was not admitted within the time that a call may wait (--queue-timeout-ms)",
                retry_after_ms,
            ),
            Rejection::QueueFull => {
                Failure::busy("server busy: the queue of calls that wait for admission is full", retry_after_ms)
            }
        }
    }

    /// Creates the failure of a program that has ended and whose answer was discarded, since earlier ones were not read.
    pub fn answer_discarded(why: &UnreadLimitExceeded) -> Self {
        let message = format!("the program has ended, and its answer was discarded: {why}");
        let feedback = "Its calls were made: do not send a program again that writes. Read the earlier answers first.".into();
        Failure { feedback, ..Failure::plain(Reason::AnswerDiscarded, message) }
    }

    /// Creates the failure of a call for which the system has no stack.
    pub fn no_stack(retry_after_ms: u64) -> Self {
        Failure::busy("server busy: the operating system has no stack or thread for another program", retry_after_ms)
    }

    /// Creates the failure of a program whose context needs more memory as values than the program may use, which is `limit`
    /// bytes.
    pub(super) fn context_too_large(limit: u64) -> Self {
        let message = format!("the context alone needs more than {limit} bytes as values (--program-memory-limit-bytes)");
        let feedback = "Send less data, or let the program fetch what it needs with tool/call.".into();
        Failure { feedback, ..Failure::plain(Reason::MemoryLimit, message) }
    }

    /// Creates the failure of a program whose result needs more memory as values of JSON than the program may use, which is `limit`
    /// bytes.
    pub(super) fn result_too_large(limit: u64) -> Self {
        let message =
            format!("the result needs more than {limit} bytes as values of JSON to be validated (--program-memory-limit-bytes)");
        Failure { feedback: "Return less of it.".into(), ..Failure::plain(Reason::MemoryLimit, message) }
    }

    /// Creates the failure of a program for which the memory budget has no room.
    pub(super) fn no_memory(processor: &ProcessorLease) -> Self {
        let feedback = "Send the same program again later, or with less data.".into();
        Failure { feedback, ..Failure::plain(Reason::MemoryLimit, processor.budget_message()) }
    }

    /// Creates the failure of an admitted program that could not begin in time.
    pub(super) fn no_processor(processor: &ProcessorLease) -> Self {
        let times = processor.wait_times();
        let waited = times.queued() + times.processor_wait();
        let message = format!("server busy: the program got no processor within {} ms (--queue-timeout-ms)", waited.as_millis());
        Failure::busy(message, processor.retry_after_ms())
    }
}
