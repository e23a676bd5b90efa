//! Reading a request's body within bounds of size and time.

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
}

/// Reads the whole body: at most that many bytes, within that time.
pub async fn read(mut body: Incoming, most: usize, within: Duration) -> Result<Bytes, Unread> {
    // What a client announces is refused before it is sent.
    if body.size_hint().lower() > most as u64 {
        return Err(Unread::TooLarge);
    }
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
