//! What a set of rules permits of a catalog.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hashlink::LruCache;
use ptc_catalog::{Catalog, Grant, Policy};

use crate::catalogs::{Catalogs, NOTHING, PermittedTools};
use crate::grants::{RuleGrant, ToolGrants};

/// Maximum number of views of a catalog that are kept. Those that were not used for the longest time are made again.
const MAX_VIEWS: usize = 1_000;

/// Maximum number of tools in all views of a catalog together, each of which takes about 200 bytes.
const MAX_TOOLS: usize = 200_000;

/// Maximum number of catalogs whose views are kept. A live catalog is replaced when it grows, and its views are of no use then.
const MAX_CATALOGS: usize = 4;

/// What some rules permit of a catalog.
#[derive(Debug)]
pub(crate) struct View {
    /// The permitted upstreams and tools, or some of them if the process has too many different sets.
    pub(crate) catalog: &'static Catalog,
    /// The grants of each tool of the catalog. The key is the upstream and the tool.
    grants: HashMap<(&'static str, &'static str), ToolGrants>,
    /// Whether it has only a part of what is permitted.
    is_part: bool,
}

/// The views of a process.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Known>);

/// The address of a whole catalog, and its views by the indices of the rules.
type ViewsOfCatalog = (usize, LruCache<Box<[u16]>, Arc<View>>);

#[derive(Debug, Default)]
struct Known {
    /// The last one was used last.
    views: Vec<ViewsOfCatalog>,
    catalogs: Catalogs,
}

impl Views {
    /// Returns the view of a catalog that some rules permit, which are sorted. It is made for the owner if there is none.
    pub(crate) fn get(&self, policy: &'static Policy, rules: &[u16], owner: &Arc<str>, whole: &'static Catalog) -> Arc<View> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Known { views, catalogs } = &mut *known;
        let address = std::ptr::from_ref(whole).addr();
        if let Some(at) = views.iter().position(|(of, _)| *of == address) {
            views.get_mut(at..).unwrap_or_default().rotate_left(1);
        } else {
            if views.len() >= MAX_CATALOGS {
                views.remove(0);
            }
            views.push((address, LruCache::new(MAX_VIEWS)));
        }
        let Some((_, of_catalog)) = views.last_mut() else { return Arc::new(View::nothing()) };
        // If one owner gets only a part, another one may still get the whole view, whose catalog is then made for it.
        if let Some(view) = of_catalog.get(rules).filter(|view| !view.is_part || catalogs.is_exhausted(owner)) {
            return Arc::clone(view);
        }
        let view = Arc::new(View::new(policy, rules, whole, owner, catalogs));
        of_catalog.insert(rules.into(), Arc::clone(&view));
        let mut tools: usize = of_catalog.iter().map(|(_, view)| view.grants.len()).sum();
        while tools > MAX_TOOLS && of_catalog.len() > 1 {
            tools -= of_catalog.remove_lru().map_or(0, |(_, view)| view.grants.len());
        }
        view
    }

    /// Returns the number of kept views of each catalog.
    #[cfg(test)]
    fn sizes(&self) -> Vec<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).views.iter().map(|(_, views)| views.len()).collect()
    }
}

impl View {
    /// Returns a view that permits nothing.
    pub(crate) fn nothing() -> View {
        View { catalog: &NOTHING, grants: HashMap::new(), is_part: false }
    }

    /// Creates the view.
    fn new(policy: &'static Policy, rules: &[u16], whole: &'static Catalog, owner: &Arc<str>, catalogs: &mut Catalogs) -> View {
        let applying = rules.iter().filter_map(|at| Some((*at, policy.rules.get(usize::from(*at))?)));
        let granted: Vec<(u16, &'static Grant)> =
            applying.flat_map(|(at, rule)| rule.allow.iter().map(move |grant| (at, grant))).collect();
        let (mut permitted, mut grants) = (Vec::new(), HashMap::new());
        for upstream in whole.upstreams {
            let of_upstream: Vec<_> = granted.iter().filter(|(_, grant)| grant.upstream == upstream.name).collect();
            if of_upstream.is_empty() {
                continue;
            }
            let mut tools = Vec::new();
            for (at, tool) in (0..).zip(upstream.tools.all()) {
                let of_tool = of_upstream.iter().filter(|(_, grant)| grant.permits_tool(tool.name));
                let of_tool = ToolGrants::new(of_tool.map(|(rule, grant)| RuleGrant::new(*rule, grant)).collect());
                if of_tool.len() > 0 {
                    tools.push(at);
                    grants.insert((upstream.name, tool.name), of_tool);
                }
            }
            // Tools that were not fetched yet may be permitted.
            if !tools.is_empty() || upstream.tools.is_empty() {
                permitted.push(PermittedTools { upstream, tools });
            }
        }
        let (catalog, is_part) = catalogs.part(whole, &permitted, owner);
        if is_part {
            grants.retain(|(upstream, tool), _| catalog.upstream(upstream).is_some_and(|part| part.tool(tool).is_some()));
        }
        View { catalog, grants, is_part }
    }

    /// Returns the grants of a tool. `None` if it is not permitted.
    pub(crate) fn grants<'v>(&'v self, server: &'v str, tool: &'v str) -> Option<&'v ToolGrants> {
        self.grants.get(&(server, tool))
    }

    /// Whether the view has a tool, or if `any` is true, its upstream.
    pub(crate) fn has(&self, server: &str, tool: &str, any: bool) -> bool {
        if any { self.catalog.upstream(server).is_some() } else { self.grants(server, tool).is_some() }
    }
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{McpStdio, Rule, Tool, Tools, Transport, Upstream};

    use super::*;

    const RULES: u16 = 11;
    const NAMES: [&str; RULES as usize] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];

    /// Returns a policy in which each rule permits one tool.
    fn policy() -> &'static Policy {
        let rule = |name: &'static str| {
            let allow = vec![Grant { upstream: "crm", tools: vec![name].leak(), arguments: &[] }].leak();
            Rule { name, when: &[], allow, calls_per_program: None, calls_per_minute: None }
        };
        Box::leak(Box::new(Policy { rules: Vec::from(NAMES.map(rule)).leak() }))
    }

    fn catalog() -> &'static Catalog {
        let tools = Vec::from(NAMES.map(|name| Tool { name, ..Tool::EMPTY })).leak();
        let transport = Transport::McpStdio(McpStdio::new("none"));
        let crm = Upstream { name: "crm", description: "", transport, tools: Tools::table(tools) };
        Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: vec![crm].leak() }))
    }

    fn rules(set: u16) -> Vec<u16> {
        (0..RULES).filter(|bit| set >> bit & 1 == 1).collect()
    }

    #[test]
    fn views_that_were_not_used_for_long_are_made_again_with_the_same_catalog() {
        let (views, policy, whole) = (Views::default(), policy(), catalog());
        let of = |set: u16| {
            let owner: Arc<str> = format!("name:{}", set / 100).into();
            views.get(policy, &rules(set), &owner, whole)
        };
        // Several owners with a hundred sets of rules each, and a new one.
        let first = of(1);
        for set in 0..1_200 {
            let view = of(set);
            assert_eq!((view.is_part, view.grants.len()), (false, set.count_ones() as usize), "{set}");
            of(1);
        }
        assert_eq!(views.sizes(), [MAX_VIEWS]);
        assert!(Arc::ptr_eq(&first, &of(1)), "it is in use");
        assert_eq!(Arc::strong_count(&first), 2);
        // The view of the second set was dropped, its catalog was not.
        let copied = || views.0.lock().unwrap_or_else(PoisonError::into_inner).catalogs.copied();
        let before = copied();
        assert_eq!(of(2).grants.len(), 1);
        assert_eq!(copied(), before);
    }

    #[test]
    fn views_of_replaced_catalogs_are_dropped() {
        let (views, policy, owner) = (Views::default(), policy(), "stdio".into());
        let of_deployment = catalog();
        let kept = views.get(policy, &[0], &owner, of_deployment);
        let replaced = Arc::downgrade(&views.get(policy, &[0], &owner, catalog()));
        for _ in 0..MAX_CATALOGS {
            views.get(policy, &[0], &owner, catalog());
            assert!(Arc::ptr_eq(&views.get(policy, &[0], &owner, of_deployment), &kept), "it is in use");
        }
        assert_eq!(views.sizes(), [1; MAX_CATALOGS]);
        assert!(replaced.upgrade().is_none());
    }
}
