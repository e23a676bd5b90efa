//! Reads the parts of JSON Schema that a call needs: arguments, types and bounds.
//!
//! - [`alternatives`]: several schemas of which a value satisfies one.
//! - `mismatch`: values that a schema refuses.

pub mod alternatives;
pub(crate) mod mismatch;

use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use ptc_catalog::{Type, Types};

use crate::ir::Arg;
use crate::json::Json;

/// Maximum number of `$ref` hops and nested combinators that are followed. A deeper schema counts as "anything".
const MAX_DEPTH: usize = 24;

/// Maximum number of schema visits of one [`Schema`]. A small schema can expand exponentially through alternatives that refer to
/// others. Parts that are not visited count as "anything".
const MAX_VISITS: usize = 200_000;

/// Number of members of an object that count as one visit when they are searched.
const SEARCHED: usize = 16;

/// Keywords that only describe a schema.
pub(crate) const PROSE: [&str; 5] = ["description", "title", "examples", "example", "$comment"];

/// Maximum size in bytes of a `const` value in a label.
const MAX_LABEL: usize = 80;

/// A schema document. Local references are resolved against its root.
#[derive(Debug)]
pub struct Schema<'a> {
    root: &'a Json,
    /// Number of visits that are left.
    left: Cell<usize>,
}

/// The members that an object schema declares.
#[derive(Debug, Default)]
pub struct Members<'a> {
    /// Names and schemas, in order of appearance.
    pub properties: Vec<(&'a str, &'a Json)>,
    /// The names in `required`, in order.
    pub required: Vec<&'a str>,
    /// Whether other members are refused.
    pub closed: bool,
    by_name: HashMap<&'a str, &'a Json>,
    /// All schemas of the members that alternatives declare differently.
    alternatives: HashMap<&'a str, Vec<&'a Json>>,
    needed: HashSet<&'a str>,
}

impl<'a> Members<'a> {
    fn property(&mut self, name: &'a str, schema: &'a Json) {
        if let Entry::Vacant(free) = self.by_name.entry(name) {
            free.insert(schema);
            self.properties.push((name, schema));
        }
    }

    fn require(&mut self, name: &'a str) {
        if self.needed.insert(name) {
            self.required.push(name);
        }
    }

    /// Adds what alternatives have in common, and their members.
    fn branches(&mut self, branches: &[Members<'a>]) {
        if let Some(first) = branches.first() {
            self.closed |= branches.iter().all(|b| b.closed);
            for name in &first.required {
                if branches.iter().all(|b| b.requires(name)) {
                    self.require(name);
                }
            }
        }
        self.alternatives(branches);
    }

    /// Adds the members of alternatives. A member of several alternatives admits what one of them admits.
    fn alternatives(&mut self, branches: &[Members<'a>]) {
        let mut all: HashMap<&'a str, Vec<&'a Json>> = HashMap::new();
        for branch in branches {
            for (name, schema) in &branch.properties {
                let schemas = all.entry(name).or_default();
                for schema in branch.alternatives.get(name).map_or(std::slice::from_ref(schema), Vec::as_slice) {
                    if !schemas.contains(schema) {
                        schemas.push(schema);
                    }
                }
            }
        }
        for (name, schema) in branches.iter().flat_map(|branch| &branch.properties) {
            // A member that is declared outside of the alternatives must satisfy that declaration in all of them.
            if self.get(name).is_none() {
                self.property(name, schema);
                if let Some(schemas) = all.remove(name).filter(|schemas| schemas.len() > 1) {
                    self.alternatives.insert(name, schemas);
                }
            }
        }
    }

    /// Returns the schemas of a member: several if alternatives declare it differently, and none if it is not declared.
    pub fn schemas(&self, name: &str) -> &[&'a Json] {
        let several = self.alternatives.get(name).map(Vec::as_slice);
        several.or_else(|| self.by_name.get(name).map(std::slice::from_ref)).unwrap_or_default()
    }

    /// Returns the schema of a member. If alternatives declare it differently, this is the first of them.
    pub fn get(&self, name: &str) -> Option<&'a Json> {
        self.by_name.get(name).copied()
    }

    /// Whether a member is required.
    pub fn requires(&self, name: &str) -> bool {
        self.needed.contains(name)
    }
}

impl<'a> Schema<'a> {
    /// Makes a document whose local references start at `root`.
    pub fn new(root: &'a Json) -> Self {
        Schema { root, left: Cell::new(MAX_VISITS) }
    }

    /// Consumes visits. Returns whether enough were left.
    fn looks(&self, count: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(count));
        left >= count
    }

    /// Whether the visits are used up, so that results are less precise than the schema.
    pub fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }

    /// Whether a schema is the root of the document.
    pub fn is_root(&self, node: &Json) -> bool {
        std::ptr::eq(self.root, node)
    }

    /// Returns a keyword of a schema, or of the schema that it refers to.
    pub fn keyword(&self, node: &'a Json, key: &str) -> Option<&'a Json> {
        let mut node = node;
        for _ in 0..MAX_DEPTH {
            if let Some(found) = node.get(key) {
                return Some(found);
            }
            node = self.target(node)?;
        }
        None
    }

    /// Returns the target of a schema's local `$ref`.
    pub fn target(&self, node: &'a Json) -> Option<&'a Json> {
        let pointer = node.get("$ref")?.as_str()?.strip_prefix('#')?;
        let mut at = self.root;
        for segment in pointer.split('/').skip(1) {
            let name = segment.replace("~1", "/").replace("~0", "~");
            if !self.looks(1 + at.members().len() / SEARCHED) {
                return None;
            }
            at = match at {
                Json::Array(items) => items.get(name.parse::<usize>().ok()?)?,
                other => other.get(&name)?,
            };
        }
        Some(at)
    }

    /// Returns the schema behind `$ref`s and behind the only alternative beside `null`.
    pub fn body(&self, node: &'a Json) -> &'a Json {
        let mut node = node;
        for _ in 0..MAX_DEPTH {
            let is_alone = |key: &str| {
                node.members().iter().all(|(other, _)| other == key || other == "default" || PROSE.contains(&other.as_str()))
            };
            let next = if is_alone("$ref") {
                self.target(node)
            } else {
                let key = ["anyOf", "oneOf"].into_iter().find(|key| is_alone(key));
                let branches = key.and_then(|key| node.get(key)).map(Json::elements).unwrap_or_default();
                let mut kept = branches.iter().filter(|branch| branch.get("type").and_then(Json::as_str) != Some("null"));
                kept.next().filter(|_| branches.len() > 1 && kept.next().is_none())
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }

    /// Returns the JSON types that the schema admits.
    pub fn types(&self, node: &'a Json) -> Types {
        let bits = self.type_bits(node, 0);
        if bits == 0 { Types::ANY } else { Types(collapse(bits)) }
    }

    fn type_bits(&self, node: &'a Json, depth: usize) -> u8 {
        if depth > MAX_DEPTH || !self.looks(1) {
            return ANY_BITS;
        }
        let mut bits = match node.get("type") {
            Some(Json::String(name)) => named(name),
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).map(named).fold(0, |a, b| a | b),
            _ => ANY_BITS,
        };
        if let Some(value) = node.get("const") {
            bits &= of_value(value);
        } else if let Some(Json::Array(values)) = node.get("enum") {
            bits &= values.iter().map(of_value).fold(0, |a, b| a | b);
        }
        if let Some(target) = self.target(node) {
            bits &= self.type_bits(target, depth + 1);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Json::Array(branches)) = node.get(key) {
                bits &= branches.iter().map(|b| self.type_bits(b, depth + 1)).fold(0, |a, b| a | b);
            }
        }
        if let Some(Json::Array(parts)) = node.get("allOf") {
            bits = parts.iter().fold(bits, |bits, part| bits & self.type_bits(part, depth + 1));
        }
        if node.get("nullable").and_then(Json::as_bool) == Some(true) {
            bits |= Type::Null as u8;
        }
        bits
    }

    /// Returns the type in the notation of documents. `const` and `enum` take precedence over `type`. A `const` counts whenever
    /// it is present, so that `false`, `null`, `0` and `""` are shown too.
    pub fn label(&self, node: &'a Json) -> String {
        self.label_within(node, 0)
    }

    fn label_within(&self, node: &'a Json, depth: usize) -> String {
        if !self.looks(1) {
            return names(ANY_BITS);
        }
        if let Some(value) = self.keyword(node, "const") {
            let mut text = value.canonical();
            if text.len() > MAX_LABEL {
                text.truncate(text.floor_char_boundary(MAX_LABEL));
                text.push('…');
            }
            return format!("const<{text}>");
        }
        if let Some(Json::Array(values)) = self.keyword(node, "enum") {
            let mut kinds: Vec<u8> = values.iter().map(of_value).collect();
            kinds.sort_unstable();
            kinds.dedup();
            return match kinds.as_slice() {
                [one] if *one & (Type::Object as u8 | Type::Array as u8) == 0 => format!("enum<{}>", names(*one)),
                _ => "enum".to_owned(),
            };
        }
        for key in ["anyOf", "oneOf"] {
            if let (Some(Json::Array(branches)), true) = (self.keyword(node, key), depth < 4) {
                let mut labels: Vec<String> = Vec::new();
                for branch in branches {
                    for label in self.label_within(branch, depth + 1).split('|') {
                        if !labels.iter().any(|l| l == label) {
                            labels.push(label.to_owned());
                        }
                    }
                }
                if labels.iter().any(|l| l == "any") {
                    return names(self.types(node).0);
                }
                return labels.join("|");
            }
        }
        if let (Some(Json::Array(parts)), None, true) = (self.keyword(node, "allOf"), node.get("type"), depth < 4) {
            let bound =
                parts.iter().map(|p| self.label_within(p, depth + 1)).find(|l| l.starts_with("enum") || l.starts_with("const"));
            if let Some(label) = bound {
                return label;
            }
        }
        names(self.types(node).0)
    }

    /// Returns the only admitted values as canonical JSON; empty if the values are not restricted.
    pub fn allowed(&self, node: &'a Json) -> Vec<String> {
        self.allowed_within(node, 0).unwrap_or_default()
    }

    fn allowed_within(&self, node: &'a Json, depth: usize) -> Option<Vec<String>> {
        if depth > 4 || !self.looks(1) {
            return None;
        }
        if let Some(value) = self.keyword(node, "const") {
            return Some(vec![value.canonical()]);
        }
        if let Some(Json::Array(values)) = self.keyword(node, "enum") {
            return Some(values.iter().map(Json::canonical).collect());
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Json::Array(branches)) = self.keyword(node, key) {
                let mut all = Vec::new();
                for branch in branches {
                    if branch.get("type").and_then(Json::as_str) == Some("null") {
                        all.push("null".to_owned());
                    } else {
                        all.extend(self.allowed_within(branch, depth + 1)?);
                    }
                }
                return Some(all);
            }
        }
        let Some(Json::Array(parts)) = self.keyword(node, "allOf") else { return None };
        parts.iter().find_map(|part| self.allowed_within(part, depth + 1))
    }

    /// Returns the members of an object schema, including those behind `$ref`, `allOf` and alternatives. A member that only some
    /// alternatives require is optional.
    pub fn members(&self, node: &'a Json) -> Members<'a> {
        let mut out = Members::default();
        self.collect(node, &mut out, 0);
        out
    }

    fn collect(&self, node: &'a Json, out: &mut Members<'a>, depth: usize) {
        let properties = node.get("properties").map(Json::members).unwrap_or_default();
        if depth > MAX_DEPTH || !self.looks(1 + properties.len() / SEARCHED) {
            return;
        }
        for (name, schema) in properties {
            out.property(name, schema);
        }
        for name in node.get("required").map(Json::elements).unwrap_or_default().iter().filter_map(Json::as_str) {
            out.require(name);
        }
        // Arguments are the union of all parts, so one part that refuses other members closes the whole.
        let shut = |key| node.get(key).and_then(Json::as_bool) == Some(false);
        out.closed |= shut("additionalProperties") || shut("unevaluatedProperties");
        if let Some(target) = self.target(node) {
            self.collect(target, out, depth + 1);
        }
        for part in node.get("allOf").map(Json::elements).unwrap_or_default() {
            self.collect(part, out, depth + 1);
        }
        for key in ["anyOf", "oneOf"] {
            let branches: Vec<Members<'a>> = node
                .get(key)
                .map(Json::elements)
                .unwrap_or_default()
                .iter()
                .map(|branch| {
                    let mut inner = Members::default();
                    self.collect(branch, &mut inner, depth + 1);
                    inner
                })
                .collect();
            out.branches(&branches);
        }
    }

    /// Returns the arguments of the input schema, and whether others are refused. Required arguments come first in the order of
    /// `required`, then optional ones by name.
    pub fn arguments(&self) -> (Vec<Arg>, bool) {
        self.arguments_of(self.root)
    }

    /// Like [`Schema::arguments`], but for an object schema inside the document.
    pub fn arguments_of(&self, node: &'a Json) -> (Vec<Arg>, bool) {
        let members = self.members(node);
        let argument = |name: &str, required| self.union(name, members.schemas(name), required);
        let mut args: Vec<Arg> = members.required.iter().map(|name| argument(name, true)).collect();
        let mut optional: Vec<_> = members.properties.iter().filter(|(name, _)| !members.requires(name)).collect();
        optional.sort_by_key(|(name, _)| *name);
        args.extend(optional.into_iter().map(|(name, _)| argument(name, false)));
        (args, members.closed)
    }

    /// Returns a schema as an argument with that name.
    pub fn argument(&self, name: &str, schema: &'a Json, required: bool) -> Arg {
        self.union(name, &[schema], required)
    }

    /// Returns an argument that admits what any of the schemas admits. It admits anything if there are none.
    pub fn union(&self, name: &str, schemas: &[&'a Json], required: bool) -> Arg {
        let bits = schemas.iter().map(|schema| self.types(schema).0).reduce(|a, b| a | b);
        let types = Types(bits.map_or(ANY_BITS, collapse));
        let allowed: Option<Vec<Vec<String>>> =
            schemas.iter().map(|schema| Some(self.allowed(schema)).filter(|values| !values.is_empty())).collect();
        let mut labels: Vec<String> = Vec::new();
        for label in schemas.iter().map(|schema| self.label(schema)) {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        let is_any = labels.is_empty() || labels.len() > 1 && labels.iter().any(|label| label == "any");
        let label = if is_any { names(types.0) } else { labels.join("|") };
        let mut values: Vec<String> = Vec::new();
        for value in allowed.into_iter().flatten().flatten() {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Arg { name: name.to_owned(), required, types, label, allowed: values }
    }
}

const ANY_BITS: u8 = Types::ANY.0;
const NUMBERS: u8 = Type::Number as u8 | Type::Integer as u8;

/// Returns the bits of a named type. `number` includes the bit of integers, so that intersections are correct.
fn named(name: &str) -> u8 {
    match name {
        "number" => NUMBERS,
        // An unknown type name may mean any type.
        other => Type::ALL.iter().find(|(_, n)| *n == other).map_or(ANY_BITS, |(kind, _)| *kind as u8),
    }
}

fn of_value(value: &Json) -> u8 {
    value.kind() as u8
}

/// Removes `integer` if `number` is present, since `number` includes it.
fn collapse(bits: u8) -> u8 {
    if bits & NUMBERS == NUMBERS && bits != ANY_BITS { bits & !(Type::Integer as u8) } else { bits }
}

fn names(bits: u8) -> String {
    if bits == ANY_BITS || bits == 0 {
        return "any".to_owned();
    }
    let bits = collapse(bits);
    let all: Vec<&str> = Type::ALL.iter().filter(|(kind, _)| bits & *kind as u8 != 0).map(|(_, name)| *name).collect();
    all.join("|")
}

#[cfg(test)]
mod tests {
    use super::Schema;
    use crate::json::Json;

    #[test]
    fn member_of_several_alternatives_admits_what_one_of_them_admits() {
        let schema = serde_json::json!({
            "properties": { "size": { "type": "integer" } },
            "oneOf": [
                { "required": ["kind"], "properties": { "kind": { "const": "cat" }, "lives": { "type": "integer" }, "id": {} } },
                { "required": ["kind"], "properties": { "kind": { "const": "dog" }, "lives": { "type": "string" }, "id": {} } },
                { "required": ["kind"], "properties": { "kind": { "enum": ["cow", "cat"] }, "size": { "type": "string" } } },
            ],
        });
        let schema = Json::from(&schema);
        let (args, _) = Schema::new(&schema).arguments();
        let shown: Vec<String> = args.iter().map(|arg| format!("{} {} {}", arg.name, arg.label, arg.allowed.join(" "))).collect();
        let kind = r#"kind const<"cat">|const<"dog">|enum<string> "cat" "dog" "cow""#;
        assert_eq!(shown, [kind, "id any ", "lives integer|string ", "size integer "]);
    }
}
