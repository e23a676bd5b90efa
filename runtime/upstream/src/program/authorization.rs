//! Checks calls of a program against what its caller may do.

use std::borrow::Cow;
use std::sync::PoisonError;

use ptc_catalog::Catalog;
use ptc_lisp::Value;
use ptc_lisp::host::Fault;

use super::prepare::Refusal;
use super::{Shared, failed, recorded};
use crate::access::{Denial, Refused};
use crate::fault::{Reason, UpstreamError};
use crate::request::Call;
use crate::stage::Progress;

/// Maximum number of reasons that are kept. The first refusal ends the program, so that only calls at the same time can have others.
const MAX_DENIALS: usize = 100;

impl Shared {
    /// Returns the catalog that the caller may see.
    pub(super) fn catalog(&self) -> &'static Catalog {
        let whole = self.upstreams.catalog();
        self.limits.access.as_ref().map_or(whole, |access| access.catalog(whole))
    }

    /// Returns why the caller may not call the tool that a request names, apart from the arguments. The refusal is recorded. A tool that
    /// is hidden from the caller is not denied here, since the call has to be answered and recorded as one of an unknown tool: the
    /// catalog of the caller does not have it.
    pub(super) fn denied(&self, request: &Value) -> Option<Fault> {
        let access = self.limits.access.as_ref()?;
        let named = |key| request.get(key).and_then(Value::as_name);
        let (server, tool) = (named("server")?, named("tool")?);
        let whole = self.upstreams.catalog();
        let denial = access.denial(whole, server, tool)?;
        if denial.is_hidden() {
            self.note_denial(denial.reason);
            return None;
        }
        let upstream = whole.upstream(server)?;
        let tool = Cow::Owned(recorded(&self.upstreams.redactor, tool));
        let entry = self.records.start(upstream, tool, Progress::default());
        Some(self.deny(entry, denial))
    }

    fn deny(&self, entry: usize, denial: Denial) -> Fault {
        if let Some(rule) = denial.rule {
            self.records.set_rule(entry, rule);
        }
        self.records.fail(entry, &UpstreamError::new(Reason::Forbidden, denial.message.clone()));
        self.note_denial(denial.reason.clone());
        denial.into_fault()
    }

    fn note_denial(&self, reason: String) {
        let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        if !reason.is_empty() && denials.len() < MAX_DENIALS {
            denials.insert(reason);
        }
    }

    /// Decides about a valid call with this record, and counts it. Without a policy every call is permitted.
    pub(super) fn decide(&self, call: &Call<'_>, entry: usize) -> Result<(), Refusal> {
        let Some(decisions) = &self.decisions else { return Ok(()) };
        match decisions.decide(call.upstream.name, call.tool.name, &|name| call.sent_argument(name)) {
            Ok(rule) => {
                self.records.set_rule(entry, rule);
                Ok(())
            }
            Err(Refused::Denied(denial)) => Err(Refusal::Denied(self.deny(entry, *denial))),
            Err(Refused::Limit(rule, message)) => {
                self.records.set_rule(entry, rule);
                let error = UpstreamError::new(Reason::CapExhausted, message);
                self.records.fail(entry, &error);
                Err(Refusal::World(failed(error)))
            }
        }
    }
}
