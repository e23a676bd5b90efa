//! The part of a catalog that a set of rules permits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ptc_catalog::{Catalog, Grant, Policy, Tools, Upstream};

use crate::grants::{RuleGrant, ToolGrants};

/// Maximum number of tools and of their grants in all views of a process, whose memory is never freed: about 100 MB.
const MAX_COPIED_TOOLS: usize = 500_000;

/// Maximum number of views in a process.
const MAX_VIEWS: usize = 1_000;

/// Maximum number of views that are made for one owner, who can request tokens with many combinations of scopes. Others still get
/// theirs then.
const MAX_VIEWS_OF_OWNER: usize = 100;

/// A catalog without tools, for a view beyond the limits.
static NOTHING: Catalog = Catalog::EMPTY;

/// What some rules permit of a catalog.
#[derive(Debug)]
pub(crate) struct View {
    /// The permitted upstreams and tools.
    pub(crate) catalog: &'static Catalog,
    /// The grants of each permitted tool. The key is the upstream and the tool.
    grants: HashMap<(&'static str, &'static str), ToolGrants>,
    /// Whether the process has too many views or has made too many for this owner, so that this one permits nothing.
    pub(crate) is_over_limit: bool,
}

/// The views of a process.
#[derive(Debug, Default)]
pub(crate) struct Views(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The views, by the address of the whole catalog and the indices of the rules. Catalogs are never freed.
    views: HashMap<(usize, Vec<u16>), Arc<View>>,
    /// The number of views that were made for each owner.
    made_for: HashMap<Arc<str>, usize>,
    copied_tools: usize,
}

impl Views {
    /// Returns the view of a catalog that some rules permit, which are sorted. It is made for the owner if there is none.
    pub(crate) fn get(&self, policy: &'static Policy, rules: &[u16], owner: &Arc<str>, whole: &'static Catalog) -> Arc<View> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (std::ptr::from_ref(whole).addr(), rules.to_vec());
        if let Some(view) = known.views.get(&key) {
            return Arc::clone(view);
        }
        let made = known.made_for.get(owner).copied().unwrap_or_default();
        if made >= MAX_VIEWS_OF_OWNER || known.views.len() >= MAX_VIEWS || known.copied_tools >= MAX_COPIED_TOOLS {
            return Arc::new(View { is_over_limit: true, ..View::nothing() });
        }
        let (view, copied) = View::new(policy, rules, whole);
        known.copied_tools += copied;
        known.made_for.insert(Arc::clone(owner), made + 1);
        let view = Arc::new(view);
        known.views.insert(key, Arc::clone(&view));
        view
    }
}

impl View {
    /// Returns a view that permits nothing.
    pub(crate) fn nothing() -> View {
        View { catalog: &NOTHING, grants: HashMap::new(), is_over_limit: false }
    }

    /// Creates the view, and returns the number of tools and grants that it has copied.
    fn new(policy: &'static Policy, rules: &[u16], whole: &'static Catalog) -> (View, usize) {
        let applying = rules.iter().filter_map(|at| Some((*at, policy.rules.get(usize::from(*at))?)));
        let granted: Vec<(u16, &'static Grant)> =
            applying.flat_map(|(at, rule)| rule.allow.iter().map(move |grant| (at, grant))).collect();
        let (mut upstreams, mut grants, mut copied) = (Vec::new(), HashMap::new(), 0);
        for upstream in whole.upstreams {
            let of_upstream: Vec<_> = granted.iter().filter(|(_, grant)| grant.upstream == upstream.name).collect();
            if of_upstream.is_empty() {
                continue;
            }
            let mut permitted = Vec::new();
            for tool in upstream.tools.all() {
                let of_tool = of_upstream.iter().filter(|(_, grant)| grant.permits_tool(tool.name));
                let of_tool = ToolGrants::new(of_tool.map(|(rule, grant)| RuleGrant::new(*rule, grant)).collect());
                if of_tool.len() > 0 {
                    permitted.push(*tool);
                    copied += of_tool.len();
                    grants.insert((upstream.name, tool.name), of_tool);
                }
            }
            // Tools that were not fetched yet may be permitted.
            if permitted.is_empty() && !upstream.tools.is_empty() {
                continue;
            }
            let tools = if permitted.len() == upstream.tools.len() {
                upstream.tools
            } else {
                copied += permitted.len();
                Tools::table(permitted.leak())
            };
            upstreams.push(Upstream { tools, ..upstream.clone() });
        }
        // The index of the whole catalog serves searches too.
        let catalog = Box::leak(Box::new(Catalog { digest: whole.digest, upstreams: upstreams.leak(), search_index: &[] }));
        (View { catalog, grants, is_over_limit: false }, copied)
    }

    /// Returns the grants of a tool. `None` if it is not permitted.
    pub(crate) fn grants<'v>(&'v self, server: &'v str, tool: &'v str) -> Option<&'v ToolGrants> {
        self.grants.get(&(server, tool))
    }
}
