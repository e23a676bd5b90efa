//! Describes the rules of a policy in sentences, for documentation.

use super::literal::shown;
use crate::config::model::{Condition, Grant, Policy, Rule};

/// Returns one sentence for each rule, in order.
pub fn policy_sentences(policy: &Policy) -> Vec<String> {
    policy.rules.iter().map(sentence).collect()
}

fn sentence(rule: &Rule) -> String {
    let who: Vec<String> = rule.when.iter().map(|condition| condition_text(&condition.value)).collect();
    let who = if who.is_empty() { "every caller".to_owned() } else { format!("callers with {}", who.join(" and ")) };
    let what: Vec<String> = rule.allow.iter().map(grant_text).collect();
    let limit = |calls: Option<u32>, of: &str| calls.map(|calls| format!("{calls} calls {of}"));
    let limits: Vec<String> = [limit(rule.calls_per_program, "of one program"), limit(rule.calls_per_minute, "in a minute")]
        .into_iter()
        .flatten()
        .collect();
    let limits = if limits.is_empty() { String::new() } else { format!(", at most {}", limits.join(" and ")) };
    shown(&format!("{}: {who} may call {}{limits}", rule.name.value, what.join("; ")))
}

fn condition_text(condition: &Condition) -> String {
    match condition {
        Condition::Owner(name) => format!("the owner {name}"),
        Condition::Scope(scope) => format!("the scope {scope}"),
        Condition::Group(group) => format!("the group {group}"),
        Condition::Claim(name, value) => format!("the claim {name} of {value}"),
    }
}

fn grant_text(grant: &Grant) -> String {
    let upstream = &grant.upstream.value;
    let tools = match grant.tools.as_slice() {
        [] => format!("every tool of {upstream}"),
        tools => tools.iter().map(|tool| format!("{upstream}/{}", tool.value)).collect::<Vec<_>>().join(", "),
    };
    let arguments = grant.arguments.iter().map(|(name, values)| format!("{} is {}", name.value, values.join(" or ")));
    let arguments: Vec<String> = arguments.collect();
    if arguments.is_empty() { tools } else { format!("{tools} where {}", arguments.join(" and ")) }
}
