//! Lines of a program that somebody watches, told as they are printed.

use std::sync::{Arc, OnceLock};

use ptc_lisp::Value;
use ptc_lisp::host::{Account, Discovery, Fault, Host, Pages, PendingReply};

use crate::evaluation::EvalHooks;
use crate::secrets::Redactor;
use crate::upstream::ProgramHost;

/// Who is told of a line.
pub(super) type Tell = fn(&str);

/// An evaluation whose lines are told, redacted, before it ends. Its prints are complete all the same.
pub(super) struct Watched {
    pub(super) tell: Tell,
    pub(super) redactor: Redactor,
}

impl EvalHooks for Watched {
    fn host(&self, upstreams: &Arc<ProgramHost>) -> Arc<dyn Host> {
        Arc::new(Telling { upstreams: Arc::clone(upstreams), tell: self.tell, redactor: self.redactor.clone() })
    }
}

struct Telling {
    upstreams: Arc<ProgramHost>,
    tell: Tell,
    redactor: Redactor,
}

impl Host for Telling {
    fn begin_run(&self, account: &Account) {
        self.upstreams.begin_run(account);
    }

    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        self.upstreams.submit(request)
    }

    fn submit_with_link(&self, request: &Value, link: &Arc<OnceLock<String>>) -> Result<PendingReply, Fault> {
        self.upstreams.submit_with_link(request, link)
    }

    fn received(&self, request: &Value, answer: &Value, link: Option<&str>) {
        self.upstreams.received(request, answer, link);
    }

    fn pages(&self, request: &Value, max: Option<usize>) -> Result<Box<dyn Pages>, Fault> {
        self.upstreams.pages(request, max)
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        self.upstreams.discover(query)
    }

    fn random(&self) -> u64 {
        self.upstreams.random()
    }

    fn budget(&self) -> Value {
        self.upstreams.budget()
    }

    fn printed(&self, line: &str) {
        (self.tell)(&self.redactor.redact_str(line));
    }
}
