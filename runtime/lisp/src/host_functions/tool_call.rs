//! `(tool/NAME …)`: calls of the embedding program's own tools, and the code that all tool calls share.

use std::sync::{Arc, OnceLock};

use crate::analyzer::{Analysed, Analyzer, Written};
use crate::args::{describe, take};
use crate::builtins::Builtin;
use crate::error::{ErrorKind, Span};
use crate::form::{Form, FormKind};
use crate::host::{self, PendingReply, Reply, WaitOutcome};
use crate::ir::{Ir, Op};
use crate::machine::{Machine, Raised};
use crate::packed_docs::packed_docs;
use crate::{Value, json, parallel, print};

/// Maximum bytes of an upstream's message, and of a call's arguments, in the fault of that call.
const MAX_MESSAGE_BYTES: usize = 1000;
const MAX_ARGS_BYTES: usize = 400;

/// The `Link` header of a response, set when the response arrives.
pub(super) type LinkHeader = Arc<OnceLock<String>>;

/// Namespace and name of the builtin that represents all own tools, for code that searches for their calls.
pub(crate) const HOST_TOOL: (&str, &str) = ("tool", "NAME");

/// The builtin behind `(tool/NAME …)`. Its first argument is the name of the tool.
static TOOL: Builtin = Builtin {
    name: HOST_TOOL.1,
    namespace: HOST_TOOL.0,
    min: 1,
    max: None,
    notes: packed_docs!("", ["[name & args]"], []),
    run: call,
};

/// Makes a call of the tool with the given host name.
pub(crate) fn call_of(tool: &str, place: Span, args: Vec<Ir>) -> Op {
    let name = Ir::new(place, Op::Const(Value::string(tool)));
    Op::Builtin { row: &TOOL, args: std::iter::once(name).chain(args).collect() }
}

/// Analyses `tool/NAME` as a value: a function with one argument or none.
pub(crate) fn as_value<'s>(a: &mut Analyzer<'s>, name: &'s str, span: Span) -> Analysed {
    let form = |kind| Form::new(span, kind);
    let arity = |params: &[&'s str]| {
        let params: Vec<Form<'s>> = params.iter().map(|param| form(FormKind::Symbol(param))).collect();
        let call = std::iter::once(form(FormKind::Symbol(name))).chain(params.iter().cloned()).collect();
        (form(FormKind::Vector(params)), vec![form(FormKind::List(call))])
    };
    a.function(Written { name: None, doc: None, span, arities: vec![arity(&[]), arity(&["args"])] })
}

/// Ends the program with the host's fault, or with the limit that was exceeded meanwhile: checking and encoding arguments takes
/// time, and another branch may have used up the memory. A memory fault of the host is kept, since it is more precise than the
/// machine's.
pub(super) fn refused(m: &mut Machine, fault: host::Fault) -> Raised {
    if fault.kind != ErrorKind::MemoryExceeded
        && let Err(raised) = m.checkpoint_now()
    {
        return raised;
    }
    m.raise_fault(fault.into())
}

/// Calls a tool of an upstream with a request `{:server … :tool … :args {…}}`. Returns the reply, and the `Link` header, which is
/// set when the response arrives. `function` is the function that the program called, for messages.
pub(super) fn request(m: &mut Machine, function: &str, request: &Value) -> Result<(Reply, LinkHeader), Raised> {
    m.tick(100)?;
    if !matches!(request, Value::Map(_)) {
        let message = format!("{function} takes a map {{:server … :tool … :args {{…}}}}, got {}", describe(request));
        return Err(m.raise(ErrorKind::ToolError, message));
    }
    spend(m)?;
    m.meters.missing_keys.start();
    m.report_memory();
    let link = LinkHeader::default();
    match m.host().submit_with_link(request, &link) {
        Ok(pending) => Ok((wait(m, pending)?, link)),
        Err(fault) => Err(refused(m, of_function(fault, function))),
    }
}

/// Returns the value of a successful call of an upstream's tool.
pub(super) fn value(m: &mut Machine, function: &str, request: &Value, reply: Reply) -> Result<Value, Raised> {
    match reply.split().1 {
        Reply::Json(bytes) => {
            m.charge(bytes.len().saturating_mul(2))?;
            let decoded = json::decode_metered(m, &bytes)?;
            drop(bytes);
            m.checkpoint_now()?;
            decoded.map_err(|error| {
                let message = format!("the answer is not JSON: {error}");
                failed(m, function, request, "upstream_error", &message, "")
            })
        }
        Reply::Text(text) => {
            m.charge(text.len().saturating_mul(2))?;
            let decoded = json::decode_metered(m, text.as_bytes())?;
            m.checkpoint_now()?;
            Ok(decoded.unwrap_or_else(|_| Value::from(text)))
        }
        Reply::Plain(text) => {
            m.charge(text.len())?;
            Ok(Value::from(text))
        }
        Reply::None | Reply::Http(..) => Ok(Value::Nil),
        Reply::Failed { reason, message } => Err(failed(m, function, request, reason, &message, "")),
        Reply::Refused(fault) => Err(refused(m, of_function(fault, function))),
    }
}

/// Ends the program with the fault of a call, which has the tool, the reason, the message and the arguments. `arrived` is
/// appended to the message.
pub(super) fn failed(m: &mut Machine, function: &str, request: &Value, reason: &str, message: &str, arrived: &str) -> Raised {
    let message = format!("{function}: {} failed ({reason}): {}", called(request), print::cut(message, MAX_MESSAGE_BYTES));
    let message = format!("{message}{arrived}");
    let args = request.get("args").filter(|args| args.len() != Some(0));
    let args = args.map_or_else(|| "none".to_owned(), |args| print::preview_line(args, MAX_ARGS_BYTES));
    let hint = format!("its arguments: {args}; tool/call gives a failure as {{:ok false :reason r :message m}}");
    m.raise_with_hint(ErrorKind::ToolError, message, hint)
}

/// Formats the target of a request as `server/tool`.
pub(super) fn called(request: &Value) -> String {
    let name = |key| request.get(key).and_then(Value::as_name).unwrap_or("?");
    format!("{}/{}", print::excerpt(name("server")), print::excerpt(name("tool")))
}

/// Replaces the name `tool/call` in a host's fault by the function that the program called.
pub(super) fn of_function(fault: host::Fault, function: &str) -> host::Fault {
    match fault.message.strip_prefix("tool/call ") {
        Some(rest) => host::Fault { message: format!("{function} {rest}"), ..fault },
        None => fault,
    }
}

fn call(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    m.tick(100)?;
    let name = take(args, 0);
    let name = name.as_str().unwrap_or_default();
    let args = named(m, name, args.get_mut(1..).unwrap_or_default())?;
    spend(m)?;
    m.report_memory();
    let host = m.shared_host();
    let pending = match host.submit_tool(name, &args) {
        Ok(pending) => pending,
        Err(fault) => return Err(refused(m, fault)),
    };
    let value = match wait(m, pending)?.split().1 {
        Reply::Json(bytes) => {
            m.charge(bytes.len().saturating_mul(2))?;
            let decoded = json::decode_metered(m, &bytes)?;
            m.checkpoint_now()?;
            decoded.map_err(|error| m.raise(ErrorKind::ToolError, format!("tool/{name}: the answer is not JSON: {error}")))?
        }
        Reply::Text(text) | Reply::Plain(text) => {
            m.charge(text.len())?;
            Value::from(text)
        }
        Reply::None | Reply::Http(..) => Value::Nil,
        Reply::Failed { message, .. } => return Err(m.raise(ErrorKind::ToolError, format!("tool/{name}: {message}"))),
        Reply::Refused(fault) => return Err(refused(m, fault)),
    };
    host.receive_tool(name, value).map_err(|fault| m.raise_fault(fault.into()))
}

/// Converts the arguments to a map. They are empty, one map, or keys and values in alternation.
fn named(m: &mut Machine, name: &str, args: &mut [Value]) -> Result<Value, Raised> {
    match args {
        [] | [Value::Nil] => Ok(Value::map([])),
        [map @ Value::Map(_)] => Ok(std::mem::take(map)),
        pairs if pairs.len() % 2 == 0 && pairs.iter().step_by(2).all(|key| matches!(key, Value::Keyword(_))) => {
            let pairs = pairs.chunks_exact_mut(2).filter_map(|pair| match pair {
                [key, value] => Some((std::mem::take(key), std::mem::take(value))),
                _ => None,
            });
            Ok(Value::map(pairs))
        }
        [first, ..] => {
            let message = format!("tool/{name} takes named arguments, got {}", describe(first));
            let hint =
                format!("write (tool/{name} {{:name value}}) or (tool/{name} :name value); (doc tool/{name}) shows the names");
            Err(m.raise_with_hint(ErrorKind::ToolError, message, hint))
        }
    }
}

/// Counts a call against the limit of the run.
pub(super) fn spend(m: &mut Machine) -> Result<(), Raised> {
    m.fail_if_comparison_gave_up()?;
    if m.meters.call_tool() {
        return Ok(());
    }
    let limit = m.meters.limits.tool_calls.unwrap_or_default();
    let message = format!("the program made more than {limit} calls of tools");
    Err(m.raise_with_hint(ErrorKind::ToolError, message, "ask for more at once, or for less"))
}

/// Waits for the reply until the deadline of the run.
pub(super) fn wait(m: &mut Machine, pending: PendingReply) -> Result<Reply, Raised> {
    m.hand_over(pending.handed_over());
    let _watches = (m.meters.cancel.watch(pending.interrupter()), m.meters.watch(pending.interrupter()));
    if let Some(task) = &m.task {
        task.watch(pending.interrupter());
    }
    let meters = Arc::clone(&m.meters);
    let wait = || {
        let (waited, bytes) = pending.wait_weighed(Some(meters.deadline));
        // The reply was allocated on another thread and is dropped on this one, which would make this thread's gauge too low. Its
        // bytes are therefore added here, before this thread waits for a permit to compute: many threads may wait for one permit,
        // each with its reply.
        if meters.gauge.is_some() {
            meters.report_bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        waited
    };
    match parallel::waiting(m, wait) {
        WaitOutcome::Reply(reply) => Ok(reply),
        WaitOutcome::DeadlinePassed => Err(m.out_of_time()),
        WaitOutcome::Interrupted if m.meters.is_exhausted() && !m.meters.cancel.is_cancelled() => {
            if m.meters.ended().is_some() {
                return Err(m.out_of_memory());
            }
            let fault = host::out_of_memory(m.meters.limits.memory_bytes);
            Err(m.raise_fault(fault.into()))
        }
        WaitOutcome::Interrupted => Err(m.raise(ErrorKind::Cancelled, "the run was cancelled")),
    }
}
