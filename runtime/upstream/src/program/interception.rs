//! Passes the calls of a program to its interceptor.

use ptc_lisp::host::Fault;
use ptc_secrets::Redactor;

use super::Shared;
use super::prepare::Ready;
use crate::arguments::Bounds;
use crate::intercept::{InterceptedCall, Interception};
use crate::request::{self, Call};

impl Shared {
    /// Returns what the interceptor of the program does with a call.
    pub(super) fn intercept(&self, ready: &Ready) -> Interception {
        match (&self.interceptor, &ready.intercepted) {
            (Some(interceptor), Some(call)) => interceptor.answer(call),
            _ => Interception::PassOn,
        }
    }
}

/// Returns the call in the form that interceptors receive.
pub(super) fn intercepted(call: &Call<'_>, bounds: &Bounds, redactor: &Redactor) -> Result<InterceptedCall, Fault> {
    #[cfg(feature = "http")]
    let (accept, without_bytes) = (call.options.accept.map(str::to_owned), call.options.without_bytes);
    #[cfg(not(feature = "http"))]
    let (accept, without_bytes) = (None, false);
    let arguments = redactor.redact_bytes(request::encode(call, bounds)?.to_vec());
    Ok(InterceptedCall { upstream: call.upstream, tool: call.tool, arguments, accept, without_bytes })
}
