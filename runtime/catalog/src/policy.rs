//! The policy of a deployment: which callers may call which tools.
//!
//! The first rule that applies to a caller and permits a call decides about it. A call that no rule permits is refused.

use crate::wildcard::matches_wildcard;

/// The rules of a deployment, in the order in which they are applied.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound(deserialize = "'de: 'static")))]
pub struct Policy {
    /// The rules.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub rules: &'static [Rule],
}

/// One rule.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rule {
    /// The name in messages and traces.
    pub name: &'static str,
    /// The conditions, all of which a caller must meet. Without conditions the rule applies to every caller.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub when: &'static [Condition],
    /// What the rule permits.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub allow: &'static [Grant],
    /// Maximum number of calls of one program that the rule permits.
    pub calls_per_program: Option<u32>,
    /// Maximum number of calls of one owner in a minute that the rule permits.
    pub calls_per_minute: Option<u32>,
}

impl Policy {
    /// Returns the scopes that rules name, each once, in the order of the rules.
    pub fn scopes(&self) -> Vec<&'static str> {
        let mut scopes = Vec::new();
        for condition in self.rules.iter().flat_map(|rule| rule.when) {
            if let Condition::Scope(scope) = condition
                && !scopes.contains(scope)
            {
                scopes.push(*scope);
            }
        }
        scopes
    }
}

/// A condition on a caller. `T` is the type of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Condition<T = &'static str> {
    /// The name of the owner in the file of tokens, or `stdio` for the client on standard input. A text with a colon is the whole
    /// internal name of an owner.
    Owner(T),
    /// A scope of the access token.
    Scope(T),
    /// An element of the claim `groups`.
    Group(T),
    /// The name of a claim, and the JSON of its value or of one of its elements.
    Claim(T, T),
}

/// Permitted calls of the tools of one upstream.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Grant {
    /// The upstream.
    pub upstream: &'static str,
    /// Exposed names of tools, in which `*` matches any characters. If there are none, every tool is permitted.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub tools: &'static [&'static str],
    /// The arguments whose values are restricted.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub arguments: &'static [PermittedValues],
}

/// The permitted values of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PermittedValues {
    /// The name of the argument.
    pub name: &'static str,
    /// The values as JSON. `null` permits that the argument is left out.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub values: &'static [&'static str],
}

impl Grant {
    /// Whether the tool is permitted, apart from its arguments.
    pub fn permits(&self, upstream: &str, tool: &str) -> bool {
        self.upstream == upstream && self.permits_tool(tool)
    }

    /// Whether a tool of the upstream is permitted, apart from its arguments.
    pub fn permits_tool(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|pattern| matches_wildcard(pattern, tool))
    }
}

impl<T> Condition<T> {
    /// Converts the texts.
    pub fn map<'t, U>(&'t self, text: impl Fn(&'t T) -> U) -> Condition<U> {
        match self {
            Condition::Owner(name) => Condition::Owner(text(name)),
            Condition::Scope(scope) => Condition::Scope(text(scope)),
            Condition::Group(group) => Condition::Group(text(group)),
            Condition::Claim(name, value) => Condition::Claim(text(name), text(value)),
        }
    }
}

impl<T: std::fmt::Display> Condition<T> {
    /// Describes the callers that meet the condition, such as `the scope 'crm:read'`.
    pub fn described(&self) -> String {
        match self {
            Condition::Owner(name) => format!("the owner '{name}'"),
            Condition::Scope(scope) => format!("the scope '{scope}'"),
            Condition::Group(group) => format!("the group '{group}'"),
            Condition::Claim(name, value) => format!("the claim '{name}' with the value {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grant_matches_names_and_patterns_of_its_upstream() {
        let grant = |tools| Grant { upstream: "crm", tools, arguments: &[] };
        assert!(grant(&[]).permits("crm", "delete"));
        assert!(grant(&["get_*", "search"]).permits("crm", "get_order"));
        assert!(grant(&["get_*", "search"]).permits("crm", "search"));
        assert!(!grant(&["get_*", "search"]).permits("crm", "delete"));
        assert!(!grant(&[]).permits("mail", "delete"));
    }
}
