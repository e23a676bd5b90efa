//! Prepares a call: validates and encodes it, counts it, and asks the policy.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[cfg(feature = "http")]
use ptc_catalog::Transport;
use ptc_catalog::Upstream;
use ptc_lisp::Value;
use ptc_lisp::host::{Fault, Reply};

#[cfg(feature = "interception")]
use super::interception;
use super::reply::failed;
use super::{LinkHeader, Shared};
use crate::arguments::Bounds;
use crate::call_rules::CallRules;
use crate::dispatch::{EncodedCall, UpstreamConnection};
use crate::fault::{Reason, UpstreamError};
#[cfg(feature = "interception")]
use crate::intercept::InterceptedCall;
use crate::request::{self, Call};
use crate::stage::Progress;

/// Maximum number of calls that are recorded although the program may not make them.
const MAX_REFUSED_RECORDS: u64 = 1000;

/// A call that is ready to be made.
pub(super) struct Ready {
    pub(super) connection: Arc<UpstreamConnection>,
    pub(super) known: &'static Upstream,
    pub(super) encoded: EncodedCall,
    pub(super) rules: CallRules,
    pub(super) entry: usize,
    /// Receives the `Link` header of the answer, if it is needed.
    pub(super) link_header: Option<LinkHeader>,
    /// The call in the form that the interceptor of the program receives, if there is one.
    #[cfg(feature = "interception")]
    pub(super) intercepted: Option<InterceptedCall>,
}

/// Why a call cannot be made.
pub(super) enum Refusal {
    /// The call is invalid.
    Program(Fault),
    /// The call is valid, but fails for another reason.
    World(Reply),
    /// The caller may not make the call, which is recorded.
    Denied(Fault),
}

impl Shared {
    pub(super) fn exhausted(&self) -> UpstreamError {
        let message = format!("this program has made its {} upstream calls; fetch more with each call", self.calls.total);
        UpstreamError::new(Reason::CapExhausted, message)
    }

    fn writes_exhausted(&self) -> UpstreamError {
        let most = self.writes.total;
        let message = format!("this program has made its {most} writes (--max-writes-per-program); this write was not sent");
        UpstreamError::new(Reason::CapExhausted, message)
    }

    /// Validates and encodes a call. `begun` is the index of its record, if there is one already.
    pub(super) fn prepare(&self, request: &Value, progress: &Progress, begun: Option<usize>) -> Result<Ready, Refusal> {
        let bounds = self.bounds();
        let call = request::read(self.catalog(), request, &bounds).map_err(Refusal::Program)?;
        let rules = CallRules::new(call.upstream, call.tool);
        let encoded = encode(&call, &bounds).map_err(Refusal::Program)?;
        #[cfg(feature = "interception")]
        let intercepted = match &self.interceptor {
            Some(_) => Some(interception::intercepted(&call, &bounds, &self.upstreams.redactor).map_err(Refusal::Program)?),
            None => None,
        };
        self.misspelt.see(&call);
        let start = || self.records.start(call.upstream, Cow::Borrowed(call.tool.name), progress.clone());
        // A program that calls on after its last call would fill the memory with records of refused calls.
        let are_many = self.calls.refused.load(Ordering::Relaxed) >= MAX_REFUSED_RECORDS;
        if are_many && begun.is_none() && !self.calls.take() {
            return Err(Refusal::World(failed(self.exhausted())));
        }
        let entry = begun.unwrap_or_else(start);
        let fail = |fault: UpstreamError| {
            self.records.fail(entry, &fault);
            Refusal::World(failed(fault))
        };
        // A call that the policy refuses counts too, since records of refused calls would otherwise fill the memory.
        if !self.calls.take() {
            return Err(fail(self.exhausted()));
        }
        self.decide(&call, entry)?;
        if rules.is_write && !self.writes.take() {
            return Err(fail(self.writes_exhausted()));
        }
        self.records.set_effect(entry, rules);
        let connection = self.upstreams.connection(call.upstream.name).cloned();
        let connection = connection.ok_or_else(|| fail(UpstreamError::unavailable("the upstream has no connection")))?;
        Ok(Ready {
            connection,
            known: call.upstream,
            encoded,
            rules,
            entry,
            link_header: None,
            #[cfg(feature = "interception")]
            intercepted,
        })
    }
}

/// Encodes the call for its transport.
pub(super) fn encode(call: &Call<'_>, bounds: &Bounds) -> Result<EncodedCall, Fault> {
    #[cfg(feature = "http")]
    if let (Transport::OpenApi(spec), Some(operation)) = (&call.upstream.transport, call.tool.operation) {
        let args = call.args.iter().map(|(name, value)| (*name, &**value)).collect();
        let rules = CallRules::new(call.upstream, call.tool);
        let encoded = crate::openapi::encode(spec, operation, rules, args, call.options, bounds);
        let encoded = encoded.map_err(|why| request::refused(call.upstream, call.tool, why))?;
        return Ok(EncodedCall::Operation(Box::new(encoded)));
    }
    Ok(EncodedCall::Mcp { tool: call.tool.name, arguments: request::encode(call, bounds)? })
}
