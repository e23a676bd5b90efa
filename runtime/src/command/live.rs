//! Forwards printed lines while a program runs.

use std::sync::{Arc, OnceLock};

use ptc_lisp::Value;
use ptc_lisp::host::{Account, Discovery, Fault, Host, Pages, PendingReply};
use ptc_lisp::list_uses::TrackedList;

use crate::secrets::Redactor;
use crate::upstream::ProgramHost;
use ptc_engine::evaluation::EvalHooks;

/// Receives a printed line.
pub(super) type PrintLine = fn(&str);

/// Hooks that forward redacted printed lines while the program runs. The list of lines in the evaluation stays complete.
pub(super) struct PrintHooks {
    pub(super) print_line: PrintLine,
    pub(super) redactor: Redactor,
}

impl EvalHooks for PrintHooks {
    fn host(&self, upstreams: &Arc<ProgramHost>) -> Arc<dyn Host> {
        Arc::new(PrintingHost { upstreams: Arc::clone(upstreams), print_line: self.print_line, redactor: self.redactor.clone() })
    }
}

struct PrintingHost {
    upstreams: Arc<ProgramHost>,
    print_line: PrintLine,
    redactor: Redactor,
}

impl Host for PrintingHost {
    fn begin_run(&self, account: &Account) {
        self.upstreams.begin_run(account);
    }

    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        self.upstreams.submit(request)
    }

    fn submit_with_link(&self, request: &Value, link: &Arc<OnceLock<String>>) -> Result<PendingReply, Fault> {
        self.upstreams.submit_with_link(request, link)
    }

    fn received(&self, request: &Value, answer: &Value, link: Option<&str>) -> Option<TrackedList> {
        self.upstreams.received(request, answer, link)
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
        (self.print_line)(&self.redactor.redact_str(line));
    }
}
