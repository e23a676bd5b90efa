//! What one caller may do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ptc_catalog::{Catalog, Rule};
use ptc_check::CalledTool;
use ptc_lisp::{Bindings, Deadline, Program, Value as LispValue};
use ptc_upstream::access::{Access, CallDecisions, Denial};

use crate::Shared;
use crate::decision::Decisions;
use crate::denial::{denial, permits};
use crate::view::View;

/// What one caller may do.
#[derive(Debug, Clone)]
pub(crate) struct CallerAccess(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    owner: Arc<str>,
    /// The unmet conditions of each rule.
    unmet: Vec<u16>,
    /// The indices of the rules that apply.
    rules: Vec<u16>,
    /// The last view, with the address of its whole catalog. A live catalog is replaced when it grows.
    view: Mutex<Option<(usize, Arc<View>)>>,
}

impl CallerAccess {
    pub(crate) fn new(shared: Arc<Shared>, owner: Arc<str>, unmet: Vec<u16>) -> CallerAccess {
        let applying = unmet.iter().enumerate().filter(|(_, unmet)| **unmet == 0);
        let rules = applying.filter_map(|(at, _)| u16::try_from(at).ok()).collect();
        CallerAccess(Arc::new(Inner { shared, owner, unmet, rules, view: Mutex::default() }))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    pub(crate) fn owner(&self) -> &Arc<str> {
        &self.0.owner
    }

    fn view(&self, whole: &'static Catalog) -> Arc<View> {
        let address = std::ptr::from_ref(whole).addr();
        let mut last = self.0.view.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((of, view)) if *of == address => Arc::clone(view),
            _ => {
                let view = self.0.shared.views.get(self.0.shared.policy, &self.0.rules, &self.0.owner, whole);
                *last = Some((address, Arc::clone(&view)));
                view
            }
        }
    }

    /// Returns the view of the catalog that was used last.
    pub(crate) fn latest_view(&self) -> Arc<View> {
        let last = self.0.view.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map_or_else(|| Arc::new(View::nothing()), |(_, view)| Arc::clone(view))
    }

    /// Whether a rule that applies grants a tool, or any tool of an upstream.
    fn is_granted(&self, server: &str, tool: Option<&str>) -> bool {
        let rules = self.0.shared.policy.rules;
        let mut applying = self.0.rules.iter().filter_map(|at| rules.get(usize::from(*at)));
        applying.any(|rule: &Rule| permits(rule, server, tool))
    }

    /// Returns why a tool is denied.
    pub(crate) fn denial_of(&self, server: &str, tool: &str) -> Denial {
        self.denial_of_all(&[(server.to_owned(), Some(tool.to_owned()))])
    }

    fn denial_of_all(&self, tools: &[(String, Option<String>)]) -> Denial {
        denial(self.0.shared.policy, &self.0.unmet, tools)
    }
}

/// Returns the denial of a tool that is permitted, but not in the view of the caller.
fn over_limit() -> Denial {
    let message =
        "the policy gives callers, or this caller's tokens, more different sets of tools than the server keeps".to_owned();
    let hint = "use a token with fewer scopes, or give callers fewer different combinations of rules".to_owned();
    Denial { reason: message.clone(), message, hint, ..Denial::default() }
}

impl Access for CallerAccess {
    fn catalog(&self, whole: &'static Catalog) -> &'static Catalog {
        self.view(whole).catalog
    }

    fn denial(&self, whole: &'static Catalog, server: &str, tool: &str) -> Option<Denial> {
        let upstream = whole.upstream(server)?;
        let view = self.view(whole);
        let is_unlisted = upstream.tools.is_empty();
        let name = match upstream.tool(tool) {
            Some(tool) => tool.name,
            None if is_unlisted => tool,
            // The call is reported as one of an unknown tool, with the names that the caller may see.
            None => return None,
        };
        if view.has(upstream.name, name, is_unlisted) {
            return (is_unlisted && !self.is_granted(server, Some(name))).then(|| self.denial_of(server, name));
        }
        Some(if self.is_granted(server, Some(name)) { over_limit() } else { self.denial_of(server, name) })
    }

    fn called_tools(
        &self,
        program: &Program,
        known: &Bindings,
        results: &[LispValue],
        tools: &[&str],
        deadline: &Deadline,
    ) -> BTreeSet<CalledTool> {
        ptc_check::called_tools_in_session(program, known, results, tools, deadline)
    }

    fn denial_of_program(&self, whole: &'static Catalog, called: &BTreeSet<CalledTool>) -> Option<Denial> {
        let view = self.view(whole);
        let (mut denied, mut unknown) = (Vec::new(), None);
        for called in called {
            let CalledTool { server: Some(server), tool } = called else { continue };
            let upstream = whole.upstream(server);
            let Some(upstream) = upstream.filter(|upstream| {
                // The tools of an upstream that was not asked yet are known by the rules only.
                upstream.tools.is_empty() || tool.as_deref().is_none_or(|tool| upstream.tool(tool).is_some())
            }) else {
                unknown = unknown.or(Some(called));
                continue;
            };
            let tool = tool.as_deref().map(|tool| upstream.tool(tool).map_or(tool, |tool| tool.name));
            if !self.is_granted(upstream.name, tool) {
                denied.push((upstream.name.to_owned(), tool.map(str::to_owned)));
            } else if !view.has(upstream.name, tool.unwrap_or_default(), tool.is_none() || upstream.tools.is_empty()) {
                return Some(over_limit());
            }
        }
        let mut denial = (!denied.is_empty()).then(|| self.denial_of_all(&denied));
        if let Some(unknown) = unknown {
            // A program that calls an unknown tool is refused as one that calls a hidden tool.
            let denial = denial.get_or_insert_with(|| Denial { reason: "there is no such tool".to_owned(), ..Denial::default() });
            denial.hidden.get_or_insert_with(|| unknown.clone());
        }
        denial
    }

    fn state(&self) -> &[u16] {
        &self.0.unmet
    }

    fn begin_program(&self) -> Box<dyn CallDecisions> {
        Box::new(Decisions::new(self.clone()))
    }
}
