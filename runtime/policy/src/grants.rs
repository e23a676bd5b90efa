//! The grants of one tool, and which of them permits a call.

use std::collections::{BTreeSet, HashMap};

use ptc_catalog::Grant;
use ptc_upstream::access::SentArgument;
use serde_json::Value;

/// Number of grants of one tool from which on they are found by the value of an argument. Fewer are compared as fast.
const MIN_INDEXED: usize = 8;

/// A grant of a rule.
#[derive(Debug, Clone)]
pub(crate) struct RuleGrant {
    /// The index of the rule.
    pub(crate) rule: u16,
    /// The arguments whose values are restricted.
    arguments: Vec<(&'static str, Vec<Value>)>,
}

/// The grants of one tool, at least one.
#[derive(Debug, Clone)]
pub(crate) struct ToolGrants {
    /// The grants in the order of the rules.
    all: Vec<RuleGrant>,
    index: Option<Index>,
}

/// Finds grants by the value of one argument: many rules may grant the same tool with other values.
#[derive(Debug, Clone)]
struct Index {
    argument: &'static str,
    /// The positions of the grants that permit a value, in ascending order.
    of_value: HashMap<Value, Vec<usize>>,
    /// The positions of the grants that permit every value, in ascending order.
    of_any: Vec<usize>,
}

impl RuleGrant {
    pub(crate) fn new(rule: u16, grant: &Grant) -> RuleGrant {
        let arguments = grant.arguments.iter().map(|argument| {
            // The compiler has checked the values. One that is not JSON would permit nothing.
            (argument.name, argument.values.iter().filter_map(|value| serde_json::from_str(value).ok()).collect())
        });
        RuleGrant { rule, arguments: arguments.collect() }
    }

    /// Returns the permitted values of an argument. `None` if it permits all.
    fn values(&self, argument: &str) -> Option<&[Value]> {
        self.arguments.iter().find(|(name, _)| *name == argument).map(|(_, values)| values.as_slice())
    }

    /// Returns the first argument whose value the grant does not permit, with the permitted values.
    pub(crate) fn wrong(&self, arguments: &mut Arguments<'_>) -> Option<(&'static str, &[Value])> {
        let wrong = self.arguments.iter().find(|(name, values)| arguments.json(name).is_none_or(|sent| !values.contains(sent)));
        wrong.map(|(name, values)| (*name, values.as_slice()))
    }
}

impl ToolGrants {
    pub(crate) fn new(all: Vec<RuleGrant>) -> ToolGrants {
        let index = (all.len() >= MIN_INDEXED).then(|| Index::new(&all)).flatten();
        ToolGrants { all, index }
    }

    /// Returns the number of grants.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the first grant.
    pub(crate) fn first(&self) -> Option<&RuleGrant> {
        self.all.first()
    }

    /// Returns the first grant that permits a call with these arguments.
    pub(crate) fn find(&self, arguments: &mut Arguments<'_>) -> Option<&RuleGrant> {
        let Some(index) = &self.index else { return self.all.iter().find(|grant| grant.wrong(arguments).is_none()) };
        let of_value = arguments.json(index.argument).and_then(|sent| index.of_value.get(sent)).map_or(&[][..], Vec::as_slice);
        let mut first = |positions: &[usize]| {
            let permits = |at: &usize| self.all.get(*at).is_some_and(|grant| grant.wrong(arguments).is_none());
            positions.iter().copied().find(permits)
        };
        let found = [first(of_value), first(&index.of_any)];
        self.all.get(found.into_iter().flatten().min()?)
    }
}

impl Index {
    /// Returns an index of the argument with the most permitted values, which leaves the fewest grants for one value. `None` if no argument is
    /// restricted.
    fn new(all: &[RuleGrant]) -> Option<Index> {
        let names: BTreeSet<&'static str> = all.iter().flat_map(|grant| grant.arguments.iter().map(|(name, _)| *name)).collect();
        let indices = names.into_iter().map(|argument| {
            let mut index = Index { argument, of_value: HashMap::new(), of_any: Vec::new() };
            for (at, grant) in all.iter().enumerate() {
                match grant.values(argument) {
                    None => index.of_any.push(at),
                    Some(values) => {
                        for value in values {
                            index.of_value.entry(value.clone()).or_default().push(at);
                        }
                    }
                }
            }
            index
        });
        indices.max_by_key(|index| index.of_value.len())
    }
}

/// The arguments of a call, of which each is read at most once.
pub(crate) struct Arguments<'a> {
    argument: &'a dyn Fn(&str) -> SentArgument,
    read: Vec<(&'static str, SentArgument)>,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(argument: &'a dyn Fn(&str) -> SentArgument) -> Arguments<'a> {
        Arguments { argument, read: Vec::new() }
    }

    /// Returns the value of an argument, `null` if it is left out. `None` if it has no value in JSON, which no grant permits.
    fn json(&mut self, name: &'static str) -> Option<&Value> {
        let at = self.read.iter().position(|(read, _)| *read == name).unwrap_or_else(|| {
            self.read.push((name, (self.argument)(name)));
            self.read.len() - 1
        });
        match self.read.get(at) {
            Some((_, SentArgument::Value(value))) => Some(value),
            Some((_, SentArgument::Absent)) => Some(&Value::Null),
            Some((_, SentArgument::Other)) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grant(rule: u16, arguments: &[(&'static str, Value)]) -> RuleGrant {
        let values = |values: &Value| values.as_array().cloned().expect("a list");
        RuleGrant { rule, arguments: arguments.iter().map(|(name, all)| (*name, values(all))).collect() }
    }

    /// The index finds the same grant as a comparison of all of them, which is the definition.
    #[test]
    fn index_finds_the_first_grant_that_permits_a_call() {
        let grants = [
            grant(0, &[("region", json!(["eu"])), ("tenant", json!(["a", "b"]))]),
            grant(1, &[("region", json!(["us", null]))]),
            grant(2, &[("tenant", json!([7, 7.5, true]))]),
            grant(3, &[("region", json!(["eu"])), ("tenant", json!(["c"]))]),
            grant(4, &[("region", json!([])), ("tenant", json!(["a"]))]),
            grant(5, &[("region", json!(["eu", "us"])), ("tenant", json!([["x"], { "k": 1 }, null]))]),
            grant(6, &[("other", json!(["z"]))]),
            grant(7, &[("region", json!(["eu"])), ("tenant", json!(["b"])), ("other", json!(["y"]))]),
            grant(8, &[("tenant", json!(["d"])), ("region", json!(["eu"]))]),
        ];
        let all = ToolGrants::new(grants.into());
        assert_eq!(all.index.as_ref().map(|index| index.argument), Some("tenant"), "it has the most values");
        let regions = [Some(json!("eu")), Some(json!("us")), Some(Value::Null), None, Some(json!("asia"))];
        let tenants = ["a", "b", "c", "d"]
            .map(|name| Some(json!(name)))
            .into_iter()
            .chain([json!(7), json!(7.0), json!(7.5), json!(true)].map(Some));
        let tenants: Vec<_> = tenants.chain([json!(["x"]), json!({ "k": 1 }), json!([])].map(Some)).chain([None]).collect();
        let (mut permitted, mut refused) = (BTreeSet::new(), 0);
        for region in &regions {
            for tenant in &tenants {
                for other in [Some(json!("y")), Some(json!("z")), None] {
                    let read = |name: &str| {
                        let sent = match name {
                            "region" => region,
                            "tenant" => tenant,
                            _ => &other,
                        };
                        match sent {
                            None => SentArgument::Absent,
                            // A value that JSON does not have.
                            Some(value) if value == &json!([]) => SentArgument::Other,
                            Some(value) => SentArgument::Value(value.clone()),
                        }
                    };
                    let found = all.find(&mut Arguments::new(&read)).map(|grant| grant.rule);
                    let expected = all.all.iter().find(|grant| grant.wrong(&mut Arguments::new(&read)).is_none());
                    assert_eq!(found, expected.map(|grant| grant.rule), "{region:?} {tenant:?} {other:?}");
                    match found {
                        Some(rule) => drop(permitted.insert(rule)),
                        None => refused += 1,
                    }
                }
            }
        }
        assert_eq!(permitted, BTreeSet::from([0, 1, 2, 3, 5, 6, 8]), "the other rules permit nothing, or come later");
        assert!(refused > 0);
    }
}
