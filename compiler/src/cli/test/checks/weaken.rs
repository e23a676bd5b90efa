//! Makes a recorded answer use what only the current output schema permits: null, or a member that is missing.

use std::collections::BTreeSet;

use ptc_catalog::{Tool, Type};
use ptc_compiler::json::Json;
use ptc_compiler::json_schema::Schema;

use crate::answers::declared_output::DeclaredOutput;

/// Maximum depth of the places that are considered.
const MAX_DEPTH: usize = 24;

/// What the current output schema of a tool permits, and the former one did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Weakness {
    /// A value that can be null.
    Null,
    /// A member that can be missing.
    Missing,
}

impl Weakness {
    pub(in super::super) const ALL: [Weakness; 2] = [Weakness::Null, Weakness::Missing];

    /// Returns the adjective of such a place.
    pub(in super::super) fn adjective(self) -> &'static str {
        match self {
            Weakness::Null => "null",
            Weakness::Missing => "missing",
        }
    }
}

/// Makes every place of an answer null, or missing, that only the schema of `now` permits to be so. Returns the places, such as
/// `items[].price`.
pub(in super::super) fn weaken(before: &Tool, now: &Tool, answer: &mut Json, weakness: Weakness) -> BTreeSet<String> {
    let (before, now) = (DeclaredOutput::new(before), DeclaredOutput::new(now));
    let mut weakener = Weakener { weakness, places: BTreeSet::new() };
    if let (Some(old), Some(new)) = (before.schema(), now.schema()) {
        let schemas = (Schema::new(old), Schema::new(new));
        let mut other = answer.clone();
        weakener.value((&schemas.0, &[old]), (&schemas.1, &[new]), &mut other, "", 0);
        // Other keywords may demand what is missing.
        if now.permits(&other) {
            *answer = other;
        } else {
            weakener.places.clear();
        }
    }
    weakener.places
}

/// A document, and the schemas of which a value satisfies one.
type Alternatives<'a, 'b> = (&'b Schema<'a>, &'b [&'a Json]);

struct Weakener {
    weakness: Weakness,
    places: BTreeSet<String>,
}

impl Weakener {
    fn value(&mut self, old: Alternatives<'_, '_>, new: Alternatives<'_, '_>, value: &mut Json, place: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Json::Object(members) => {
                let (before, now) = (old.0.members_of_any(old.1), new.0.members_of_any(new.1));
                let inside = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
                if self.weakness == Weakness::Missing {
                    members.retain(|(name, _)| {
                        let is_kept = !before.requires(name) || now.requires(name) || now.get(name).is_none();
                        if !is_kept {
                            self.places.insert(inside(name));
                        }
                        is_kept
                    });
                }
                for (name, value) in members {
                    let (was, is) = (before.schemas(name), now.schemas(name));
                    if was.is_empty() || is.is_empty() {
                        continue;
                    }
                    let admits_null =
                        |(schema, nodes): Alternatives<'_, '_>| nodes.iter().any(|node| schema.types(node).admits(Type::Null));
                    if self.weakness == Weakness::Null && !admits_null((old.0, was)) && admits_null((new.0, is)) {
                        self.places.insert(inside(name));
                        *value = Json::Null;
                    } else {
                        self.value((old.0, was), (new.0, is), value, &inside(name), depth + 1);
                    }
                }
            }
            Json::Array(items) => {
                let (before, now) = (old.0.items_of_any(old.1), new.0.items_of_any(new.1));
                for item in items.iter_mut().filter(|_| !before.schemas.is_empty() && !now.schemas.is_empty()) {
                    self.value((old.0, &before.schemas), (new.0, &now.schemas), item, &format!("{place}[]"), depth + 1);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_that_the_new_schema_refuses_is_kept() {
        let tool = |quantity: &str| {
            let schema = format!(
                r#"{{"type":"object","properties":{{"qty":{quantity},"free":{{"type":"boolean"}}}},"allOf":[{{"if":{{"properties":{{"qty":{{"type":"null"}}}}}},"then":{{"properties":{{"free":{{"const":true}}}}}}}}]}}"#
            );
            Tool { definition: format!(r#"{{"outputSchema":{schema}}}"#).leak(), ..Tool::EMPTY }
        };
        let mut answer = Json::parse(r#"{"free":false,"qty":1}"#).expect("JSON");
        let places = weaken(&tool(r#"{"type":"integer"}"#), &tool(r#"{"type":["integer","null"]}"#), &mut answer, Weakness::Null);
        assert_eq!((places.len(), &*answer.canonical()), (0, r#"{"free":false,"qty":1}"#));
    }

    #[test]
    fn only_what_the_new_schema_alone_permits_is_weakened() {
        let list = |quantity: &str, required: &str| {
            let item = format!(
                r#"{{"type":"object","required":[{required}],"properties":{{"id":{{"type":"integer"}},"qty":{quantity},"note":{{"type":["string","null"]}}}}}}"#
            );
            let schema =
                format!(r#"{{"type":"object","required":["rows"],"properties":{{"rows":{{"type":"array","items":{item}}}}}}}"#);
            Tool { definition: format!(r#"{{"outputSchema":{schema}}}"#).leak(), ..Tool::EMPTY }
        };
        let before = list(r#"{"type":"integer"}"#, r#""id","qty""#);
        let answer = Json::parse(r#"{"rows":[{"id":1,"qty":2,"note":"a"},{"id":2,"qty":3}]}"#).expect("JSON");
        let null = r#"{"rows":[{"id":1,"note":"a","qty":null},{"id":2,"qty":null}]}"#;
        let missing = r#"{"rows":[{"id":1,"note":"a"},{"id":2}]}"#;
        let same = answer.canonical();
        for (quantity, required, weakness, expected) in [
            (r#"{"type":["integer","null"]}"#, r#""id","qty""#, Weakness::Null, null),
            (r#"{"anyOf":[{"type":"integer"},{"type":"null"}]}"#, r#""id","qty""#, Weakness::Null, null),
            (r#"{"type":["integer","null"]}"#, r#""id","qty""#, Weakness::Missing, &same),
            (r#"{"type":"integer"}"#, r#""id""#, Weakness::Missing, missing),
            (r#"{"type":"integer"}"#, r#""id""#, Weakness::Null, &same),
        ] {
            let mut weakened = answer.clone();
            let places = weaken(&before, &list(quantity, required), &mut weakened, weakness);
            assert_eq!(weakened.canonical(), expected, "{quantity} {required} {weakness:?}");
            assert_eq!(places.contains("rows[].qty"), expected != same, "{places:?}");
        }
    }
}
