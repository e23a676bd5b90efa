//! Normalises schemas of a document to JSON Schema 2020-12. The result is independent of the document: referenced schemas move
//! into `$defs`.

use std::collections::{BTreeSet, HashMap};

use ptc_catalog::Type;

use super::faults::Faults;
use super::reference::{References, unescape};
use crate::diag::{quoted, suggest};
use crate::json::Json;
use crate::source::FileId;
use crate::tree::{Node, Tree};

/// Maximum size of a result's schema in a definition, in bytes of canonical JSON, so that white space does not count. A larger
/// schema is cut to the greatest depth that fits. Deeper levels accept any value, so that the cut schema is still correct.
const RESULT_BUDGET: usize = 8 * 1024;

/// Maximum nesting that a cut schema keeps.
const CUT_DEPTH: usize = 6;

/// Maximum number of `$ref` hops and combinators within one level of a cut schema.
const MAX_HOPS: usize = 32;

/// Keywords whose values are maps of schemas, lists of schemas, and single schemas, in this order.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const LISTED: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const SINGLE: [&str; 10] = [
    "items",
    "additionalProperties",
    "not",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
];
/// Keywords that do not constrain values.
const DROPPED: [&str; 6] = ["xml", "externalDocs", "discriminator", "nullable", "$schema", "$id"];

/// Returns the complete schema of an argument or of a request body, without members that are `readOnly`.
pub(super) fn argument<'a>(references: References<'a>, node: &'a Node, faults: &mut Faults) -> Json {
    let walk = Walk::new(references, Mode::Full { prose: true }, usize::MAX, faults);
    Walk { hidden: "readOnly", ..walk }.document(node).unwrap_or(Json::Bool(true))
}

/// Returns the schema of a result, and whether it was cut.
pub(super) fn result<'a>(references: References<'a>, node: &'a Node, faults: &mut Faults) -> (Json, bool) {
    for prose in [true, false] {
        if let Some(whole) = Walk::new(references, Mode::Full { prose }, RESULT_BUDGET, faults).document(node) {
            return (whole, false);
        }
    }
    let mut best = Json::object();
    for depth in 1..=CUT_DEPTH {
        match Walk::new(references, Mode::Cut { depth }, RESULT_BUDGET, faults).document(node) {
            Some(fits) => best = fits,
            None => break,
        }
    }
    (best, true)
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    /// References become `$defs`.
    Full {
        /// Whether to keep descriptions and examples.
        prose: bool,
    },
    /// References are inlined, down to a maximum depth.
    Cut {
        /// Number of levels of members and items.
        depth: usize,
    },
}

struct Walk<'a, 'f> {
    references: References<'a>,
    faults: &'f mut Faults,
    mode: Mode,
    budget: usize,
    spent: usize,
    /// The names in `$defs` by the address of the schema. Files of one document may use the same pointer for different schemas.
    names: HashMap<*const Node, String>,
    /// The names in use.
    taken: BTreeSet<String>,
    /// Definitions that have a name but are not written yet.
    waiting: Vec<(String, &'a Node)>,
    /// Members with this flag are left out.
    hidden: &'static str,
    /// The schemas whose `allOf` contains the current one, whose members the current one may require.
    wholes: Vec<&'a Node>,
}

impl<'a, 'f> Walk<'a, 'f> {
    fn new(references: References<'a>, mode: Mode, budget: usize, faults: &'f mut Faults) -> Self {
        Walk {
            references,
            faults,
            mode,
            budget,
            spent: 0,
            names: HashMap::new(),
            taken: BTreeSet::new(),
            waiting: Vec::new(),
            hidden: "writeOnly",
            wholes: Vec::new(),
        }
    }

    /// Returns a whole schema with its `$defs`, or `None` if it exceeds the budget.
    fn document(&mut self, node: &'a Node) -> Option<Json> {
        let depth = match self.mode {
            Mode::Full { .. } => usize::MAX,
            Mode::Cut { depth } => depth,
        };
        let mut root = self.schema(node, depth, 0);
        let mut defs = Json::object();
        while let Some((name, node)) = self.waiting.pop() {
            if self.spent > self.budget {
                return None;
            }
            let schema = self.schema(node, depth, 0);
            defs.set(name, schema);
        }
        if !defs.members().is_empty() {
            root.set("$defs", defs);
        }
        (self.spent <= self.budget).then_some(root)
    }

    fn schema(&mut self, node: &'a Node, depth: usize, hops: usize) -> Json {
        let Tree::Object(members) = &node.value else {
            self.spent += 4;
            if node.as_bool().is_none() {
                let message = || format!("a schema is an object, found {}: any value is taken", node.kind());
                self.faults.note(node.place(self.references.file), message);
            }
            return Json::Bool(node.as_bool().unwrap_or(true));
        };
        let mut out = Json::object();
        if self.spent > self.budget || hops > MAX_HOPS {
            return out;
        }
        let cut = matches!(self.mode, Mode::Cut { .. });
        if let Some(reference) = node.get("$ref").filter(|r| r.as_str().is_some()) {
            let Some(target) = self.faults.keep(self.references.target(reference)) else { return out };
            if cut {
                let mut followed = self.schema(target, depth, hops + 1);
                normalise(&mut followed, node);
                return followed;
            }
            let name = self.name(reference.as_str().unwrap_or_default(), target);
            self.spent += name.len() + 18;
            out.set("$ref", Json::string(format!("#/$defs/{}", name.replace('~', "~0").replace('/', "~1"))));
        }
        let prose = matches!(self.mode, Mode::Full { prose: true });
        for member in members {
            let key = &*member.key;
            if key == "$ref" || key.starts_with("x-") || DROPPED.contains(&key) {
                continue;
            }
            if !prose && matches!(key, "description" | "title" | "example" | "examples" | "default" | "deprecated") {
                continue;
            }
            self.spent += key.len() + 4;
            let value = if NAMED.contains(&key) {
                if depth == 0 {
                    continue;
                }
                let mut named = Json::object();
                for entry in member.value.members() {
                    if key == "properties" && self.is_hidden(&entry.value) {
                        continue;
                    }
                    self.spent += entry.key.len() + 4;
                    let schema = self.schema(&entry.value, depth.saturating_sub(1), 0);
                    named.set(&*entry.key, schema);
                }
                named
            } else if let (true, Some(schemas)) = (LISTED.contains(&key), member.value.elements()) {
                let is_part = key == "allOf";
                self.wholes.extend(Some(node).filter(|_| is_part));
                let parts = schemas.iter().map(|s| self.schema(s, depth, hops + 1)).collect();
                self.wholes.truncate(self.wholes.len() - usize::from(is_part));
                Json::Array(parts)
            } else if SINGLE.contains(&key) {
                if depth == 0 {
                    continue;
                }
                self.schema(&member.value, depth.saturating_sub(1), 0)
            } else if key == "required" && depth == 0 {
                continue;
            } else if let ("required", Some(names)) = (key, member.value.elements()) {
                let kept = names.iter().filter(|name| !name.as_str().is_some_and(|name| self.hides(node, name)));
                let kept = Json::Array(kept.map(Json::from).collect());
                self.spent += kept.canonical().len();
                kept
            } else {
                let value = Json::from(&member.value);
                self.spent += value.canonical().len();
                value
            };
            out.set(key, value);
        }
        report_invalid_keywords(node, &out, self.references.file, self.faults);
        normalise(&mut out, node);
        out
    }

    /// Whether the member `name` of an object is left out. It may be declared by the object, or by another part of an `allOf`.
    fn hides(&self, node: &'a Node, name: &str) -> bool {
        let parts = |whole: &'a Node| whole.get("allOf").and_then(Node::elements).unwrap_or_default();
        let wholes = || self.wholes.iter().copied().chain([node]);
        let declaring = wholes().chain(wholes().flat_map(parts));
        let resolved = declaring.map(|node| self.references.resolve(node).unwrap_or(node));
        resolved.filter_map(|node| node.get("properties")?.get(name)).any(|member| self.is_hidden(member))
    }

    /// Whether a member has the flag that leaves it out, itself or in the schema to which it refers.
    fn is_hidden(&self, member: &'a Node) -> bool {
        let has_flag = |node: &Node| node.get(self.hidden).and_then(Node::as_bool) == Some(true);
        has_flag(member) || member.get("$ref").is_some() && self.references.resolve(member).is_ok_and(has_flag)
    }

    /// Returns the name in `$defs` for the target of a reference: the last part of its pointer, or the name of its file.
    fn name(&mut self, reference: &str, target: &'a Node) -> String {
        if let Some(name) = self.names.get(&std::ptr::from_ref(target)) {
            return name.clone();
        }
        let last = match reference.split_once('#') {
            Some((_, pointer)) if pointer.len() > 1 => unescape(pointer.rsplit('/').next().unwrap_or_default()),
            _ => file_stem(reference),
        };
        let mut name = last.clone();
        let mut count = 1;
        while !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{last}-{count}");
        }
        self.names.insert(std::ptr::from_ref(target), name.clone());
        self.waiting.push((name.clone(), target));
        name
    }
}

/// Returns the name of the file of a reference without folder and extension.
fn file_stem(reference: &str) -> String {
    let file = unescape(reference.split('#').next().unwrap_or_default());
    let name = file.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    if stem.is_empty() { "root".to_owned() } else { stem.to_owned() }
}

/// Keywords, the kind of value that they require in words, and a predicate for it.
type KeywordType = (&'static [&'static str], &'static str, fn(&Tree) -> bool);

/// The kinds of value that keywords require. A keyword with another kind of value has no effect.
const KEYWORD_TYPES: [KeywordType; 5] = [
    (&["enum", "required", "allOf", "anyOf", "oneOf", "prefixItems"], "a list", |value| matches!(value, Tree::Array(_))),
    (&["properties", "patternProperties"], "an object", |value| matches!(value, Tree::Object(_))),
    (&["pattern"], "a string", |value| matches!(value, Tree::String(_))),
    (&["uniqueItems", "nullable"], "a boolean", |value| matches!(value, Tree::Bool(_))),
    (
        &["minimum", "maximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
        "a number",
        |value| matches!(value, Tree::Number(_)),
    ),
];

/// Notes mistakes in a schema: keywords with values that have no effect.
fn report_invalid_keywords(node: &Node, out: &Json, file: FileId, faults: &mut Faults) {
    for (keys, expected, is_right) in KEYWORD_TYPES {
        for (key, value) in keys.iter().filter_map(|key| Some((key, node.get(key)?))) {
            if !is_right(&value.value) {
                faults.note(value.place(file), || format!("`{key}` is {expected}, found {}: it binds nothing", value.kind()));
            }
        }
    }
    let Some(kind) = node.get("type").filter(|kind| kind.elements().is_none()) else { return };
    let known = Type::ALL.iter().map(|(_, name)| *name);
    let is_known = |text: &str| known.clone().any(|name| name == text);
    if !kind.as_str().is_some_and(is_known) {
        faults.note(kind.place(file), || {
            let what = kind.as_str().map_or_else(|| kind.kind().to_owned(), quoted);
            let near = kind.as_str().and_then(|text| suggest::closest_match(text, known.clone()));
            let meant = near.map(|name| format!(", which may be meant as `{name}`")).unwrap_or_default();
            format!("{what} is not a schema type{meant}: any value is taken")
        });
        return;
    }
    let kind = kind.as_str().unwrap_or_default();
    let named = Type::ALL.iter().find(|(_, name)| *name == kind).map(|(kind, _)| *kind);
    let takes = |value: &Json| match (named, value) {
        (_, Json::Null) | (Some(Type::Number), Json::Number(_)) => true,
        // JSON Schema treats `1.0` as an integer.
        (Some(Type::Integer), Json::Number(text)) => text.parse::<f64>().is_ok_and(|number| number.fract() == 0.0),
        (named, value) => named == Some(value.kind()),
    };
    if let (Some(values), Some(Json::Array(listed))) = (node.get("enum"), out.get("enum"))
        && !listed.is_empty()
        && !listed.iter().any(takes)
    {
        faults.note(values.place(file), || format!("no value of this `enum` is of the type {kind}: nothing is taken"));
    }
    if let (Some(node), Some(default)) = (node.get("default"), out.get("default"))
        && !takes(default)
    {
        faults.note(node.place(file), || format!("the default is {}, and the type is {kind}", node.kind()));
    }
}

/// Rewrites constructs that only OpenAPI 3.0 has into 2020-12. Documents of 3.1 that still use them are handled too.
fn normalise(out: &mut Json, node: &Node) {
    if node.get("nullable").and_then(Node::as_bool) == Some(true) {
        match out.get("type").cloned() {
            Some(Json::String(kind)) => out.set("type", Json::Array(vec![Json::String(kind), Json::string("null")])),
            Some(Json::Array(mut kinds)) if !kinds.contains(&Json::string("null")) => {
                kinds.push(Json::string("null"));
                out.set("type", Json::Array(kinds));
            }
            Some(_) => {}
            None => or_null(out),
        }
        if let Some(Json::Array(values)) = out.get_mut("enum")
            && !values.contains(&Json::Null)
        {
            values.push(Json::Null);
        }
    }
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(strict) = out.get(exclusive).and_then(Json::as_bool) {
            out.remove(exclusive);
            if let (true, Some(value)) = (strict, out.get(bound).cloned()) {
                out.remove(bound);
                out.set(exclusive, value);
            }
        }
    }
    if let Some(example) = out.remove("example")
        && out.get("examples").is_none()
    {
        out.set("examples", Json::Array(vec![example]));
    }
    // `"file"` of older documents and other types that JSON Schema does not define have no effect.
    if let Some(kind) = out.get("type").and_then(Json::as_str)
        && !Type::ALL.iter().any(|(_, name)| *name == kind)
    {
        out.remove("type");
    }
}

/// Makes a schema of `$ref` or combinators accept null too, as documents that put `nullable` beside `$ref` or `allOf` intend. Its
/// descriptions stay at the outer level.
fn or_null(out: &mut Json) {
    const BESIDE: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];
    if !BESIDE.iter().any(|key| out.get(key).is_some()) {
        return;
    }
    let Json::Object(members) = std::mem::replace(out, Json::object()) else { return };
    let is_prose = |key: &str| matches!(key, "description" | "title" | "default" | "deprecated" | "example" | "examples");
    let (prose, rules): (Vec<_>, Vec<_>) = members.into_iter().partition(|(key, _)| is_prose(key));
    let null = Json::object().with("type", Json::string("null"));
    *out = Json::Object(prose).with("anyOf", Json::Array(vec![Json::Object(rules), null]));
}
