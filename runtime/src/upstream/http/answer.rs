//! An HTTP response: its head, and its body as a stream.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{HeaderMap, LOCATION};
use hyper::{Response, StatusCode};
use url::Url;

/// A response whose body has not been read.
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

    /// Returns the URL that responded, after redirects.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the length of the body, if the head contains it.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.response.body().size_hint().exact()
    }

    /// Returns the next bytes of the body, or `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        while let Some(frame) = self.response.body_mut().frame().await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Returns the target of a redirect.
    pub(super) fn redirects_to(&self) -> Option<Url> {
        if !matches!(self.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        self.url.join(self.headers().get(LOCATION)?.to_str().ok()?).ok()
    }
}
