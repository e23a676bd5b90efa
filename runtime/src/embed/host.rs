//! The host of a program with own tools, which also passes calls on to the upstreams.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use ptc_check::host_tools;
use ptc_lisp::host::{Account, Discovery, Fault, Host, Pages, PendingReply, Reply, ReplySender, Reservation};
use ptc_lisp::json::{self, Size, Unmeasured};
use ptc_lisp::list_uses::TrackedList;
use ptc_lisp::signature::{Signature, underscored};
use ptc_lisp::{ErrorKind, Value};
use serde::Serialize;
use tokio::runtime::Handle;

use super::event::{Event, Listener};
use super::tool::{Args, MAX_BYTES, Run, Tool, ToolFailure, ToolOutput};
use crate::secrets::Redactor;
use crate::upstream::ProgramHost;
use crate::upstream::arguments::{Bounds, MAX_ARGUMENTS};

/// The record of a call of an own tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: String,
    /// `ok` or `error`. A call that was not answered when the program ended is an error.
    pub status: &'static str,
    /// Milliseconds from start to answer.
    pub duration_ms: u64,
    /// The reason of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes of the result as JSON.
    pub result_bytes: u64,
    /// Coercions of the arguments, such as `limit: coerced string "10" to int`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Bytes of a copied value in addition to its text: one slot in the list that is built, and one in the container made from it.
const COPIED_VALUE_BYTES: usize = 32;
/// Bytes of a copied container in addition to its values.
const COPIED_CONTAINER_BYTES: usize = 96;

/// The error of a call that was unanswered when the program ended.
const UNANSWERED: &str = "the program ended before the answer";

pub(super) struct AppHost {
    upstreams: Arc<ProgramHost>,
    tools: Arc<[Tool]>,
    handle: Handle,
    calls: Arc<Calls>,
    /// The receiver of printed lines, with the redactor for them.
    listener: Option<(Listener, Redactor)>,
    /// The limits for arguments of own tools, set when the run has begun.
    bounds: Mutex<Bounds>,
}

/// The records of calls, in the order of their start.
#[derive(Default)]
pub(super) struct Calls {
    list: Mutex<Vec<ToolCall>>,
    listener: Option<Listener>,
}

impl Calls {
    /// Creates an empty list.
    pub(super) fn new(listener: Option<Listener>) -> Calls {
        Calls { list: Mutex::default(), listener }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ToolCall>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the records so far.
    pub(super) fn list(&self) -> Vec<ToolCall> {
        self.lock().clone()
    }

    fn start(&self, tool: &str, warnings: Vec<String>) -> usize {
        let error = Some(UNANSWERED.to_owned());
        let call = ToolCall { tool: tool.to_owned(), status: "error", duration_ms: 0, error, result_bytes: 0, warnings };
        if let Some(listener) = &self.listener {
            listener.tell(Event::ToolStarted(&call));
        }
        let mut calls = self.lock();
        calls.push(call);
        calls.len() - 1
    }

    fn finish(&self, call: usize, started: Instant, given: &ToolOutput) {
        let done = self.lock().get_mut(call).map(|call| {
            call.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            call.status = if given.is_ok() { "ok" } else { "error" };
            call.error = given.as_ref().err().map(|ToolFailure(message)| message.clone());
            call.result_bytes = given.as_ref().map_or(0, |json| json.len() as u64);
            call.clone()
        });
        if let (Some(listener), Some(done)) = (&self.listener, done) {
            listener.tell(Event::ToolEnded(&done));
        }
    }
}

impl AppHost {
    pub(super) fn new(
        upstreams: Arc<ProgramHost>,
        tools: Arc<[Tool]>,
        handle: Handle,
        calls: Arc<Calls>,
        listener: Option<(Listener, Redactor)>,
    ) -> AppHost {
        if let Some((listener, _)) = listener.clone() {
            upstreams.watch(move |call, ended| {
                listener.tell(if ended { Event::UpstreamEnded(call) } else { Event::UpstreamStarted(call) });
            });
        }
        AppHost { upstreams, tools, handle, calls, listener, bounds: Mutex::default() }
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        let wanted = underscored(name);
        self.tools.iter().find(|tool| underscored(tool.name()) == wanted)
    }

    fn lock_bounds(&self) -> MutexGuard<'_, Bounds> {
        self.bounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, name: &str) -> Result<&Tool, Fault> {
        self.tool(name).ok_or_else(|| Fault::new(ErrorKind::UnknownTool, format!("there is no tool/{name}")))
    }

    /// Returns the own tool that a reference such as `tool/search` names.
    fn referred(&self, reference: &str) -> Option<&Tool> {
        self.tool(reference.strip_prefix("tool/")?)
    }

    /// Returns the lines of own tools that match a word of the query.
    fn matching(&self, query: &str) -> Vec<Value> {
        let query = query.to_lowercase();
        let words: Vec<&str> = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let matches = |tool: &&Tool| {
            let text = format!("{} {}", tool.name(), tool.description()).to_lowercase();
            words.iter().any(|word| text.contains(word))
        };
        self.tools.iter().filter(matches).map(|tool| Value::from(format!("tool/{}", line(tool)))).collect()
    }
}

impl Host for AppHost {
    fn begin_run(&self, account: &Account) {
        self.lock_bounds().account = Some(account.clone());
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

    fn submit_tool(&self, name: &str, args: &Value) -> Result<PendingReply, Fault> {
        let tool = self.known(name)?;
        let bounds = self.lock_bounds().clone();
        // The reservation ends when the copy exists, which this thread's gauge then counts.
        let copy = reserve_copy(tool, args, &bounds)?;
        let checked = tool.signature().check_arguments(args, tool.mode()).map_err(|findings| {
            Fault::new(ErrorKind::ToolError, host_tools::refused(tool.name(), "tool", &findings))
                .with_hint(host_tools::declared(tool.signature()))
        })?;
        drop(copy);
        let warnings = checked.warnings.iter().map(ToString::to_string).collect();
        let call = self.calls.start(tool.name(), warnings);
        let (answer, ticket) = PendingReply::pair();
        let args = Args { value: checked.value.clone(), bounds: bounds.clone() };
        let started = Instant::now();
        // A panic of the tool becomes an error of its task.
        let under_way = match tool.run.clone() {
            Run::Blocking(run) => self.handle.spawn_blocking(move || run(args)),
            Run::Async(run) => self.handle.spawn(async move { run(args).await }),
        };
        let abort = under_way.abort_handle();
        answer.on_abandon(move || abort.abort());
        let calls = Arc::clone(&self.calls);
        self.handle.spawn(async move {
            let given = under_way
                .await
                .unwrap_or_else(|ended| Err(ToolFailure::new(if ended.is_panic() { "the tool panicked" } else { UNANSWERED })));
            calls.finish(call, started, &given);
            reply(answer, given, &bounds);
        });
        Ok(ticket.holding(checked.value))
    }

    fn receive_tool(&self, name: &str, value: Value) -> Result<Value, Fault> {
        let tool = self.known(name)?;
        let Signature { output, .. } = tool.signature();
        let typed = output.from_wire(&value);
        tool.signature()
            .check_result(&typed, tool.mode())
            .map(|checked| checked.value)
            .map_err(|findings| Fault::new(ErrorKind::ToolError, host_tools::refused(tool.name(), "result", &findings)))
    }

    fn tool_lines(&self) -> Vec<String> {
        self.tools.iter().map(line).collect()
    }

    fn discovery_waits(&self, query: Discovery<'_>) -> bool {
        self.upstreams.discovery_waits(query)
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        let own = match query {
            Discovery::Doc { reference } => self.referred(reference).map(|tool| Value::from(doc(tool))),
            Discovery::Meta { reference } => self.referred(reference).map(meta),
            _ => None,
        };
        if let Some(own) = own {
            return Ok(own);
        }
        let theirs = self.upstreams.discover(query)?;
        let Discovery::Apropos { query: words, .. } = query else { return Ok(theirs) };
        let mut found = self.matching(words);
        if theirs.is_nil() && found.is_empty() {
            return Ok(theirs);
        }
        found.extend(theirs.items().into_iter().flatten().cloned());
        Ok(Value::vector(found))
    }

    fn random(&self) -> u64 {
        self.upstreams.random()
    }

    fn budget(&self) -> Value {
        self.upstreams.budget()
    }

    fn printed(&self, line: &str) {
        if let Some((listener, redactor)) = &self.listener {
            listener.printed(line, redactor);
        }
    }
}

/// Reserves memory of the program for the copy of the arguments that a tool receives. Names are allocated again, and shared parts
/// are duplicated.
fn reserve_copy(tool: &Tool, args: &Value, bounds: &Bounds) -> Result<Option<Reservation>, Fault> {
    let refused = |why: String| Fault::new(ErrorKind::ToolError, format!("tool/{} rejected args: {why}", tool.name()));
    let count = args.len().unwrap_or(0);
    if count > MAX_ARGUMENTS {
        return Err(refused(format!("{count} arguments are given, and one call takes at most {MAX_ARGUMENTS}")));
    }
    let limit = bounds.account.as_ref().and_then(|account| usize::try_from(account.limit()).ok());
    let max_bytes = limit.map_or(MAX_BYTES, |limit| limit.min(MAX_BYTES));
    match json::measure(args, max_bytes, &|| bounds.is_over()) {
        Ok(Size { bytes, values, containers }) => bounds.reserve(
            bytes
                .saturating_add(values.saturating_mul(COPIED_VALUE_BYTES))
                .saturating_add(containers.saturating_mul(COPIED_CONTAINER_BYTES)),
        ),
        Err(Unmeasured::Stopped) => Err(Bounds::stopped()),
        Err(Unmeasured::TooLarge) => {
            let hint = "send less with one call: a part of the data, or only the fields that the tool needs";
            Err(refused(format!("they are longer than {max_bytes} bytes as JSON")).with_hint(hint))
        }
    }
}

/// Sends the result of a tool, whose bytes count as memory of the program until it takes them.
fn reply(answer: ReplySender, given: ToolOutput, bounds: &Bounds) {
    match given.map(|json| (bounds.reserve(json.len()), json)) {
        Ok((Ok(reservation), json)) => answer.send_counted(Reply::Json(json), reservation),
        Ok((Err(fault), _)) => answer.send(Reply::Refused(fault)),
        Err(ToolFailure(message)) => answer.send(Reply::Failed { reason: "tool_error", message }),
    }
}

fn line(tool: &Tool) -> String {
    let what = if tool.description().is_empty() { tool.signature().to_string() } else { tool.description().to_owned() };
    format!("{} - {what}", tool.name())
}

fn doc(tool: &Tool) -> String {
    let name = tool.name();
    let params: Vec<String> =
        tool.signature().params.iter().map(|param| format!(":{} …", ptc_lisp::signature::hyphenated(&param.name))).collect();
    format!(
        "tool/{name}\nDescription: {}\nKind: tool\nSignature: {}\nCall: (tool/{name} {{{}}})",
        tool.description(),
        tool.signature().for_programs(),
        params.join(" ")
    )
}

fn meta(tool: &Tool) -> Value {
    let text = |key: &str, value: &str| (Value::keyword(key), Value::string(value));
    Value::map([
        text("name", tool.name()),
        text("ref", &format!("tool/{}", tool.name())),
        text("namespace", "tool"),
        text("kind", "tool"),
        text("description", tool.description()),
        text("source", "local"),
        text("signature", &tool.signature().for_programs().to_string()),
        (Value::keyword("input_schema"), tool.signature().input_schema()),
        (Value::keyword("output_schema"), tool.signature().output_schema()),
    ])
}
