//! Writing within a bound of time: a client that does not read its answer gives its connection up.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What has to be taken of an answer within the time. Who takes a byte now and then is as slow as who takes none, and what answers
/// hold of memory stays bounded by that.
const STEP: usize = 64 * 1024;

/// A stream on which each [`STEP`] of what is written, or the rest of it, has to be taken within a time.
pub(super) struct Outlet<S> {
    stream: S,
    within: Duration,
    /// Runs from the first write that has to wait, anew from each step, to the first that leaves nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Bytes that were taken since it runs.
    taken: usize,
}

impl<S> Outlet<S> {
    pub(super) fn new(stream: S, within: Duration) -> Outlet<S> {
        Outlet { stream, within, stalled: None, taken: 0 }
    }

    /// What came of a write of `asked` bytes: an error where the time is over.
    fn judge(&mut self, context: &mut Context<'_>, written: Poll<Result<usize>>, asked: usize) -> Poll<Result<usize>> {
        match written {
            Poll::Ready(Ok(taken)) if taken >= asked => {
                (self.stalled, self.taken) = (None, 0);
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Ready(Ok(_)) | Poll::Pending => {
                if let Poll::Ready(Ok(taken)) = written {
                    self.taken += taken;
                }
                if self.taken >= STEP {
                    (self.stalled, self.taken) = (None, 0);
                }
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Has an answer of that many bytes taken in pieces with a pause before each; what came of writing it.
    fn taken(bytes: usize, within: Duration, piece: usize, pause: Duration) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        runtime.block_on(async {
            let (near, mut far) = duplex(16 * 1024);
            let reading = tokio::spawn(async move {
                let mut room = vec![0; piece];
                loop {
                    sleep(pause).await;
                    if far.read_exact(&mut room).await.is_err() {
                        return;
                    }
                }
            });
            let mut outlet = Outlet::new(near, within);
            let written = outlet.write_all(&vec![b'x'; bytes]).await;
            reading.abort();
            written
        })
    }

    #[test]
    fn who_goes_on_taking_has_all_the_time_that_it_takes() {
        // Together far longer than the time for a step.
        let (within, pause) = (Duration::from_secs(1), Duration::from_millis(25));
        assert!(taken(64 * STEP, within, STEP, pause).is_ok());
    }

    #[test]
    fn a_byte_now_and_then_is_too_little() {
        let (within, pause) = (Duration::from_millis(300), Duration::from_millis(1));
        let fault = taken(2 * STEP, within, 1, pause).expect_err("the time is over");
        assert_eq!(fault.kind(), ErrorKind::TimedOut);
    }
}
