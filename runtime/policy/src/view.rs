//! What a set of rules permits of a catalog.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
    grants: Arc<Grants>,
    /// Whether it has only a part of what is permitted.
    is_part: bool,
}

/// The grants of each tool of a catalog. The key is the upstream and the tool.
type Grants = HashMap<(&'static str, &'static str), ToolGrants>;

/// What some rules permit of a whole catalog.
#[derive(Debug)]
struct Permitted {
    upstreams: Vec<PermittedTools>,
    grants: Arc<Grants>,
}

/// The views of a process.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Known>);

/// The address of a whole catalog, and its views by the indices of the rules.
type ViewsOfCatalog = (usize, LruCache<Box<[u16]>, Arc<View>>);

/// The address of a whole catalog, and the indices of rules.
type ViewKey = (usize, Box<[u16]>);

#[derive(Debug, Default)]
struct Known {
    /// The last one was used last.
    views: Vec<ViewsOfCatalog>,
    catalogs: Catalogs,
    /// What rules permit, while callers compute it.
    computing: HashMap<ViewKey, Arc<OnceLock<Permitted>>>,
}

impl Views {
    /// Returns the view of a catalog that some rules permit, which are sorted. It is made for the owner if there is none. To find out what
    /// many rules permit of many tools takes long: callers with the same rules wait for one of them, and others do not wait.
    pub(crate) fn get(&self, policy: &'static Policy, rules: &[u16], owner: &Arc<str>, whole: &'static Catalog) -> Arc<View> {
        let address = std::ptr::from_ref(whole).addr();
        let (key, computing) = {
            let mut known = self.lock();
            if let Some(view) = known.find(address, rules, owner) {
                return view;
            }
            let key: ViewKey = (address, rules.into());
            let computing = Arc::clone(known.computing.entry(key.clone()).or_default());
            (key, computing)
        };
        let permitted = computing.get_or_init(|| Permitted::new(policy, rules, whole));
        let mut known = self.lock();
        known.computing.remove(&key);
        // A caller with the same rules may have been faster.
        if let Some(view) = known.find(address, rules, owner) {
            return view;
        }
        let view = Arc::new(View::new(permitted, whole, owner, &mut known.catalogs));
        known.keep(key, &view);
        view
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of kept views of each catalog.
    #[cfg(test)]
    fn sizes(&self) -> Vec<usize> {
        self.lock().views.iter().map(|(_, views)| views.len()).collect()
    }
}

impl Known {
    /// Returns a view that is known. If one owner gets only a part, another one may still get the whole view, whose catalog is then made
    /// for it.
    fn find(&mut self, address: usize, rules: &[u16], owner: &Arc<str>) -> Option<Arc<View>> {
        let Known { views, catalogs, .. } = self;
        let at = views.iter().position(|(of, _)| *of == address)?;
        views.get_mut(at..).unwrap_or_default().rotate_left(1);
        let (_, of_catalog) = views.last_mut()?;
        of_catalog.get(rules).filter(|view| !view.is_part || catalogs.is_exhausted(owner)).map(Arc::clone)
    }

    fn keep(&mut self, (address, rules): ViewKey, view: &Arc<View>) {
        if !self.views.iter().any(|(of, _)| *of == address) {
            if self.views.len() >= MAX_CATALOGS {
                self.views.remove(0);
            }
            self.views.push((address, LruCache::new(MAX_VIEWS)));
        }
        let Some((_, of_catalog)) = self.views.iter_mut().find(|(of, _)| *of == address) else { return };
        of_catalog.insert(rules, Arc::clone(view));
        let mut tools: usize = of_catalog.iter().map(|(_, view)| view.grants.len()).sum();
        while tools > MAX_TOOLS && of_catalog.len() > 1 {
            tools -= of_catalog.remove_lru().map_or(0, |(_, view)| view.grants.len());
        }
    }
}

impl Permitted {
    fn new(policy: &'static Policy, rules: &[u16], whole: &'static Catalog) -> Permitted {
        let applying = rules.iter().filter_map(|at| Some((*at, policy.rules.get(usize::from(*at))?)));
        let granted: Vec<(u16, &'static Grant)> =
            applying.flat_map(|(at, rule)| rule.allow.iter().map(move |grant| (at, grant))).collect();
        let (mut upstreams, mut grants) = (Vec::new(), Grants::new());
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
                upstreams.push(PermittedTools { upstream, tools });
            }
        }
        Permitted { upstreams, grants: Arc::new(grants) }
    }
}

impl View {
    /// Returns a view that permits nothing.
    pub(crate) fn nothing() -> View {
        View { catalog: &NOTHING, grants: Arc::default(), is_part: false }
    }

    /// Creates the view.
    fn new(permitted: &Permitted, whole: &'static Catalog, owner: &Arc<str>, catalogs: &mut Catalogs) -> View {
        let (catalog, is_part) = catalogs.part(whole, &permitted.upstreams, owner);
        let mut grants = Arc::clone(&permitted.grants);
        if is_part {
            let has = |upstream: &str, tool: &str| catalog.upstream(upstream).is_some_and(|part| part.tool(tool).is_some());
            let of_part = grants.iter().filter(|((upstream, tool), _)| has(upstream, tool));
            grants = Arc::new(of_part.map(|(name, grants)| (*name, grants.clone())).collect());
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
    use std::time::{Duration, Instant};

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
        let copied = || views.lock().catalogs.copied();
        let before = copied();
        assert_eq!(of(2).grants.len(), 1);
        assert_eq!(copied(), before);
    }

    #[test]
    fn caller_does_not_wait_for_the_view_of_another() {
        let names = |count: usize| (0..count).map(|at| &*format!("a_tool_with_the_number_{at:04}").leak());
        let rule = |name: &'static str| {
            let allow = vec![Grant { upstream: "crm", tools: vec!["a*_with_*x", name].leak(), arguments: &[] }].leak();
            Rule { name, when: &[], allow, calls_per_program: None, calls_per_minute: None }
        };
        let policy: &'static Policy = Box::leak(Box::new(Policy { rules: names(200).map(rule).collect::<Vec<_>>().leak() }));
        let tools = names(5_000).map(|name| Tool { name, ..Tool::EMPTY }).collect::<Vec<_>>().leak();
        let crm = Upstream { tools: Tools::table(tools), ..catalog().upstreams[0].clone() };
        let whole = Box::leak(Box::new(Catalog { digest: "", search_index: &[], upstreams: vec![crm].leak() }));
        let (views, owner): (Views, Arc<str>) = (Views::default(), "stdio".into());
        let (few, all): (&[u16], Vec<u16>) = (&[0], (0..200).collect());
        views.get(policy, few, &owner, whole);
        let (computing, longest_wait) = std::thread::scope(|scope| {
            let compute = || {
                let began = Instant::now();
                (views.get(policy, &all, &owner, whole), began.elapsed())
            };
            let others = [(); 3].map(|()| scope.spawn(compute));
            let mut longest = Duration::ZERO;
            while !others.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                let began = Instant::now();
                views.get(policy, few, &owner, whole);
                longest = longest.max(began.elapsed());
                std::thread::sleep(Duration::from_millis(1));
            }
            let of_others = others.map(|other| other.join().expect("no panic"));
            assert!(of_others.iter().all(|(view, _)| Arc::ptr_eq(view, &of_others[0].0)), "they share one view");
            (of_others.iter().map(|(_, took)| *took).max().unwrap_or_default(), longest)
        });
        assert!(longest_wait * 4 < computing, "{longest_wait:?} while a view was made in {computing:?}");
        assert!(views.lock().computing.is_empty());
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
