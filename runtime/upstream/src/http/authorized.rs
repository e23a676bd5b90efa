//! Sends requests with access tokens: another token if the upstream refuses one, and the nonce that the proof of a token needs.

use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode};
use url::Url;

use super::access_token::{AccessToken, TokenSource};
use super::answer::Answer;
use super::client::{HttpClient, OutgoingRequest};
use crate::call_rules::may_repeat_unauthorized;
use crate::caller_token;
use crate::fault::{Delivery, UpstreamError};
use crate::stage::{self, Stage};

/// How long a call whose access token was refused, and which cannot be sent again, waits for the next token.
const RENEWAL_WAIT: Duration = Duration::from_secs(1);

impl HttpClient {
    /// Sends a request with an access token, and once more with another one if the upstream refuses it.
    pub(super) async fn send_with_token(
        &self,
        tokens: &dyn TokenSource,
        request: OutgoingRequest<'_>,
        deadline: Instant,
    ) -> Result<Answer, UpstreamError> {
        let token = next_token(tokens, None, deadline).await?;
        let answer = self.send_as(tokens, &token, &request, deadline).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let is_challenged = answer.asks_for_token();
        if !may_repeat_unauthorized(request.repeatable, is_challenged) {
            // The next call needs another token. This one still has its answer, and waits only a short time.
            let _ = tokens.token(Some(&token), deadline.min(Instant::now() + RENEWAL_WAIT)).await;
            return Ok(answer);
        }
        if !is_challenged {
            // A part of the work may have been done.
            stage::repeat();
        }
        let renewed = next_token(tokens, Some(&token), deadline).await?;
        if renewed.number() == token.number() {
            return Ok(answer);
        }
        let was_received = !is_challenged || answer.is_repeated();
        drop(answer);
        let again = self.send_as(tokens, &renewed, &request, deadline).await;
        if !was_received {
            return again;
        }
        again.map(Answer::repeated).map_err(|fault| UpstreamError { delivery: Delivery::Twice, ..fault })
    }

    /// Sends a request with this access token, and once more if the upstream demands a nonce in the proof of the token. It checks the proof
    /// before the request, so that nothing has been done then.
    async fn send_as(
        &self,
        tokens: &dyn TokenSource,
        token: &AccessToken,
        request: &OutgoingRequest<'_>,
        deadline: Instant,
    ) -> Result<Answer, UpstreamError> {
        let (mut has_nonce, mut is_repeated) = (false, false);
        loop {
            let answer = match self.send_following(request.with_token(token), deadline).await {
                Err(fault) if is_repeated => return Err(UpstreamError { delivery: Delivery::Twice, ..fault }),
                answer => answer?,
            };
            let lacks_nonce = || token.proof().is_some_and(|proof| !has_nonce && proof.lacks_nonce(answer.headers()));
            match answer.status() {
                StatusCode::UNAUTHORIZED if lacks_nonce() => {
                    has_nonce = true;
                    is_repeated |= answer.is_repeated();
                    continue;
                }
                StatusCode::FORBIDDEN => {
                    if let Some(fault) = tokens.forbidden(answer.headers()) {
                        // The upstream may repeat the token.
                        let message = self.redact_text(&fault.message).into();
                        return Err(UpstreamError { message, ..fault }.with_status(StatusCode::FORBIDDEN.as_u16()));
                    }
                }
                _ => {}
            }
            return Ok(if is_repeated { answer.repeated() } else { answer });
        }
    }
}

impl<'u> OutgoingRequest<'u> {
    /// Returns a copy that carries an access token. The body is not copied.
    fn with_token(&self, token: &AccessToken) -> OutgoingRequest<'u> {
        OutgoingRequest { token: Some(token.clone()), ..self.clone() }
    }
}

impl AccessToken {
    /// Adds the headers of a request that carries the token.
    pub(super) fn add_to(&self, headers: &mut HeaderMap, method: &Method, url: &Url) {
        if let Some(proof) = self.proof() {
            let token = self.authorization().to_str().ok().and_then(|value| value.split_once(' '));
            let value = token.and_then(|(_, token)| proof.header(method, url, token));
            headers.extend(value.map(|value| (HeaderName::from_static("dpop"), value)));
        }
        headers.insert(AUTHORIZATION, self.authorization().clone());
    }
}

impl Answer {
    /// Whether the server has a challenge for an access token (RFC 6750, section 3, and RFC 9449, section 7.1): it checked the token before
    /// the request.
    fn asks_for_token(&self) -> bool {
        let challenges = self.headers().get_all(WWW_AUTHENTICATE).into_iter().filter_map(|value| value.to_str().ok());
        challenges.flat_map(outside_quotes).any(|part| {
            let scheme = part.trim_start().split([' ', '\t']).next().unwrap_or_default();
            scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("dpop")
        })
    }
}

/// Returns a token from its source. Meanwhile the call is in [`Stage::AccessToken`].
async fn next_token(
    tokens: &dyn TokenSource,
    refused: Option<&AccessToken>,
    deadline: Instant,
) -> Result<AccessToken, UpstreamError> {
    stage::enter(Stage::AccessToken);
    let token = tokens.token(refused, deadline).await;
    if let Ok(Some(redactor)) = token.as_ref().map(AccessToken::redactor) {
        caller_token::redact_with(redactor);
    }
    token
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
