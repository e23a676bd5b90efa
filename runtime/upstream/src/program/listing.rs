//! Fetches lists of tools on demand, while a program waits.

use std::sync::{Arc, mpsc};
use std::task::Waker;

use ptc_catalog::Upstream;
use ptc_lisp::host::Reply;
use ptc_lisp::interrupt::Interrupt;
use ptc_lisp::{Value, fiber};
use tokio::sync::oneshot;

use super::prepare::{Ready, Refusal};
use super::{LinkHeader, Shared, failed};
use crate::fault::UpstreamError;
use crate::offload::offload;
use crate::stage::{self, Progress, Stage};

/// Reports a list to the program that waits for it. The program is also woken if the task ends in a panic.
struct ListReport {
    send: Option<mpsc::Sender<(String, Result<(), UpstreamError>)>>,
    waker: Waker,
}

impl ListReport {
    fn finish(self, name: String, listed: Result<(), UpstreamError>) {
        if let Some(send) = &self.send {
            // There is no receiver after the end of the evaluation. The next evaluation finds the list.
            let _ = send.send((name, listed));
        }
    }
}

impl Drop for ListReport {
    fn drop(&mut self) {
        // The program sees that no report is left when it wakes.
        drop(self.send.take());
        self.waker.wake_by_ref();
    }
}

impl Shared {
    /// Fetches the tools of the upstreams that were not fetched yet, concurrently. Returns the last error, if any.
    pub(super) fn list(&self, names: &[&str]) -> Result<(), UpstreamError> {
        let names = names.iter().filter(|name| self.upstreams.is_unlisted(name));
        let (send, receive) = mpsc::channel();
        let waker = fiber::waker();
        let mut waiting = Vec::new();
        let mut outcome = Ok(());
        for name in names {
            let under_way = match self.upstreams.connection(name).map(|connection| self.under_way(connection)).transpose() {
                Ok(under_way) => under_way,
                Err(fault) => {
                    outcome = Err(fault);
                    continue;
                }
            };
            let (upstreams, name) = (Arc::clone(&self.upstreams), (*name).to_owned());
            let report = ListReport { send: Some(send.clone()), waker: waker.clone() };
            let progress = Progress::default();
            waiting.push((name.clone(), progress.clone(), under_way));
            self.upstreams.settings.handle.spawn(stage::watched(progress, async move {
                let listed = upstreams.list(&name).await;
                report.finish(name, listed);
            }));
        }
        drop(send);
        let lost = || UpstreamError::unavailable("its list of tools was not read, because of a bug of the server");
        let bounds = self.bounds();
        let wake = Interrupt::by(move || waker.wake_by_ref());
        // The account wakes this thread too if the scheduler ends the program, since other programs wait for its memory.
        let _watches = (bounds.cancel.watch(wake.clone()), bounds.account.as_ref().map(|account| account.watch(wake)));
        loop {
            match receive.try_recv() {
                Ok((name, listed)) => {
                    waiting.retain(|(other, ..)| *other != name);
                    if listed.is_err() {
                        outcome = listed;
                    }
                }
                // A list that is not reported is that of a task that has panicked.
                Err(mpsc::TryRecvError::Disconnected) if waiting.is_empty() => return outcome,
                Err(mpsc::TryRecvError::Disconnected) => return Err(lost()),
                Err(mpsc::TryRecvError::Empty) => {
                    fiber::park(self.limits.deadline);
                    if bounds.is_over() {
                        let late = waiting.iter().map(|(name, progress, _)| unlisted(name, progress.reached()).message);
                        return Err(UpstreamError::timeout(late.collect::<Vec<_>>().join("; ")));
                    }
                }
            }
        }
    }

    /// Fetches an upstream's tools, and then makes the call.
    pub(super) async fn list_and_make(
        self: &Arc<Self>,
        server: &str,
        request: Value,
        entry: usize,
        link_header: Option<LinkHeader>,
        abandoned: &mut oneshot::Receiver<()>,
    ) -> Reply {
        let over = async {
            match self.limits.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        let list = async {
            let _under_way = self.upstreams.connection(server).map(|connection| self.under_way(connection)).transpose()?;
            self.upstreams.list(server).await
        };
        let listed = tokio::select! {
            listed = list => listed,
            Ok(()) = &mut *abandoned => Err(unlisted(server, stage::reached())),
            () = over => Err(unlisted(server, stage::reached())),
        };
        if let Err(fault) = listed {
            // Without the list, the rest of the call cannot be validated.
            self.calls.take();
            self.records.fail(entry, &fault);
            return failed(fault);
        }
        // Long arguments are validated off the event loop.
        let (shared, bytes) = (Arc::clone(self), request.heap_bytes());
        let prepared = offload(bytes, move || shared.prepare(&request, &Progress::default(), Some(entry))).await;
        match prepared.unwrap_or_else(|fault| Err(Refusal::World(failed(fault)))) {
            Ok(ready) => self.make(Ready { link_header, ..ready }, abandoned).await,
            Err(Refusal::World(reply)) => reply,
            Err(Refusal::Denied(fault)) => Reply::Refused(fault),
            Err(Refusal::Program(fault)) => {
                self.records.withdraw(entry);
                Reply::Refused(fault)
            }
        }
    }

    /// Returns the upstream of a call if its tools were not fetched yet, and the name of the tool. An upstream that is hidden from the
    /// caller is not asked.
    pub(super) fn unlisted<'v>(&self, request: &'v Value) -> Option<(&'static Upstream, &'v str)> {
        let named = |key| request.get(key).and_then(Value::as_name).filter(|name| !name.is_empty());
        let (server, tool) = (named("server")?, named("tool")?);
        self.catalog().upstream(server)?;
        let connection = self.upstreams.connection(server).filter(|_| self.upstreams.is_unlisted(server))?;
        Some((connection.upstream(), tool))
    }
}

fn unlisted(server: &str, reached: Stage) -> UpstreamError {
    let what = reached.described();
    UpstreamError::timeout(format!("'{server}' had not listed its tools when the program stopped while {what}"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn panic_of_a_list_task_wakes_its_program() {
        let (woken, (send, receive)) = (Arc::new(Woken::default()), mpsc::channel());
        let report = ListReport { send: Some(send), waker: Waker::from(Arc::clone(&woken)) };
        let task = std::thread::spawn(move || {
            let _report = report;
            panic!("a bug of the task");
        });
        assert!(task.join().is_err() && woken.0.load(Ordering::Relaxed));
        assert!(receive.try_recv().is_err_and(|why| why == mpsc::TryRecvError::Disconnected));
    }
}
