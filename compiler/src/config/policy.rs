//! Reads `policy`: which callers may call which tools.

use ptc_catalog::OwnerName;

use super::fields::{Fields, Subject};
use super::keys;
use super::model::{Condition, Grant, Policy, Rule, Spanned};
use super::oauth::{SCOPE_CHARACTERS, is_scope};
use super::reader::ConfigReader;
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::json::canonical;
use crate::json::digest::sha256_of_node;
use crate::tree::{Member, Node, Tree};

/// Maximum number of rules. Each caller to whom other rules apply has its own view of the catalog.
const MAX_RULES: usize = 1_000;

/// Maximum number of conditions of one rule.
const MAX_CONDITIONS: usize = 16;

/// Reads the policy. Returns `None` if it has errors. `upstreams` are the entries of the config, also the faulty ones.
pub(super) fn read(reader: &mut ConfigReader<'_>, member: &Member, upstreams: &[Member]) -> Option<Policy> {
    let before = reader.errors();
    let place = reader.key_place(member);
    let subject = Subject { name: "the policy".to_owned(), place: place.clone() };
    let fields = Fields::read(reader, &subject, &keys::POLICY, &[], &member.value)?;
    let mut rules: Vec<Rule> = Vec::new();
    let nodes = fields.nodes("rules");
    if let Some(list) = fields.node("rules") {
        if nodes.is_empty() {
            reader.fault(
                Code::EmptyValue,
                list,
                "a policy without rules permits no call",
                "empty",
                "write rules, or leave `policy` out",
            );
        }
        if nodes.len() > MAX_RULES {
            let message = format!("a policy has at most {MAX_RULES} rules, found {}", nodes.len());
            reader.fault(Code::OutOfRange, list, message, "too many", "permit several tools or upstreams with one rule");
            return None;
        }
    }
    for (at, node) in nodes.iter().enumerate() {
        let Some(rule) = rule(reader, node, at, upstreams) else { continue };
        if let Some(first) = rules.iter().find(|earlier| earlier.name.value == rule.name.value) {
            let diagnostic = Diagnostic::new(Code::RuleName, format!("two rules are called {}", quoted(&rule.name.value)))
                .at(rule.name.place.clone(), "again here")
                .also(first.name.place.clone(), "first here")
                .hint("messages and traces name the rule that decided, so that each needs a name of its own");
            reader.report(diagnostic);
        }
        rules.push(rule);
    }
    (reader.errors() == before).then(|| Policy { place, digest: sha256_of_node(&member.value), rules })
}

fn rule(reader: &mut ConfigReader<'_>, node: &Node, at: usize, upstreams: &[Member]) -> Option<Rule> {
    let subject = Subject { name: format!("rule {} of the policy", at + 1), place: node.place(reader.file) };
    let fields = Fields::read(reader, &subject, &keys::RULE, &[], node)?;
    let when = fields.node("when").map(|node| conditions(reader, node)).unwrap_or_default();
    let limits = fields.node("limits").and_then(|node| {
        let subject = Subject { name: "`limits`".to_owned(), place: node.place(reader.file) };
        Fields::read(reader, &subject, &keys::LIMITS, &[], node)
    });
    let limit = |key| u32::try_from(limits.as_ref()?.optional_number(key)?).ok();
    let (calls_per_program, calls_per_minute) = (limit("calls_per_program"), limit("calls_per_minute"));
    if let Some(list) = fields.node("allow").filter(|list| list.elements().is_some_and(<[Node]>::is_empty)) {
        reader.fault(Code::EmptyValue, list, "the rule permits nothing", "empty", "name an upstream, or remove the rule");
    }
    let allow = fields.nodes("allow").iter().filter_map(|node| grant(reader, node, upstreams)).collect();
    let name = fields.spanned(reader, "name")?;
    Some(Rule { name, when, allow, calls_per_program, calls_per_minute })
}

fn conditions(reader: &mut ConfigReader<'_>, node: &Node) -> Vec<Spanned<Condition>> {
    let subject = Subject { name: "`when`".to_owned(), place: node.place(reader.file) };
    let Some(fields) = Fields::read(reader, &subject, &keys::WHEN, &[], node) else { return Vec::new() };
    if node.members().is_empty() {
        reader.fault(Code::EmptyValue, node, "`when` must not be empty", "empty", "leave `when` out for every caller");
    }
    let text = |reader: &ConfigReader<'_>, key, condition: fn(String) -> Condition| {
        fields.spanned(reader, key).map(|text| Spanned { value: condition(text.value), place: text.place })
    };
    let single = [
        text(reader, "owner", Condition::Owner),
        text(reader, "scope", Condition::Scope),
        text(reader, "group", Condition::Group),
    ];
    let mut found: Vec<Spanned<Condition>> = single.into_iter().flatten().collect();
    for member in fields.members("claim") {
        if let Some(value) = scalar(reader, &member.value, &format!("the claim {}", quoted(&member.key))) {
            let place = member.value.place(reader.file);
            found.push(Spanned { value: Condition::Claim(member.key.to_string(), value), place });
        }
    }
    if found.len() > MAX_CONDITIONS {
        let message = format!("`when` has at most {MAX_CONDITIONS} conditions, found {}", found.len());
        reader.fault(Code::OutOfRange, node, message, "too many", "");
    }
    for condition in &found {
        match &condition.value {
            Condition::Scope(scope) if !is_scope(scope) => {
                // Tokens separate scopes with spaces.
                let has_space = scope.contains(char::is_whitespace);
                let hint =
                    if has_space { "write a rule for each scope, or use `claim` for other claims" } else { SCOPE_CHARACTERS };
                let diagnostic = Diagnostic::new(Code::WrongType, format!("{} is not one scope", quoted(scope)));
                reader.report(diagnostic.at(condition.place.clone(), "expected one scope").hint(hint));
            }
            Condition::Owner(owner) => {
                if let Err(expected) = OwnerName::parse(owner) {
                    let diagnostic = Diagnostic::new(Code::WrongType, format!("no caller has the owner {}", quoted(owner)));
                    let diagnostic = diagnostic.at(condition.place.clone(), "names no caller");
                    reader.report(diagnostic.hint(format!("expected {expected}")));
                }
            }
            _ => {}
        }
    }
    found
}

fn grant(reader: &mut ConfigReader<'_>, node: &Node, upstreams: &[Member]) -> Option<Grant> {
    let subject = Subject { name: "an element of `allow`".to_owned(), place: node.place(reader.file) };
    let fields = Fields::read(reader, &subject, &keys::GRANT, &[], node)?;
    let upstream = fields.spanned(reader, "upstream")?;
    if !upstreams.iter().any(|member| *member.key == upstream.value) {
        let names = upstreams.iter().map(|member| &*member.key);
        let hint = suggest::hint(&upstream.value, "upstream", names);
        let finding = Diagnostic::new(
            Code::PolicyUpstream,
            format!("the policy names the upstream {}, which the config does not have", quoted(&upstream.value)),
        )
        .at(upstream.place.clone(), "no such upstream");
        reader.report(finding.hint(hint.unwrap_or_else(|| "add the upstream, or remove this element".to_owned())));
    }
    let tools = fields.spanned_texts(reader, "tools").unwrap_or_default();
    let mut arguments = Vec::new();
    for member in fields.members("arguments") {
        let what = format!("a permitted value of {}", quoted(&member.key));
        let Some(elements) = member.value.elements().filter(|elements| !elements.is_empty()) else {
            let message = format!("the permitted values of {} must be a list of at least one value", quoted(&member.key));
            reader.fault(Code::WrongType, &member.value, message, "expected a list", "put the value in square brackets");
            continue;
        };
        let values = elements.iter().filter_map(|element| scalar(reader, element, &what)).collect();
        let name = Spanned { value: member.key.to_string(), place: reader.key_place(member) };
        arguments.push((name, values));
    }
    Some(Grant { upstream, tools, arguments })
}

/// Returns the JSON of a text, number, boolean or null.
fn scalar(reader: &mut ConfigReader<'_>, node: &Node, what: &str) -> Option<String> {
    if matches!(node.value, Tree::Array(_) | Tree::Object(_)) {
        let message = format!("{what} must be a text, a number, a boolean or null, found {}", node.kind());
        reader.fault(Code::WrongType, node, message, "expected a single value", "");
        return None;
    }
    let mut text = String::new();
    canonical::write(node, &mut text).ok()?;
    Some(text)
}
