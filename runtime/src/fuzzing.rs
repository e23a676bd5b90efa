//! Entry points of the fuzz targets in `tests/fuzz`. They are not part of the API.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::server::http::{HttpState, listener};
use crate::session::{Fault, SessionState, redis};

pub use crate::upstream::fuzzing as upstream;

/// Serves the requests of one HTTP connection until the stream ends. Must be called inside a Tokio runtime.
pub async fn serve_http(state: Arc<HttpState>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    listener::serve_stream(state, stream).await;
}

/// Seals contents as the state of a session, changes the sealed bytes with `alter`, and decodes the state.
///
/// # Errors
///
/// Returns why the state cannot be used.
pub fn decode_sealed(contents: &[u8], alter: impl FnOnce(&mut Vec<u8>), memory_bytes: u64) -> Result<SessionState, Fault> {
    redis::decode_sealed(contents, alter, memory_bytes)
}
