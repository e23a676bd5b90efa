//! The response of a server: its head, then its body piece by piece.

use bytes::Bytes;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Response, StatusCode};
use url::Url;

/// A response whose body has not been read yet.
#[derive(Debug)]
pub struct Answer {
    response: Response,
    url: Url,
    is_repeated: bool,
}

impl Answer {
    /// Creates the answer of `url`, which is the address of the request without the secrets that were added to it.
    pub(super) fn new(response: Response, url: Url) -> Answer {
        Answer { response, url, is_repeated: false }
    }

    /// Marks the answer to a request that was sent twice, because the answer to the first was lost.
    pub(super) fn repeated(self) -> Answer {
        Answer { is_repeated: true, ..self }
    }

    /// Whether the request was sent twice.
    pub(crate) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The URL that answered, after followed redirects.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The length of the body in bytes, if the head declares it.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next bytes of the body, or `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, reqwest::Error> {
        self.response.chunk().await
    }

    /// The target of a redirect.
    pub(super) fn redirects_to(&self) -> Option<Url> {
        if !matches!(self.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        self.url().join(self.headers().get(LOCATION)?.to_str().ok()?).ok()
    }
}
