//! The server's side of one evaluation: starts it in a worker, answers its questions, and ends the worker if it does not end in time.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use ptc_engine::evaluation::{Evaluation, IsolatedRun, Isolation, PriorState};
use ptc_lisp::host::{Account, Discovery, Host, PendingReply};
use ptc_lisp::image::{self, DecodeLimits};
use ptc_lisp::interrupt::Interrupt;
use ptc_lisp::limits::Limits;
use ptc_lisp::{Share, fiber};
use ptc_schedule::park_holding;
use ptc_upstream::{ProgramHost, WaitLimits};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use serde_bytes::ByteBuf;

use crate::connection::LinkHeader;
use crate::message::{
    self, Answer, Assignment, CalledTool, Done, FromWorker, HEAD_BYTES, Question, ToWorker, WireLimits, WireReply,
};
use crate::outcome::{DEADLINE_GRACE, Unfinished, decode_limits, finished, shortened, unfinished};
use crate::process::Worker;
use crate::remote_host::request_of;
use crate::workers::Workers;

/// Time for a program to end by itself after it was cancelled.
const CANCEL_GRACE: Duration = Duration::from_millis(30);

/// How long the thread waits for the worker before it lets other programs run. Short programs end within it.
const BRIEF_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };

/// How often the memory of a worker is looked at while its program computes.
const WATCH_INTERVAL: Duration = Duration::from_millis(25);

/// How often the memory of a worker is looked at while its program waits. Only a program that has taken over its worker uses more
/// then.
const WAITING_WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// Bytes that a worker may hold beyond the values of its program, by which it exceeds 120 % of them.
const PROCESS_SLACK: u64 = 16 * 1024 * 1024;

/// Bytes by which a message may exceed the memory of a program.
const MESSAGE_SLACK: usize = 4 * 1024 * 1024;

/// Bytes of messages in each direction that do not count in the memory of a program.
const FREE_BUFFER: usize = 64 * 1024;

/// Live bytes of a program from which on its worker is not used again, since it would keep the memory.
const MAX_REUSED_BYTES: u64 = 1024 * 1024;

/// One evaluation.
struct Supervisor<'r> {
    run: &'r IsolatedRun<'r>,
    host: Arc<ProgramHost>,
    share: Arc<dyn Share>,
    account: Account,
    worker: Worker,
    deadline: Instant,
    waker: Waker,
    /// Received bytes, from `start` on.
    input: Vec<u8>,
    start: usize,
    /// Bytes to send, from `sent` on.
    output: Vec<u8>,
    sent: usize,
    calls: Vec<(u64, PendingReply, Option<LinkHeader>)>,
    /// Whether the program has a processor.
    computes: bool,
    /// Bytes of the program that the scheduler counts.
    counted: i64,
    /// Bytes of messages that the scheduler counts.
    buffered: i64,
    /// When the memory of the worker is looked at next.
    watch_at: Instant,
    /// When the worker is killed, if the program was cancelled or ended.
    kill_at: Option<Instant>,
}

impl Isolation for Workers {
    fn run(&self, run: IsolatedRun<'_>) -> Box<Evaluation> {
        let owner = Arc::clone(&run.processor.client_key().owner);
        let limits = WaitLimits {
            deadline: run.started.checked_add(run.limits.wall_clock),
            cancel: run.cancel.clone(),
            client_key: run.processor.client_key().clone(),
            most_in_flight: Some(run.processor.max_in_flight()),
            access: run.evaluator.access().cloned(),
            caller: run.evaluator.caller().cloned(),
        };
        let host = run.evaluator.upstreams().program(limits);
        let worker = match self.take(&owner) {
            Ok(worker) => worker,
            Err(why) => return unfinished(&run, &host, Unfinished::NotStarted(why)),
        };
        let share = run.processor.share();
        let account = Account::of_remote_run(run.limits.clone(), run.cancel.clone(), run.started, Arc::clone(&share));
        host.begin_run(&account);
        share.begin_run(&account);
        let deadline = run.started + run.limits.wall_clock;
        let mut supervisor = Supervisor {
            run: &run,
            host,
            share,
            account,
            worker,
            deadline,
            waker: fiber::waker(),
            input: Vec::new(),
            start: 0,
            output: Vec::new(),
            sent: 0,
            calls: Vec::new(),
            computes: true,
            counted: 0,
            buffered: 0,
            watch_at: Instant::now() + WATCH_INTERVAL,
            kill_at: None,
        };
        let done = supervisor.supervise();
        let Supervisor { host, worker, calls, account, input, output, buffered, .. } = supervisor;
        drop(calls);
        // A worker sends nothing after the end of its program. If it has not read all replies, it would read the next program as the
        // rest of one.
        let is_silent = input.is_empty() && output.is_empty();
        drop((input, output));
        let evaluation = match done {
            Ok(done) => {
                let evaluation = finished(&run, &host, *done);
                // The worker itself reports `peak_bytes`, so that the server also asks the system.
                let is_small = || worker.private_bytes().is_some_and(|bytes| bytes <= PROCESS_SLACK);
                if evaluation.peak_bytes <= MAX_REUSED_BYTES && !run.past.is_kept && is_silent && is_small() {
                    self.give_back(&owner, worker);
                }
                evaluation
            }
            Err(lost) => {
                let lost = match (lost, account.end_reason()) {
                    (Unfinished::Late, Some(why)) => Unfinished::OutOfBudget(why.to_owned()),
                    (Unfinished::Ended(_), _) => Unfinished::Ended(worker.end()),
                    (lost, _) => lost,
                };
                unfinished(&run, &host, lost)
            }
        };
        run.processor.count_bytes(-buffered);
        evaluation
    }
}

impl Supervisor<'_> {
    fn supervise(&mut self) -> Result<Box<Done>, Unfinished> {
        let (of_cancel, of_account) = (self.waker.clone(), self.waker.clone());
        let _watches = (
            self.run.cancel.watch(Interrupt::by(move || of_cancel.wake_by_ref())),
            self.account.watch(Interrupt::by(move || of_account.wake_by_ref())),
        );
        self.send(&ToWorker::Run(Box::new(assignment(self.run).map_err(Unfinished::Misunderstood)?)))?;
        loop {
            self.notify()?;
            self.send_replies()?;
            self.flush()?;
            self.count_buffers()?;
            let now = Instant::now();
            let kill_at = self.kill_at.unwrap_or(self.deadline + DEADLINE_GRACE);
            if now >= kill_at {
                return Err(Unfinished::Late);
            }
            if now >= self.watch_at {
                self.watch(now)?;
            }
            if let Some(message) = self.next_message()? {
                if let Some(done) = self.receive(message)? {
                    return Ok(done);
                }
                // A worker that sends without end may not keep other programs from their thread.
                if fiber::others_are_ready() {
                    park_holding(Some(now));
                }
                // A call that has just begun may have its reply already, or wakes this fiber only once its reply was asked for.
                continue;
            }
            if !self.wait_briefly() && !self.is_readable()? {
                park_holding(Some(kill_at.min(self.watch_at)));
            }
        }
    }

    /// Ends a worker that holds more memory than its program may use. The program limits itself before, unless it has taken over its
    /// worker.
    fn watch(&mut self, now: Instant) -> Result<(), Unfinished> {
        self.watch_at = now + if self.computes { WATCH_INTERVAL } else { WAITING_WATCH_INTERVAL };
        let limit = self.run.limits.memory_bytes;
        match self.worker.private_bytes() {
            Some(bytes) if bytes > limit.saturating_add(limit / 5).saturating_add(PROCESS_SLACK) => {
                Err(Unfinished::TooLarge(bytes))
            }
            _ => Ok(()),
        }
    }

    /// Notifies the worker that the program was cancelled, or that the server ends it.
    fn notify(&mut self) -> Result<(), Unfinished> {
        if self.kill_at.is_some() {
            return Ok(());
        }
        let message = match self.account.end_reason() {
            Some(why) => ToWorker::End(why.to_owned()),
            None if self.run.cancel.is_cancelled() => ToWorker::Cancel,
            None => return Ok(()),
        };
        self.kill_at = Some(Instant::now() + CANCEL_GRACE);
        self.send(&message)
    }

    fn send_replies(&mut self) -> Result<(), Unfinished> {
        let mut at = 0;
        while let Some((_, pending, _)) = self.calls.get_mut(at) {
            let Some((reply, reservation)) = pending.poll(&self.waker) else {
                at += 1;
                continue;
            };
            let (id, _, link) = self.calls.swap_remove(at);
            let link = link.and_then(|link| link.get().cloned());
            self.send(&ToWorker::Reply { id, reply: reply.into(), link })?;
            // From here on the worker counts its bytes.
            drop(reservation);
        }
        Ok(())
    }

    fn send(&mut self, message: &ToWorker) -> Result<(), Unfinished> {
        let bytes = message::encode(message).map_err(Unfinished::Misunderstood)?;
        if self.output.len() > self.most_bytes() {
            return Err(Unfinished::Misunderstood(io::Error::other("it does not read what it asks for")));
        }
        if self.output.is_empty() {
            self.output = bytes;
        } else {
            self.output.extend_from_slice(&bytes);
        }
        self.flush()?;
        self.count_buffers()
    }

    /// Counts the bytes of messages that are incomplete, or that the worker has not read, in the memory of the program. A worker
    /// may send a message of any length up to the maximum, and need not read.
    fn count_buffers(&mut self) -> Result<(), Unfinished> {
        let bytes = [&self.input, &self.output].map(|buffer| buffer.capacity().saturating_sub(FREE_BUFFER));
        let bytes = bytes.into_iter().map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX / 4)).sum::<i64>();
        let change = bytes - std::mem::replace(&mut self.buffered, bytes);
        // The reason of the end is known. The program need not be asked to end, since it may be the message that is too large.
        if change != 0 && !self.run.processor.count_bytes(change) && self.account.end_reason().is_some() {
            return Err(Unfinished::Late);
        }
        Ok(())
    }

    /// Sends what the socket takes. The waker is woken when it takes more.
    fn flush(&mut self) -> Result<(), Unfinished> {
        while let Some(rest) = self.output.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.worker.socket.try_write(rest) {
                Ok(count) => self.sent += count,
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {
                    match self.worker.socket.poll_write_ready(&mut Context::from_waker(&self.waker)) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(_)) => return Err(Unfinished::Ended(None)),
                        Poll::Pending => return Ok(()),
                    }
                }
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Unfinished::Ended(None)),
            }
        }
        self.output = Vec::new();
        self.sent = 0;
        Ok(())
    }

    /// Returns the maximum bytes of a message, and of messages that the worker has not read.
    fn most_bytes(&self) -> usize {
        usize::try_from(self.run.limits.memory_bytes).unwrap_or(usize::MAX).saturating_add(MESSAGE_SLACK)
    }

    /// Returns the next message, if it has arrived.
    fn next_message(&mut self) -> Result<Option<FromWorker>, Unfinished> {
        let most = self.most_bytes();
        loop {
            let received = self.input.get(self.start..).unwrap_or_default();
            if let Some((head, rest)) = received.split_first_chunk::<HEAD_BYTES>() {
                let length = u32::from_le_bytes(*head) as usize;
                if length > most {
                    let why = format!("it sent a message of {length} bytes");
                    return Err(Unfinished::Misunderstood(io::Error::other(why)));
                }
                if let Some(message) = rest.get(..length) {
                    let message = message::decode(message).map_err(Unfinished::Misunderstood)?;
                    self.start += HEAD_BYTES + length;
                    if self.start == self.input.len() {
                        self.input.clear();
                        self.input.shrink_to(FREE_BUFFER);
                        self.start = 0;
                        self.count_buffers()?;
                    }
                    return Ok(Some(message));
                }
            }
            self.input.drain(..self.start);
            self.start = 0;
            if !self.receive_bytes()? {
                return Ok(None);
            }
        }
    }

    /// Receives bytes, if there are any. It asks the socket, not the runtime, which would have to be told first.
    fn receive_bytes(&mut self) -> Result<bool, Unfinished> {
        let mut bytes = [0; 16 * 1024];
        match recv(self.worker.socket.as_fd(), &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err(Unfinished::Ended(None)),
            Ok((count, _)) => {
                self.input.extend_from_slice(bytes.get(..count).unwrap_or_default());
                self.count_buffers()?;
                Ok(true)
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(false),
            Err(_) => Err(Unfinished::Ended(None)),
        }
    }

    /// Waits a short time for a program that computes. Returns whether the socket can be read.
    fn wait_briefly(&self) -> bool {
        if !self.computes || fiber::others_are_ready() {
            return false;
        }
        let mut sockets = [PollFd::new(&self.worker.socket, PollFlags::IN)];
        poll(&mut sockets, Some(&BRIEF_WAIT)).is_ok_and(|ready| ready > 0)
    }

    /// Whether the socket can be read. If not, the waker is woken when it can.
    fn is_readable(&mut self) -> Result<bool, Unfinished> {
        loop {
            match self.worker.socket.poll_read_ready(&mut Context::from_waker(&self.waker)) {
                Poll::Pending => return Ok(false),
                Poll::Ready(Err(_)) => return Err(Unfinished::Ended(None)),
                Poll::Ready(Ok(())) => {}
            }
            // The runtime only learns from a read by itself that there is nothing to read.
            let mut bytes = [0; 16 * 1024];
            match self.worker.socket.try_read(&mut bytes) {
                Ok(0) => return Err(Unfinished::Ended(None)),
                Ok(count) => {
                    self.input.extend_from_slice(bytes.get(..count).unwrap_or_default());
                    self.count_buffers()?;
                    return Ok(true);
                }
                Err(fault) if fault.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Unfinished::Ended(None)),
            }
        }
    }

    /// Acts on a message. Returns the end of the program.
    fn receive(&mut self, message: FromWorker) -> Result<Option<Box<Done>>, Unfinished> {
        match message {
            FromWorker::Ready(Ok(())) => {}
            FromWorker::Ready(Err(why)) => return Err(Unfinished::NotConfined(shortened(&why))),
            FromWorker::Ask { id, question } => {
                let answer = self.answer(question);
                self.send(&ToWorker::Answer { id, answer })?;
            }
            FromWorker::Call { id, request, wants_link } => {
                if let Err(fault) = self.call(id, &request, wants_link) {
                    self.send(&ToWorker::Reply { id, reply: WireReply::Refused(fault.into()), link: None })?;
                }
            }
            FromWorker::Abandon { id } => self.calls.retain(|(call, ..)| *call != id),
            FromWorker::Release => self.release(),
            FromWorker::Changed(bytes) => {
                let bytes = bytes.clamp(-self.counted, self.most_counted() - self.counted);
                self.counted += bytes;
                // A program that was ended learns it from `notify`.
                self.run.processor.count_bytes(bytes);
            }
            FromWorker::Done(done) => return Ok(Some(done)),
        }
        Ok(None)
    }

    /// Returns the bytes that count at most. A worker that reports more, or less than none, may not change the account of others.
    fn most_counted(&self) -> i64 {
        i64::try_from(self.run.limits.memory_bytes).unwrap_or(i64::MAX / 4).saturating_mul(2)
    }

    /// Releases the processor of the program, if it has one.
    fn release(&mut self) {
        self.computes = false;
        self.share.release();
    }

    /// Waits for a processor. One that the program has is released first, since two would be counted as one.
    fn acquire(&mut self) {
        self.release();
        self.share.acquire(self.deadline);
        self.computes = true;
        self.watch_at = self.watch_at.min(Instant::now() + WATCH_INTERVAL);
    }

    fn answer(&mut self, question: Question) -> Answer {
        match question {
            Question::Discover(form) => {
                let value = self.host.discover(query(&form)).map_err(Into::into);
                Answer::Value(value.map(|value| message::image_of(&value).unwrap_or_default()))
            }
            Question::Budget => Answer::Value(Ok(message::image_of(&self.host.budget()).unwrap_or_default())),
            Question::Processor => {
                self.acquire();
                Answer::Granted(true)
            }
            Question::Memory(bytes) => {
                let bytes = bytes.clamp(0, self.most_counted() - self.counted);
                let granted = self.share.reserve_growth(bytes, self.deadline);
                self.counted += if granted { bytes } else { 0 };
                if !self.computes {
                    // To wait for memory ends with a processor, which a program that waits must not hold.
                    self.share.release();
                }
                Answer::Granted(granted)
            }
            Question::Report { has_failed } => {
                let report = self.host.report(has_failed);
                let call = |call: ptc_upstream::CallRecord| CalledTool {
                    server: call.server.to_owned(),
                    tool: call.tool.into_owned(),
                    is_ok: call.status == "ok",
                };
                Answer::Report {
                    calls: report.calls.into_iter().map(call).collect(),
                    misspelt: report.misspelt,
                    notes: report.notes,
                }
            }
        }
    }

    fn call(&mut self, id: u64, request: &ByteBuf, wants_link: bool) -> Result<(), ptc_lisp::host::Fault> {
        let limits = DecodeLimits { data_only: true, ..decode_limits(self.run) };
        // The message and its values exist until the request is encoded for its upstream.
        let _reservation = self.account.reserve(request.len().saturating_mul(2))?;
        let request = request_of(request, &limits)?;
        let link = wants_link.then(LinkHeader::default);
        let pending = match &link {
            Some(link) => self.host.submit_with_link(&request, link)?,
            None => self.host.submit(&request)?,
        };
        self.calls.push((id, pending, link));
        Ok(())
    }
}

fn query(form: &message::Discovery) -> Discovery<'_> {
    match form {
        message::Discovery::Servers => Discovery::Servers,
        message::Discovery::Apropos { query, limit, load } => Discovery::Apropos { query, limit: *limit, load: *load },
        message::Discovery::Dir { reference, limit, offset } => Discovery::Dir { reference, limit: *limit, offset: *offset },
        message::Discovery::Doc { reference } => Discovery::Doc { reference },
        message::Discovery::Meta { reference } => Discovery::Meta { reference },
    }
}

fn assignment(run: &IsolatedRun<'_>) -> io::Result<Assignment> {
    let PriorState { bindings, results, called, is_kept } = &run.past;
    let has_past = !bindings.is_empty() || !results.is_empty();
    let past = has_past.then(|| image::encode(bindings, results).map(ByteBuf::from)).transpose().map_err(io::Error::other)?;
    let Limits { memory_bytes, call_depth, steps, loop_iterations, parallel_workers, tool_calls, print_bytes, .. } = run.limits;
    Ok(Assignment {
        program: run.call.program.clone(),
        context: run.call.context.clone(),
        output_schema: run.call.output_schema.clone(),
        stored: run.call.stored.map(|stored| stored.name.to_owned()),
        limits: WireLimits {
            wall_clock: run.limits.wall_clock,
            memory_bytes,
            call_depth,
            steps,
            loop_iterations,
            parallel_workers,
            tool_calls,
            print_bytes,
        },
        elapsed: run.started.elapsed(),
        past,
        access: run.evaluator.access().map(|access| access.state().to_vec()),
        called: called.iter().map(|(server, tool)| (server.to_owned(), tool.to_owned())).collect(),
        is_kept: *is_kept,
    })
}
