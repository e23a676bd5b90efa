//! Reading a request's body within bounds of size and time, and all of them within one more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

/// Why there is no body to work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is longer than allowed.
    TooLarge,
    /// It did not come in time.
    TooSlow,
    /// The connection ended before it did.
    Broken,
    /// Too much is being read for others.
    Crowded,
}

/// What is being read on all connections together.
#[derive(Debug)]
pub struct Reading {
    most: usize,
    bytes: AtomicUsize,
}

/// What one connection has of it, given back when it is dropped.
struct Share<'r> {
    reading: &'r Reading,
    bytes: usize,
}

impl Reading {
    /// Room for that many bytes, of bodies that have not come whole.
    pub fn new(most: usize) -> Reading {
        Reading { most, bytes: AtomicUsize::new(0) }
    }
}

impl Share<'_> {
    fn take(&mut self, bytes: usize) -> Result<(), Unread> {
        let next = |now: usize| now.checked_add(bytes).filter(|now| *now <= self.reading.most);
        self.reading.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_err(|_| Unread::Crowded)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.reading.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Reads the whole body: at most that many bytes, within that time.
pub async fn read(mut body: Incoming, most: usize, within: Duration, reading: &Reading) -> Result<Bytes, Unread> {
    // What a client announces is refused before it is sent.
    if body.size_hint().lower() > most as u64 {
        return Err(Unread::TooLarge);
    }
    let mut share = Share { reading, bytes: 0 };
    let whole = async {
        let mut first = Bytes::new();
        // A short body comes in one piece and is not copied.
        let mut rest: Option<BytesMut> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
            let seen = rest.as_ref().map_or(first.len(), BytesMut::len);
            if seen + data.len() > most {
                return Err(Unread::TooLarge);
            }
            share.take(data.len())?;
            match &mut rest {
                Some(rest) => rest.extend_from_slice(&data),
                None if first.is_empty() => first = data,
                None => {
                    let mut all = BytesMut::from(&first[..]);
                    all.extend_from_slice(&data);
                    rest = Some(all);
                }
            }
        }
        Ok(rest.map_or(first, BytesMut::freeze))
    };
    tokio::time::timeout(within, whole).await.unwrap_or(Err(Unread::TooSlow))
}
