//! A stream with a write timeout: the connection of a client that does not read its answer is closed.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Bytes of an answer that the client must read within the timeout. A smaller step would let slow clients hold the memory of
/// answers without a bound.
const MIN_PROGRESS: usize = 64 * 1024;

/// A stream whose peer must accept each [`MIN_PROGRESS`] bytes, or the rest, within a timeout.
pub(super) struct WriteTimeoutStream<S> {
    stream: S,
    within: Duration,
    /// The timer: starts with the first write that blocks, restarts with each step, and stops when nothing is left to write.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Bytes accepted since the timer started.
    taken: usize,
}

impl<S> WriteTimeoutStream<S> {
    pub(super) fn new(stream: S, within: Duration) -> WriteTimeoutStream<S> {
        WriteTimeoutStream { stream, within, stalled: None, taken: 0 }
    }

    /// Checks the result of a write of `asked` bytes. Returns an error after the timeout.
    fn check_progress(&mut self, context: &mut Context<'_>, written: Poll<Result<usize>>, asked: usize) -> Poll<Result<usize>> {
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
                if self.taken >= MIN_PROGRESS {
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

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_progress(context, written, bytes.len())
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check_progress(context, written, parts.iter().map(|part| part.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        // With TLS, flushing is what waits for the client.
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        let checked = ready!(self.check_progress(context, flushed.map_ok(|()| 0), 0));
        Poll::Ready(checked.map(drop))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Simulates a client that reads an answer of `bytes` in pieces, with a pause before each. Returns the result of writing it.
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
            let mut write_timeout = WriteTimeoutStream::new(near, within);
            let written = write_timeout.write_all(&vec![b'x'; bytes]).await;
            reading.abort();
            written
        })
    }

    #[test]
    fn steady_reader_is_not_timed_out() {
        // The total time is far longer than the timeout of one step.
        let (within, pause) = (Duration::from_secs(1), Duration::from_millis(25));
        assert!(taken(64 * MIN_PROGRESS, within, MIN_PROGRESS, pause).is_ok());
    }

    #[test]
    fn reader_below_minimum_progress_is_timed_out() {
        let (within, pause) = (Duration::from_millis(300), Duration::from_millis(1));
        let fault = taken(2 * MIN_PROGRESS, within, 1, pause).expect_err("the time is over");
        assert_eq!(fault.kind(), ErrorKind::TimedOut);
    }
}
