//! Compares the policy with the pinned tools: names that do not exist, rules that apply to no caller or decide about no call, and tools
//! that no caller reaches.

use std::collections::BTreeSet;

use ptc_catalog::OwnerName;
use ptc_text::join_limited;

use crate::config::model::{Condition, Config, Grant, Policy, Rule, Spanned};
use crate::diag::{Code, Diagnostic, Diagnostics, Subject, quoted, suggest};
use crate::json::Json;
use crate::json_schema::Schema;
use crate::json_schema::mismatch::{Mismatch, mismatch};
use crate::lock::{Lock, LockedTool, LockedUpstream};

/// Maximum number of tools in a finding.
const SHOWN: usize = 5;

/// The permitted value of an argument that may be left out.
const NULL: &str = "null";

/// Reports findings about the policy of a config.
pub fn check(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    let Some(policy) = &config.policy else { return };
    for grant in policy.rules.iter().flat_map(|rule| &rule.allow) {
        check_names(grant, lock, diagnostics);
    }
    let mut rules = policy.rules.clone();
    rules.retain(|rule| match contradiction(rule) {
        None => true,
        Some(finding) => {
            diagnostics.push(finding);
            false
        }
    });
    // A rule that applies to no caller permits nothing.
    let policy = &Policy { rules, ..policy.clone() };
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
    check_scopes(policy, lock, diagnostics);
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
        check_values(grant, argument, values, locked, diagnostics);
        // A call that leaves the argument out is permitted.
        if values.iter().any(|value| value == NULL) {
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

/// Reports permitted values that no tool accepts.
fn check_values(
    grant: &Grant,
    argument: &Spanned<String>,
    values: &[String],
    locked: &LockedUpstream,
    diagnostics: &mut Diagnostics,
) {
    let tools = || locked.tools.iter().filter(|(name, tool)| grant.permits_tool(name) && may_have(tool, &argument.value));
    for value in values.iter().filter(|value| *value != NULL) {
        let refusals: Vec<Option<Mismatch>> = tools().map(|(_, tool)| refusal(tool, &argument.value, value)).collect();
        let Some(Some(refusal)) = refusals.into_iter().reduce(|first, next| next.and(first)) else { continue };
        let message = format!("no call can have the permitted value {}: {}", quoted(value), refusal.message);
        let finding = Diagnostic::new(Code::PolicyValue, message)
            .about(Subject::upstream(&grant.upstream.value))
            .at(argument.place.clone(), "never has this value");
        diagnostics.push(
            finding.hint(refusal.hint.unwrap_or_else(|| "write a value that the schema of the argument admits".to_owned())),
        );
    }
}

/// Returns why an argument of the tool can certainly not have a value.
fn refusal(tool: &LockedTool, argument: &str, value: &str) -> Option<Mismatch> {
    let input = tool.definition.get("inputSchema")?;
    let schema = Schema::new(input);
    let value = Json::parse(value)?;
    let members = schema.members(input);
    // Alternatives can declare the argument differently. Each of them must refuse the value.
    let refusals =
        members.schemas(argument).iter().map(|node| mismatch(&schema, node, &value, "permitted value", &quoted(argument)));
    refusals.reduce(|first, next| next.and(first))?
}

/// Returns whether a grant permits at least one call of a tool that the schema of the tool accepts.
fn permits_some_call(grant: &Grant, name: &str, tool: &LockedTool) -> bool {
    let is_usable =
        |argument: &str, value: &String| value == NULL || may_have(tool, argument) && refusal(tool, argument, value).is_none();
    grant.permits_tool(name)
        && grant.arguments.iter().all(|(argument, values)| values.iter().any(|value| is_usable(&argument.value, value)))
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

/// Returns a finding about a rule with conditions that no caller meets together.
fn contradiction(rule: &Rule) -> Option<Diagnostic> {
    let owner_of = |condition: &Spanned<Condition>| match &condition.value {
        Condition::Owner(name) => Some(name.clone()),
        _ => None,
    };
    let name = rule.when.iter().find_map(owner_of)?;
    let owner = OwnerName::parse(&name).ok()?;
    let (condition, hint) = rule.when.iter().find_map(|condition| {
        let is_met = match (&condition.value, owner) {
            (Condition::Claim(claim, value), OwnerName::AccessToken { issuer, subject }) => match claim.as_str() {
                "iss" => is_string(value, issuer),
                "sub" => is_string(value, subject),
                _ => true,
            },
            (Condition::Owner(_), _) | (_, OwnerName::AccessToken { .. }) => true,
            (Condition::Scope(_) | Condition::Group(_) | Condition::Claim(..), _) => false,
        };
        let hint = if owner.has_claims() {
            "the owner is the issuer and the subject: leave this claim out, or correct one of them"
        } else {
            "only callers with an access token have scopes, groups and claims, and their owner is `oauth:ISSUER SUBJECT`: remove one of the \
             two conditions"
        };
        (!is_met).then_some((condition, hint))
    })?;
    let message = format!("the rule {} applies to no caller", quoted(&rule.name.value));
    let label = format!("the owner {} never has {}", quoted(&name), condition.value.described());
    Some(Diagnostic::new(Code::RuleUnreachable, message).at(condition.place.clone(), label).hint(hint))
}

/// Returns whether a JSON text is a string with this content.
fn is_string(json: &str, content: &str) -> bool {
    matches!(Json::parse(json), Some(Json::String(own)) if own == content)
}

/// Returns the rules whose permitted calls are all permitted by earlier rules, each with the first of these.
fn unreachable_rules<'p>(policy: &'p Policy, lock: &Lock) -> Vec<(&'p Rule, Option<&'p Rule>)> {
    let mut unreachable = Vec::new();
    for (at, rule) in policy.rules.iter().enumerate() {
        // Earlier rules that apply to every caller to whom this one applies.
        let wider: Vec<&Rule> = policy.rules.iter().take(at).filter(|earlier| applies_to_all_of(earlier, rule)).collect();
        let mut first = None;
        let all_covered = all_calls(rule, lock, |grant, tool| {
            let covering = wider.iter().find(|earlier| covers(earlier, grant, tool));
            first = first.or(covering.copied());
            covering.is_some()
        });
        if all_covered {
            unreachable.push((rule, first));
        }
    }
    unreachable
}

/// Returns whether `holds` is true for every tool that a rule permits, with the grant that permits it. A rule that permits no pinned tool
/// gives false.
fn all_calls(rule: &Rule, lock: &Lock, mut holds: impl FnMut(&Grant, &str) -> bool) -> bool {
    let mut calls = 0_usize;
    let all_hold = rule.allow.iter().all(|grant| {
        let Some(locked) = lock.upstreams.get(&grant.upstream.value) else { return false };
        locked.tools.keys().filter(|tool| grant.permits_tool(tool)).all(|tool| {
            calls += 1;
            holds(grant, tool)
        })
    });
    all_hold && calls > 0
}

/// Returns whether a rule permits every call of `tool` that `grant` permits.
fn covers(rule: &Rule, grant: &Grant, tool: &str) -> bool {
    grants_tool(rule, grant, tool).any(|other| restricts_less(other, grant))
}

/// Returns the grants of a rule for a tool of the upstream of a grant.
fn grants_tool<'r>(rule: &'r Rule, grant: &Grant, tool: &str) -> impl Iterator<Item = &'r Grant> {
    rule.allow.iter().filter(move |other| other.upstream.value == grant.upstream.value && other.permits_tool(tool))
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

/// Reports scopes without which callers may make the same calls as often.
fn check_scopes(policy: &Policy, lock: &Lock, diagnostics: &mut Diagnostics) {
    let mut seen = BTreeSet::new();
    for condition in policy.rules.iter().flat_map(|rule| &rule.when) {
        let Condition::Scope(scope) = &condition.value else { continue };
        if !seen.insert(scope) {
            continue;
        }
        let mut demanding = (0..policy.rules.len()).filter(|at| policy.rules.get(*at).is_some_and(|rule| demands(rule, scope)));
        if demanding.all(|at| is_permitted_without(policy, lock, at, scope)) {
            let message = format!("the scope {} grants nothing: callers without it may make the same calls", quoted(scope));
            let finding = Diagnostic::new(Code::ScopeGrantsNothing, message).at(condition.place.clone(), "has no effect");
            diagnostics.push(finding.hint("remove it from the policy and from the authorization server"));
        }
    }
}

fn demands(rule: &Rule, scope: &str) -> bool {
    rule.when.iter().any(|condition| matches!(&condition.value, Condition::Scope(own) if own == scope))
}

/// Returns whether a caller who meets all conditions of the rule at index `at` except `scope` may make the same calls, and as many, by other
/// rules.
fn is_permitted_without(policy: &Policy, lock: &Lock, at: usize, scope: &str) -> bool {
    let (earlier, rest) = policy.rules.split_at(at);
    let Some((rule, later)) = rest.split_first() else { return false };
    all_calls(rule, lock, |grant, tool| {
        // An earlier rule decides about these calls, also if the caller has the scope.
        if earlier.iter().any(|other| applies_to_all_of(other, rule) && covers(other, grant, tool)) {
            return true;
        }
        // Without the scope, the later rules decide in their order. One that applies to some of these callers can permit fewer calls.
        for other in later.iter().filter(|other| !demands(other, scope) && grants_tool(other, grant, tool).next().is_some()) {
            if !permits_as_many(other, rule, lock) {
                return false;
            }
            if applies_to_all_of(other, rule) && covers(other, grant, tool) {
                return true;
            }
        }
        false
    })
}

/// Returns whether `other` permits as many calls as `rule`. A limit counts every call that its rule permits. If `other` has one, `rule` must
/// therefore permit all calls of `other` too.
fn permits_as_many(other: &Rule, rule: &Rule, lock: &Lock) -> bool {
    let is_as_high = |other: Option<u32>, own: Option<u32>| other.is_none_or(|other| own.is_some_and(|own| own <= other));
    let is_unlimited = other.calls_per_program.is_none() && other.calls_per_minute.is_none();
    is_unlimited
        || is_as_high(other.calls_per_program, rule.calls_per_program)
            && is_as_high(other.calls_per_minute, rule.calls_per_minute)
            && all_calls(other, lock, |grant, tool| covers(rule, grant, tool))
}

/// Reports the tools of each upstream that no rule permits.
fn check_reach(config: &Config, policy: &Policy, lock: &Lock, diagnostics: &mut Diagnostics) {
    for (name, upstream) in &config.upstreams {
        let Some(locked) = lock.upstreams.get(name) else { continue };
        let grants = || policy.rules.iter().flat_map(|rule| &rule.allow).filter(|grant| grant.upstream.value == *name);
        let is_reached = |(tool, locked): &(&String, &LockedTool)| grants().any(|grant| permits_some_call(grant, tool, locked));
        let unreached: Vec<&str> = locked.tools.iter().filter(|tool| !is_reached(tool)).map(|(name, _)| name.as_str()).collect();
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
