//! Finds the conditions that a caller meets, without a comparison with all of them.

use std::collections::HashMap;

use ptc_catalog::{Condition, Policy, owner_id};
use ptc_upstream::access::Subject;
use serde_json::{Map, Value};

/// Maximum number of conditions of a rule, each of which has a bit. The compiler permits no more.
const MAX_CONDITIONS: usize = u16::BITS as usize;

/// The claim that group conditions are about.
const GROUPS: &str = "groups";

/// A condition of a rule: the index of the rule, and the bit of the condition in the result for the rule.
type Position = (usize, u16);

/// Conditions by the value that they demand.
type ByValue = HashMap<Value, Vec<Position>>;

/// The conditions of a policy by what they demand. They are read once, so that the cost of a request depends on what is known of its
/// caller and hardly on the number of rules.
#[derive(Debug)]
pub(crate) struct Conditions {
    /// The bits of all conditions of each rule.
    all: Vec<u16>,
    /// By the internal name of the owner.
    owners: HashMap<String, Vec<Position>>,
    scopes: HashMap<&'static str, Vec<Position>>,
    /// By the name of the claim, and its value or one of its elements.
    claims: HashMap<&'static str, ByValue>,
}

impl Conditions {
    pub(crate) fn new(policy: &Policy) -> Conditions {
        let (mut owners, mut scopes, mut claims) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new(), HashMap::new());
        let mut all = Vec::with_capacity(policy.rules.len());
        for (rule, conditions) in policy.rules.iter().map(|rule| rule.when).enumerate() {
            if conditions.len() > MAX_CONDITIONS {
                // None of its conditions is found, so that it applies to no caller.
                all.push(u16::MAX);
                continue;
            }
            let mut bits = 0;
            for (at, condition) in conditions.iter().enumerate() {
                let bit = 1 << at;
                bits |= bit;
                let position = (rule, bit);
                let mut claim = |name, value| {
                    let values: &mut ByValue = claims.entry(name).or_default();
                    values.entry(value).or_default().push(position);
                };
                match condition {
                    Condition::Owner(name) => owners.entry(owner_id(name)).or_default().push(position),
                    Condition::Scope(scope) => scopes.entry(*scope).or_default().push(position),
                    Condition::Group(group) => claim(GROUPS, Value::from(*group)),
                    // The compiler has checked the value. No caller meets one that is not JSON.
                    Condition::Claim(name, value) => drop(serde_json::from_str(value).map(|value| claim(name, value))),
                }
            }
            all.push(bits);
        }
        Conditions { all, owners, scopes, claims }
    }

    /// Returns the conditions of each rule that a caller does not meet, as a bit for each.
    pub(crate) fn unmet(&self, caller: Subject<'_>) -> Vec<u16> {
        let mut unmet = self.all.clone();
        let mut meet = |positions: Option<&Vec<Position>>| {
            for (rule, bit) in positions.into_iter().flatten() {
                if let Some(unmet) = unmet.get_mut(*rule) {
                    *unmet &= !bit;
                }
            }
        };
        meet(self.owners.get(&**caller.owner));
        caller.scopes.iter().for_each(|scope| meet(self.scopes.get(scope.as_str())));
        for (value, positions) in self.claims_of(caller.claims) {
            match value {
                Value::Array(elements) => elements.iter().for_each(|element| meet(positions.get(element))),
                value => meet(positions.get(value)),
            }
        }
        unmet
    }

    /// Returns the claims of a caller that conditions are about, each with these conditions.
    fn claims_of<'a>(&'a self, claims: &'a Map<String, Value>) -> Box<dyn Iterator<Item = (&'a Value, &'a ByValue)> + 'a> {
        // Either side may have many.
        if claims.len() < self.claims.len() {
            Box::new(claims.iter().filter_map(|(name, value)| Some((value, self.claims.get(name.as_str())?))))
        } else {
            Box::new(self.claims.iter().filter_map(|(name, positions)| Some((claims.get(*name)?, positions))))
        }
    }
}

/// Returns the bit of a condition.
pub(crate) fn bit(at: usize) -> u16 {
    u32::try_from(at).ok().and_then(|at| 1_u16.checked_shl(at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ptc_catalog::Rule;
    use serde_json::json;

    use super::*;

    /// Whether a caller meets a condition: the definition, which the index has to agree with.
    fn meets(caller: Subject<'_>, condition: &Condition) -> bool {
        let has = |claim: &str, wanted: &Value| match caller.claims.get(claim) {
            Some(Value::Array(elements)) => elements.contains(wanted),
            Some(value) => value == wanted,
            None => false,
        };
        match condition {
            Condition::Owner(name) => owner_id(name) == **caller.owner,
            Condition::Scope(scope) => caller.scopes.iter().any(|own| own == scope),
            Condition::Group(group) => has(GROUPS, &Value::from(*group)),
            Condition::Claim(claim, value) => serde_json::from_str(value).is_ok_and(|value| has(claim, &value)),
        }
    }

    const ALL: &[Condition] = &[
        Condition::Owner("alice"),
        Condition::Owner("oauth:https://id.example carol"),
        Condition::Scope("a"),
        Condition::Scope("b"),
        Condition::Group("staff"),
        Condition::Claim("groups", "\"staff\""),
        Condition::Claim("level", "3"),
        Condition::Claim("level", "3.5"),
        Condition::Claim("level", "\"3\""),
        Condition::Claim("level", "null"),
        Condition::Claim("is_admin", "true"),
        Condition::Claim("level", "not JSON"),
    ];

    #[test]
    fn index_finds_the_conditions_that_a_caller_meets() {
        let rules: Vec<Rule> = (0..ALL.len())
            .flat_map(|at| [&ALL[at..=at], &ALL[at..]])
            .chain([&[][..]])
            .map(|when| Rule { name: "", when, allow: &[], calls_per_program: None, calls_per_minute: None })
            .collect();
        let policy = Policy { rules: rules.leak() };
        let conditions = Conditions::new(&policy);
        let owners = ["name:alice", "alice", "oauth:https://id.example carol", "stdio", ""];
        let scopes = [&[][..], &["a"], &["b", "x", "a", "a"]];
        let claims = [
            json!({}),
            json!({ "groups": "staff", "level": 3 }),
            json!({ "groups": ["x", "staff"], "level": [3.5, "3", null], "other": 1, "more": 2, "is_admin": true }),
            json!({ "groups": { "staff": true }, "level": 3.0, "is_admin": "true" }),
        ];
        for owner in owners {
            for scopes in scopes {
                for claims in &claims {
                    let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
                    let caller = Subject { owner: &owner.into(), scopes: &scopes, claims: claims.as_object().expect("claims") };
                    let expected = policy.rules.iter().map(|rule| {
                        let lacking = rule.when.iter().enumerate().filter(|(_, condition)| !meets(caller, condition));
                        lacking.fold(0, |bits, (at, _)| bits | bit(at))
                    });
                    assert_eq!(conditions.unmet(caller), expected.collect::<Vec<u16>>(), "{caller:?}");
                }
            }
        }
    }

    #[test]
    fn rule_with_too_many_conditions_applies_to_no_caller() {
        const MANY: &[Condition] = &[Condition::Scope("a"); MAX_CONDITIONS + 1];
        let rule = |when| Rule { name: "", when, allow: &[], calls_per_program: None, calls_per_minute: None };
        let policy = Policy { rules: vec![rule(MANY), rule(&MANY[1..])].leak() };
        let (owner, claims) = ("stdio".into(), Map::new());
        let caller = Subject { owner: &owner, scopes: &["a".to_owned()], claims: &claims };
        assert_eq!(Conditions::new(&policy).unmet(caller), [u16::MAX, 0]);
    }
}
