//! The catalog as it is now: frozen when the server was built or started, or live: filled upstream by upstream when a program asks.
//!
//! Catalogs are `'static` data. What a live one learns is leaked into a new catalog that replaces the old one; that happens once for
//! each upstream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use litemap::LiteMap;
use ptc_catalog::{Catalog, Transport, Upstream};
use tokio::sync::Mutex;

use super::contact::Listing;
use super::fault::WorldFault;

/// Makes the upstream that a catalog holds, tools included, of what the server said; or says why that cannot be.
pub type Load = dyn Fn(&'static Upstream, Listing) -> Result<Upstream, String> + Send + Sync;

/// A catalog that may still grow.
pub(crate) struct Snapshot {
    catalog: RwLock<&'static Catalog>,
    live: Option<Live>,
}

struct Live {
    load: Arc<Load>,
    upstreams: LiteMap<&'static str, State>,
}

#[derive(Default)]
struct State {
    listed: AtomicBool,
    /// Held by whoever asks the upstream, so that others wait for the answer instead of asking again.
    turn: Mutex<()>,
}

impl Snapshot {
    /// A catalog that stays as it is.
    pub(crate) fn frozen(catalog: &'static Catalog) -> Snapshot {
        Snapshot { catalog: RwLock::new(catalog), live: None }
    }

    /// A catalog whose MCP upstreams are still to be asked. The operations of OpenAPI upstreams are in it from the start.
    pub(crate) fn live(catalog: &'static Catalog, load: Arc<Load>) -> Snapshot {
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

    /// Takes an upstream's tools into the catalog where they are not there yet; `ask` gets them.
    pub(crate) async fn list<F>(&self, name: &str, ask: impl FnOnce() -> F) -> Result<(), WorldFault>
    where
        F: Future<Output = Result<Listing, WorldFault>>,
    {
        let Some((live, state)) = self.state(name) else { return Ok(()) };
        let _turn = state.turn.lock().await;
        if state.listed.load(Ordering::Acquire) {
            return Ok(());
        }
        let listing = ask().await?;
        let Some(bare) = self.catalog().upstream(name) else { return Ok(()) };
        let loaded =
            (live.load)(bare, listing).map_err(|why| WorldFault::upstream(format!("the list of tools cannot be used: {why}")))?;
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
        *catalog = Box::leak(Box::new(Catalog { digest: catalog.digest, upstreams: upstreams.leak() }));
    }
}
