//! Compares the policy with the pinned tools: names that do not exist, rules that decide about no call, and tools that no caller
//! reaches.

use std::collections::BTreeSet;

use ptc_text::join_limited;

use crate::config::model::{Condition, Config, Grant, Policy, Rule};
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted, suggest};
use crate::json_schema::Schema;
use crate::lock::{Lock, LockedTool};

/// Maximum number of tools in a finding.
const SHOWN: usize = 5;

/// Reports findings about the policy of a config.
pub fn check(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    let Some(policy) = &config.policy else { return };
    for grant in policy.rules.iter().flat_map(|rule| &rule.allow) {
        check_names(grant, lock, diagnostics);
    }
    let unreachable = unreachable_rules(policy, lock);
    for (rule, earlier) in &unreachable {
        let message = format!("the rule {} decides about no call", quoted(&rule.name.value));
        let mut finding = Diagnostic::new(Code::RuleUnreachable, message)
            .at(rule.name.place.clone(), "every call that it permits is permitted before");
        if let Some(earlier) = earlier {
            finding = finding.also(earlier.name.place.clone(), "by this rule");
        }
        diagnostics.push(finding.hint("the first rule that permits a call decides: put the narrower rule first, or remove it"));
    }
    check_scopes(policy, &unreachable, diagnostics);
    check_reach(config, policy, lock, diagnostics);
}

/// Reports tools and arguments that do not exist.
fn check_names(grant: &Grant, lock: &Lock, diagnostics: &mut Diagnostics) {
    let upstream = &grant.upstream.value;
    let Some(locked) = lock.upstreams.get(upstream) else { return };
    for pattern in &grant.tools {
        if locked.tools.keys().any(|tool| ptc_catalog::matches_wildcard(&pattern.value, tool)) {
            continue;
        }
        let is_pattern = pattern.value.contains('*');
        let verb = if is_pattern { "which matches none of its tools" } else { "which it does not have" };
        let message = format!("the policy permits {} of {}, {verb}", quoted(&pattern.value), quoted(upstream));
        let finding = Diagnostic::new(Code::PolicyTool, message)
            .about(Subject::upstream(upstream).tool(&pattern.value))
            .at(pattern.place.clone(), if is_pattern { "matches nothing" } else { "no such tool" });
        let names = locked.tools.keys().map(String::as_str);
        let hint = suggest::hint(&pattern.value, "tool", names.clone()).or_else(|| suggest::list("tools", names));
        diagnostics.push(match hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        });
    }
    for (argument, values) in &grant.arguments {
        // A call that leaves the argument out is permitted.
        if values.iter().any(|value| value == "null") {
            continue;
        }
        let without: Vec<&str> = locked
            .tools
            .iter()
            .filter(|(name, tool)| grant.permits_tool(name) && !may_have(tool, &argument.value))
            .map(|(name, _)| name.as_str())
            .collect();
        if without.is_empty() {
            continue;
        }
        let message = format!(
            "{} is not an argument of {}, so that no call is permitted",
            quoted(&argument.value),
            join_limited(&without, ", ", SHOWN)
        );
        let names: BTreeSet<String> =
            without.iter().filter_map(|name| locked.tools.get(*name)).flat_map(argument_names).collect();
        let hint = suggest::hint(&argument.value, "argument", names.iter().map(String::as_str));
        let finding = Diagnostic::new(Code::PolicyArgument, message)
            .about(Subject::upstream(upstream))
            .at(argument.place.clone(), "no such argument");
        diagnostics.push(finding.hint(hint.unwrap_or_else(|| {
            "put these tools into an element of their own without this argument, or add `null` to its values".to_owned()
        })));
    }
}

/// Whether calls of the tool can have the argument: its schema declares it, or declares none and permits any.
fn may_have(tool: &LockedTool, argument: &str) -> bool {
    let Some(input) = tool.definition.get("inputSchema") else { return true };
    let (args, is_closed) = Schema::new(input).arguments();
    args.iter().any(|arg| arg.name == argument) || args.is_empty() && !is_closed
}

fn argument_names(tool: &LockedTool) -> Vec<String> {
    let args = tool.definition.get("inputSchema").map(|input| Schema::new(input).arguments().0);
    args.into_iter().flatten().map(|arg| arg.name).collect()
}

/// Returns the rules whose permitted calls are all permitted by earlier rules, each with the first of these.
fn unreachable_rules<'p>(policy: &'p Policy, lock: &Lock) -> Vec<(&'p Rule, Option<&'p Rule>)> {
    let mut unreachable = Vec::new();
    for (at, rule) in policy.rules.iter().enumerate() {
        // Earlier rules that apply to every caller to whom this one applies.
        let wider: Vec<&Rule> = policy.rules.iter().take(at).filter(|earlier| applies_to_all_of(earlier, rule)).collect();
        let (mut calls, mut first) = (0_usize, None);
        let mut is_covered = |grant: &Grant, tool: &str| {
            calls += 1;
            let covering = wider.iter().find(|earlier| {
                earlier.allow.iter().any(|other| {
                    other.upstream.value == grant.upstream.value && other.permits_tool(tool) && restricts_less(other, grant)
                })
            });
            first = first.or(covering.copied());
            covering.is_some()
        };
        let all_covered = rule.allow.iter().all(|grant| {
            let Some(locked) = lock.upstreams.get(&grant.upstream.value) else { return false };
            locked.tools.keys().filter(|tool| grant.permits_tool(tool)).all(|tool| is_covered(grant, tool))
        });
        if all_covered && calls > 0 {
            unreachable.push((rule, first));
        }
    }
    unreachable
}

/// Whether every caller who meets the conditions of `other` also meets those of `rule`.
fn applies_to_all_of(rule: &Rule, other: &Rule) -> bool {
    rule.when.iter().all(|condition| other.when.iter().any(|own| own.value == condition.value))
}

/// Whether `grant` permits all values of arguments that `other` permits.
fn restricts_less(grant: &Grant, other: &Grant) -> bool {
    grant.arguments.iter().all(|(name, values)| {
        let of_other = other.arguments.iter().find(|(own, _)| own.value == name.value);
        of_other.is_some_and(|(_, own)| own.iter().all(|value| values.contains(value)))
    })
}

/// Reports scopes that only rules demand which decide about no call.
fn check_scopes(policy: &Policy, unreachable: &[(&Rule, Option<&Rule>)], diagnostics: &mut Diagnostics) {
    let mut seen = BTreeSet::new();
    for rule in &policy.rules {
        for condition in &rule.when {
            let Condition::Scope(scope) = &condition.value else { continue };
            if !seen.insert(scope) {
                continue;
            }
            let demands = |rule: &&Rule| rule.when.iter().any(|own| own.value == condition.value);
            let grants = |rule: &Rule| !unreachable.iter().any(|(other, _)| std::ptr::eq(*other, rule));
            if policy.rules.iter().filter(demands).any(grants) {
                continue;
            }
            let message = format!("the scope {} grants nothing: callers without it may make the same calls", quoted(scope));
            let finding = Diagnostic::new(Code::ScopeGrantsNothing, message).at(condition.place.clone(), "has no effect");
            diagnostics.push(finding.hint("remove it from the policy and from the authorization server"));
        }
    }
}

/// Reports the tools of each upstream that no rule permits.
fn check_reach(config: &Config, policy: &Policy, lock: &Lock, diagnostics: &mut Diagnostics) {
    for (name, upstream) in &config.upstreams {
        let Some(locked) = lock.upstreams.get(name) else { continue };
        let grants = || policy.rules.iter().flat_map(|rule| &rule.allow).filter(|grant| grant.upstream.value == *name);
        let unreached: Vec<&str> =
            locked.tools.keys().map(String::as_str).filter(|tool| !grants().any(|grant| grant.permits_tool(tool))).collect();
        if unreached.is_empty() {
            continue;
        }
        let message = format!("no rule of the policy permits {} of {}", join_limited(&unreached, ", ", SHOWN), quoted(name));
        let finding = Diagnostic::new(Code::ToolWithoutCaller, message)
            .about(Subject::upstream(name))
            .at(upstream.place.clone(), "no caller reaches these tools")
            .also(policy.place.clone(), "of this policy");
        diagnostics.push(finding.hint("leave the tools out of the upstream's entry, or permit them"));
    }
}
