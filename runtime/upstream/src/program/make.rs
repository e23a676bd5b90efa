//! Makes a call: sends it, repeats it once if the upstream asks for that, and cleans the answer.

#[cfg(feature = "interception")]
use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_lisp::host::Reply;
use tokio::sync::oneshot;

use super::prepare::Ready;
use super::reply::{clean, failed, with_head};
use super::{Shared, WaitLimits};
use crate::caller_token;
#[cfg(feature = "interception")]
use crate::dispatch::Answered;
use crate::fault::{Reason, UpstreamError};
#[cfg(feature = "interception")]
use crate::intercept::{self, Interception};
use crate::offload::offload;
use crate::response_budget;
use crate::stage;

/// Maximum delay after which a call that was answered with 429 is repeated.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

impl Shared {
    /// Makes a call on behalf of the caller.
    pub(super) async fn make(&self, ready: Ready, abandoned: &mut oneshot::Receiver<()>) -> Reply {
        caller_token::scope(self.limits.caller.clone(), self.make_here(ready, abandoned)).await
    }

    async fn make_here(&self, ready: Ready, abandoned: &mut oneshot::Receiver<()>) -> Reply {
        let (upstreams, entry) = (&self.upstreams, ready.entry);
        let WaitLimits { client_key, .. } = &self.limits;
        #[cfg(feature = "interception")]
        let intercepted = match self.intercept(&ready) {
            Interception::Refuse(fault) => {
                self.records.fail(entry, &UpstreamError::unavailable(fault.message.clone()));
                return Reply::Refused(fault);
            }
            Interception::Answer(answer) => {
                intercept::enter_stage(&answer);
                Some((Duration::ZERO, answer.map(Answered::intercepted)))
            }
            Interception::AnswerAfter(delay, answer) => {
                intercept::enter_stage(&answer);
                Some((delay, answer.map(Answered::intercepted)))
            }
            Interception::PassOn => None,
        };
        #[cfg(feature = "interception")]
        let mut ready = ready;
        #[cfg(feature = "interception")]
        let observed = ready.intercepted.take();
        let call = async {
            #[cfg(feature = "interception")]
            if let Some((delay, answer)) = intercepted {
                if !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
                return answer;
            }
            #[cfg(feature = "interception")]
            let started = Instant::now();
            let _under_way = self.under_way(&ready.connection)?;
            let Ready { connection, known, encoded, rules, .. } = &ready;
            let send = || connection.call(known, encoded, *rules, client_key, &upstreams.secrets, &upstreams.settings);
            let mut answer = send().await;
            if let Some(delay) = answer.as_ref().err().and_then(|fault| self.delay_before_retry(&ready, fault)) {
                tokio::time::sleep(delay).await;
                answer = send().await.map_err(|fault| retried(&fault, delay));
            }
            #[cfg(feature = "interception")]
            if let (Some(interceptor), Some(call)) = (&self.interceptor, observed) {
                let redactor = caller_token::redactor().unwrap_or_else(|| upstreams.redactor.clone());
                answer = intercept::observe(Arc::clone(interceptor), call, answer, started.elapsed(), redactor).await;
            }
            answer
        };
        let outcome = tokio::select! {
            // Dropping the call cancels it at the upstream.
            Ok(()) = abandoned => Err(stopped_waiting()),
            outcome = call => outcome,
        };
        match outcome {
            Ok(answered) => {
                let redactor = caller_token::redactor().unwrap_or_else(|| upstreams.redactor.clone());
                if let (Some(wanted), Some(header)) = (&ready.link_header, &answered.link_header) {
                    let _ = wanted.set(redactor.redact_str(header).into_owned());
                }
                let (payload, head) = (answered.payload, answered.head);
                let cleaned = match response_budget::reserve(payload.len() as u64) {
                    Ok(()) => offload(payload.len(), move || clean(&redactor, payload)).await,
                    Err(fault) => Err(fault),
                };
                let (reply, bytes) = cleaned.unwrap_or_else(|fault| (failed(fault), 0));
                self.records.succeed(entry, bytes, answered.http_status);
                with_head(reply, head)
            }
            Err(fault) => {
                if fault.reason == Reason::Timeout {
                    ready.connection.pacer().turn().await;
                }
                let fault = upstreams.clean(fault);
                self.records.fail(entry, &fault);
                failed(fault)
            }
        }
    }

    /// Returns the delay before a call that was answered with 429 is repeated. The call must be read-only, the requested delay
    /// short, and the program must run for longer than that.
    fn delay_before_retry(&self, ready: &Ready, fault: &UpstreamError) -> Option<Duration> {
        let delay = fault.retry_after.filter(|delay| *delay <= MAX_RETRY_DELAY && ready.rules.is_read)?;
        let is_in_time = |deadline: Instant| Instant::now().checked_add(delay).is_some_and(|then| then < deadline);
        self.limits.deadline.is_none_or(is_in_time).then_some(delay)
    }
}

/// Creates the error of a call that was sent twice.
fn retried(fault: &UpstreamError, delay: Duration) -> UpstreamError {
    let message = format!("{} (retried once after {} ms, as the first answer requested)", fault.message, delay.as_millis());
    UpstreamError { message: message.into(), ..fault.clone() }
}

fn stopped_waiting() -> UpstreamError {
    UpstreamError::timeout(format!("the program stopped while {}", stage::reached().described()))
}
