//! Compiles a JSON Schema into assertions. [`KEYWORDS`] has a row for each supported keyword; others are rejected by name.

use std::borrow::Cow;

use litemap::LiteMap;
use ptc_catalog::{Type, Types};
use ptc_lisp::{Kind, Value};
use ptc_text::closest_match;
use regex::Regex;

use super::check::{Bound, Check, Id, Node, Properties, Size};
use super::exact::Exact;
use super::report::{described, quoted, type_name};
use super::{CompileError, MAX_DEPTH, Schema};

/// Maximum number of reachable subschemas.
const MAX_NODES: usize = 10_000;

/// Compiles a keyword. Returns `None` if it asserts nothing by itself.
type Read = fn(&mut Compiler<'_>, &KeywordContext<'_>, &Value) -> Result<Option<Check>, CompileError>;

/// All supported keywords.
const KEYWORDS: &[(&str, Read)] = &[
    ("type", types),
    ("enum", |_, at, value| Ok(Some(Check::Enum(at.filled(value)?.into_iter().cloned().collect())))),
    ("const", |_, _, value| Ok(Some(Check::Const(value.clone())))),
    ("minimum", |_, at, value| bound(at, value, Bound::Minimum)),
    ("maximum", |_, at, value| bound(at, value, Bound::Maximum)),
    ("exclusiveMinimum", |_, at, value| bound(at, value, Bound::ExclusiveMinimum)),
    ("exclusiveMaximum", |_, at, value| bound(at, value, Bound::ExclusiveMaximum)),
    ("multipleOf", multiple_of),
    ("minLength", |_, at, value| size(at, value, Size::MinLength)),
    ("maxLength", |_, at, value| size(at, value, Size::MaxLength)),
    ("minItems", |_, at, value| size(at, value, Size::MinItems)),
    ("maxItems", |_, at, value| size(at, value, Size::MaxItems)),
    ("minProperties", |_, at, value| size(at, value, Size::MinProperties)),
    ("maxProperties", |_, at, value| size(at, value, Size::MaxProperties)),
    ("pattern", |_, at, value| {
        let text = at.string(value)?;
        Ok(Some(Check::Pattern(pattern(at, text)?, text.to_owned())))
    }),
    ("uniqueItems", |_, at, value| Ok(at.boolean(value)?.then_some(Check::UniqueItems))),
    ("required", |_, at, value| Ok(Some(Check::Required(at.names_once(value)?)))),
    ("dependentRequired", dependent_required),
    // The three keywords become one assertion at the position of the first.
    ("properties", properties),
    ("patternProperties", properties),
    ("additionalProperties", properties),
    ("propertyNames", |compiler, at, _| Ok(Some(Check::PropertyNames(compiler.below(at)?)))),
    ("dependentSchemas", |compiler, at, value| Ok(Some(Check::DependentSchemas(compiler.named(at, value)?)))),
    ("prefixItems", items),
    ("items", items),
    ("contains", contains),
    ("minContains", |_, at, value| at.count(value).map(|_| None)),
    ("maxContains", |_, at, value| at.count(value).map(|_| None)),
    ("$ref", reference),
    ("allOf", |compiler, at, value| Ok(Some(Check::AllOf(compiler.listed(at, value)?)))),
    ("anyOf", |compiler, at, value| Ok(Some(Check::AnyOf(compiler.listed(at, value)?)))),
    ("oneOf", |compiler, at, value| Ok(Some(Check::OneOf(compiler.listed(at, value)?)))),
    ("not", |compiler, at, _| Ok(Some(Check::Not(compiler.below(at)?)))),
    ("if", condition),
    // Without `if` these have no effect.
    ("then", annotation),
    ("else", annotation),
    ("unevaluatedItems", |compiler, at, _| Ok(Some(Check::UnevaluatedItems(compiler.below(at)?)))),
    ("unevaluatedProperties", |compiler, at, _| Ok(Some(Check::UnevaluatedProperties(compiler.below(at)?)))),
    ("$schema", dialect),
    ("$id", |_, at, _| if at.is_root() { Ok(None) } else { Err(at.refuse("`$id` is supported only at the top of a schema")) }),
    ("$anchor", wording),
    ("$defs", |_, at, value| at.names(value).map(|_| None)),
    ("definitions", |_, at, value| at.names(value).map(|_| None)),
    ("$comment", wording),
    ("title", wording),
    ("description", wording),
    ("default", annotation),
    ("examples", |_, at, value| at.list(value).map(|_| None)),
    ("deprecated", mark),
    ("readOnly", mark),
    ("writeOnly", mark),
    ("format", wording),
    ("contentEncoding", wording),
    ("contentMediaType", wording),
    ("contentSchema", annotation),
];

/// Keywords of other dialects, with their replacements.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("$dynamicRef", ""),
    ("$dynamicAnchor", ""),
    ("$recursiveRef", "; use `$ref`"),
    ("$recursiveAnchor", ""),
    ("$vocabulary", ""),
    ("additionalItems", "; use `prefixItems` and `items`"),
    ("dependencies", "; use `dependentRequired` or `dependentSchemas`"),
    ("nullable", "; add \"null\" to `type`"),
    ("discriminator", "; use `oneOf` with `const`"),
];

impl Schema {
    /// Compiles a schema that was decoded from JSON.
    ///
    /// # Errors
    ///
    /// Returns an error for an unsupported keyword, an invalid value of a keyword, an unresolved reference, a reference cycle
    /// that does not descend into the value, and a schema that exceeds a maximum.
    pub fn compile(schema: &Value) -> Result<Schema, CompileError> {
        if schema.depth() as usize > MAX_DEPTH {
            return Err(CompileError { at: "#".into(), why: format!("the schema nests deeper than {MAX_DEPTH}") });
        }
        let mut compiler = Compiler { root: schema, places: LiteMap::new(), pending: Vec::new(), nodes: Vec::new() };
        compiler.node("#", schema)?;
        while let Some((pointer, value, id)) = compiler.pending.pop() {
            let node = compiler.compile(&pointer, value)?;
            if let Some(place) = compiler.nodes.get_mut(id) {
                *place = node;
            }
        }
        let nodes = compiler.nodes;
        reject_reference_cycles(&nodes)?;
        let asks = |node: &Node| matches!(node, Node::All(checks) if checks.iter().any(Check::needs_evaluations));
        Ok(Schema { tracks: nodes.iter().any(asks), nodes })
    }
}

struct Compiler<'v> {
    root: &'v Value,
    /// Subschemas by their pointer, so that each is compiled only once.
    places: LiteMap<String, Id>,
    pending: Vec<(String, &'v Value, Id)>,
    nodes: Vec<Node>,
}

/// A keyword in a schema.
struct KeywordContext<'p> {
    /// The pointer of the schema.
    schema: &'p str,
    keyword: &'p str,
    /// The schema, for keywords that depend on their siblings.
    siblings: &'p Value,
}

impl<'v> Compiler<'v> {
    /// Returns the node of the subschema at `pointer`, which is compiled later.
    fn node(&mut self, pointer: &str, value: &'v Value) -> Result<Id, CompileError> {
        if let Some(id) = self.places.get(pointer) {
            return Ok(*id);
        }
        let id = self.nodes.len();
        if id >= MAX_NODES {
            return Err(CompileError { at: pointer.to_owned(), why: format!("the schema has more than {MAX_NODES} subschemas") });
        }
        self.nodes.push(Node::Constant(true));
        self.places.insert(pointer.to_owned(), id);
        self.pending.push((pointer.to_owned(), value, id));
        Ok(id)
    }

    fn compile(&mut self, pointer: &str, value: &'v Value) -> Result<Node, CompileError> {
        if let Some(constant) = value.as_bool() {
            return Ok(Node::Constant(constant));
        }
        let Some(members) = value.entries() else {
            let instead = if pointer.ends_with("/items") && value.kind() == Kind::Vector {
                "; for a list of schemas use `prefixItems`"
            } else {
                ""
            };
            let why = format!("a schema is an object or a boolean, got {}{instead}", type_name(value));
            return Err(CompileError { at: pointer.to_owned(), why });
        };
        let mut checks = Vec::new();
        for (name, given) in members {
            let place = KeywordContext { schema: pointer, keyword: name.as_str().unwrap_or_default(), siblings: value };
            let Some((_, read)) = KEYWORDS.iter().find(|(keyword, _)| *keyword == place.keyword) else {
                return Err(place.unknown());
            };
            checks.extend(read(self, &place, given)?);
        }
        checks.sort_by_key(Check::needs_evaluations);
        Ok(Node::All(checks))
    }

    /// Compiles the schema that is the keyword's value.
    fn below(&mut self, at: &KeywordContext<'_>) -> Result<Id, CompileError> {
        self.sibling(at, at.keyword)?.ok_or_else(|| at.refuse("must be a schema"))
    }

    /// Compiles the schema under another keyword of the same object.
    fn sibling(&mut self, at: &KeywordContext<'_>, keyword: &str) -> Result<Option<Id>, CompileError> {
        let pointer = join(at.schema, keyword);
        // The look-up starts from the root, so that the reference lives long enough.
        match self.find(&pointer) {
            Some(value) => self.node(&pointer, value).map(Some),
            None => Ok(None),
        }
    }

    fn listed(&mut self, at: &KeywordContext<'_>, value: &Value) -> Result<Vec<Id>, CompileError> {
        let count = at.list(value)?.len();
        if count == 0 {
            return Err(at.refuse("must have at least one schema"));
        }
        (0..count).map(|n| self.member(&at.pointer(), &n.to_string())).collect()
    }

    fn named(&mut self, at: &KeywordContext<'_>, value: &Value) -> Result<Vec<(String, Id)>, CompileError> {
        let names: Vec<String> = at.names(value)?;
        names.into_iter().map(|name| self.member(&at.pointer(), &name).map(|id| (name, id))).collect()
    }

    fn member(&mut self, pointer: &str, name: &str) -> Result<Id, CompileError> {
        let pointer = join(pointer, name);
        let value = self.find(&pointer).ok_or_else(|| CompileError { at: pointer.clone(), why: "must be a schema".into() })?;
        self.node(&pointer, value)
    }

    /// Returns the value at a pointer in this schema (`#/a/0`).
    fn find(&self, pointer: &str) -> Option<&'v Value> {
        let steps = pointer.strip_prefix('#')?;
        if steps.is_empty() {
            return Some(self.root);
        }
        steps.strip_prefix('/')?.split('/').try_fold(self.root, |value, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match value.kind() {
                Kind::Map => value.get(&step),
                Kind::Vector => value.items()?.nth(step.parse().ok()?),
                _ => None,
            }
        })
    }
}

impl KeywordContext<'_> {
    fn pointer(&self) -> String {
        join(self.schema, self.keyword)
    }

    fn is_root(&self) -> bool {
        self.schema == "#"
    }

    fn refuse(&self, why: impl Into<String>) -> CompileError {
        CompileError { at: self.pointer(), why: why.into() }
    }

    fn unknown(&self) -> CompileError {
        let name = self.keyword;
        if let Some((_, instead)) = UNSUPPORTED.iter().find(|(keyword, _)| *keyword == name) {
            return self.refuse(format!("`{name}` is not supported{instead}"));
        }
        let near = closest_match(name, KEYWORDS.iter().map(|(keyword, _)| *keyword));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        self.refuse(format!("unknown keyword{near}"))
    }

    fn must<T>(&self, what: &str, value: &Value, found: Option<T>) -> Result<T, CompileError> {
        found.ok_or_else(|| self.refuse(format!("must be {what}, got {}", described(value))))
    }

    fn string<'v>(&self, value: &'v Value) -> Result<&'v str, CompileError> {
        self.must("a string", value, value.as_str())
    }

    fn boolean(&self, value: &Value) -> Result<bool, CompileError> {
        self.must("true or false", value, value.as_bool())
    }

    /// Parses a count. `2.0` is accepted.
    fn count(&self, value: &Value) -> Result<u64, CompileError> {
        let whole = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..9e15).contains(n)).map(|n| n as u64);
        self.must("a whole number, zero or more", value, whole)
    }

    fn list<'v>(&self, value: &'v Value) -> Result<Vec<&'v Value>, CompileError> {
        self.must("an array", value, (value.kind() == Kind::Vector).then(|| value.items().into_iter().flatten().collect()))
    }

    fn filled<'v>(&self, value: &'v Value) -> Result<Vec<&'v Value>, CompileError> {
        let all = self.list(value)?;
        if all.is_empty() { Err(self.refuse("must have at least one item: nothing matches an empty one")) } else { Ok(all) }
    }

    fn names_once(&self, value: &Value) -> Result<Vec<String>, CompileError> {
        let all: Option<Vec<String>> = self.list(value)?.into_iter().map(|item| item.as_str().map(str::to_owned)).collect();
        let all = self.must("an array of strings", value, all)?;
        let mut sorted: Vec<&String> = all.iter().collect();
        sorted.sort();
        match sorted.windows(2).find(|pair| pair.first() == pair.last()) {
            Some(twice) => {
                Err(self.refuse(format!("names {} twice", twice.first().map_or_else(String::new, |name| quoted(name)))))
            }
            None => Ok(all),
        }
    }

    fn names(&self, value: &Value) -> Result<Vec<String>, CompileError> {
        let entries = self.must("an object", value, value.entries())?;
        Ok(entries.filter_map(|(name, _)| name.as_str().map(str::to_owned)).collect())
    }
}

fn join(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

#[expect(clippy::unnecessary_wraps, reason = "all rows have this signature")]
fn annotation(_: &mut Compiler<'_>, _: &KeywordContext<'_>, _: &Value) -> Result<Option<Check>, CompileError> {
    Ok(None)
}

/// Accepts a string that asserts nothing, such as a title.
fn wording(_: &mut Compiler<'_>, at: &KeywordContext<'_>, value: &Value) -> Result<Option<Check>, CompileError> {
    at.string(value).map(|_| None)
}

/// Accepts a boolean that asserts nothing.
fn mark(_: &mut Compiler<'_>, at: &KeywordContext<'_>, value: &Value) -> Result<Option<Check>, CompileError> {
    at.boolean(value).map(|_| None)
}

fn dialect(_: &mut Compiler<'_>, at: &KeywordContext<'_>, value: &Value) -> Result<Option<Check>, CompileError> {
    let uri = at.string(value)?;
    let known = uri.trim_end_matches('#');
    // Keywords in which older dialects differ are rejected by name.
    let ours = ["https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema"];
    let older = ["http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema"];
    if ours.contains(&known) || older.contains(&known) {
        return Ok(None);
    }
    Err(at.refuse(format!("only the dialect {} is supported, got {}", quoted(ours[0]), quoted(uri))))
}

fn types(_: &mut Compiler<'_>, at: &KeywordContext<'_>, value: &Value) -> Result<Option<Check>, CompileError> {
    let names = if value.as_str().is_some() { vec![value] } else { at.filled(value)? };
    let mut bits = 0;
    for given in names {
        let name = at.string(given)?;
        let found = Type::ALL.iter().find(|(_, known)| *known == name);
        let (kind, _) = found.ok_or_else(|| {
            let near = closest_match(name, Type::ALL.iter().map(|(_, known)| *known));
            let near = near.map_or_else(String::new, |near| format!("; did you mean {}?", quoted(near)));
            at.refuse(format!("unknown type {}{near}", quoted(name)))
        })?;
        bits |= *kind as u8;
    }
    Ok(Some(Check::Type(Types(bits))))
}

fn bound(at: &KeywordContext<'_>, value: &Value, bound: Bound) -> Result<Option<Check>, CompileError> {
    at.must("a number", value, value.as_f64())?;
    Ok(Some(Check::Bound(bound, value.clone())))
}

fn multiple_of(_: &mut Compiler<'_>, at: &KeywordContext<'_>, value: &Value) -> Result<Option<Check>, CompileError> {
    let unit = value.as_f64().and_then(|_| Exact::from_value(value)).filter(Exact::is_positive);
    Ok(Some(Check::MultipleOf(at.must("a number above zero", value, unit)?, value.clone())))
}

fn size(at: &KeywordContext<'_>, value: &Value, size: Size) -> Result<Option<Check>, CompileError> {
    Ok(Some(Check::Size(size, at.count(value)?)))
}

fn dependent_required(_: &mut Compiler<'_>, at: &KeywordContext<'_>, value: &Value) -> Result<Option<Check>, CompileError> {
    let entries = at.must("an object", value, value.entries())?;
    let read = |(name, needs): (&Value, &Value)| Ok((name.as_str().unwrap_or_default().to_owned(), at.names_once(needs)?));
    Ok(Some(Check::DependentRequired(entries.map(read).collect::<Result<_, CompileError>>()?)))
}

fn properties(compiler: &mut Compiler<'_>, at: &KeywordContext<'_>, _: &Value) -> Result<Option<Check>, CompileError> {
    const MERGED_KEYWORDS: [&str; 3] = ["properties", "patternProperties", "additionalProperties"];
    let place = |keyword| KeywordContext { keyword, ..*at };
    let given = |keyword: &str| at.siblings.get(keyword);
    if MERGED_KEYWORDS.iter().find(|keyword| given(keyword).is_some())
        != MERGED_KEYWORDS.iter().find(|keyword| **keyword == at.keyword)
    {
        return Ok(None);
    }
    let mut found = Properties::default();
    if let Some(value) = given("properties") {
        found.named = compiler.named(&place("properties"), value)?;
        found.named.sort();
    }
    if let Some(value) = given("patternProperties") {
        let place = place("patternProperties");
        for (text, id) in compiler.named(&place, value)? {
            found.patterns.push((pattern(&place, &text)?, id));
        }
    }
    found.rest = compiler.sibling(at, "additionalProperties")?;
    Ok(Some(Check::Properties(found)))
}

fn items(compiler: &mut Compiler<'_>, at: &KeywordContext<'_>, _: &Value) -> Result<Option<Check>, CompileError> {
    let prefix = at.siblings.get("prefixItems");
    if at.keyword == "items" && prefix.is_some() {
        return Ok(None);
    }
    let prefix = match prefix {
        Some(list) => compiler.listed(&KeywordContext { keyword: "prefixItems", ..*at }, list)?,
        None => Vec::new(),
    };
    Ok(Some(Check::Items { prefix, rest: compiler.sibling(at, "items")? }))
}

fn contains(compiler: &mut Compiler<'_>, at: &KeywordContext<'_>, _: &Value) -> Result<Option<Check>, CompileError> {
    let count = |keyword| at.siblings.get(keyword).map(|n| KeywordContext { keyword, ..*at }.count(n)).transpose();
    let (least, most) = (count("minContains")?.unwrap_or(1), count("maxContains")?);
    Ok(Some(Check::Contains { schema: compiler.below(at)?, least, most }))
}

fn condition(compiler: &mut Compiler<'_>, at: &KeywordContext<'_>, _: &Value) -> Result<Option<Check>, CompileError> {
    let (then, otherwise) = (compiler.sibling(at, "then")?, compiler.sibling(at, "else")?);
    Ok(Some(Check::If { condition: compiler.below(at)?, then, otherwise }))
}

fn reference(compiler: &mut Compiler<'_>, at: &KeywordContext<'_>, value: &Value) -> Result<Option<Check>, CompileError> {
    let text = at.string(value)?;
    let outside = || {
        let why = "only references inside this schema are supported (`#/$defs/name`)";
        at.refuse(format!("{why}, got {}", quoted(text)))
    };
    let fragment = text.strip_prefix('#').ok_or_else(outside)?;
    let fragment: Cow<'_, str> = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
    let pointer = if fragment.is_empty() || fragment.starts_with('/') {
        Some(format!("#{fragment}"))
    } else {
        anchor(compiler.root, &fragment)
    };
    let found = pointer.and_then(|pointer| compiler.find(&pointer).map(|value| (pointer, value)));
    let (pointer, value) = found.ok_or_else(|| at.refuse(format!("nothing is at {}", quoted(text))))?;
    Ok(Some(Check::Reference(compiler.node(&pointer, value)?)))
}

/// Returns the pointer of the subschema with this `$anchor`.
fn anchor(root: &Value, name: &str) -> Option<String> {
    let mut pending = vec![("#".to_owned(), root)];
    while let Some((pointer, value)) = pending.pop() {
        if value.get("$anchor").and_then(Value::as_str) == Some(name) {
            return Some(pointer);
        }
        let members = value.entries().into_iter().flatten();
        // The contents of `enum` and `const` are values, not schemas.
        let members = members.filter(|(name, _)| !matches!(name.as_str(), Some("enum" | "const")));
        pending.extend(members.map(|(name, value)| (join(&pointer, name.as_str().unwrap_or_default()), value)));
        if value.kind() == Kind::Vector {
            let items = value.items().into_iter().flatten().enumerate();
            pending.extend(items.map(|(at, value)| (join(&pointer, &at.to_string()), value)));
        }
    }
    None
}

/// Compiles a pattern of ECMA-262. Its matches are not anchored.
fn pattern(at: &KeywordContext<'_>, text: &str) -> Result<Regex, CompileError> {
    crate::pattern_of(text).map_err(|error| {
        let why = error.to_string();
        let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
        at.refuse(format!("not a pattern that is supported: {why}"))
    })
}

/// Rejects a schema with a reference cycle that does not descend into the value, since validation would not terminate.
fn reject_reference_cycles(nodes: &[Node]) -> Result<(), CompileError> {
    let next = |id: Id| match nodes.get(id) {
        Some(Node::All(checks)) => checks.iter().flat_map(Check::in_place).collect(),
        _ => Vec::new(),
    };
    // The state is 0 for unvisited, 1 for in progress, 2 for done. The traversal uses an explicit stack, since a chain may be as
    // long as the schema.
    let mut state = vec![0_u8; nodes.len()];
    for start in 0..nodes.len() {
        let mut stack = vec![(start, false)];
        while let Some((id, left)) = stack.pop() {
            let Some(seen) = state.get_mut(id) else { continue };
            match (left, *seen) {
                (true, _) => *seen = 2,
                (false, 0) => {
                    *seen = 1;
                    stack.push((id, true));
                    let below: Vec<Id> = next(id);
                    if below.iter().any(|id| state.get(*id) == Some(&1)) {
                        let why = "the schema refers to itself without going into the value: it would never end";
                        return Err(CompileError { at: "#".into(), why: why.into() });
                    }
                    stack.extend(below.into_iter().map(|id| (id, false)));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
