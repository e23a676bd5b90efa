//! The current catalog: frozen when the server was built or started, or live and filled on demand, upstream by upstream.
//!
//! Catalogs are `'static` data. A live catalog is replaced with a larger one when an upstream's tools are fetched. The new one is
//! leaked, which happens once per upstream.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use litemap::LiteMap;
use ptc_catalog::{Catalog, Transport, Upstream};
use tokio::sync::Mutex;

use super::fault::UpstreamError;
use super::offload::offload;
use super::query_tools::Listing;

/// Converts the listed tools of an upstream for a live catalog.
pub trait Load: Send + Sync {
    /// Returns the tools of an upstream whose definitions are needed. The others are reduced to their names. `None` needs all.
    fn granted(&self, upstream: &str) -> Option<BTreeSet<String>>;

    /// Converts an upstream with its tools to its form in the catalog.
    ///
    /// # Errors
    ///
    /// Returns a sentence that explains why the list cannot be used.
    fn load(&self, upstream: &'static Upstream, listing: Listing) -> Result<Upstream, String>;
}

/// A function that needs all definitions.
impl<F> Load for F
where
    F: Fn(&'static Upstream, Listing) -> Result<Upstream, String> + Send + Sync,
{
    fn granted(&self, _: &str) -> Option<BTreeSet<String>> {
        None
    }

    fn load(&self, upstream: &'static Upstream, listing: Listing) -> Result<Upstream, String> {
        self(upstream, listing)
    }
}

/// Time after an unusable list during which the upstream is not asked again.
const REST: Duration = Duration::from_secs(15);

/// A catalog that may grow.
pub(crate) struct Snapshot {
    catalog: RwLock<&'static Catalog>,
    live: Option<Live>,
}

struct Live {
    load: Arc<dyn Load>,
    upstreams: LiteMap<&'static str, State>,
}

#[derive(Default)]
struct State {
    listed: AtomicBool,
    /// The error of an unusable list, and the time of the next attempt.
    refused: std::sync::Mutex<Option<(Instant, UpstreamError)>>,
    /// Locked while the upstream is asked, so that other tasks wait for the answer instead of asking again.
    turn: Mutex<()>,
}

impl State {
    fn refused(&self) -> MutexGuard<'_, Option<(Instant, UpstreamError)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshot {
    /// Creates a catalog that never changes.
    pub(crate) fn frozen(catalog: &'static Catalog) -> Snapshot {
        Snapshot { catalog: RwLock::new(catalog), live: None }
    }

    /// Creates a catalog whose MCP upstreams have no tools yet. It contains the operations of OpenAPI upstreams from the start.
    pub(crate) fn live(catalog: &'static Catalog, load: Arc<dyn Load>) -> Snapshot {
        let mcp = catalog.upstreams.iter().filter(|upstream| !matches!(upstream.transport, Transport::OpenApi(_)));
        let upstreams = mcp.map(|upstream| (upstream.name, State::default())).collect();
        Snapshot { catalog: RwLock::new(catalog), live: Some(Live { load, upstreams }) }
    }

    pub(crate) fn catalog(&self) -> &'static Catalog {
        *self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_unlisted(&self, name: &str) -> bool {
        self.state(name).is_some_and(|(_, state)| !state.listed.load(Ordering::Acquire))
    }

    fn state(&self, name: &str) -> Option<(&Live, &State)> {
        let live = self.live.as_ref()?;
        Some((live, live.upstreams.get(name)?))
    }

    /// Adds an upstream's tools to the catalog, unless they were added before. `ask` fetches them, with the definitions of the
    /// given tools.
    pub(crate) async fn list<F>(&self, name: &str, ask: impl FnOnce(Option<BTreeSet<String>>) -> F) -> Result<(), UpstreamError>
    where
        F: Future<Output = Result<Listing, UpstreamError>>,
    {
        let Some((live, state)) = self.state(name) else { return Ok(()) };
        let _turn = state.turn.lock().await;
        if state.listed.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some((until, fault)) = &*state.refused()
            && Instant::now() < *until
        {
            return Err(fault.clone());
        }
        let listing = ask(live.load.granted(name)).await?;
        let Some(bare) = self.catalog().upstream(name) else { return Ok(()) };
        // Converting a list may take as long as parsing it.
        let (load, bytes) = (Arc::clone(&live.load), listing.tools.iter().map(|tool| tool.get().len()).sum());
        let loaded = offload(bytes, move || load.load(bare, listing)).await?.map_err(|why| {
            // The server would return the same list until it is changed.
            let fault = UpstreamError::upstream(format!("the list of tools cannot be used: {why}"));
            *state.refused() = Some((Instant::now() + REST, fault.clone()));
            fault
        })?;
        self.replace(loaded);
        state.listed.store(true, Ordering::Release);
        Ok(())
    }

    fn replace(&self, loaded: Upstream) {
        let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        let mut upstreams = catalog.upstreams.to_vec();
        if let Some(old) = upstreams.iter_mut().find(|upstream| upstream.name == loaded.name) {
            *old = loaded;
        }
        *catalog = Box::leak(Box::new(Catalog { digest: catalog.digest, search_index: &[], upstreams: upstreams.leak() }));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use ptc_catalog::{McpStdio, Tools};

    use super::*;

    #[test]
    fn unusable_list_is_not_requested_at_every_call() {
        static UPSTREAMS: [Upstream; 1] =
            [Upstream { name: "u", description: "", transport: Transport::McpStdio(McpStdio::new("x")), tools: Tools::NONE }];
        static CATALOG: Catalog = Catalog { digest: "", search_index: &[], upstreams: &UPSTREAMS };
        let refuse = |_: &'static Upstream, _: Listing| Err("it is odd".to_owned());
        let snapshot = Snapshot::live(&CATALOG, Arc::new(refuse));
        let asked = AtomicU32::new(0);
        let ask = |_| async {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(Listing {
                http_transport: None,
                era: ptc_catalog::Era::Handshake,
                revision: "2025-11-25",
                server_name: String::new(),
                server_version: String::new(),
                instructions: None,
                tools: Vec::new(),
            })
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for _ in 0..3 {
            let fault = runtime.block_on(snapshot.list("u", ask)).unwrap_err();
            assert_eq!(fault.message, "the list of tools cannot be used: it is odd");
        }
        assert_eq!(asked.into_inner(), 1);
        assert!(snapshot.is_unlisted("u"));
    }
}
