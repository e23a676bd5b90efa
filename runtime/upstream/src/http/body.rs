//! The body of a request.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::mcp::wire::OutgoingFrame;

/// Maximum bytes that are passed to the connection at a time. A connection that cannot write several buffers at once copies its
/// input, so that a large body in one piece would be in memory twice.
const CHUNK: usize = 64 * 1024;

/// The parts of a frame in sequence. The total length is known.
pub(super) struct RequestBody([Bytes; 3]);

impl RequestBody {
    /// Returns `None` if the frame is empty, because a request without a body declares no length.
    pub(super) fn new(frame: &OutgoingFrame) -> Option<RequestBody> {
        let body = RequestBody(frame.parts());
        (!body.is_end_stream()).then_some(body)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.0.iter_mut().find(|part| !part.is_empty());
        Poll::Ready(part.map(|part| Ok(Frame::data(part.split_to(part.len().min(CHUNK))))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|part| part.len() as u64).sum())
    }
}
