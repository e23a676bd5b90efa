//! Servers that run cases, and what is measured of them from outside.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::table::Via;
use super::world::{self, Planned};
use super::{Case, LimitSet, MARGIN_BYTES, MAX_CANCEL, MAX_LATE, table};
use crate::peer::{Peer, peak_kb, server};
use crate::web::Web;

/// Time limit for an answer, after which a server counts as unresponsive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The figures of one case, or the worst of many.
#[derive(Default, Clone, Debug)]
pub(super) struct Figures {
    /// Growth of the peak of resident memory since the server was idle.
    grown_kb: u64,
    /// The peak itself.
    resident_kb: u64,
    /// Time of the answer after the program's timeout, without the time that the server waited for a processor since.
    late: Duration,
    /// Time from the cancellation until another program has run, without the time that the server waited for a processor. Zero if the case was not cancelled.
    cancelled: Duration,
    /// The server ended, or did not answer.
    is_lost: bool,
    /// The beginning of the answer.
    answer: String,
}

impl Figures {
    pub(super) fn is_within(&self, set: &LimitSet) -> bool {
        let max_grown = set.memory + set.memory / 5 + MARGIN_BYTES;
        !self.is_lost && self.grown_kb * 1024 <= max_grown && self.late <= MAX_LATE && self.cancelled <= MAX_CANCEL
    }

    /// Returns the lowest of each figure.
    pub(super) fn lowest(self, other: Figures) -> Figures {
        Figures {
            grown_kb: self.grown_kb.min(other.grown_kb),
            resident_kb: self.resident_kb.min(other.resident_kb),
            late: self.late.min(other.late),
            cancelled: self.cancelled.min(other.cancelled),
            is_lost: self.is_lost && other.is_lost,
            answer: if other.answer.is_empty() { self.answer } else { other.answer },
        }
    }

    /// Raises each figure to that of `other`.
    pub(super) fn include(&mut self, other: &Figures) {
        self.grown_kb = self.grown_kb.max(other.grown_kb);
        self.resident_kb = self.resident_kb.max(other.resident_kb);
        self.late = self.late.max(other.late);
        self.cancelled = self.cancelled.max(other.cancelled);
        self.is_lost |= other.is_lost;
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (grown, resident) = (self.grown_kb / 1024, self.resident_kb / 1024);
        let (late, cancelled) = (self.late.as_millis(), self.cancelled.as_millis());
        let lost = if self.is_lost { ", the server was lost" } else { "" };
        write!(f, "{grown} MB above idle ({resident} MB resident), {late} ms late, cancelled within {cancelled} ms{lost}")?;
        if self.answer.is_empty() { Ok(()) } else { write!(f, " [{}]", self.answer) }
    }
}

/// A running process with its resident memory when it was idle.
struct Watched {
    peer: Peer,
    idle_kb: u64,
    session: String,
    next: u64,
}

/// The servers of one set of limits, with their upstreams.
pub(super) struct Servers<'s> {
    set: &'s LimitSet,
    web: Web,
    planner: Web,
    planned: Planned,
    server: Option<Watched>,
    embedded: Option<Watched>,
}

impl<'s> Servers<'s> {
    pub(super) fn new(set: &'s LimitSet) -> Servers<'s> {
        let (planner, planned) = world::planner();
        Servers { set, web: world::service(), planner, planned, server: None, embedded: None }
    }

    /// Ends the processes, so that the next case runs in new ones.
    pub(super) fn restart(&mut self) {
        (self.server, self.embedded) = (None, None);
    }

    /// Runs a case, and once more to cancel it if it takes long enough. `index` decides when.
    pub(super) fn run(&mut self, case: &Case, index: usize) -> Figures {
        let mut figures = Figures::default();
        let took = self.measure(case, &mut figures);
        if let Some(took) = took.filter(|took| *took > MAX_CANCEL) {
            let after = took * [2, 5, 8][index % 3] / 10;
            self.cancel(case, after, &mut figures);
        }
        for web in [&self.web, &self.planner] {
            web.forget();
        }
        if figures.is_lost {
            self.restart();
        }
        figures
    }

    /// Returns the process for a case, which is started if there is none.
    fn process(&mut self, case: &Case) -> &mut Watched {
        if case.via == Some(Via::Embedded) {
            let set = self.set;
            return self.embedded.get_or_insert_with(|| {
                let mut command = server("embedded");
                command.env("BOUNDARY_TIMEOUT_MS", set.timeout.as_millis().to_string());
                command.env("BOUNDARY_MEMORY_BYTES", set.memory.to_string());
                Watched::new(Peer::of(&mut command), false)
            });
        }
        let (set, web, planner) = (self.set, &self.web, &self.planner);
        self.server.get_or_insert_with(|| {
            let mut command = world::command(web, set.flags);
            command.args(["--max-concurrent-calls", "1", "--queue-timeout-ms", "20000"]);
            command.args(["--sessions", "--debug-tool", "--trace-payloads", "full"]);
            command.args(["--agentic", "--agentic-allow-writes", "--agentic-model", "replayed", "--agentic-base-url"]);
            command.arg(format!("http://{}/v1/", planner.address));
            Watched::new(Peer::of(&mut command), true)
        })
    }

    /// Runs a case to its end. Returns its time.
    fn measure(&mut self, case: &Case, figures: &mut Figures) -> Option<Duration> {
        case.text.clone_into(&mut self.planned.lock().expect("no planner panics"));
        let timeout = self.set.timeout;
        let process = self.process(case);
        let (before, request) = requests(case, &process.session);
        // The server allows the timeout for a program, and nothing for its own tools.
        let allowed = if before.is_some() { Duration::ZERO } else { timeout };
        let Some(request) = process.prepare(before, request) else {
            figures.is_lost = true;
            return None;
        };
        let deadline = WaitsLater::new(process.peer.id(), allowed);
        let began = Instant::now();
        let id = process.send(&request);
        let answer = process.receive(id);
        let took = began.elapsed();
        let late = took.saturating_sub(allowed).saturating_sub(deadline.longest());
        let Some(answer) = answer.filter(|_| process.is_free(case.via)) else {
            figures.is_lost = true;
            return None;
        };
        // The next program must not wait for this one after its answer.
        let freed = began.elapsed().saturating_sub(took);
        figures.late = late.max(freed);
        let text = answer.split_once(r#""text":"#).map_or(&*answer, |(_, text)| text);
        figures.answer = text.chars().take(70).collect();
        process.read_memory(figures);
        Some(took)
    }

    /// Runs a case and cancels it after a time.
    fn cancel(&mut self, case: &Case, after: Duration, figures: &mut Figures) {
        let process = self.process(case);
        let (before, request) = requests(case, &process.session);
        let Some(request) = process.prepare(before, request) else {
            figures.is_lost = true;
            return;
        };
        let id = process.send(&request);
        std::thread::sleep(after);
        let (began, waits) = (Instant::now(), processor_waits(process.peer.id()));
        process.notify_cancelled(id);
        if !process.is_free(case.via) {
            figures.is_lost = true;
            return;
        }
        let took = began.elapsed();
        figures.cancelled = took.saturating_sub(longest_wait(process.peer.id(), &waits));
        process.read_memory(figures);
    }
}

impl Watched {
    fn new(peer: Peer, has_sessions: bool) -> Watched {
        let mut watched = Watched { peer, idle_kb: 0, session: String::new(), next: 0 };
        if has_sessions {
            let id = watched.send(r#"{"name":"lisp_session_start","arguments":{}}"#);
            let answer: Value = serde_json::from_str(&watched.receive(id).expect("a session starts")).expect("a line of JSON");
            watched.session = answer["result"]["structuredContent"]["session_id"].to_string();
        }
        assert!(watched.is_free(None), "the server starts");
        watched.idle_kb = peak_kb(watched.peer.id());
        watched
    }

    /// Makes the call before the measured one. Returns the measured one, in which `LAST` stands for the id of the former.
    fn prepare(&mut self, before: Option<String>, request: String) -> Option<String> {
        let Some(before) = before else { return Some(request) };
        let id = self.send(&before);
        self.receive(id)?;
        Some(request.replace("LAST", &id.to_string()))
    }

    /// Calls a tool. Returns the id of the request.
    fn send(&mut self, params: &str) -> u64 {
        self.next += 1;
        let id = self.next;
        self.peer.try_send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#));
        id
    }

    fn notify_cancelled(&mut self, id: u64) {
        self.peer.try_send(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#));
    }

    /// Returns the answer to a request, and skips those to earlier ones. `None` if the server ends or does not answer.
    fn receive(&self, id: u64) -> Option<String> {
        let (by_number, unreadable) = (format!("\"id\":{id},"), "\"id\":null");
        let has_id = |answer: &str| {
            let (head, tail) =
                (answer.get(..60).unwrap_or(answer), answer.get(answer.len().saturating_sub(60)..).unwrap_or(answer));
            [head, tail]
                .iter()
                .any(|part| part.contains(&by_number) || part.contains(unreadable) || part.contains(&by_number.replace(',', "}")))
        };
        std::iter::from_fn(|| self.peer.receive_within(PATIENCE)).find(|answer| has_id(answer))
    }

    /// Waits until the server runs another program, since it runs one at a time. The session must be free as well.
    fn is_free(&mut self, via: Option<Via>) -> bool {
        let program = r#"{"name":"lisp_eval","arguments":{"program":"(+ 1 2)"}}"#.to_owned();
        let mut probes = vec![program];
        if matches!(via, Some(Via::Session | Via::Inspect(_))) {
            probes.push(format!(
                r#"{{"name":"lisp_session_eval","arguments":{{"session_id":{},"program":"(+ 1 2)"}}}}"#,
                self.session
            ));
        }
        let began = Instant::now();
        probes.into_iter().all(|probe| {
            loop {
                let id = self.send(&probe);
                match self.receive(id) {
                    Some(answer) if answer.contains("user=> 3") => return true,
                    Some(_) if began.elapsed() < PATIENCE => {}
                    _ => return false,
                }
            }
        })
    }

    fn read_memory(&self, figures: &mut Figures) {
        figures.resident_kb = peak_kb(self.peer.id());
        figures.grown_kb = figures.resident_kb.saturating_sub(self.idle_kb);
    }
}

/// Returns the time that each thread of a process was ready to run but had no processor, if the system reports it.
fn processor_waits(pid: u32) -> HashMap<OsString, Duration> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let wait = |thread: DirEntry| {
        let times = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanoseconds = times.split_whitespace().nth(1)?.parse().ok()?;
        Some((thread.file_name(), Duration::from_nanos(nanoseconds)))
    };
    threads.filter_map(wait).collect()
}

/// Returns the longest time that a thread had no processor since `before`. Other processes of a busy machine cause it.
fn longest_wait(pid: u32, before: &HashMap<OsString, Duration>) -> Duration {
    let since = |(thread, wait): (OsString, Duration)| wait.saturating_sub(before.get(&thread).copied().unwrap_or_default());
    processor_waits(pid).into_iter().map(since).max().unwrap_or_default()
}

/// The waits of a process's threads at a later moment.
struct WaitsLater {
    pid: u32,
    found: Arc<OnceLock<HashMap<OsString, Duration>>>,
}

impl WaitsLater {
    fn new(pid: u32, after: Duration) -> WaitsLater {
        let found = Arc::default();
        let later = WaitsLater { pid, found: Arc::clone(&found) };
        std::thread::spawn(move || {
            std::thread::sleep(after);
            let _ = found.set(processor_waits(pid));
        });
        later
    }

    /// Returns the longest wait since that moment, or zero before it.
    fn longest(&self) -> Duration {
        self.found.get().map(|waits| longest_wait(self.pid, waits)).unwrap_or_default()
    }
}

/// Returns the parameters of the call that is measured, and of one before it if there is one.
fn requests(case: &Case, session: &str) -> (Option<String>, String) {
    let text = case.json.map(|(name, bytes)| table::json(name, bytes));
    let Some(via) = case.via else {
        let text = text.unwrap_or_default();
        return (None, case.text.replace("SESSION", session).replace("JSON", &text));
    };
    let context = text.map(|text| format!(r#","context":{{"v":{text}}}"#)).unwrap_or_default();
    let program = format!(r#""program":{}{context}"#, json!(case.text));
    let eval = format!(r#"{{"name":"lisp_eval","arguments":{{{program}}}}}"#);
    let session_eval = || format!(r#"{{"name":"lisp_session_eval","arguments":{{"session_id":{session},{program}}}}}"#);
    match via {
        Via::Eval | Via::Embedded => (None, eval),
        Via::Schema(schema) => (None, format!(r#"{{"name":"lisp_eval","arguments":{{{program},"output_schema":{schema}}}}}"#)),
        Via::Session => (None, session_eval()),
        Via::Inspect(view) => {
            let inspect = json!({ "name": "lisp_session_inspect", "arguments": { "view": view } }).to_string();
            (Some(session_eval()), inspect.replace("\"view\"", &format!("\"session_id\":{session},\"view\"")))
        }
        Via::Debug("get") => (Some(eval), r#"{"name":"lisp_debug","arguments":{"op":"get","request_id":LAST}}"#.to_owned()),
        Via::Debug(operation) => (Some(eval), json!({ "name": "lisp_debug", "arguments": { "op": operation } }).to_string()),
        Via::Task => (None, format!(r#"{{"name":"lisp_task","arguments":{{"task":"x"{context}}}}}"#)),
    }
}
