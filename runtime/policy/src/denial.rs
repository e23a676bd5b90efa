//! Says what a caller lacks for tools that it may not call.
//!
//! A caller learns only of scopes, and only of those that alone are missing. A tool that no scope opens for it does not exist for it.
//! The operator learns all conditions.

use std::collections::BTreeSet;

use ptc_catalog::{Condition, Policy, Rule};
use ptc_check::CalledTool;
use ptc_text::join_limited;
use ptc_upstream::access::Denial;

use crate::conditions::bit;

/// Maximum number of rules or tools in a message.
const SHOWN: usize = 5;
/// Maximum number of tools of a refused program in the reason for the operator, as of refused calls in a trace.
const MAX_RECORDED: usize = 1_000;

/// What a caller lacks for a rule.
struct Missing {
    /// The conditions that the caller does not meet.
    conditions: Vec<&'static Condition>,
    /// The scopes among them.
    scopes: Vec<&'static str>,
    rule: &'static str,
}

impl Missing {
    fn new(rule: &'static Rule, unmet: u16) -> Missing {
        let lacking = rule.when.iter().enumerate().filter(|(at, _)| unmet & bit(*at) != 0);
        let conditions: Vec<&Condition> = lacking.map(|(_, condition)| condition).collect();
        let scope = |condition: &&Condition| if let Condition::Scope(scope) = condition { Some(*scope) } else { None };
        Missing { scopes: conditions.iter().filter_map(scope).collect(), conditions, rule: rule.name }
    }

    /// Whether scopes, and nothing else, are missing.
    fn is_only_scopes(&self) -> bool {
        !self.scopes.is_empty() && self.scopes.len() == self.conditions.len()
    }

    fn described(&self) -> String {
        let conditions: Vec<String> = self.conditions.iter().map(|condition| condition.described()).collect();
        conditions.join(" and ")
    }
}

/// Whether a rule grants a tool, or any tool of an upstream.
pub(crate) fn permits(rule: &Rule, server: &str, tool: Option<&str>) -> bool {
    rule.allow.iter().any(|grant| grant.upstream == server && tool.is_none_or(|tool| grant.permits_tool(tool)))
}

/// Returns why a caller may not call tools of known upstreams. `unmet` has the unmet conditions of each rule. `None` as the name of a
/// tool stands for any tool of the upstream.
pub(crate) fn denial(policy: &'static Policy, unmet: &[u16], tools: &[(String, Option<String>)]) -> Denial {
    let (mut reasons, mut needs, mut scopes) = (Vec::new(), Vec::new(), BTreeSet::<&'static str>::new());
    let mut hidden = None;
    for (server, tool) in tools {
        let name = tool.as_ref().map_or_else(|| format!("any tool of {server}"), |tool| format!("{server}/{tool}"));
        let granting = policy.rules.iter().zip(unmet).filter(|(rule, _)| permits(rule, server, tool.as_deref()));
        let mut candidates: Vec<Missing> = granting.map(|(rule, unmet)| Missing::new(rule, *unmet)).collect();
        // A caller can get a scope more easily than another condition.
        candidates.sort_by(|one, other| {
            let order = |missing: &Missing| (!missing.is_only_scopes(), missing.scopes.len());
            order(one).cmp(&order(other)).then_with(|| one.scopes.cmp(&other.scopes))
        });
        let by_rule: Vec<String> =
            candidates.iter().map(|missing| format!("{} for the rule '{}'", missing.described(), missing.rule)).collect();
        let why = if by_rule.is_empty() {
            "no rule of the policy permits it".to_owned()
        } else {
            format!("needs {}", join_limited(&by_rule, ", or ", SHOWN))
        };
        reasons.push(format!("{name} ({why})"));
        let mut offered: Vec<&Missing> = candidates.iter().filter(|missing| missing.is_only_scopes()).collect();
        let Some(easiest) = offered.first() else {
            hidden.get_or_insert_with(|| CalledTool { server: Some(server.clone()), tool: tool.clone() });
            continue;
        };
        scopes.extend(easiest.scopes.iter().copied());
        offered.dedup_by(|missing, earlier| missing.scopes == earlier.scopes);
        let offered: Vec<String> = offered.iter().map(|missing| missing.described()).collect();
        needs.push(format!("{name} (needs {})", join_limited(&offered, ", or ", SHOWN)));
    }
    let missing_scopes: Vec<String> = scopes.into_iter().map(str::to_owned).collect();
    let reason = format!("the caller may not call {}", join_limited(&reasons, "; ", MAX_RECORDED));
    if missing_scopes.is_empty() {
        // The caller of a hidden tool is answered as one of an unknown tool, without this message.
        let message = "the policy does not permit this call".to_owned();
        return Denial { message, reason, hidden, ..Denial::default() };
    }
    Denial {
        message: format!("the caller may not call {}", join_limited(&needs, "; ", SHOWN)),
        // The message names only some of the tools, the hint the scopes of all.
        hint: format!("an access token with the scopes \"{}\" in addition permits it", missing_scopes.join(" ")),
        missing_scopes,
        rule: None,
        reason,
        hidden,
    }
}
