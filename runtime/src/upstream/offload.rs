//! Moving long work off the event loop: one thread drives HTTP and all upstreams, and must not be held up.

use super::fault::UpstreamError;

/// Bytes that are parsed or redacted in place: a millisecond or less, also where redaction is at its slowest.
const IN_PLACE: usize = 16 * 1024;

/// Runs `work`, whose time grows with `bytes`, in place where they are few and on a thread for blocking work otherwise. `Err` where the
/// runtime ends before it is done. Must run inside a tokio runtime.
pub(crate) async fn offload<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, UpstreamError> {
    if bytes <= IN_PLACE {
        return Ok(work());
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => Ok(value),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(UpstreamError::unavailable("the server is shutting down")),
        },
    }
}
