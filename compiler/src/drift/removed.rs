//! Members that an output schema no longer has, as schemas with which the reads of programs are checked.
//!
//! The static checker reports a read only if a schema excludes its key, and most output schemas exclude none. These schemas therefore
//! exclude every key that they do not declare. A key that one of them lacks and the other has is one that was removed: keys that were
//! never declared are missing in all of them.

use std::cell::Cell;

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
        walk.shape(old, new, 0)
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
    fn shape(&self, old: &'a Json, new: &'a Json, depth: usize) -> Json {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        if depth > MAX_DEPTH || left == 0 {
            return Json::object();
        }
        let (old, new) = (self.old.body(old), self.new.body(new));
        if let (Some(old), Some(new)) = (self.old.keyword(old, "items"), self.new.keyword(new, "items")) {
            return typed("array").with("items", self.shape(old, new, depth + 1));
        }
        let (before, now) = (self.old.members(old), self.new.members(new));
        if before.properties.is_empty() || now.properties.is_empty() || self.declares_others(new) {
            return Json::object();
        }
        let mut properties = Json::object();
        for (name, _) in &now.properties {
            // Which of several alternatives was changed is not known.
            let inner = match (before.schemas(name), now.schemas(name)) {
                ([was], [is]) => self.shape(was, is, depth + 1),
                _ => Json::object(),
            };
            properties.set(*name, inner);
        }
        for (name, _) in before.properties.iter().filter(|(name, _)| now.get(name).is_none()) {
            if self.kept == Kept::All || self.kept == Kept::Optional && !before.requires(name) {
                properties.set(*name, Json::object());
            }
        }
        typed("object").with("properties", properties).with("additionalProperties", Json::Bool(false))
    }

    /// Whether a schema describes members that it does not name.
    fn declares_others(&self, node: &'a Json) -> bool {
        let mut others =
            ["additionalProperties", "unevaluatedProperties"].into_iter().filter_map(|key| self.new.keyword(node, key));
        self.new.keyword(node, "patternProperties").is_some() || others.any(|schema| !schema.members().is_empty())
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
    fn schemas_that_contain_themselves_are_compared_to_a_bounded_extent() {
        let node = |name: &str| {
            let properties: Vec<String> = (0..9).map(|at| format!(r##""m{at}":{{"$ref":"#"}}"##)).collect();
            Json::parse(&format!(r#"{{"type":"object","properties":{{"{name}":{{}},{}}}}}"#, properties.join(","))).expect("JSON")
        };
        assert!(removed(&node("a"), &node("b")).is_some_and(|found| found.with_removed.canonical().len() < 1_000_000));
    }
}
