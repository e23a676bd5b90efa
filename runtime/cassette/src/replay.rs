//! Answers calls from a cassette.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ptc_catalog::Catalog;
use ptc_lisp::ErrorKind;
use ptc_lisp::host::Fault;
use ptc_lisp::print::excerpt;
use ptc_runtime::schedule::ClientKey;
use ptc_runtime::upstream::UpstreamError;
use ptc_runtime::upstream::intercept::{CallAnswer, InterceptedCall, Interception, Interceptor, ProgramInterceptor};

use crate::calls::Calls;
use crate::episodes::Episodes;
use crate::scrub::Rules;
use crate::{Cassette, Reply, Request, is_about_request, nearest};

type Outcome = Result<CallAnswer, UpstreamError>;

/// Replays a cassette. Each program starts at the first answer to each request, and the last answer is repeated.
///
/// A request that is not recorded ends the program, unless new episodes are recorded. Then it goes to its upstream.
pub struct Player(Arc<Replay>);

struct Replay {
    /// The name of the cassette in messages.
    name: String,
    catalog: &'static Catalog,
    /// The answers. A program that runs keeps those of its start.
    tape: Mutex<Arc<Tape>>,
    replays_latency: bool,
    episodes: Option<Episodes>,
}

/// The requests of each upstream and tool, with their answers.
#[derive(Clone, Default)]
struct Tape(HashMap<&'static str, HashMap<&'static str, BTreeMap<Request, Answers>>>);

/// The answers to a request with their latencies, and their number.
#[derive(Clone)]
struct Answers {
    id: usize,
    outcomes: Arc<[(Duration, Outcome)]>,
}

/// The position of one program in the answers to each request.
struct Playback {
    replay: Arc<Replay>,
    tape: Arc<Tape>,
    played: Mutex<HashMap<usize, usize>>,
    /// The calls that were passed on.
    new: Calls,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tape {
    /// Adds the requests of a cassette that it does not have.
    fn add(&mut self, cassette: &Cassette, catalog: &'static Catalog) {
        let mut next: usize = self.0.values().flat_map(HashMap::values).map(BTreeMap::len).sum();
        for ((server, tool), recorded) in &cassette.tools {
            let Some(upstream) = catalog.upstream(server) else { continue };
            let Some(tool) = upstream.tool(tool) else { continue };
            let requests = self.0.entry(upstream.name).or_default().entry(tool.name).or_default();
            for (request, replies) in &recorded.requests {
                let Entry::Vacant(slot) = requests.entry(request.clone()) else { continue };
                let latency = |reply: &Reply| Duration::from_millis(reply.latency_ms.unwrap_or_default());
                let outcomes = replies.iter().map(|reply| (latency(reply), reply.outcome())).collect();
                slot.insert(Answers { id: next, outcomes });
                next += 1;
            }
        }
    }
}

impl Player {
    /// Prepares a cassette whose tools are in the catalog. `name` is the cassette in messages.
    pub fn new(name: impl Into<String>, cassette: &Cassette, catalog: &'static Catalog) -> Player {
        let mut tape = Tape::default();
        tape.add(cassette, catalog);
        let tape = Mutex::new(Arc::new(tape));
        Player(Arc::new(Replay { name: name.into(), catalog, tape, replays_latency: false, episodes: None }))
    }

    /// Delays answers by their recorded latencies.
    #[must_use]
    pub fn with_latency(self) -> Player {
        self.change(|replay| replay.replays_latency = true)
    }

    /// Passes requests that are not recorded on to their upstreams. When a program has ended, its new calls are added to the file
    /// `path`, whose content is `cassette`. `rules` select what is replaced in them.
    #[must_use]
    pub fn with_new_episodes(self, path: impl Into<PathBuf>, cassette: &Cassette, rules: Rules) -> Player {
        let episodes = Episodes::new(path.into(), rules, cassette);
        self.change(|replay| replay.episodes = Some(episodes))
    }

    /// Changes a player that has not begun.
    fn change(mut self, change: impl FnOnce(&mut Replay)) -> Player {
        if let Some(replay) = Arc::get_mut(&mut self.0) {
            change(replay);
        }
        self
    }
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Player").field(&self.0.name).finish()
    }
}

impl Interceptor for Player {
    fn is_offline(&self) -> bool {
        self.0.episodes.is_none()
    }

    fn begin(&self, _: &ClientKey) -> Arc<dyn ProgramInterceptor> {
        let (replay, tape) = (Arc::clone(&self.0), Arc::clone(&*lock(&self.0.tape)));
        Arc::new(Playback { replay, tape, played: Mutex::default(), new: Calls::default() })
    }
}

impl ProgramInterceptor for Playback {
    fn answer(&self, call: &InterceptedCall) -> Interception {
        let request = Request::new(call);
        let requests = self.tape.0.get(call.upstream.name).and_then(|tools| tools.get(call.tool.name));
        let Some(answers) = requests.and_then(|requests| requests.get(&request)) else {
            if self.replay.episodes.is_some() {
                return Interception::PassOn;
            }
            return Interception::Refuse(unknown(&self.replay.name, call, &request, requests));
        };
        let mut played = lock(&self.played);
        let position = played.entry(answers.id).or_default();
        let answer = answers.outcomes.get(*position).or(answers.outcomes.last()).cloned();
        *position += 1;
        match answer {
            Some((latency, outcome)) if self.replay.replays_latency => Interception::AnswerAfter(latency, outcome),
            Some((_, outcome)) => Interception::Answer(outcome),
            None => Interception::Refuse(unknown(&self.replay.name, call, &request, None)),
        }
    }

    fn observe(&self, call: &InterceptedCall, outcome: Result<&CallAnswer, &UpstreamError>, _: Duration) {
        // The next program asks again.
        let is_answer = outcome.err().is_none_or(|fault| is_about_request(fault.reason));
        if is_answer && self.replay.episodes.is_some() {
            self.new.add(call, outcome, None);
        }
    }
}

impl Drop for Playback {
    /// Adds the new calls to the cassette when the program has ended.
    fn drop(&mut self) {
        let Some(episodes) = &self.replay.episodes else { return };
        let new = self.new.take();
        if new.is_empty() {
            return;
        }
        let added = episodes.add(new);
        Arc::make_mut(&mut *lock(&self.replay.tape)).add(&added, self.replay.catalog);
    }
}

/// Returns the fault of a request that is not recorded.
fn unknown(name: &str, call: &InterceptedCall, request: &Request, recorded: Option<&BTreeMap<Request, Answers>>) -> Fault {
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
