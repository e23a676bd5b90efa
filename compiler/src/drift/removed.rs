//! Members that an output schema no longer has, as schemas with which the reads of programs are checked.
//!
//! The static checker reports a read only if a schema excludes its key, and most output schemas exclude none. These schemas therefore
//! exclude every key that they do not declare. A key that one of them lacks and the other has is one that was removed: keys that were
//! never declared are missing in all of them.

use std::cell::Cell;

use ptc_catalog::Type;

use crate::json::Json;
use crate::json_schema::Schema;

/// Maximum depth of the compared parts. Deeper parts admit anything.
const MAX_DEPTH: usize = 16;
/// Maximum number of compared parts, since references are replaced by their targets.
const MAX_PARTS: usize = 5_000;

/// Closed shapes of what two output schemas have in common.
#[derive(Debug, PartialEq, Eq)]
pub struct Removed {
    /// Without the removed members.
    pub without: Json,
    /// With those removed members that were optional.
    pub with_removed_optional: Json,
    /// With all removed members.
    pub with_removed: Json,
}

/// Which removed members a shape has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    None,
    Optional,
    All,
}

/// Compares two output schemas. Returns `None` if no member was removed.
pub fn removed(old: &Json, new: &Json) -> Option<Removed> {
    let shape = |kept| {
        let walk = Walk { old: Schema::new(old), new: Schema::new(new), kept, left: Cell::new(MAX_PARTS) };
        walk.shape(&[old], &[new], 0)
    };
    let (without, with_removed) = (shape(Kept::None), shape(Kept::All));
    (without != with_removed).then(|| Removed { without, with_removed_optional: shape(Kept::Optional), with_removed })
}

struct Walk<'a> {
    old: Schema<'a>,
    new: Schema<'a>,
    kept: Kept,
    /// Number of parts that are left.
    left: Cell<usize>,
}

impl<'a> Walk<'a> {
    /// Returns the shape of values that satisfy one of the schemas on each side. Which of the old ones became which of the new ones is
    /// not known, so that a member is removed if none of the new ones has it.
    fn shape(&self, old: &[&'a Json], new: &[&'a Json], depth: usize) -> Json {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        if depth > MAX_DEPTH || left == 0 {
            return Json::object();
        }
        if self.is_other_container(old, new) {
            return if self.kept == Kept::All { Json::object() } else { self.container(new) };
        }
        let shapes = [self.list(old, new, depth), self.object(old, new, depth)];
        match shapes {
            [Some(list), Some(object)] => Json::object().with("anyOf", Json::Array(vec![list, object])),
            [list, object] => list.or(object).unwrap_or_else(Json::object),
        }
    }

    /// Whether lists became objects, or objects lists. All that programs read of the former values is removed then.
    fn is_other_container(&self, old: &[&'a Json], new: &[&'a Json]) -> bool {
        let kinds = |schema: &Schema<'a>, nodes: &[&'a Json]| {
            [Type::Array, Type::Object].map(|kind| nodes.iter().any(|node| schema.types(node).admits(kind)))
        };
        matches!((kinds(&self.old, old), kinds(&self.new, new)), ([true, false], [false, true]) | ([false, true], [true, false]))
    }

    /// Returns the shape of lists or objects: of objects with the names of their members, unless they may have any.
    fn container(&self, nodes: &[&'a Json]) -> Json {
        if nodes.iter().any(|node| self.new.types(node).admits(Type::Array)) {
            return typed("array");
        }
        let members = self.new.members_of_any(nodes);
        if members.properties.is_empty() || self.new.has_unnamed_members(nodes) {
            return typed("object");
        }
        let properties = members.properties.iter().fold(Json::object(), |all, (name, _)| all.with(*name, Json::object()));
        typed("object").with("properties", properties).with("additionalProperties", Json::Bool(false))
    }

    /// Returns the shape of lists. `None` if nothing is known of their items.
    fn list(&self, old: &[&'a Json], new: &[&'a Json], depth: usize) -> Option<Json> {
        let (before, now) = (self.old.items_of_any(old), self.new.items_of_any(new));
        if before.schemas.is_empty() || now.schemas.is_empty() || now.is_open {
            return None;
        }
        Some(typed("array").with("items", self.shape(&before.schemas, &now.schemas, depth + 1)))
    }

    /// Returns the shape of objects. `None` if they may have any members.
    fn object(&self, old: &[&'a Json], new: &[&'a Json], depth: usize) -> Option<Json> {
        let (before, now) = (self.old.members_of_any(old), self.new.members_of_any(new));
        if before.properties.is_empty() || now.properties.is_empty() || self.new.has_unnamed_members(new) {
            return None;
        }
        let mut properties = Json::object();
        for (name, _) in &now.properties {
            let (was, is) = (before.schemas(name), now.schemas(name));
            properties.set(*name, if was.is_empty() { Json::object() } else { self.shape(was, is, depth + 1) });
        }
        for (name, _) in before.properties.iter().filter(|(name, _)| now.get(name).is_none()) {
            if self.kept == Kept::All || self.kept == Kept::Optional && !before.requires(name) {
                properties.set(*name, Json::object());
            }
        }
        Some(typed("object").with("properties", properties).with("additionalProperties", Json::Bool(false)))
    }
}

fn typed(kind: &str) -> Json {
    Json::object().with("type", Json::string(kind))
}

#[cfg(test)]
mod tests {
    use super::removed;
    use crate::json::Json;

    #[test]
    fn shapes_differ_in_the_removed_members() {
        let json = |text: &str| Json::parse(text).expect("JSON");
        let old = json(
            r##"{"type":"object","properties":{"items":{"type":"array","items":{"$ref":"#/$defs/order"}}},
            "$defs":{"order":{"type":"object","required":["id"],"properties":{"id":{},"note":{},"next":{"$ref":"#/$defs/order"}}}}}"##,
        );
        let new = json(
            r#"{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"sku":{},"next":{}}}}}}"#,
        );
        let found = removed(&old, &new).expect("members were removed");
        let names = |shape: &Json| {
            let at = shape.get("properties").and_then(|at| at.get("items")?.get("items")?.get("properties"));
            at.map(|at| at.members().iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names(&found.without).as_deref(), Some("sku next"));
        assert_eq!(names(&found.with_removed_optional).as_deref(), Some("sku next note"));
        assert_eq!(names(&found.with_removed).as_deref(), Some("sku next id note"));
        assert_eq!(removed(&old, &old), None);
        // Members may have any name, or are not described any more.
        for open in [r#"{"type":"object"}"#, r#"{"properties":{"a":{}},"additionalProperties":{"type":"string"}}"#] {
            assert_eq!(removed(&old, &json(open)), None, "{open}");
        }
    }

    #[test]
    fn member_is_removed_if_no_alternative_has_it() {
        let json = |text: &str| Json::parse(text).expect("JSON");
        let list =
            |alternatives: &str| json(&format!(r#"{{"oneOf":[{{"type":"array","items":{alternatives}}},{{"type":"null"}}]}}"#));
        let cat =
            r#"{"type":"object","required":["id","lives"],"properties":{"id":{},"lives":{},"home":{"properties":{"zip":{}}}}}"#;
        let (tame, dog) = (cat.replace("lives", "age"), r#"{"properties":{"id":{},"lives":{}}}"#);
        let far = cat.replace("zip", "code");
        let either = |one: &str, other: &str| list(&format!(r#"{{"anyOf":[{one},{other}]}}"#));
        let both = |one: &str, other: &str| list(&format!(r#"{{"allOf":[{one},{other}]}}"#));
        for (old, new, expected) in [
            (either(cat, dog), either(&tame, r#"{"properties":{"id":{}}}"#), Some("lives")),
            (both(cat, dog), both(&tame, r#"{"properties":{"id":{}}}"#), Some("lives")),
            // Another alternative still has it, or may have it.
            (either(cat, dog), either(&tame, dog), None),
            (either(cat, dog), either(dog, cat), None),
            (either(cat, dog), either(&tame, r#"{"type":"object"}"#), None),
            (either(cat, dog), either(&tame, r#"{"properties":{"a":{}},"additionalProperties":{"type":"string"}}"#), None),
            (
                list(cat),
                json(r#"{"oneOf":[{"type":"array","items":{"type":"object","properties":{"id":{}}}},{"type":"array"}]}"#),
                None,
            ),
            // A member of alternatives that declare it differently.
            (either(cat, &cat.replace("zip", "city")), either(&far, &cat.replace("zip", "city")), Some("zip")),
            (either(cat, &far), either(&far, cat), None),
        ] {
            let found = removed(&old, &new).map(|found| (found.without.canonical(), found.with_removed.canonical()));
            let is_only_in_one = |name: &str| {
                found.as_ref().is_some_and(|(without, with)| {
                    let count = |text: &str| text.matches(&format!("\"{name}\"")).count();
                    count(without) == 0 && count(with) > 0
                })
            };
            match expected {
                Some(name) => assert!(is_only_in_one(name), "{new:?}: {found:?}"),
                None => assert!(
                    found.as_ref().is_none_or(|_| !is_only_in_one("lives") && !is_only_in_one("zip")),
                    "{new:?}: {found:?}"
                ),
            }
        }
    }

    #[test]
    fn schemas_that_contain_themselves_are_compared_to_a_bounded_extent() {
        let node = |name: &str| {
            let properties: Vec<String> = (0..9).map(|at| format!(r##""m{at}":{{"$ref":"#"}}"##)).collect();
            Json::parse(&format!(r#"{{"type":"object","properties":{{"{name}":{{}},{}}}}}"#, properties.join(","))).expect("JSON")
        };
        assert!(removed(&node("a"), &node("b")).is_some_and(|found| found.with_removed.canonical().len() < 1_000_000));
    }
}
