//! Trace files: one file per call, with one JSON object per line.
//!
//! The line of a call's start is written before it runs, and the others when it ends, each with a single write. A process that
//! dies leaves complete lines. A file with a start but no end belongs to a call that was running at that time.
//!
//! Files outlive the process, and others may get access to them. Unless the policy is `full`, they contain only sizes and digests
//! of programs, contexts, tasks and results, even where `lisp_debug` shows the beginning of these.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::Payloads;
use super::lines::{Context, End, Failure, Input, Line, Output, Payload, Span, Stage, Start, UpstreamCall};
use super::record::{Outcome, Record};
use crate::log::{self, Level};
use ptc_engine::evaluation::Reason;

/// Prefix of the names of trace files.
pub const PREFIX: &str = "ptc-";
/// Suffix of the names of trace files.
pub const SUFFIX: &str = ".jsonl";
/// The member of lines that only an operator may see: it names conditions that other callers meet.
pub const DENIAL: &str = "denial";

/// A folder of trace files, of which the newest are kept.
#[derive(Debug)]
pub struct Traces {
    folder: PathBuf,
    most: usize,
    payloads: Payloads,
    /// Names from the oldest to the newest.
    files: Mutex<VecDeque<String>>,
    next: AtomicU64,
}

/// The trace file of a running call.
#[derive(Debug)]
pub struct TraceFile {
    /// Its unique name in the folder.
    pub name: String,
    file: File,
    payloads: Payloads,
}

impl Traces {
    /// Uses a folder, which is created if it does not exist. Files of earlier processes are included in the count.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be created or listed.
    pub fn new(folder: &Path, most: usize, payloads: Payloads) -> std::io::Result<Traces> {
        make(folder)?;
        let entries = std::fs::read_dir(folder)?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_name(name)).collect();
        // File names start with a timestamp, so that this sorts the oldest first.
        names.sort();
        Ok(Traces { folder: folder.to_owned(), most, payloads, files: Mutex::new(names.into()), next: AtomicU64::new(0) })
    }

    /// Creates the file of a call. Returns `None` if that fails, which is logged.
    pub fn open(&self, record: &Record) -> Option<TraceFile> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let name = format!("{PREFIX}{:016}-{pid}-{number}-{}{SUFFIX}", record.at.as_microsecond(), record.tool);
        let path = self.folder.join(&name);
        // Only the owner may read programs and their data.
        let create = || OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path);
        let begun = create().or_else(|fault| {
            // The folder may have been removed.
            if fault.kind() == ErrorKind::NotFound { make(&self.folder).and_then(|()| create()) } else { Err(fault) }
        });
        let begun = begun.and_then(|file| {
            let mut file = TraceFile { name: name.clone(), file, payloads: self.payloads };
            let start = Start { call: record.call(), input: file.input(record), output: file.output(record) };
            file.write(&[Line::Start(start)])?;
            Ok(file)
        });
        match begun {
            Ok(file) => {
                self.keep(name);
                Some(file)
            }
            Err(fault) => {
                log::line(Level::Warn, "trace not written", &[("file", &name), ("reason", &fault.to_string())]);
                None
            }
        }
    }

    /// Returns the lines of a file as values that a caller may see, or no lines if it has more than `max_bytes`. Returns `None` if it does
    /// not exist or cannot be read.
    pub fn lines(&self, name: &str, max_bytes: usize) -> Option<Vec<Value>> {
        let mut file = File::open(self.folder.join(name)).ok()?;
        if file.metadata().ok()?.len() > max_bytes as u64 {
            return Some(Vec::new());
        }
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let mut lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        lines.iter_mut().filter_map(Value::as_object_mut).for_each(|line| drop(line.remove(DENIAL)));
        (!lines.is_empty()).then_some(lines)
    }

    fn keep(&self, name: String) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push_back(name);
        while files.len() > self.most {
            let Some(oldest) = files.pop_front() else { break };
            // Another process may have removed it.
            let _ = std::fs::remove_file(self.folder.join(oldest));
        }
    }
}

impl TraceFile {
    /// Writes the lines of the call's end.
    ///
    /// # Errors
    ///
    /// Returns an error if the lines cannot be written to the file.
    pub fn close(&mut self, record: &Record) -> std::io::Result<()> {
        let stage = |turn, start, took| Stage { turn, start_us: microseconds(start), duration_us: microseconds(took) };
        let mut spans: Vec<Span<'_>> = Vec::new();
        for (name, start, took) in record.stages() {
            let stage = stage(None, start, took);
            spans.push(if name == "analyze" { Span::Analyze(stage) } else { Span::Eval(stage.into()) });
        }
        #[cfg(feature = "agentic")]
        spans.extend(record.task.iter().flat_map(|task| &task.spans).map(|span| self.reduced(span)));
        #[cfg(feature = "agentic")]
        let mut turns = record.task.iter().flat_map(|task| &task.calls);
        for call in &record.upstream_calls {
            let since = call.started.saturating_duration_since(record.arrived);
            #[cfg(feature = "agentic")]
            let (turn, effect) = turns.next().copied().unzip();
            #[cfg(not(feature = "agentic"))]
            let turn = None;
            spans.push(Span::UpstreamCall(UpstreamCall {
                call,
                stage: stage(turn, since, call.took),
                #[cfg(feature = "agentic")]
                effect,
            }));
        }
        let mut lines: Vec<Line<'_>> = spans.into_iter().map(Line::Span).collect();
        let end = End {
            call: record.call(),
            ended: record.ended(),
            output: self.output(record),
            program: record.is_task().then(|| record.program.clone().map(|program| self.payload(program))),
            upstream_call_count: record.upstream_calls.len(),
            duration_us: microseconds(record.duration),
        };
        lines.push(if matches!(record.outcome, Outcome::Ok) { Line::Success(end) } else { Line::Fail(end) });
        self.write(&lines)
    }

    fn write(&mut self, lines: &[Line<'_>]) -> std::io::Result<()> {
        let mut text = String::new();
        for line in lines {
            text += &serde_json::to_string(line)?;
            text.push('\n');
        }
        self.file.write_all(text.as_bytes())
    }

    /// Reduces a payload to its size and digest, without the preview for `lisp_debug`.
    fn payload(&self, payload: Payload) -> Payload {
        if self.payloads == Payloads::Full { payload } else { payload.digest_only() }
    }

    fn input<'r>(&self, record: &'r Record) -> Input<'r> {
        let Input { program, mut context, task, output_schema_present } = record.input();
        if self.payloads != Payloads::Full
            && let Some(Context::Value(Value::Object(members))) = context.as_mut().map(Cow::to_mut)
        {
            members.remove("keys");
        }
        let reduced = |payload: Option<Payload>| payload.map(|payload| self.payload(payload));
        Input { program: reduced(program), context, task: reduced(task), output_schema_present }
    }

    fn output<'r>(&self, record: &'r Record) -> Output<'r> {
        let mut output = record.output();
        self.hide_result(&mut output.failure, record.outcome.reason());
        output.failure.denial.clone_from(&record.denial);
        output
    }

    /// Replaces the value of `fail`, which is a result, by its size.
    fn hide_result(&self, failure: &mut Failure, reason: Option<&str>) {
        if self.payloads != Payloads::Full && reason == Some(Reason::Fail.name()) {
            failure.message_bytes = failure.message.take().map(|message| message.len());
        }
    }

    /// Reduces a span of a task.
    #[cfg(feature = "agentic")]
    fn reduced(&self, span: &Span<'static>) -> Span<'static> {
        let mut span = span.clone();
        if let Span::Eval(eval) = &mut span {
            eval.program = eval.program.take().map(|program| self.payload(program));
            self.hide_result(&mut eval.failure, eval.reason);
        }
        span
    }
}

/// Creates a folder and its parents, accessible to the owner only.
fn make(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether a file name is that of a trace: microseconds, process, number and tool. Other files in the folder are ignored.
pub fn is_name(name: &str) -> bool {
    let inner = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    let parts: Vec<&str> = inner.unwrap_or_default().splitn(4, '-').collect();
    let [time, process, number, tool] = parts[..] else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_tool = !tool.is_empty() && tool.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    time.len() >= 16 && [time, process, number].into_iter().all(is_number) && is_tool
}

pub(super) fn microseconds(duration: Duration) -> u64 {
    duration.as_micros() as u64
}
