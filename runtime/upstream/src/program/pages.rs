//! Reads the pages of a list for `tool/all`.

use std::sync::Arc;

use ptc_check::paging;
use ptc_lisp::host::{Fault, NextPages, Pages};
use ptc_lisp::list_uses::TrackedList;
use ptc_lisp::{ErrorKind, Value};

use super::Shared;
use crate::request;

/// The pages of one list, with the call budget of its program.
struct ProgramPages {
    pages: paging::Pages,
    shared: Arc<Shared>,
}

impl ProgramPages {
    fn calls_left(&self) -> usize {
        usize::try_from(self.shared.calls.left()).unwrap_or(usize::MAX)
    }
}

impl Pages for ProgramPages {
    fn first(&mut self) -> Value {
        self.pages.first()
    }

    fn receive(&mut self, answer: &Value, link_header: Option<&str>) -> Result<NextPages, Fault> {
        let calls_left = self.calls_left();
        next_pages(self.pages.receive(answer, link_header, calls_left))
    }

    fn end_with_failure(&mut self, reason: &str, message: &str, status: Option<u16>) -> Option<Result<NextPages, Fault>> {
        let calls_left = self.calls_left();
        self.pages.end_with_failure(reason, message, status, calls_left).map(next_pages)
    }

    fn arrived(&self) -> String {
        self.pages.arrived()
    }

    fn into_items(self: Box<Self>) -> Vec<Value> {
        self.pages.into_items()
    }
}

fn next_pages(progress: Result<paging::Progress, paging::Error>) -> Result<NextPages, Fault> {
    progress.map_err(fault_of_paging).map(|progress| match progress {
        paging::Progress::Done => NextPages::Done,
        paging::Progress::Next(args) => NextPages::Requests(vec![args]),
        paging::Progress::Rest(requests) => NextPages::Requests(requests),
    })
}

fn fault_of_paging(error: paging::Error) -> Fault {
    Fault::new(ErrorKind::ToolError, error.message).with_hint(error.hint)
}

/// Begins to read a list. Waits until the tools of its upstream are fetched.
pub(super) fn begin(shared: &Arc<Shared>, request: &Value, max: Option<usize>) -> Result<Box<dyn Pages>, Fault> {
    if let Some(fault) = shared.denied(request) {
        return Err(fault);
    }
    if let Some((upstream, _)) = shared.unlisted(request) {
        shared.list(&[upstream.name]).map_err(|fault| {
            let message = format!("tool/all: {}: {}", upstream.name, fault.message);
            Fault::new(ErrorKind::ToolError, shared.upstreams.redactor.redact_str(&message))
        })?;
    }
    let call = request::read(shared.catalog(), request, &shared.bounds())?;
    let args = request.get("args").cloned().unwrap_or_default();
    shared.lock_unread_pages().read_all(call.upstream, call.tool, &args);
    let pages = paging::Pages::new(call.upstream, call.tool, args, max).map_err(fault_of_paging)?;
    Ok(Box::new(ProgramPages { pages, shared: Arc::clone(shared) }))
}

/// Records whether an answer announces further pages. `link_header` is the `Link` header of
/// the answer.
pub(super) fn received(shared: &Shared, request: &Value, answer: &Value, link_header: Option<&str>) -> Option<TrackedList> {
    let named = |key| request.get(key).and_then(Value::as_name);
    let upstream = shared.catalog().upstream(named("server")?)?;
    let tool = upstream.tool(named("tool")?)?;
    let args = request.get("args").cloned().unwrap_or_default();
    shared.lock_unread_pages().receive(upstream, tool, &args, answer, link_header)
}
