//! Requests and answers over the pipes of one child, matched by id.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Buf;
use litemap::LiteMap;
use ptc_catalog::McpStdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};

use crate::children::ChildPermit;
use crate::fault::{UpstreamError, excerpt};
use crate::health::Health;
use crate::mcp::wire::{self, Frame, OutgoingFrame, ServerMessage};
use crate::mcp::{Ask, Channel, Response};
use crate::offload::offload;
use crate::settings::{ResponseCap, UpstreamSettings};
use crate::stage::{self, Progress, Stage};
use ptc_log::{self as log, Level};
use ptc_secrets::{Redactor, Secrets, StreamRedactor};

use super::kept_stderr::KeptStderr;
use super::lines::{self, Line};
use super::process::{self, Grace, ProcessGroup};

/// Maximum number of frames that wait until the child reads them. Further requests wait.
const OUTBOX: usize = 64;
/// Maximum number of bytes of the child's standard error in one log line.
const MAX_STDERR_LINE: usize = 8 * 1024;
/// Size of a read in bytes.
const READ_CHUNK: usize = 64 * 1024;
/// Time limit for the last output of a child that has exited, and for the exit status of one that closed its output.
const LAST_WORDS: Duration = Duration::from_millis(200);

type Waiter = oneshot::Sender<Result<Response, UpstreamError>>;

/// The pipes of a running child.
pub(crate) struct Connection {
    name: &'static str,
    cap: ResponseCap,
    redactor: Redactor,
    next_id: AtomicU64,
    outbox: mpsc::Sender<Queued>,
    waiting: Mutex<Waiting>,
    /// Whether the handshake is complete. Before that, unparsable output is treated as a banner instead of an answer.
    handshake_done: AtomicBool,
    /// The redacted beginning and end of the child's standard error.
    stderr: Mutex<KeptStderr>,
    health: Arc<Health>,
}

#[derive(Default)]
struct Waiting {
    by_id: LiteMap<u64, Waiter>,
    failure: Option<UpstreamError>,
}

/// A running child. Dropping it kills its process group. [`Child::end`] asks it to exit first.
pub(crate) struct Child {
    pub(crate) connection: Arc<Connection>,
    /// Its permit to run, which is held until its process group is gone, and no longer: the connection may be kept after that.
    pub(crate) permit: Weak<ChildPermit>,
    /// The grace periods with which the group is to be ended.
    stop: watch::Sender<Option<Grace>>,
    /// Closed when the group is gone.
    gone: watch::Receiver<()>,
}

impl Child {
    /// Starts the child and the tasks that serve its pipes.
    pub(crate) async fn start(
        health: &Arc<Health>,
        name: &'static str,
        spec: &'static McpStdio,
        secrets: &Secrets,
        settings: &UpstreamSettings,
        cap: ResponseCap,
        permit: Arc<ChildPermit>,
    ) -> Result<Child, UpstreamError> {
        let (mut child, group) = process::start(name, spec, secrets, &settings.config_dir)
            .await
            .map_err(|why| UpstreamError::unavailable(format!("cannot start '{}': {why}", spec.command)))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(UpstreamError::unavailable("the child has no pipes"));
        };
        let (outbox, frames) = mpsc::channel(OUTBOX);
        let connection = Arc::new(Connection {
            name,
            cap,
            redactor: secrets.redactor(),
            next_id: AtomicU64::new(1),
            outbox,
            waiting: Mutex::default(),
            handshake_done: AtomicBool::new(false),
            stderr: Mutex::default(),
            health: Arc::clone(health),
        });
        let (stop, stopped) = watch::channel(None);
        let (alive, gone) = watch::channel(());
        let (output_ended, ended) = oneshot::channel();
        tokio::spawn(write_frames(stdin, frames, stopped.clone()));
        tokio::spawn(keep_stderr(stderr, Arc::clone(&connection)));
        tokio::spawn({
            let connection = Arc::clone(&connection);
            async move {
                connection.read_frames(stdout).await;
                let _ = output_ended.send(());
            }
        });
        let held = Arc::downgrade(&permit);
        let leader = group.leader();
        health.process_started(leader);
        let supervised = supervise(child, group, Arc::clone(&connection), stopped, ended);
        tokio::spawn({
            let health = Arc::clone(health);
            async move {
                supervised.await;
                health.process_ended(leader);
                drop((permit, alive));
            }
        });
        Ok(Child { connection, permit: held, stop, gone })
    }

    /// Begins to end the child, by closing its input. A later call begins again with the grace periods.
    pub(crate) fn end(&self, grace: Grace) {
        self.stop.send_replace(Some(grace));
    }

    /// Returns when the process group is gone.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut gone = self.gone.clone();
        async move { while gone.changed().await.is_ok() {} }
    }
}

/// Owns the child: detects its exit, and ends its group.
async fn supervise(
    mut child: tokio::process::Child,
    mut group: ProcessGroup,
    connection: Arc<Connection>,
    mut stopped: watch::Receiver<Option<Grace>>,
    mut output_ended: oneshot::Receiver<()>,
) {
    let fault = tokio::select! {
        _ = stopped.changed() => {
            connection.lose(UpstreamError::unavailable("the upstream was stopped"));
            loop {
                // If the handle was dropped, there is no grace period.
                let grace = stopped.borrow_and_update().unwrap_or(Grace::NONE);
                tokio::select! {
                    () = group.terminate(&mut child, grace) => return,
                    Ok(()) = stopped.changed() => {}
                }
            }
        }
        status = child.wait() => {
            let _ = tokio::time::timeout(LAST_WORDS, output_ended).await;
            status.map_or_else(|why| format!("its end cannot be observed: {why}"), |s| s.to_string())
        }
        _ = &mut output_ended => match tokio::time::timeout(LAST_WORDS, child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            _ => "it closed its output".to_owned(),
        },
    };
    let said = connection.stderr.lock().unwrap_or_else(PoisonError::into_inner).excerpt();
    connection.health.ended(&fault, &said);
    let colon = if said.is_empty() { "" } else { "; its standard error: " };
    connection.lose(UpstreamError::unavailable(format!("the process of '{}' ended ({fault}){colon}{said}", connection.name)));
    group.terminate(&mut child, Grace::NONE).await;
}

/// A frame in the queue to the child.
enum Queued {
    /// A notification, or an answer to a request of the child.
    Unanswered(Vec<u8>),
    /// A request. It is owned by the task that waits for the answer, so that the queue keeps nothing of an abandoned request.
    Request(Weak<QueuedRequest>),
}

/// A request that waits to be written.
struct QueuedRequest {
    frame: OutgoingFrame,
    /// Set by the writer before the first byte is written, or by the caller that abandons the request, whichever is first.
    is_claimed: AtomicBool,
    /// Enters the stage of waiting for the answer when the frame is written.
    progress: Option<Progress>,
}

impl QueuedRequest {
    /// Claims the request. Returns whether this was the first claim.
    fn claim(&self) -> bool {
        !self.is_claimed.swap(true, Ordering::AcqRel)
    }
}

/// Writes frames in sequence. A request that is abandoned during its write does not interrupt the frame.
async fn write_frames(mut stdin: ChildStdin, mut frames: mpsc::Receiver<Queued>, mut stopped: watch::Receiver<Option<Grace>>) {
    let write = async {
        while let Some(queued) = frames.recv().await {
            let (frame, request) = match queued {
                Queued::Unanswered(bytes) => (bytes.into(), None),
                Queued::Request(request) => match request.upgrade().filter(|request| request.claim()) {
                    Some(request) => (request.frame.clone(), Some(request)),
                    None => continue,
                },
            };
            let [head, arguments, tail] = frame.parts();
            let mut line = head.chain(arguments).chain(tail).chain(&b"\n"[..]);
            if stdin.write_all_buf(&mut line).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
            if let Some(progress) = request.and_then(|request| request.progress.clone()) {
                progress.enter(Stage::Waiting);
            }
        }
    };
    tokio::select! {
        () = write => {}
        // By the protocol, closing the pipe ends the connection.
        _ = stopped.changed() => {}
    }
}

async fn keep_stderr(mut stderr: ChildStderr, connection: Arc<Connection>) {
    let mut chunk = vec![0; 4096];
    // Redaction comes before truncation: the ring buffer drops its oldest bytes, and long lines are logged in parts.
    let mut clean = StreamRedactor::new(connection.redactor.clone());
    let mut line = Vec::new();
    loop {
        let read = stderr.read(&mut chunk).await.unwrap_or(0);
        let part = if read == 0 { clean.finish() } else { clean.feed(chunk.get(..read).unwrap_or_default()) };
        connection.stderr.lock().unwrap_or_else(PoisonError::into_inner).push(&part);
        if log::enabled(Level::Debug) {
            for byte in part {
                if byte == b'\n' || line.len() >= MAX_STDERR_LINE {
                    let text = String::from_utf8_lossy(&line);
                    log::line(Level::Debug, "upstream stderr", &[("upstream", connection.name), ("line", &text)]);
                    line.clear();
                }
                if byte != b'\n' {
                    line.push(byte);
                }
            }
        }
        if read == 0 {
            return;
        }
    }
}

impl Connection {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error after which no request can be sent.
    pub(crate) fn failure(&self) -> Option<UpstreamError> {
        self.lock().failure.clone()
    }

    /// Records that the handshake is complete. From now on an invalid line is an answer to a call.
    pub(crate) fn handshake_done(&self) {
        self.handshake_done.store(true, Ordering::Relaxed);
    }

    fn lose(&self, fault: UpstreamError) {
        let waiters = {
            let mut waiting = self.lock();
            let fault = waiting.failure.get_or_insert(fault).clone();
            std::mem::take(&mut waiting.by_id).into_iter().map(move |(_, waiter)| (waiter, fault.clone()))
        };
        for (waiter, fault) in waiters {
            let _ = waiter.send(Err(fault));
        }
    }

    fn answer(&self, id: u64, outcome: Result<Response, UpstreamError>) {
        // A late answer to an abandoned request has no waiter.
        let waiter = self.lock().by_id.remove(&id);
        if let Some(waiter) = waiter {
            let _ = waiter.send(outcome);
        }
    }

    /// Answers the only open request with an outcome that has no id. With several open requests it could belong to any of them.
    fn answer_only(&self, outcome: Result<Response, UpstreamError>) {
        let waiter = {
            let mut waiting = self.lock();
            let only = (waiting.by_id.len() == 1).then(|| waiting.by_id.keys().next().copied()).flatten();
            only.and_then(|id| waiting.by_id.remove(&id))
        };
        if let Some(waiter) = waiter {
            let _ = waiter.send(outcome);
        }
    }

    async fn read_frames(self: Arc<Self>, stdout: ChildStdout) {
        let mut source = BufReader::with_capacity(READ_CHUNK, stdout);
        let cap = usize::try_from(self.cap.bytes).unwrap_or(usize::MAX);
        loop {
            match lines::next(&mut source, cap).await {
                // Redaction comes before truncation and display.
                Ok(Line::Whole(line)) => {
                    let this = Arc::clone(&self);
                    if offload(line.len(), move || this.take_line(&this.redactor.redact_bytes(line))).await.is_err() {
                        return;
                    }
                }
                Ok(Line::TooLong { id, bytes }) => {
                    let outcome = Err(UpstreamError::too_large(self.cap, bytes));
                    match id {
                        Some(id) => self.answer(id, outcome),
                        None => self.answer_only(outcome),
                    }
                }
                Ok(Line::End) | Err(_) => return,
            }
        }
    }

    fn take_line(&self, line: &[u8]) {
        let frames = match Frame::parse(line) {
            Ok(frames) => frames,
            Err(why) => {
                let text = String::from_utf8_lossy(line);
                log::line(Level::Debug, "upstream output is not a JSON-RPC frame", &[("upstream", self.name), ("line", &text)]);
                // A program prints prose to standard output. A line that starts like a frame is a broken answer.
                if self.handshake_done.load(Ordering::Relaxed) && line.trim_ascii_start().first() == Some(&b'{') {
                    let message = format!("the server wrote a line that is not JSON ({why}): {}", excerpt(&text, 200));
                    self.answer_only(Err(UpstreamError::upstream(message)));
                }
                return;
            }
        };
        for frame in frames {
            match frame.classify() {
                ServerMessage::Response(id, response) => self.answer(id, Ok(response)),
                ServerMessage::Unaddressed(error) => self.answer_only(Ok(Response::Error(error))),
                ServerMessage::Request(id, method) => {
                    // This does not wait: a child that sends requests without reading must not block its own answers.
                    let _ = self.outbox.try_send(Queued::Unanswered(wire::answer(id, &method)));
                }
                ServerMessage::Other => {}
            }
        }
    }

    async fn exchange(
        &self,
        id: u64,
        frame: OutgoingFrame,
        cancellable: bool,
        deadline: Instant,
    ) -> Result<Response, UpstreamError> {
        let (waiter, mut answer) = oneshot::channel();
        {
            let mut waiting = self.lock();
            if let Some(fault) = &waiting.failure {
                return Err(fault.clone());
            }
            waiting.by_id.insert(id, waiter);
        }
        let request = Arc::new(QueuedRequest { frame, is_claimed: AtomicBool::new(false), progress: stage::current() });
        let queued = Queued::Request(Arc::downgrade(&request));
        let _open = OpenRequest { connection: self, id, cancellable, request };
        let lost = || self.failure().unwrap_or_else(|| UpstreamError::unavailable("the connection was lost"));
        stage::enter(Stage::Queueing);
        match tokio::time::timeout_at(deadline.into(), self.outbox.send(queued)).await {
            Err(_) => return Err(UpstreamError::timed_out()),
            // The writer has ended. The supervisor is about to report the reason.
            Ok(Err(_)) => {
                let outcome = tokio::time::timeout(LAST_WORDS * 2, &mut answer).await;
                return outcome.ok().and_then(Result::ok).unwrap_or_else(|| Err(lost()));
            }
            Ok(Ok(())) => {}
        }
        match tokio::time::timeout_at(deadline.into(), answer).await {
            Ok(outcome) => outcome.unwrap_or_else(|_| Err(lost())),
            Err(_) => Err(UpstreamError::timed_out()),
        }
    }
}

/// A registered request. If it is dropped unanswered, because of a timeout or because the program stopped waiting, it is removed
/// from the queue, or the server receives a cancellation.
struct OpenRequest<'c> {
    connection: &'c Connection,
    id: u64,
    cancellable: bool,
    request: Arc<QueuedRequest>,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let unanswered = self.connection.lock().by_id.remove(&self.id).is_some();
        let is_written = !self.request.claim();
        if unanswered && is_written && self.cancellable {
            let _ = self.connection.outbox.try_send(Queued::Unanswered(wire::cancelled(self.id)));
        }
    }
}

impl Channel for Connection {
    async fn request(&self, ask: Ask<'_>, deadline: Instant) -> Result<Response, UpstreamError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        // Requests of the handshake must not be cancelled.
        let cancellable = ask.method != "initialize" && ask.method != "server/discover";
        let frame = wire::request(id, ask.method, ask.params, ask.arguments, ask.negotiated);
        self.exchange(id, frame, cancellable, deadline).await
    }

    async fn notify(&self, method: &'static str) {
        let _ = self.outbox.send(Queued::Unanswered(wire::notification(method))).await;
    }
}
