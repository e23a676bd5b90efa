//! The answer of a server: its head, then its body piece by piece.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{HeaderMap, LOCATION};
use hyper::{Response, StatusCode};
use url::Url;

/// An answer whose body is still to be read.
#[derive(Debug)]
pub(crate) struct Answer {
    response: Response<Incoming>,
    url: Url,
}

impl Answer {
    pub(super) fn new(response: Response<Incoming>, url: Url) -> Answer {
        Answer { response, url }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// What answered, after redirects that were followed.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// How long the body is, where its head says so.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.response.body().size_hint().exact()
    }

    /// The next bytes of the body; `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        while let Some(frame) = self.response.body_mut().frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Where a redirect leads.
    pub(super) fn redirects_to(&self) -> Option<Url> {
        if !matches!(self.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        self.url.join(self.headers().get(LOCATION)?.to_str().ok()?).ok()
    }
}
