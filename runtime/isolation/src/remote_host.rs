//! The host of a program in a worker. Calls and discovery are made by the server. What only needs the catalog happens here.

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
        })
    }

    fn started(&self) -> Option<Instant> {
        Some(self.started)
    }

    fn share(&self) -> Option<Arc<dyn Share>> {
        Some(Arc::clone(&self.share) as Arc<dyn Share>)
    }

    fn report(&self, _: &ProgramHost, has_failed: bool) -> CallReport {
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
        match self.connection.ask(id, Question::Call { request: image, wants_link }) {
            Answer::Called(Ok(())) => Ok(pending),
            Answer::Called(Err(fault)) => {
                drop(self.connection.forget(id));
                Err(fault.into())
            }
            _ => Err(misunderstood()),
        }
    }

    fn value(&self, question: Question) -> Result<Value, Fault> {
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
