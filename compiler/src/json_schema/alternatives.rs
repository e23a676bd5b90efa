//! Reads several schemas of which a value satisfies one: their members and their items together.

use ptc_catalog::Type;

use super::{MAX_DEPTH, Members, Schema};
use crate::json::Json;

/// The items that lists of a schema have.
#[derive(Debug, Default)]
pub struct Items<'a> {
    /// The schemas of the items, each of which an item may satisfy.
    pub schemas: Vec<&'a Json>,
    /// Whether the items of a list may be anything.
    pub is_open: bool,
}

impl<'a> Schema<'a> {
    /// Returns the members that at least one of the schemas declares. A member is required if all of them require it.
    pub fn members_of_any(&self, nodes: &[&'a Json]) -> Members<'a> {
        if let [node] = nodes {
            return self.members(node);
        }
        let branches: Vec<Members<'a>> = nodes.iter().map(|node| self.members(node)).collect();
        let mut out = Members::default();
        out.branches(&branches);
        out
    }

    /// Returns the items of the lists that one of the schemas admits.
    pub fn items_of_any(&self, nodes: &[&'a Json]) -> Items<'a> {
        let mut out = Items::default();
        for node in nodes {
            let known = out.schemas.len();
            self.add_items(node, &mut out, 0);
            out.is_open |= out.schemas.len() == known && self.types(node).admits(Type::Array);
        }
        out
    }

    fn add_items(&self, node: &'a Json, out: &mut Items<'a>, depth: usize) {
        if depth > MAX_DEPTH || !self.looks(1) {
            out.is_open = true;
            return;
        }
        out.is_open |= node.get("prefixItems").is_some();
        if let Some(items) = node.get("items")
            && !out.schemas.contains(&items)
        {
            out.schemas.push(items);
        }
        if let Some(target) = self.target(node) {
            self.add_items(target, out, depth + 1);
        }
        for part in node.get("allOf").map(Json::elements).unwrap_or_default() {
            self.add_items(part, out, depth + 1);
        }
        let has_own = !out.schemas.is_empty();
        for branch in ["anyOf", "oneOf"].into_iter().filter_map(|key| node.get(key)).flat_map(Json::elements) {
            let known = out.schemas.len();
            self.add_items(branch, out, depth + 1);
            out.is_open |= !has_own && out.schemas.len() == known && self.types(branch).admits(Type::Array);
        }
    }

    /// Whether an object that satisfies one of the schemas may have members that they describe without naming them, or whether one of
    /// them names none.
    pub fn has_unnamed_members(&self, nodes: &[&'a Json]) -> bool {
        nodes.iter().any(|node| self.names_not_all(node, false, 0))
    }

    /// `is_named`: whether a schema around this alternative names members.
    fn names_not_all(&self, node: &'a Json, is_named: bool, depth: usize) -> bool {
        let parts = self.parts(node, depth);
        if depth > MAX_DEPTH || !self.looks(1 + parts.len()) {
            return true;
        }
        let describes_others = |part: &&Json| {
            let mut others = ["additionalProperties", "unevaluatedProperties"].into_iter().filter_map(|key| part.get(key));
            part.get("patternProperties").is_some() || others.any(|schema| !schema.members().is_empty())
        };
        if parts.iter().any(describes_others) {
            return true;
        }
        let is_named =
            is_named || parts.iter().any(|part| part.get("properties").is_some_and(|names| !names.members().is_empty()));
        let branches = parts.iter().flat_map(|part| ["anyOf", "oneOf"].into_iter().filter_map(|key| part.get(key)));
        let mut branches = branches.flat_map(Json::elements).peekable();
        if branches.peek().is_none() {
            return !is_named && self.types(node).admits(Type::Object);
        }
        branches.any(|branch| self.names_not_all(branch, is_named, depth + 1))
    }

    /// Returns a schema with the schemas that apply together with it: the target of its reference, and the parts in `allOf`.
    fn parts(&self, node: &'a Json, depth: usize) -> Vec<&'a Json> {
        let (mut parts, mut at) = (vec![node], 0);
        while let Some(part) = parts.get(at).copied() {
            at += 1;
            let inner = self.target(part).into_iter().chain(part.get("allOf").map(Json::elements).unwrap_or_default());
            for inner in inner {
                if parts.len() + depth < MAX_PARTS && !parts.iter().any(|known| std::ptr::eq(*known, inner)) {
                    parts.push(inner);
                }
            }
        }
        parts
    }
}

/// Maximum number of schemas that apply together.
const MAX_PARTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::Schema;
    use crate::json::Json;

    #[test]
    fn members_and_items_of_alternatives_are_those_of_any_of_them() {
        let json = |text: &str| Json::parse(text).expect("JSON");
        let schema = json(
            r##"{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/cat"}},{"type":"array","items":{"$ref":"#/$defs/dog"}},
            {"type":"null"}],"$defs":{
            "cat":{"type":"object","required":["id","lives"],"properties":{"id":{},"lives":{}}},
            "dog":{"allOf":[{"type":"object","required":["id"],"properties":{"id":{}}},{"properties":{"tricks":{}}}]}}}"##,
        );
        let reader = Schema::new(&schema);
        let items = reader.items_of_any(&[&schema]);
        assert_eq!((items.schemas.len(), items.is_open), (2, false));
        let members = reader.members_of_any(&items.schemas);
        let names: Vec<&str> = members.properties.iter().map(|(name, _)| *name).collect();
        assert_eq!((names, members.required.clone()), (vec!["id", "lives", "tricks"], vec!["id"]));
        assert!(!reader.has_unnamed_members(&items.schemas));
    }

    #[test]
    fn alternative_that_names_no_members_or_items_admits_any() {
        for (text, is_open) in [
            (r#"{"anyOf":[{"properties":{"a":{}}},{"type":"null"},{"type":"string"}]}"#, false),
            (r#"{"properties":{"a":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#, false),
            (r#"{"properties":{"a":{}},"additionalProperties":true}"#, false),
            (r#"{"anyOf":[{"properties":{"a":{}}},{"type":"object"}]}"#, true),
            (r#"{"anyOf":[{"properties":{"a":{}}},{}]}"#, true),
            (r#"{"oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}},"additionalProperties":{"type":"string"}}]}"#, true),
            (r#"{"allOf":[{"properties":{"a":{}}},{"patternProperties":{"^x":{}}}]}"#, true),
            (r##"{"$ref":"#"}"##, true),
        ] {
            let schema = Json::parse(text).expect("JSON");
            assert_eq!(Schema::new(&schema).has_unnamed_members(&[&schema]), is_open, "{text}");
        }
        for (text, is_open) in [
            (r#"{"anyOf":[{"type":"array","items":{}},{"type":"object"}]}"#, false),
            (r#"{"anyOf":[{"type":"array","items":{}},{"type":"array"}]}"#, true),
            (r#"{"type":"array","items":{},"anyOf":[{"minItems":1},{"maxItems":3}]}"#, false),
        ] {
            let schema = Json::parse(text).expect("JSON");
            assert_eq!(Schema::new(&schema).items_of_any(&[&schema]).is_open, is_open, "{text}");
        }
    }
}
