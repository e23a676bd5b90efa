//! The response of a server: its head, then its body piece by piece.

use bytes::Bytes;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Response, StatusCode};
use url::Url;

/// A response whose body has not been read yet.
#[derive(Debug)]
pub(crate) struct Answer(Response);

impl Answer {
    pub(super) fn new(response: Response) -> Answer {
        Answer(response)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The URL that answered, after followed redirects.
    pub(super) fn url(&self) -> &Url {
        self.0.url()
    }

    /// The length of the body in bytes, if the head declares it.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.0.content_length()
    }

    /// The next bytes of the body, or `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, reqwest::Error> {
        self.0.chunk().await
    }

    /// The target of a redirect.
    pub(super) fn redirects_to(&self) -> Option<Url> {
        if !matches!(self.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        self.url().join(self.headers().get(LOCATION)?.to_str().ok()?).ok()
    }
}
