//! Makes the tables of a server from a config and the answers of its upstreams.

use ptc_text::join_limited;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ptc_catalog::Upstream;
use ptc_runtime::settings::SnapshotMode;
use ptc_runtime::upstream::{self, Load};

use super::ask::{granted, only};
use crate::checks::lint;
use crate::config::model::{Config, Transport};
use crate::diag::{Diagnostics, Severity};
use crate::json::Json;
use crate::lock::{Lock, LockedUpstream, Server};
use crate::resolve::{self, Listing, MissingPin, Query};
use crate::source::Sources;
use crate::tree::{self, Syntax};
use crate::{leak, lower};

/// Returns the queries that a server makes when it starts. In live mode it queries no MCP upstream.
pub fn missing_pins(config: &Config, known: &Lock, mode: SnapshotMode) -> Vec<MissingPin> {
    let is_live = mode == SnapshotMode::Live;
    resolve::missing_pins(config, known).into_iter().filter(|missing_pin| !is_live || missing_pin.what != Query::Tools).collect()
}

/// Returns the lock that a server uses: `fresh` definitions, and `known` ones for the other upstreams. In live mode MCP upstreams
/// have no tools in it. Definitions that may attack a model are reported, so check [`Diagnostics::has_errors`] before serving the
/// lock.
pub fn lock(
    config: &Config,
    known: &Lock,
    fresh: BTreeMap<String, LockedUpstream>,
    mode: SnapshotMode,
    diagnostics: &mut Diagnostics,
) -> Lock {
    let mut lock = resolve::merge(config, known, fresh);
    lint::lint(config, known, &lock, diagnostics);
    if mode == SnapshotMode::Live {
        for (name, locked) in &mut lock.upstreams {
            if config.upstreams.get(name).is_some_and(|entry| !matches!(entry.transport, Transport::OpenApi(_))) {
                locked.tools.clear();
            }
        }
    }
    lock
}

/// Returns the loader with which a live catalog adds an upstream. It lowers the upstream's list of tools in the same way as a
/// build does. `known` is the lock file, whose observed shapes of results are kept.
pub fn loader(config: Config, known: Lock) -> Arc<dyn Load> {
    Arc::new(Loader { config, known })
}

struct Loader {
    config: Config,
    known: Lock,
}

impl Load for Loader {
    fn granted(&self, upstream: &str) -> Option<BTreeSet<String>> {
        granted(self.config.upstreams.get(upstream)?)
    }

    fn load(&self, upstream: &'static Upstream, listing: upstream::Listing) -> Result<Upstream, String> {
        let (config, name) = (&self.config, upstream.name);
        let mut sources = Sources::default();
        let mut diagnostics = Diagnostics::default();
        let entry = config.upstreams.get(name).ok_or("the config has no such upstream")?;
        let locked = listing_of(name, listing, &mut sources, &mut diagnostics)
            .map(|listing| resolve::select_tools(name, entry, listing, &mut diagnostics));
        let (Some(mut locked), false) = (locked, diagnostics.has_errors()) else { return Err(errors(&diagnostics)) };
        if let Some(known) = self.known.upstreams.get(name) {
            resolve::keep_observations(known, &mut locked);
        }
        let mut lock = Lock::default();
        lock.upstreams.insert(name.to_owned(), locked);
        let config = only(config, &[name]);
        lint::lint(&config, &Lock::default(), &lock, &mut diagnostics);
        if diagnostics.has_errors() {
            return Err(errors(&diagnostics));
        }
        let lowered = leak::leak_static(&lower::deployment(&config, &lock, ""));
        lowered.catalog.upstream(name).cloned().ok_or_else(|| "it was left out".to_owned())
    }
}

/// Joins the messages of the first errors. Their number is limited because a list can have one error for each tool, and every
/// call to the upstream shows the text.
fn errors(diagnostics: &Diagnostics) -> String {
    const SHOWN: usize = 10;
    let sorted = diagnostics.sorted();
    let errors = sorted.into_iter().filter(|found| found.severity == Severity::Error).map(|found| found.message.as_str());
    join_limited(errors, "; ", SHOWN)
}

/// Converts a listing for the lock. Every definition becomes a source of its own, so that diagnostics can point into it.
pub(super) fn listing_of(
    name: &str,
    listing: upstream::Listing,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Option<Listing> {
    let mut tools = Vec::new();
    for (at, raw) in listing.tools.iter().enumerate() {
        let file = sources.add(format!("tools/list of {name}, tool {}", at + 1), raw.get());
        tools.push(Json::from(&tree::parse_as(sources, file, Syntax::DOCUMENT, diagnostics)?));
    }
    Some(Listing {
        era: listing.era,
        http_transport: listing.http_transport,
        server: Some(Server { name: listing.server_name, version: listing.server_version }),
        instructions: listing.instructions,
        tools,
    })
}
