//! Cassettes: recorded answers of upstreams, with which programs run again without them.
//!
//! - `reply`: one recorded answer or failure.
//! - `write`, `read`: the file.
//! - `calls`: the calls of one program.
//! - `record`: records the calls of programs. `merge`: the sequence of answers to one request.
//! - `folder`: records the programs of a running server, each into a file of its own, which the thread of `writer` writes.
//!   `warnings`: limits what it logs about programs that cannot be recorded.
//! - `part`: the optional part of a server that records into a folder, and replays a cassette.
//! - [`scrub`]: replaces personal data, by counters or with a secret key.
//! - `replay`: answers calls. `nearest`: the recorded request that is closest to an unknown one.
//! - [`private_file`]: replaces files that only their owner may read.
//! - `episodes`: adds the calls that a cassette does not have to its file.
//!
//! A cassette belongs to the definitions of the tools that it has calls of, and not to a whole lock file, so that a change of
//! another tool does not invalidate it.

mod calls;
mod episodes;
mod folder;
mod merge;
mod nearest;
mod part;
pub mod private_file;
mod read;
mod record;
mod replay;
mod reply;
pub mod scrub;
mod warnings;
mod write;
mod writer;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use ptc_catalog::Catalog;
use ptc_runtime::upstream::Reason;
use ptc_runtime::upstream::intercept::InterceptedCall;
use ptc_text::join_limited;

pub use folder::{FolderLimits, RecordingFolder};
pub use part::{RECORDER, RecorderPart, player};
use ptc_json::Json;
pub use record::{Conflict, Recorder};
pub use replay::Player;
use reply::{Content, Reply};

/// The version of the format that this compiler reads and writes.
const VERSION: &str = "1";

/// Maximum number of tools that an error lists.
const LISTED: usize = 10;

/// Recorded answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cassette {
    /// The tools by upstream and name.
    tools: BTreeMap<(String, String), RecordedTool>,
}

/// The recorded calls of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RecordedTool {
    /// The digest of the tool's definition.
    definition: String,
    requests: BTreeMap<Request, Vec<Reply>>,
}

/// A request in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Request {
    /// The canonical text of the arguments.
    args: String,
    /// `:accept`
    accept: Option<String>,
    /// Whether the answer has no bytes.
    without_bytes: bool,
}

impl Request {
    /// Returns the request of a call. Text that is not canonical JSON, such as an unpaired surrogate, identifies itself.
    fn new(call: &InterceptedCall) -> Request {
        let text = String::from_utf8_lossy(&call.arguments);
        let args = Json::parse(&text).map_or_else(|| text.clone().into_owned(), |args| args.canonical());
        Request { args, accept: call.accept.clone(), without_bytes: call.without_bytes }
    }

    /// Returns the arguments as a value.
    fn value(&self) -> Json {
        Json::parse(&self.args).unwrap_or_else(|| Json::string(&*self.args))
    }
}

/// Whether a failure with this reason says something about the request, and not only about the state of the connection or the login.
fn is_about_request(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::UpstreamUnavailable
            | Reason::UpstreamBusy
            | Reason::Timeout
            | Reason::AuthFailed
            | Reason::AuthExpired
            | Reason::RateLimited
    )
}

/// Returns the arguments of a call as canonical text.
pub fn request_args(call: &InterceptedCall) -> String {
    Request::new(call).args
}

/// Returns the request of a call as canonical text, as messages show it.
pub fn request_text(call: &InterceptedCall) -> String {
    Request::new(call).to_string()
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.args)?;
        if let Some(accept) = &self.accept {
            write!(f, ", accept {accept}")?;
        }
        if self.without_bytes { f.write_str(", without its body") } else { Ok(()) }
    }
}

/// Why a cassette cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The text is not JSON. Contains the file, the place and the reason.
    NotJson(String),
    /// The cassette has a later version of the format, which a newer compiler wrote.
    NewerVersion(String),
    /// The cassette has a version of the format that does not exist.
    Version(String),
    /// A value has another form than expected.
    Form {
        /// The path of the value.
        at: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The definitions of tools have changed since the recording, or they are not in the catalog.
    OtherTools {
        /// Tools with another definition.
        changed: Vec<String>,
        /// Tools that the catalog does not have.
        missing: Vec<String>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotJson(reason) => f.write_str(reason),
            Error::NewerVersion(found) => {
                let supported = format!("this program reads version {VERSION}");
                write!(f, "a newer version of ptc-compile wrote it: it has version {found} of the format, and {supported}")
            }
            Error::Version(found) => write!(f, "expected a cassette of version {VERSION}, found version {found}"),
            Error::Form { at, expected } => write!(f, "{at}: expected {expected}"),
            Error::OtherTools { changed, missing } => {
                let listed = |tools: &[String], what: &str| {
                    (!tools.is_empty()).then(|| format!("{} {what}", join_limited(tools, ", ", LISTED)))
                };
                let parts = [listed(changed, "changed since then"), listed(missing, "not in it any more")];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                write!(f, "it was recorded with another lock file: {}", parts.join("; "))
            }
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Returns the error of a cassette with this version of the format.
    fn of_version(found: &Json) -> Error {
        let is_later = |found: &str| found.parse::<u64>().ok() > VERSION.parse().ok();
        match found {
            Json::Number(found) if is_later(found) => Error::NewerVersion(found.clone()),
            found => Error::Version(found.canonical()),
        }
    }
}

impl Cassette {
    /// Checks that the tools of the cassette have the definitions of a catalog.
    ///
    /// # Errors
    ///
    /// [`Error::OtherTools`] with all tools of which this is not the case.
    pub fn check(&self, catalog: &'static Catalog) -> Result<(), Error> {
        let (mut changed, mut missing) = (Vec::new(), Vec::new());
        for ((server, tool), recorded) in &self.tools {
            let name = || format!("{server}/{tool}");
            match catalog.upstream(server).and_then(|upstream| upstream.tool(tool)) {
                Some(known) if known.digest == recorded.definition => {}
                Some(_) => changed.push(name()),
                None => missing.push(name()),
            }
        }
        if changed.is_empty() && missing.is_empty() { Ok(()) } else { Err(Error::OtherTools { changed, missing }) }
    }

    /// Changes the values in answers. `change` receives upstream, tool and value.
    pub fn change_values(&mut self, mut change: impl FnMut(&str, &str, &mut Json)) {
        for ((server, tool), recorded) in &mut self.tools {
            for reply in recorded.requests.values_mut().flatten() {
                if let Content::Value(value) = &mut reply.content {
                    change(server, tool, value);
                }
            }
        }
    }

    /// Returns the values in answers, each with its upstream and tool, from which shapes of results can be inferred. Failures have none,
    /// nor do answers without their bytes.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str, Cow<'_, Json>)> {
        self.tools.iter().flat_map(|((server, tool), recorded)| {
            let requests = recorded.requests.iter().filter(|(request, _)| !request.without_bytes);
            requests.flat_map(|(_, replies)| replies).filter_map(move |reply| {
                let value = match &reply.content {
                    Content::Value(value) => Cow::Borrowed(value),
                    Content::Text(text) | Content::Plain(text) => Cow::Owned(Json::string(&**text)),
                    Content::None | Content::RawJson(_) | Content::Fault { .. } => return None,
                };
                Some((&**server, &**tool, value))
            })
        })
    }

    /// Returns the arguments of the requests that were answered at least once, each with its upstream and tool.
    pub fn answered_args(&self) -> impl Iterator<Item = (&str, &str, Json)> {
        self.tools.iter().flat_map(|((server, tool), recorded)| {
            let is_answer = |reply: &Reply| !matches!(reply.content, Content::Fault { .. });
            let answered = recorded.requests.iter().filter(move |(_, replies)| replies.iter().any(is_answer));
            answered.map(|(request, _)| (&**server, &**tool, request.value()))
        })
    }

    /// Adds the requests of another cassette that this one does not have.
    fn add(&mut self, other: &Cassette) {
        for (tool, recorded) in &other.tools {
            let known = self
                .tools
                .entry(tool.clone())
                .or_insert_with(|| RecordedTool { definition: recorded.definition.clone(), requests: BTreeMap::new() });
            for (request, replies) in &recorded.requests {
                known.requests.entry(request.clone()).or_insert_with(|| replies.clone());
            }
        }
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        self.tools.values().map(|tool| tool.requests.len()).sum()
    }
}
