//! Answers calls from a cassette.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ptc_lisp::ErrorKind;
use ptc_lisp::host::Fault;
use ptc_lisp::print::excerpt;
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};

use super::{Cassette, Request, nearest};

type Outcome = Result<CallAnswer, UpstreamError>;

/// Replays a cassette strictly: a request that is not recorded ends the program. Each program starts at the first answer to each
/// request, and the last answer is repeated.
pub struct Player(Arc<Tape>);

struct Tape {
    /// The name of the cassette in messages.
    name: String,
    /// The requests of each upstream and tool, with the index of the outcomes.
    requests: HashMap<&'static str, HashMap<&'static str, BTreeMap<Request, usize>>>,
    outcomes: Vec<Vec<Outcome>>,
}

/// The position of one program in the answers to each request.
struct Playback {
    tape: Arc<Tape>,
    played: Mutex<HashMap<usize, usize>>,
}

impl Player {
    /// Prepares a cassette whose tools are in the catalog. `name` is the cassette in messages.
    pub fn new(name: impl Into<String>, cassette: &Cassette, catalog: &'static ptc_catalog::Catalog) -> Player {
        let mut tape = Tape { name: name.into(), requests: HashMap::new(), outcomes: Vec::new() };
        for ((server, tool), recorded) in &cassette.tools {
            let Some(upstream) = catalog.upstream(server) else { continue };
            let Some(tool) = upstream.tool(tool) else { continue };
            let requests = tape.requests.entry(upstream.name).or_default().entry(tool.name).or_default();
            for (request, replies) in &recorded.requests {
                requests.insert(request.clone(), tape.outcomes.len());
                tape.outcomes.push(replies.iter().map(super::Reply::outcome).collect());
            }
        }
        Player(Arc::new(tape))
    }
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Player").field(&self.0.name).finish()
    }
}

impl Interceptor for Player {
    fn is_offline(&self) -> bool {
        true
    }

    fn begin(&self, _: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        Arc::new(Playback { tape: Arc::clone(&self.0), played: Mutex::default() })
    }
}

impl ProgramInterceptor for Playback {
    fn answer(&self, call: &InterceptedCall) -> Interception {
        let request = Request::new(call);
        let requests = self.tape.requests.get(call.upstream.name).and_then(|tools| tools.get(call.tool.name));
        let Some(found) = requests.and_then(|requests| requests.get(&request)) else {
            return Interception::Refuse(unknown(&self.tape.name, call, &request, requests));
        };
        let replies = self.tape.outcomes.get(*found).map(Vec::as_slice).unwrap_or_default();
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let position = played.entry(*found).or_default();
        let reply = replies.get(*position).or(replies.last()).cloned();
        *position += 1;
        match reply {
            Some(outcome) => Interception::Answer(outcome),
            None => Interception::Refuse(unknown(&self.tape.name, call, &request, None)),
        }
    }

    fn observe(&self, _: &InterceptedCall, _: Result<&CallAnswer, &UpstreamError>) {}
}

/// Returns the fault of a request that is not recorded.
fn unknown(name: &str, call: &InterceptedCall, request: &Request, recorded: Option<&BTreeMap<Request, usize>>) -> Fault {
    let tool = format!("{}/{}", call.upstream.name, call.tool.name);
    let nearest = match recorded.and_then(|recorded| nearest::nearest(request, recorded.keys())) {
        Some((near, differences)) => {
            format!("; the nearest recorded request is {}, which differs in {differences}", excerpt(&near.to_string()))
        }
        None => "; it has no request of this tool".to_owned(),
    };
    let message = format!("the cassette {name} has no answer to {tool} with {}{nearest}", excerpt(&request.to_string()));
    Fault::new(ErrorKind::ToolError, message).with_hint("correct the call, or record the program again with ptc-compile record")
}
