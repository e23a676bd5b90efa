//! The host of a program in a worker. Calls and discovery are made by the server. What only needs the catalog happens here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ptc_catalog::Catalog;
use ptc_engine::evaluation::{EvalHooks, Failure};
use ptc_lisp::host::{Account, Discovery, Fault, Host, Pages, PendingReply};
use ptc_lisp::image::DecodeLimits;
use ptc_lisp::list_uses::TrackedList;
use ptc_lisp::{ErrorKind, Share, Value};
use ptc_upstream::{CallRecord, CallReport, ProgramHost};
use serde_bytes::ByteBuf;

use crate::connection::{Connection, LinkHeader, PendingCall, lock};
use crate::message::{self, Answer, FromWorker, Question, image_of, value_of};
use crate::remote_share::RemoteShare;

/// Connects an evaluation to the server.
pub(crate) struct RemoteHooks {
    pub(crate) connection: Arc<Connection>,
    pub(crate) share: Arc<RemoteShare>,
    pub(crate) account: Arc<Mutex<Option<Account>>>,
    pub(crate) catalog: &'static Catalog,
    /// When the time of the program began.
    pub(crate) started: Instant,
    /// Whether the program has made calls or used discovery forms, which the server records.
    pub(crate) has_asked: Arc<AtomicBool>,
}

impl EvalHooks for RemoteHooks {
    fn context(&self, context: Option<Value>) -> Result<Option<Value>, Failure> {
        let bytes = context.as_ref().map_or(0, Value::heap_bytes);
        self.share.report_bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
        Ok(context)
    }

    fn host(&self, upstreams: &Arc<ProgramHost>) -> Arc<dyn Host> {
        Arc::new(RemoteHost {
            connection: Arc::clone(&self.connection),
            local: Arc::clone(upstreams),
            account: Arc::clone(&self.account),
            has_asked: Arc::clone(&self.has_asked),
        })
    }

    fn started(&self) -> Option<Instant> {
        Some(self.started)
    }

    fn share(&self) -> Option<Arc<dyn Share>> {
        Some(Arc::clone(&self.share) as Arc<dyn Share>)
    }

    fn report(&self, local: &ProgramHost, has_failed: bool) -> CallReport {
        if !self.has_asked.load(Ordering::Relaxed) {
            // The server has recorded nothing. Its report would be that of a host without calls.
            return local.report(has_failed);
        }
        let answer = self.connection.ask(self.connection.next_id(), Question::Report { has_failed });
        let Answer::Report { calls, misspelt, notes } = answer else { return CallReport::default() };
        let record = |call: message::CalledTool| {
            let server = self.catalog.upstream(&call.server).map_or("", |upstream| upstream.name);
            let mut record = CallRecord::new(server, call.tool);
            record.status = if call.is_ok { "ok" } else { "error" };
            record
        };
        CallReport { calls: calls.into_iter().map(record).collect(), misspelt, notes }
    }
}

struct RemoteHost {
    connection: Arc<Connection>,
    /// A host without connections. It knows the lists that the program reads, and the catalog.
    local: Arc<ProgramHost>,
    account: Arc<Mutex<Option<Account>>>,
    has_asked: Arc<AtomicBool>,
}

impl RemoteHost {
    fn call(&self, request: &Value, link: Option<LinkHeader>) -> Result<PendingReply, Fault> {
        let refused = |what: String| {
            let fault = self.local.check_request(request).err();
            fault.unwrap_or_else(|| Fault::new(ErrorKind::ToolError, format!("tool/call cannot send {what}")))
        };
        let image = image_of(request).map_err(|what| refused(what.to_owned()))?;
        let account = lock(&self.account).clone();
        // The server keeps the request until it is answered.
        let reservation = account.as_ref().map(|account| account.reserve(image.len())).transpose()?;
        self.local.count_remote_call();
        let id = self.connection.next_id();
        let (answer, pending) = PendingReply::pair();
        let abandoned = Arc::clone(&self.connection);
        answer.on_abandon(move || {
            drop(abandoned.forget(id));
            abandoned.send(&FromWorker::Abandon { id });
        });
        let wants_link = link.is_some();
        self.connection.register(id, PendingCall { answer, link, account, _request: reservation });
        // A call that is not valid has a reply too, so that the program need not wait here.
        self.has_asked.store(true, Ordering::Relaxed);
        self.connection.send(&FromWorker::Call { id, request: image, wants_link });
        Ok(pending)
    }

    fn value(&self, question: Question) -> Result<Value, Fault> {
        self.has_asked.store(true, Ordering::Relaxed);
        match self.connection.ask(self.connection.next_id(), question) {
            Answer::Value(Ok(image)) => value_of(&image, &DecodeLimits::default()).map_err(|_| misunderstood()),
            Answer::Value(Err(fault)) => Err(fault.into()),
            _ => Err(misunderstood()),
        }
    }
}

impl Host for RemoteHost {
    fn begin_run(&self, account: &Account) {
        self.local.begin_run(account);
        *lock(&self.account) = Some(account.clone());
    }

    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        self.call(request, None)
    }

    fn submit_with_link(&self, request: &Value, link: &LinkHeader) -> Result<PendingReply, Fault> {
        self.call(request, Some(Arc::clone(link)))
    }

    fn received(&self, request: &Value, answer: &Value, link: Option<&str>) -> Option<TrackedList> {
        self.local.received(request, answer, link)
    }

    fn pages(&self, request: &Value, max: Option<usize>) -> Result<Box<dyn Pages>, Fault> {
        self.local.pages(request, max)
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        self.value(Question::Discover(match query {
            Discovery::Servers => message::Discovery::Servers,
            Discovery::Apropos { query, limit, load } => message::Discovery::Apropos { query: query.to_owned(), limit, load },
            Discovery::Dir { reference, limit, offset } => {
                message::Discovery::Dir { reference: reference.to_owned(), limit, offset }
            }
            Discovery::Doc { reference } => message::Discovery::Doc { reference: reference.to_owned() },
            Discovery::Meta { reference } => message::Discovery::Meta { reference: reference.to_owned() },
        }))
    }

    fn random(&self) -> u64 {
        self.local.random()
    }

    fn budget(&self) -> Value {
        self.value(Question::Budget).unwrap_or_default()
    }
}

fn misunderstood() -> Fault {
    Fault::new(ErrorKind::InternalError, "the server gave an unexpected answer to the process of this program")
}

/// Whether the request of a call is one that the server can read.
pub(crate) fn request_of(image: &ByteBuf, limits: &DecodeLimits) -> Result<Value, Fault> {
    let unreadable =
        |why: ptc_lisp::image::DecodeError| Fault::new(ErrorKind::ToolError, format!("tool/call: the request {why}"));
    value_of(image, limits).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use ptc_catalog::Deployment;
    use ptc_secrets::Secrets;
    use ptc_upstream::{UpstreamSettings, Upstreams, WaitLimits};

    use super::*;

    static DEPLOYMENT: Deployment = Deployment::EMPTY;

    /// Returns the hooks of a program, the server's end of the socket, and a host without connections.
    fn program() -> (RemoteHooks, UnixStream, Arc<ProgramHost>, tokio::runtime::Runtime) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let secrets = Secrets::resolve_available(&DEPLOYMENT, None, std::path::Path::new(""));
        let upstreams = Upstreams::new(&DEPLOYMENT, secrets, UpstreamSettings::new("", runtime.handle().clone()));
        let (ours, server) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        let connection = Arc::new(Connection::new(ours));
        let share = Arc::new(RemoteShare::new(Arc::clone(&connection)));
        let (account, has_asked) = (Arc::default(), Arc::default());
        let hooks = RemoteHooks { connection, share, account, catalog: DEPLOYMENT.catalog, started: Instant::now(), has_asked };
        (hooks, server, upstreams.program(WaitLimits::default()), runtime)
    }

    #[test]
    fn program_without_calls_asks_for_no_report() {
        let (hooks, mut server, local, _runtime) = program();
        let report = hooks.report(&local, false);
        assert!(report.calls.is_empty() && report.misspelt.is_empty() && report.notes.is_empty());
        let received = server.read(&mut [0; 8]);
        assert!(received.is_err_and(|why| why.kind() == std::io::ErrorKind::WouldBlock), "nothing was sent");
    }

    #[test]
    fn call_is_one_message() {
        let (hooks, mut server, local, _runtime) = program();
        let request = Value::map([(Value::keyword("server"), Value::from("none".to_owned()))]);
        let mut pending = hooks.host(&local).submit(&request).unwrap();
        let sent: FromWorker = message::read(&mut server).unwrap().unwrap();
        let FromWorker::Call { id, .. } = sent else { panic!("{sent:?}") };
        assert!(server.read(&mut [0; 8]).is_err(), "nothing else was sent");
        assert!(pending.poll(std::task::Waker::noop()).is_none());
        hooks.connection.replied(id, message::WireReply::Plain("answer".to_owned()), None);
        let (reply, _) = pending.poll(std::task::Waker::noop()).expect("it is answered");
        assert!(matches!(reply, ptc_lisp::host::Reply::Plain(text) if text == "answer"));
        assert!(hooks.has_asked.load(Ordering::Relaxed), "the server is asked for a report");
    }
}
