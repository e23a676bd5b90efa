//! Entry points of the fuzz targets in `tests/fuzz`. They are not part of the API.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::server::http::{HttpState, listener};

pub use crate::upstream::fuzzing as upstream;

/// Serves the requests of one HTTP connection until the stream ends. Must be called inside a Tokio runtime.
pub async fn serve_http(state: Arc<HttpState>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    listener::serve_stream(state, stream).await;
}
