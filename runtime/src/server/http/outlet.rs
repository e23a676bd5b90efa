//! Writing within a bound of time: a client that does not read its answer gives its connection up.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream on which whatever is written has to be taken within a time, whole: who takes a byte now and then is as slow as who takes
/// none.
pub(super) struct Outlet<S> {
    stream: S,
    within: Duration,
    /// Runs from the first write that has to wait to the first that leaves nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Outlet<S> {
    pub(super) fn new(stream: S, within: Duration) -> Outlet<S> {
        Outlet { stream, within, stalled: None }
    }

    /// What came of a write of `asked` bytes: an error where the time is over.
    fn judge(&mut self, context: &mut Context<'_>, written: Poll<Result<usize>>, asked: usize) -> Poll<Result<usize>> {
        match written {
            Poll::Ready(Ok(taken)) if taken >= asked => {
                self.stalled = None;
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Ready(Ok(_)) | Poll::Pending => {
                let within = self.within;
                let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(within)));
                if stalled.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read")));
                }
                written
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Outlet<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Outlet<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written, bytes.len())
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.judge(context, written, parts.iter().map(|part| part.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        // Behind TLS it is here that a client is waited for.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        let judged = ready!(self.judge(context, flushed.map_ok(|()| 0), 0));
        Poll::Ready(judged.map(drop))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
