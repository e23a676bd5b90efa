//! Decides what a call does at a given time: use the current token, wait for another one, or fail.
//!
//! A token is renewed some time before it expires, while calls still use it. After a failed request the next one waits for a pause that
//! grows, and so does the renewal of a token that the upstream refuses again and again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_secrets::Redactor;
use ptc_upstream::UpstreamError;
use ptc_upstream::http::access_token::{AccessToken, Proof};

use crate::answer::TokenResponse;
use crate::endpoint::RequestError;

/// A token is renewed at the latest this long before it expires, or after four fifths of its lifetime if that is later.
const RENEWAL_MARGIN: Duration = Duration::from_mins(1);
/// A token is not sent any more this long before it expires, or after 19 twentieths of its lifetime if that is later, since the request
/// takes time and clocks differ.
const EXPIRY_MARGIN: Duration = Duration::from_secs(5);
/// Minimum lifetime that is believed, so that tokens without one do not cause a request for each call.
const MIN_LIFETIME: Duration = Duration::from_secs(1);

/// The first and the longest pause after failed requests, and the longest that a server can ask for.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(30);
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// The first and the longest pause between renewals of refused tokens. The first renewal is immediate.
const MIN_REFUSAL_PAUSE: Duration = Duration::from_secs(1);
const MAX_REFUSAL_PAUSE: Duration = Duration::from_mins(1);

/// What a call does.
pub(crate) enum Step {
    /// It uses the current token.
    Use(AccessToken),
    /// It uses the current token, which is to be renewed meanwhile.
    UseAndRenew(AccessToken),
    /// It waits for the request of a token.
    Wait,
    /// It fails, since no request may be made yet.
    Fail(UpstreamError),
}

/// The state of a source, without its running request.
#[derive(Default)]
pub(crate) struct Schedule {
    current: Option<Issued>,
    failures: u32,
    /// The time before which no request is made, and the error of the last one.
    backoff_until: Option<(Instant, UpstreamError)>,
    /// The last renewal of a refused token, and the number of such renewals in a short time.
    refusals: Option<(Instant, u32)>,
}

struct Issued {
    token: AccessToken,
    /// `None` if the lifetime is not known.
    times: Option<Times>,
}

struct Times {
    renew_at: Instant,
    expires_at: Instant,
}

impl Schedule {
    /// Returns what a call does. `is_requesting` says whether a request of a token is running.
    pub(crate) fn step(&mut self, refused: Option<&AccessToken>, is_requesting: bool, now: Instant) -> Step {
        let is_paused = self.backoff_until.as_ref().is_some_and(|(until, _)| now < *until);
        let valid = self.current.as_ref().filter(|issued| issued.times.as_ref().is_none_or(|times| now < times.expires_at));
        let Some(Issued { token, times }) = valid else {
            return match &self.backoff_until {
                _ if is_requesting => Step::Wait,
                Some((until, fault)) if is_paused => Step::Fail(delayed(fault, *until - now)),
                _ => Step::Wait,
            };
        };
        let token = token.clone();
        if refused.is_some_and(|refused| refused.number() == token.number()) {
            let is_replaced = is_requesting || !is_paused && self.may_replace(now);
            return if is_replaced { Step::Wait } else { Step::Use(token) };
        }
        match times {
            Some(times) if now >= times.renew_at && !is_requesting && !is_paused => Step::UseAndRenew(token),
            _ => Step::Use(token),
        }
    }

    /// Whether a token that the upstream refuses may be replaced now. If so, this is recorded.
    fn may_replace(&mut self, now: Instant) -> bool {
        let count = match self.refusals {
            Some((last, count)) => {
                let pause = doubled(MIN_REFUSAL_PAUSE, count, MAX_REFUSAL_PAUSE);
                match now.saturating_duration_since(last) {
                    elapsed if elapsed < pause => return false,
                    elapsed if elapsed > MAX_REFUSAL_PAUSE * 2 => 0,
                    _ => count,
                }
            }
            None => 0,
        };
        self.refusals = Some((now, count + 1));
        true
    }

    /// Records an issued token. `asked_at` is when it was requested, from which its lifetime counts.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the token if a header cannot carry it.
    pub(crate) fn issued(&mut self, response: &TokenResponse, asked_at: Instant) -> Result<AccessToken, &'static str> {
        let proof = response.proof_key.clone().map(|key| key as Arc<dyn Proof>);
        let token = AccessToken::new(&response.access_token, proof)
            .ok_or("has an `access_token` that a header cannot carry")?
            .redacted_by(response.redactor.clone());
        self.failures = 0;
        self.backoff_until = None;
        let times = response.lifetime.map(|lifetime| {
            let lifetime = lifetime.max(MIN_LIFETIME);
            let before = |margin: Duration, part: u32| asked_at + lifetime.saturating_sub(margin.min(lifetime / part));
            Times { renew_at: before(RENEWAL_MARGIN, 5), expires_at: before(EXPIRY_MARGIN, 20) }
        });
        self.current = Some(Issued { token: token.clone(), times });
        Ok(token)
    }

    /// Returns the redactor of the last token, if no redactor of the deployment redacts it.
    pub(crate) fn redactor(&self) -> Option<Redactor> {
        self.current.as_ref()?.token.redactor().cloned()
    }

    /// Forgets the current token, so that the next call waits for another one.
    pub(crate) fn forget(&mut self) {
        self.current = None;
        self.backoff_until = None;
    }

    /// Records a failed request.
    pub(crate) fn failed(&mut self, error: &RequestError, now: Instant) {
        self.failures += 1;
        let pause = doubled(MIN_PAUSE, self.failures, MAX_PAUSE);
        let pause = error.retry_after.map_or(pause, |asked| asked.min(MAX_RETRY_AFTER).max(pause));
        self.backoff_until = Some((now + pause, error.fault.clone()));
    }
}

/// Returns the pause after `count` events: `first`, then twice as long each time, at most `max`.
fn doubled(first: Duration, count: u32, max: Duration) -> Duration {
    first.saturating_mul(1 << count.saturating_sub(1).min(10)).min(max)
}

fn delayed(fault: &UpstreamError, left: Duration) -> UpstreamError {
    let message = format!("{}; the next token is requested in {} ms", fault.message, left.as_millis().max(1));
    UpstreamError::new(fault.reason, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_upstream::Reason;

    fn response(lifetime: Option<u64>) -> TokenResponse {
        TokenResponse {
            access_token: "not-a-real-token".to_owned(),
            refresh_token: None,
            lifetime: lifetime.map(Duration::from_secs),
            proof_key: None,
            redactor: None,
        }
    }

    fn error(retry_after: Option<u64>) -> RequestError {
        let fault = UpstreamError::new(Reason::UpstreamUnavailable, "down");
        RequestError { fault, code: None, retry_after: retry_after.map(Duration::from_secs), lost: false }
    }

    /// Describes the step at a number of milliseconds after `start`.
    fn step(schedule: &mut Schedule, start: Instant, ms: u64) -> &'static str {
        match schedule.step(None, false, start + Duration::from_millis(ms)) {
            Step::Use(_) => "use",
            Step::UseAndRenew(_) => "use and renew",
            Step::Wait => "wait",
            Step::Fail(_) => "fail",
        }
    }

    #[test]
    fn token_is_renewed_before_it_expires_and_not_sent_afterwards() {
        let start = Instant::now();
        for (lifetime, steps) in [
            (Some(3_600), [(3_539_999, "use"), (3_540_000, "use and renew"), (3_594_999, "use and renew"), (3_595_000, "wait")]),
            (Some(10), [(7_999, "use"), (8_000, "use and renew"), (9_499, "use and renew"), (9_500, "wait")]),
            (Some(0), [(0, "use"), (799, "use"), (800, "use and renew"), (950, "wait")]),
            (None, [(0, "use"), (1_000, "use"), (86_400_000, "use"), (864_000_000, "use")]),
        ] {
            let mut schedule = Schedule::default();
            assert_eq!(step(&mut schedule, start, 0), "wait");
            schedule.issued(&response(lifetime), start).unwrap();
            for (ms, expected) in steps {
                assert_eq!(step(&mut schedule, start, ms), expected, "{lifetime:?} after {ms} ms");
            }
        }
    }

    #[test]
    fn valid_token_is_used_while_its_renewal_fails() {
        let (start, mut schedule) = (Instant::now(), Schedule::default());
        schedule.issued(&response(Some(10)), start).unwrap();
        schedule.failed(&error(None), start + Duration::from_secs(8));
        assert_eq!(step(&mut schedule, start, 8_499), "use", "the pause after the failure");
        assert_eq!(step(&mut schedule, start, 8_500), "use and renew");
        schedule.failed(&error(None), start + Duration::from_millis(8_600));
        assert_eq!(step(&mut schedule, start, 9_500), "fail", "it has expired, and the pause is longer");
        assert_eq!(step(&mut schedule, start, 9_600), "wait");
        schedule.failed(&error(Some(20)), start + Duration::from_secs(10));
        assert_eq!(step(&mut schedule, start, 29_999), "fail", "the server asked for a longer pause");
        assert_eq!(step(&mut schedule, start, 30_000), "wait");
    }

    #[test]
    fn refused_tokens_are_replaced_at_growing_intervals() {
        let (start, mut schedule) = (Instant::now(), Schedule::default());
        let mut replaced = Vec::new();
        let mut token = schedule.issued(&response(None), start).unwrap();
        for second in 0..400 {
            let now = start + Duration::from_secs(second);
            if let Step::Wait = schedule.step(Some(&token), false, now) {
                replaced.push(second);
                token = schedule.issued(&response(None), now).unwrap();
            }
        }
        assert_eq!(replaced, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]);
        let earlier = AccessToken::new("not-a-real-token", None).unwrap();
        let after = start + Duration::from_secs(400);
        assert!(matches!(schedule.step(Some(&earlier), false, after), Step::Use(current) if current.number() == token.number()));
        let quiet = after + Duration::from_mins(5);
        assert!(matches!(schedule.step(Some(&token), false, quiet), Step::Wait), "the count starts again");
    }

    /// A caller's source is given up and made again while a call still has a token of the earlier one.
    #[test]
    fn token_of_an_earlier_source_is_not_taken_for_the_current_one() {
        let start = Instant::now();
        let (mut earlier, mut later) = (Schedule::default(), Schedule::default());
        let refused = earlier.issued(&response(None), start).unwrap();
        let current = later.issued(&response(None), start).unwrap();
        assert_ne!(refused.number(), current.number());
        assert!(matches!(later.step(Some(&refused), false, start), Step::Use(token) if token.number() == current.number()));
        assert!(matches!(later.step(Some(&current), false, start), Step::Wait), "it is refused itself");
    }
}
