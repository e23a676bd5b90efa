//! Searches the catalog by words, in an index that the compiler or the first search builds.

use std::sync::{Arc, Mutex, PoisonError};

use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_search::{Builder, Field, Index, Query};

/// Maximum number of different words in a query, with which the time of a search grows.
pub(crate) const MAX_WORDS: usize = 64;

/// The index of a catalog without a compiled index, built when it is first needed.
#[derive(Default)]
pub(crate) struct LazyIndex(Mutex<Option<Built>>);

/// A catalog with its index.
type Built = (&'static Catalog, Arc<Vec<u8>>);

impl LazyIndex {
    /// Returns the index of a catalog. A live catalog that has grown is a different one and gets a new index.
    fn get(&self, catalog: &'static Catalog) -> Arc<Vec<u8>> {
        let mut built = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*built {
            Some((of, index)) if std::ptr::eq(*of, catalog) => Arc::clone(index),
            _ => {
                let index = Arc::new(ptc_search::index_of(catalog));
                *built = Some((catalog, Arc::clone(&index)));
                index
            }
        }
    }
}

/// Returns at most `limit` tools that match any word of the query, best first.
pub(crate) fn search(
    catalog: &'static Catalog,
    lazy: &LazyIndex,
    query: &Query,
    limit: usize,
) -> Vec<(&'static Upstream, &'static Tool)> {
    let pinned = Index::new(catalog.search_index).filter(|index| index.documents() == catalog.tool_count());
    let found = match pinned {
        Some(index) => index.search(query, limit),
        None => Index::new(&lazy.get(catalog)).map(|index| index.search(query, limit)).unwrap_or_default(),
    };
    found.into_iter().filter_map(|at| tool_at(catalog, at)).collect()
}

/// Like [`search`] in the whole catalog, but returns only tools that `visible` contains.
pub(crate) fn search_visible(
    visible: &'static Catalog,
    whole: &'static Catalog,
    lazy: &LazyIndex,
    query: &Query,
    limit: usize,
) -> Vec<(&'static Upstream, &'static Tool)> {
    if std::ptr::eq(visible, whole) {
        return search(whole, lazy, query, limit);
    }
    let found = search(whole, lazy, query, whole.tool_count()).into_iter();
    let visible = found.filter_map(|(upstream, tool)| {
        let upstream = visible.upstream(upstream.name)?;
        let tools = upstream.tools.all();
        let at = tools.binary_search_by(|visible| visible.name.cmp(tool.name)).ok()?;
        Some((upstream, tools.get(at)?))
    });
    visible.take(limit).collect()
}

/// Returns the tool with this index in the order of the catalog.
fn tool_at(catalog: &'static Catalog, mut at: usize) -> Option<(&'static Upstream, &'static Tool)> {
    for upstream in catalog.upstreams {
        // Tools of an upstream that are not needed are not read from an image.
        if at < upstream.tools.len() {
            return upstream.tools.all().get(at).map(|tool| (upstream, tool));
        }
        at -= upstream.tools.len();
    }
    None
}

/// Returns all upstreams, ordered by the match of name and description, then by name.
pub(crate) fn upstreams(catalog: &'static Catalog, query: &Query) -> Vec<&'static Upstream> {
    let mut builder = Builder::new();
    for upstream in catalog.upstreams {
        builder.document(None, upstream.name);
        builder.add(Field::Description, upstream.description);
    }
    let index = builder.finish();
    let found = Index::new(&index).map(|index| index.search(query, catalog.upstreams.len())).unwrap_or_default();
    let rest = (0..catalog.upstreams.len()).filter(|at| !found.contains(at));
    found.iter().copied().chain(rest).filter_map(|at| catalog.upstreams.get(at)).collect()
}
