//! Moves long work off the event loop, which is a single thread for HTTP and all upstreams.

use super::caller_token;
use super::fault::UpstreamError;

/// Maximum bytes that are parsed or redacted in place. This takes at most a millisecond, even for the slowest redaction.
const IN_PLACE: usize = 16 * 1024;

/// Runs `work`, whose time grows with `bytes`, in place for few bytes, otherwise on a blocking thread. `work` belongs to the current caller
/// on that thread, too. Must be called inside a Tokio runtime.
///
/// # Errors
///
/// The runtime ends before `work` completes.
pub async fn offload<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T, UpstreamError> {
    if bytes <= IN_PLACE {
        return Ok(work());
    }
    match tokio::task::spawn_blocking(caller_token::carry(work)).await {
        Ok(value) => Ok(value),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(UpstreamError::unavailable("the server is shutting down")),
        },
    }
}
