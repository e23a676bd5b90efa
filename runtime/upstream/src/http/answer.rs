//! The response of a server: its head, then its body piece by piece.

use bytes::Bytes;
use reqwest::header::{HeaderMap, LOCATION, WWW_AUTHENTICATE};
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

    /// Whether the server has a challenge for an access token (RFC 6750, section 3, and RFC 9449, section 7.1): it checked the token before
    /// the request.
    pub(super) fn asks_for_token(&self) -> bool {
        let challenges = self.headers().get_all(WWW_AUTHENTICATE).into_iter().filter_map(|value| value.to_str().ok());
        challenges.flat_map(outside_quotes).any(|part| {
            let scheme = part.trim_start().split([' ', '\t']).next().unwrap_or_default();
            scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("dpop")
        })
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

/// Returns the parts of a header value between the commas that are not in quoted strings.
fn outside_quotes(value: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value.split(move |c: char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::outside_quotes;

    #[test]
    fn comma_in_a_quoted_string_does_not_begin_a_challenge() {
        let parts = |value| outside_quotes(value).map(str::trim).collect::<Vec<_>>();
        assert_eq!(
            parts(r#"Basic realm="a, bearer b", Bearer error="x""#),
            [r#"Basic realm="a, bearer b""#, r#"Bearer error="x""#]
        );
        assert_eq!(parts(r#"Basic realm="a\", bearer b""#), [r#"Basic realm="a\", bearer b""#]);
    }
}
