//! The permitted parts of catalogs. Programs and discovery refer to their tools without a time limit, so that their memory is never freed.
//! Equal parts are kept once, and their size is bounded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ptc_catalog::{Catalog, Tool, Tools, Upstream};

/// Maximum number of tools and upstreams in all parts of a process: about 100 MB.
const MAX_COPIED: usize = 500_000;

/// Maximum number of parts that are made for one owner, who can request tokens with many combinations of scopes. Others still get
/// theirs then.
const MAX_MADE_FOR_OWNER: usize = 100;

/// A catalog without tools.
pub(crate) static NOTHING: Catalog = Catalog::EMPTY;

/// The permitted tools of one upstream of a catalog.
#[derive(Debug)]
pub(crate) struct PermittedTools {
    pub(crate) upstream: &'static Upstream,
    /// The indices of the tools in ascending order.
    pub(crate) tools: Vec<u32>,
}

/// The address of a table of tools, and the indices of those in a part.
type TableKey = (usize, Vec<u32>);

/// The address of a whole catalog, and the name and the address of the tools of each upstream in a part.
type CatalogKey = (usize, Vec<(&'static str, usize)>);

#[derive(Debug, Default)]
pub(crate) struct Catalogs {
    tables: HashMap<TableKey, &'static [Tool]>,
    parts: HashMap<CatalogKey, &'static Catalog>,
    /// The number of parts that were made for each owner.
    made_for: HashMap<Arc<str>, usize>,
    copied: usize,
}

impl Catalogs {
    /// Whether no further part is made for an owner.
    pub(crate) fn is_exhausted(&self, owner: &Arc<str>) -> bool {
        self.copied >= MAX_COPIED || self.made_for.get(owner).is_some_and(|made| *made >= MAX_MADE_FOR_OWNER)
    }

    /// Returns the number of tools and upstreams in all parts.
    #[cfg(test)]
    pub(crate) fn copied(&self) -> usize {
        self.copied
    }

    /// Returns the part of a catalog with these tools, which is made for the owner if there is none. If that would exceed the limits,
    /// returns the largest part that there is and that has no other tools, and `true`.
    pub(crate) fn part(
        &mut self,
        whole: &'static Catalog,
        permitted: &[PermittedTools],
        owner: &Arc<str>,
    ) -> (&'static Catalog, bool) {
        let address = std::ptr::from_ref(whole).addr();
        let is_exhausted = self.is_exhausted(owner);
        let mut upstreams = Vec::with_capacity(permitted.len());
        for part in permitted {
            match self.table(part, is_exhausted) {
                Some(tools) => upstreams.push(Upstream { tools, ..part.upstream.clone() }),
                None => return (self.largest_within(address, permitted), true),
            }
        }
        let of_upstream = |upstream: &Upstream| (upstream.name, upstream.tools.all().as_ptr().addr());
        let key = (address, upstreams.iter().map(of_upstream).collect());
        if let Some(known) = self.parts.get(&key) {
            return (known, false);
        }
        if is_exhausted {
            return (self.largest_within(address, permitted), true);
        }
        self.copied += upstreams.len() + 1;
        *self.made_for.entry(Arc::clone(owner)).or_default() += 1;
        // The index of the whole catalog serves searches too.
        let part = Box::leak(Box::new(Catalog { digest: whole.digest, upstreams: upstreams.leak(), search_index: &[] }));
        self.parts.insert(key, part);
        (part, false)
    }

    /// Returns some tools of an upstream. `None` if there is no such table and it must not be made.
    fn table(&mut self, part: &PermittedTools, is_exhausted: bool) -> Option<Tools> {
        let all = part.upstream.tools.all();
        if part.tools.len() == all.len() {
            return Some(part.upstream.tools);
        }
        let key = (all.as_ptr().addr(), part.tools.clone());
        if let Some(known) = self.tables.get(&key) {
            return Some(Tools::table(known));
        }
        if is_exhausted {
            return None;
        }
        let tools: Vec<Tool> = part.tools.iter().filter_map(|at| all.get(usize::try_from(*at).ok()?).copied()).collect();
        self.copied += tools.len();
        let tools: &'static [Tool] = tools.leak();
        self.tables.insert(key, tools);
        Some(Tools::table(tools))
    }

    /// Returns the part of a catalog with the most tools among those that have only permitted tools.
    fn largest_within(&self, address: usize, permitted: &[PermittedTools]) -> &'static Catalog {
        let permitted: HashMap<&str, HashSet<&str>> = permitted
            .iter()
            .map(|part| {
                let all = part.upstream.tools.all();
                let names = part.tools.iter().filter_map(|at| Some(all.get(usize::try_from(*at).ok()?)?.name));
                (part.upstream.name, names.collect())
            })
            .collect();
        let is_within = |part: &Catalog| {
            part.upstreams.iter().all(|upstream| {
                let tools = permitted.get(upstream.name);
                tools.is_some_and(|tools| upstream.tools.iter().all(|tool| tools.contains(tool.name)))
            })
        };
        let parts = self.parts.iter().filter(|((of, _), part)| *of == address && is_within(part));
        parts.map(|(_, part)| *part).max_by_key(|part| part.tools().count()).unwrap_or(&NOTHING)
    }
}
