//! `(tool/all …)`: collects the items of all pages of a list.

use crate::args::{at, describe};
use crate::builtins::Builtin;
use crate::collection::Vector;
use crate::error::ErrorKind;
use crate::host::{NextPages, Reply};
use crate::machine::{Machine, Raised};
use crate::packed_docs::packed_docs;
use crate::parallel::{self, Work};
use crate::{Kind, Value};

use super::tool_call;

const NAME: &str = "tool/all";

/// A request for one page, used when several are sent in parallel. Returns `[value link]`, or `[nil nil reason message]` if the
/// call failed. A failure also stops the requests for later pages.
static PAGE: Builtin = Builtin {
    name: "all",
    namespace: "tool",
    min: 1,
    max: Some(1),
    notes: packed_docs!("", ["[request]"], []),
    run: fetch_as_value,
};

/// The outcome of a request for a page.
enum Fetched {
    Page { answer: Value, link: Option<String> },
    Failed { reason: String, message: String, status: Option<u16> },
}

pub(super) fn all(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let given = at(args, 0);
    if !matches!(given, Value::Map(_)) {
        let message = format!("{NAME} takes a map {{:server … :tool … :args {{…}} :max n}}, got {}", describe(given));
        return Err(m.raise(ErrorKind::ToolError, message));
    }
    let max = max_items(m, given)?;
    let request = with(given, None);
    let host = m.shared_host();
    let begun = parallel::waiting(m, || host.pages(&request, max));
    let mut pages = begun.map_err(|fault| tool_call::refused(m, tool_call::of_function(fault, NAME)))?;
    let mut due = vec![pages.first()];
    while !due.is_empty() {
        let requests: Vec<Value> = std::mem::take(&mut due).into_iter().map(|args| with(&request, Some(args))).collect();
        let fetched = match requests.as_slice() {
            [one] => vec![fetch(m, one)?],
            _ => fetch_at_once(m, requests.clone())?,
        };
        for (fetched, request) in fetched.into_iter().zip(&requests) {
            m.checkpoint_now()?;
            let next = match fetched {
                Fetched::Page { answer, link } => pages.receive(&answer, link.as_deref()),
                Fetched::Failed { reason, message, status } => {
                    let Some(ended) = pages.end_with_failure(&reason, &message, status) else {
                        let arrived = format!(", {}", pages.arrived());
                        return Err(tool_call::failed(m, NAME, request, &reason, &message, &arrived));
                    };
                    ended
                }
            };
            match next {
                Ok(NextPages::Done) => return Ok(Value::vector(pages.into_items())),
                Ok(NextPages::Requests(requests)) => due.extend(requests),
                Err(fault) => return Err(m.raise_fault(fault.into())),
            }
        }
    }
    Err(m.raise(ErrorKind::InternalError, "the pages of a list ended without its end"))
}

/// Returns the maximum number of items from `:max`.
fn max_items(m: &mut Machine, request: &Value) -> Result<Option<usize>, Raised> {
    let Some(max) = request.get("max").filter(|max| !max.is_nil()) else { return Ok(None) };
    if let Some(max) = max.as_int().and_then(|max| usize::try_from(max).ok()).filter(|max| *max > 0) {
        return Ok(Some(max));
    }
    let message = format!("{NAME}: :max must be a positive integer, got {}", describe(max));
    Err(m.raise_with_hint(ErrorKind::ToolError, message, "leave :max out for all items"))
}

/// Returns the request without `:max`, and with other arguments if `args` is given.
fn with(request: &Value, args: Option<Value>) -> Value {
    let replaced = |name: Option<&str>| name == Some("max") || args.is_some() && name == Some("args");
    let kept = request.entries().into_iter().flatten().filter(|(key, _)| !replaced(key.as_name()));
    let mut entries: Vec<(Value, Value)> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    entries.extend(args.map(|args| (Value::keyword("args"), args)));
    Value::map(entries)
}

fn fetch(m: &mut Machine, request: &Value) -> Result<Fetched, Raised> {
    m.tick(100)?;
    tool_call::spend(m)?;
    m.meters.missing_keys.start();
    m.report_memory();
    let link = tool_call::LinkHeader::default();
    let (head, reply) = match m.host().submit_with_link(request, &link) {
        Ok(pending) => tool_call::wait(m, pending)?.split(),
        Err(fault) => return Err(tool_call::refused(m, tool_call::of_function(fault, NAME))),
    };
    if let Reply::Failed { reason, message } = reply {
        return Ok(Fetched::Failed { reason: reason.to_owned(), message, status: head.map(|head| head.status) });
    }
    let answer = tool_call::value(m, NAME, request, reply)?;
    Ok(Fetched::Page { answer, link: link.get().cloned() })
}

fn fetch_at_once(m: &mut Machine, requests: Vec<Value>) -> Result<Vec<Fetched>, Raised> {
    let fetched = parallel::run(m, Work::Map(Value::Builtin(&PAGE), vec![Vector::from(requests)]))?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let of = |page: &Value| {
        let mut parts = page.items()?;
        let (answer, link, reason) = (parts.next()?.clone(), parts.next(), parts.next());
        Some(match text(reason) {
            Some(reason) => Fetched::Failed { reason, message: text(parts.next()).unwrap_or_default(), status: None },
            None => Fetched::Page { answer, link: text(link) },
        })
    };
    debug_assert_eq!(fetched.kind(), Kind::Vector);
    Ok(fetched.items().into_iter().flatten().filter_map(of).collect())
}

fn fetch_as_value(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let fetched = fetch(m, at(args, 0))?;
    Ok(Value::vector(match fetched {
        Fetched::Page { answer, link } => vec![answer, link.map_or(Value::Nil, Value::from)],
        Fetched::Failed { reason, message, .. } => {
            // Later pages are not fetched, since the program ends with this failure.
            if let Some(task) = &m.task {
                task.be_last();
            }
            vec![Value::Nil, Value::Nil, Value::from(reason), Value::from(message)]
        }
    }))
}
