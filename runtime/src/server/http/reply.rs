//! An HTTP reply, independent of hyper.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

/// Status, headers and body.
pub struct Reply {
    pub(super) status: StatusCode,
    content_type: Option<&'static str>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Reply {
    /// Creates a reply without a body.
    pub fn empty(status: StatusCode) -> Reply {
        Reply { status, content_type: None, headers: Vec::new(), body: Bytes::new() }
    }

    /// Creates a reply with a body of this media type.
    pub fn new(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
        Reply { content_type: Some(content_type), body: body.into(), ..Reply::empty(status) }
    }

    /// Creates a reply with a JSON document.
    pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Reply {
        Reply::new(status, "application/json", body)
    }

    /// Creates a reply with plain text.
    pub fn text(status: StatusCode, body: &'static str) -> Reply {
        Reply::new(status, "text/plain; charset=utf-8", body)
    }

    /// Creates the reply to a method that the path does not support.
    pub fn not_allowed(allowed: &str) -> Reply {
        Reply::empty(StatusCode::METHOD_NOT_ALLOWED).with(ALLOW, allowed)
    }

    /// Adds a header. A value that a header cannot contain is omitted.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: &str) -> Reply {
        self.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
        self
    }

    /// Converts the reply. Caching is disabled for all replies.
    pub fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.extend(self.content_type.map(|kind| (CONTENT_TYPE, HeaderValue::from_static(kind))));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.headers);
        response
    }
}
