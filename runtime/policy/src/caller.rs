//! The conditions of rules for one caller, and what it may therefore not do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use ptc_catalog::{Catalog, Condition, Rule};
use ptc_check::CalledTool;
use ptc_lisp::{Bindings, Deadline, Program, Value as LispValue};
use ptc_text::join_limited;
use ptc_upstream::access::{Access, CallDecisions, Denial, Subject};
use serde_json::Value;

use crate::Shared;
use crate::decision::Decisions;
use crate::view::View;

/// Maximum number of rules or tools in a message.
const SHOWN: usize = 5;

/// The conditions of a rule that a caller does not meet, as a bit for each. Conditions beyond 16 share the last bit.
pub(crate) fn unmet(rule: &Rule, caller: Subject<'_>) -> u16 {
    let bits = rule.when.iter().enumerate().filter(|(_, condition)| !meets(caller, condition)).map(|(at, _)| bit(at));
    bits.fold(0, |unmet, bit| unmet | bit)
}

fn bit(at: usize) -> u16 {
    1 << at.min(15)
}

/// Whether a caller meets a condition.
fn meets(caller: Subject<'_>, condition: &Condition) -> bool {
    let has = |claim: &str, wanted: &Value| match caller.claims.get(claim) {
        Some(Value::Array(elements)) => elements.contains(wanted),
        Some(value) => value == wanted,
        None => false,
    };
    match condition {
        Condition::Owner(name) => is_owner(caller.owner, name),
        Condition::Scope(scope) => caller.scopes.iter().any(|own| own == scope),
        Condition::Group(group) => has("groups", &Value::from(*group)),
        Condition::Claim(claim, value) => serde_json::from_str(value).is_ok_and(|value| has(claim, &value)),
    }
}

/// Whether a name in a rule is that of an owner.
fn is_owner(owner: &str, name: &str) -> bool {
    let (kind, name) = owner_parts(name);
    owner.strip_prefix(kind) == Some(name)
}

/// Returns the internal name of the owner that a rule names.
pub fn owner_id(name: &str) -> String {
    let (kind, name) = owner_parts(name);
    format!("{kind}{name}")
}

/// Internal names begin with the kind of credential and a colon, apart from `stdio` and `loopback`. A rule may leave out `name:`.
fn owner_parts(name: &str) -> (&'static str, &str) {
    let is_internal = name.contains(':') || matches!(name, "stdio" | "loopback");
    (if is_internal { "" } else { "name:" }, name)
}

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

    /// Whether a rule that applies grants a tool of an upstream.
    fn grants(&self, permits: &dyn Fn(&Rule) -> bool) -> bool {
        let rules = self.0.shared.policy.rules;
        self.0.rules.iter().filter_map(|at| rules.get(usize::from(*at))).any(permits)
    }

    /// Returns why a tool is denied.
    pub(crate) fn denial_of(&self, server: &str, tool: &str) -> Denial {
        self.denial_of_all(&[(server.to_owned(), Some(tool.to_owned()))])
    }

    /// Returns why tools are denied, each with the rules that would permit it.
    fn denial_of_all(&self, tools: &[(String, Option<String>)]) -> Denial {
        let (mut reasons, mut scopes): (Vec<String>, BTreeSet<&'static str>) = (Vec::new(), BTreeSet::new());
        // Scopes are of no use if one of the tools needs something else.
        let mut suffice = true;
        for (server, tool) in tools {
            let name = tool.as_ref().map_or_else(|| format!("any tool of {server}"), |tool| format!("{server}/{tool}"));
            let permits = |rule: &Rule| permits(rule, server, tool.as_deref());
            let mut candidates: Vec<Missing> = Vec::new();
            for (rule, unmet) in self.0.shared.policy.rules.iter().zip(&self.0.unmet).filter(|(rule, _)| permits(rule)) {
                candidates.push(Missing::new(rule, *unmet));
            }
            // A caller can get a scope more easily than another condition.
            candidates.sort_by_key(|missing| (!missing.only_scopes, missing.scopes.len()));
            let easiest = candidates.first();
            scopes.extend(easiest.iter().flat_map(|missing| &missing.scopes));
            suffice &= easiest.is_some_and(|missing| missing.only_scopes);
            let needs: Vec<&str> = candidates.iter().map(|missing| missing.described.as_str()).collect();
            reasons.push(if needs.is_empty() {
                format!("{name} (no rule of the policy permits it)")
            } else {
                format!("{name} (needs {})", join_limited(&needs, ", or ", SHOWN))
            });
        }
        let scopes: Vec<String> = scopes.into_iter().map(str::to_owned).collect();
        // The message names only some of the tools, the hint the scopes of all.
        let hint = match (scopes.is_empty(), suffice) {
            (true, _) => String::new(),
            (false, true) => format!("an access token with the scopes \"{}\" in addition permits it", scopes.join(" ")),
            (false, false) => format!("the missing scopes are \"{}\", but they alone do not permit it", scopes.join(" ")),
        };
        let missing_scopes = if suffice { scopes } else { Vec::new() };
        Denial {
            message: format!("the caller may not call {}", join_limited(&reasons, "; ", SHOWN)),
            hint,
            missing_scopes,
            rule: None,
        }
    }
}

/// Whether a rule grants a tool, or any tool of an upstream.
fn permits(rule: &Rule, server: &str, tool: Option<&str>) -> bool {
    rule.allow.iter().any(|grant| grant.upstream == server && tool.is_none_or(|tool| grant.permits_tool(tool)))
}

/// What a caller lacks for a rule.
struct Missing {
    /// Whether it only lacks scopes.
    only_scopes: bool,
    scopes: Vec<&'static str>,
    described: String,
}

impl Missing {
    fn new(rule: &'static Rule, unmet: u16) -> Missing {
        let lacking: Vec<&Condition> =
            rule.when.iter().enumerate().filter(|(at, _)| unmet & bit(*at) != 0).map(|(_, condition)| condition).collect();
        let scope = |condition: &&Condition| if let Condition::Scope(scope) = condition { Some(*scope) } else { None };
        let scopes: Vec<&'static str> = lacking.iter().filter_map(scope).collect();
        let conditions: Vec<String> = lacking.iter().map(|condition| condition.described()).collect();
        let described = format!("{} for the rule '{}'", conditions.join(" and "), rule.name);
        Missing { only_scopes: scopes.len() == lacking.len(), scopes, described }
    }
}

/// Returns the denial of a caller for which there is no view.
fn over_limit() -> Denial {
    Denial {
        message:
            "the policy gives callers, or this caller's tokens, more different sets of tools than the server keeps, so that this call is refused"
                .to_owned(),
        hint: "restart the server, or give callers fewer different combinations of rules".to_owned(),
        missing_scopes: Vec::new(),
        rule: None,
    }
}

impl Access for CallerAccess {
    fn catalog(&self, whole: &'static Catalog) -> &'static Catalog {
        self.view(whole).catalog
    }

    fn denial(&self, whole: &'static Catalog, server: &str, tool: &str) -> Option<Denial> {
        let upstream = whole.upstream(server)?;
        let view = self.view(whole);
        if view.is_over_limit {
            return Some(over_limit());
        }
        let is_unlisted = upstream.tools.is_empty();
        let name = match upstream.tool(tool) {
            Some(tool) => tool.name,
            None if is_unlisted => tool,
            // The call is reported as one of an unknown tool, with the names that the caller may see.
            None => return None,
        };
        if !is_unlisted && view.grants(upstream.name, name).is_some() {
            return None;
        }
        let is_granted = self.grants(&|rule| permits(rule, server, Some(name)));
        (!is_granted).then(|| self.denial_of(server, name))
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
        if view.is_over_limit {
            return Some(over_limit());
        }
        let mut denied = Vec::new();
        for CalledTool { server, tool } in called {
            let Some(upstream) = server.as_deref().and_then(|server| whole.upstream(server)) else { continue };
            let tool = match tool.as_deref().map(|tool| (tool, upstream.tool(tool))) {
                None => None,
                Some((_, Some(tool))) => Some(tool.name),
                Some((tool, None)) if upstream.tools.is_empty() => Some(tool),
                // The check of the program reports the unknown tool.
                Some((_, None)) => continue,
            };
            if !self.grants(&|rule| permits(rule, upstream.name, tool)) {
                denied.push((upstream.name.to_owned(), tool.map(str::to_owned)));
            }
        }
        (!denied.is_empty()).then(|| self.denial_of_all(&denied))
    }

    fn state(&self) -> &[u16] {
        &self.0.unmet
    }

    fn begin_program(&self) -> Box<dyn CallDecisions> {
        Box::new(Decisions::new(self.clone()))
    }
}
