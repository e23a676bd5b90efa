//! Compares input schemas level by level: members of objects, items of lists, and bounds.
//!
//! All keywords of a schema apply together. An additional keyword therefore refuses more, and a removed one admits more, if
//! nothing else changed. If several keywords changed, the effect cannot be determined without solving them, so the message shows
//! the old and the new values.

use std::collections::{BTreeMap, BTreeSet};

use super::cause::Change;
use super::keywords::{self, COMBINING, DEFINITIONS};
use super::without_annotations;
use crate::diag::{Code, quoted};
use crate::ir::Arg;
use crate::json::Json;
use crate::json_schema::{Members, PROSE, Schema};
use crate::lower::text::one_line;

/// Maximum length in characters of a value in a message.
const SHOWN: usize = 80;

/// Reports how two input schemas differ beyond names, types and enumerations of arguments. `reported` has the arguments already
/// covered by another finding.
pub(super) fn compare(before: &Json, after: &Json, reported: &BTreeSet<&str>, out: &mut Vec<Change>) {
    let mut walk = Walk { old: Schema::new(before), new: Schema::new(after), seen: BTreeSet::new(), out };
    let (known, members) = (walk.old.members(before), walk.new.members(after));
    let mut prose = Vec::new();
    for (name, now) in &members.properties {
        let Some(was) = known.get(name) else { continue };
        let path = Path((*name).to_owned());
        if let ([was], [now]) = (known.schemas(name), members.schemas(name)) {
            walk.inside(&path, was, now, reported.contains(name));
        }
        if words(was) != words(now)
            && (without_annotations(was) == without_annotations(now) || was.get("description") != now.get("description"))
        {
            prose.push(path.shown());
        }
    }
    let start = walk.out.len();
    walk.keywords(None, before, after);
    let reported = !reported.is_empty() || walk.out.len() > start;
    walk.combined(None, before, after, reported);
    // A shared definition may be used at a place that was not compared.
    if walk.out.is_empty() && used_definitions(before) != used_definitions(after) {
        walk.out.push(Change::new(Code::InputChanged, "bounds its arguments differently"));
    }
    if words(&around(before)) != words(&around(after)) {
        prose.push("its arguments".to_owned());
    }
    if !prose.is_empty() {
        out.push(Change::new(Code::DescriptionChanged, format!("describes {} differently", prose.join(", "))));
    }
}

/// Reports changes of the types and values that an argument, or a place inside of one, accepts. Returns whether there are any.
pub(super) fn kinds(place: &str, old: &Arg, new: &Arg, out: &mut Vec<Change>) -> bool {
    let name = quoted(place);
    let mut add = |code, what: String| out.push(Change::new(code, what).passing(place));
    let lost = ptc_catalog::Type::ALL.iter().any(|(kind, _)| old.types.admits(*kind) && !new.types.admits(*kind));
    let won = ptc_catalog::Type::ALL.iter().any(|(kind, _)| new.types.admits(*kind) && !old.types.admits(*kind));
    if lost {
        add(Code::InputBreaking, format!("takes {} for {name}, which was {}", new.label, old.label));
    } else if won {
        add(Code::InputWidened, format!("takes {} for {name}, which was {}", new.label, old.label));
    }
    // An empty list means that every value is allowed.
    let refused: Vec<&str> = match (old.allowed.as_slice(), new.allowed.as_slice()) {
        (_, []) => Vec::new(),
        ([], _) => vec!["all but a few values"],
        (before, now) => beyond(before, now),
    };
    let admitted: Vec<&str> = match (old.allowed.as_slice(), new.allowed.as_slice()) {
        ([], _) => Vec::new(),
        (_, []) => vec!["any value"],
        (before, now) => beyond(now, before),
    };
    if !refused.is_empty() {
        add(Code::InputBreaking, format!("refuses {} for {name}", one_line(&refused.join(", "), SHOWN)));
    }
    if !admitted.is_empty() {
        add(Code::InputWidened, format!("now takes {} for {name}", one_line(&admitted.join(", "), SHOWN)));
    }
    lost || won || !admitted.is_empty() || !refused.is_empty()
}

/// Returns the values that are not among `others`.
fn beyond<'v>(values: &'v [String], others: &[String]) -> Vec<&'v str> {
    let others: BTreeSet<&str> = others.iter().map(String::as_str).collect();
    values.iter().map(String::as_str).filter(|value| !others.contains(value)).collect()
}

/// A position inside an argument, such as `filter.since` or `tags[]`.
#[derive(Clone)]
struct Path(String);

impl Path {
    fn shown(&self) -> String {
        quoted(&self.0)
    }

    fn member(&self, name: &str) -> Path {
        Path(format!("{}.{name}", self.0))
    }

    fn item(&self) -> Path {
        Path(format!("{}[]", self.0))
    }
}

struct Walk<'a, 'o> {
    old: Schema<'a>,
    new: Schema<'a>,
    /// Pairs that were compared. A schema may contain itself, and many schemas may share one.
    seen: BTreeSet<(*const Json, *const Json)>,
    out: &'o mut Vec<Change>,
}

impl<'a> Walk<'a, '_> {
    /// Compares two schemas at one position. `reported` is true if a change of its types or values has been reported.
    fn inside(&mut self, path: &Path, was: &'a Json, now: &'a Json, reported: bool) {
        let (outer_was, outer_now) = (was, now);
        let (was, now) = (self.old.body(was), self.new.body(now));
        let is_wrapped = !std::ptr::eq(outer_was, was) || !std::ptr::eq(outer_now, now);
        if is_wrapped && outer_was.get("default") != outer_now.get("default") {
            self.keyword("default", Some(path), outer_was, outer_now);
        }
        if !self.seen.insert((std::ptr::from_ref(was), std::ptr::from_ref(now))) {
            return;
        }
        let start = self.out.len();
        self.members(path, was, now);
        if let (Some(was @ Json::Object(_)), Some(now @ Json::Object(_))) = (was.get("items"), now.get("items")) {
            self.nested(&path.item(), was, now);
        }
        let others = |schema: &'a Json| schema.get("additionalProperties").filter(|others| matches!(others, Json::Object(_)));
        if let (Some(was), Some(now)) = (others(was), others(now)) {
            self.nested(&path.member("*"), was, now);
        }
        self.keywords(Some(path), was, now);
        let reported = reported || self.out.len() > start;
        self.combined(Some(path), was, now, reported);
    }

    /// Like [`Walk::inside`], but for a position below an argument, whose types and values have not been compared yet.
    fn nested(&mut self, path: &Path, was: &'a Json, now: &'a Json) {
        self.alternatives(path, &[was], &[now]);
    }

    /// Like [`Walk::nested`], but for schemas of which one must be satisfied. Several schemas are compared by their types and values
    /// only, since it is not known which of the old ones became which of the new ones.
    fn alternatives(&mut self, path: &Path, was: &[&'a Json], now: &[&'a Json]) {
        let (old, new) = (self.old.union("", was, false), self.new.union("", now, false));
        let reported = kinds(&path.0, &old, &new, self.out);
        if let ([was], [now]) = (was, now) {
            self.inside(path, was, now, reported);
        }
    }

    fn members(&mut self, path: &Path, was: &'a Json, now: &'a Json) {
        let (old, new) = (self.old.members(was), self.new.members(now));
        let takes_any_member = takes_any_member(now, &new);
        for (name, _) in &old.properties {
            match new.get(name) {
                None if takes_any_member => {
                    let (member, code) = (path.member(name), Code::InputChanged);
                    self.add(&member, code, format!("no longer describes {}, and takes any members there", member.shown()));
                }
                None => {
                    let member = path.member(name);
                    self.add(&member, Code::InputBreaking, format!("no longer takes {}", member.shown()));
                }
                Some(_) => self.alternatives(&path.member(name), old.schemas(name), new.schemas(name)),
            }
        }
        for (name, _) in new.properties.iter().filter(|(name, _)| old.get(name).is_none()) {
            if !new.requires(name) {
                self.add(path, Code::InputWidened, format!("takes the new member {}", path.member(name).shown()));
            }
        }
        for name in new.required.iter().filter(|name| !old.requires(name)) {
            self.add(path, Code::InputBreaking, format!("now requires {}", path.member(name).shown()));
        }
        for name in old.required.iter().filter(|name| !new.requires(name)) {
            // Removed members are reported elsewhere.
            if new.get(name).is_some() || old.get(name).is_none() {
                self.add(path, Code::InputWidened, format!("no longer requires {}", path.member(name).shown()));
            }
        }
        match (old.closed, new.closed) {
            (false, true) => {
                self.add(path, Code::InputBreaking, format!("refuses members of {} that it does not name", path.shown()));
            }
            (true, false) => {
                self.add(path, Code::InputWidened, format!("takes members of {} that it does not name", path.shown()));
            }
            _ => {}
        }
    }

    /// Compares bounds, and all other keywords that do not contain an inner schema. Without a path, those of all arguments together.
    fn keywords(&mut self, path: Option<&Path>, was: &Json, now: &Json) {
        let keys: BTreeSet<&str> = was.members().iter().chain(now.members()).map(|(key, _)| key.as_str()).collect();
        for key in keys {
            let is_compared =
                keywords::is_compared_elsewhere(key) || key == "items" && is_object(was.get(key)) && is_object(now.get(key));
            let (from, to) = (was.get(key), now.get(key));
            if !is_compared
                && !keywords::is_without_effect(key, from, to)
                && from.map(without_annotations) != to.map(without_annotations)
            {
                self.keyword(key, path, was, now);
            }
        }
    }

    fn keyword(&mut self, key: &str, path: Option<&Path>, was: &Json, now: &Json) {
        let (from, to) = (was.get(key), now.get(key));
        self.out.push(keyword_change(keywords::direction(key, from, to), key, path, from, to));
    }

    /// Adds a change at a path.
    fn add(&mut self, path: &Path, code: Code, what: String) {
        self.out.push(Change::new(code, what).passing(&path.0));
    }

    /// Compares alternatives and parts, unless a change of the resulting types or values has been reported.
    fn combined(&mut self, path: Option<&Path>, was: &Json, now: &Json, reported: bool) {
        let of = |schema: &Json| COMBINING.map(|key| schema.get(key).map(without_annotations));
        if reported || of(was) == of(now) {
            return;
        }
        // One more part restricts the schema only if everything else is unchanged.
        let kept = |from: &Json, to: &Json| {
            without_annotations(from).members().iter().all(|(key, value)| without_annotations(to).get(key) == Some(value))
        };
        let code = match (kept(was, now), kept(now, was)) {
            (true, false) => Code::InputBreaking,
            (false, true) => Code::InputWidened,
            _ => Code::InputChanged,
        };
        for key in COMBINING {
            let (from, to) = (was.get(key), now.get(key));
            if from.map(without_annotations) != to.map(without_annotations) {
                self.out.push(keyword_change(code, key, path, from, to));
            }
        }
    }
}

fn is_object(node: Option<&Json>) -> bool {
    matches!(node, Some(Json::Object(_)))
}

/// Describes a keyword that changed, appeared or disappeared.
fn keyword_change(code: Code, key: &str, path: Option<&Path>, from: Option<&Json>, to: Option<&Json>) -> Change {
    let shown = |value: &Json| one_line(&value.canonical(), SHOWN);
    let name = path.map_or_else(|| "its arguments".to_owned(), Path::shown);
    let what = match (from, to) {
        (Some(from), Some(to)) => format!("now has `{key}` {} for {name}, which was {}", shown(to), shown(from)),
        (None, Some(to)) => format!("now has `{key}` {} for {name}", shown(to)),
        (from, None) => format!("no longer has `{key}` {} for {name}", from.map(shown).unwrap_or_default()),
    };
    let change = Change::new(code, what);
    match path {
        Some(path) => change.passing(&path.0),
        None => change,
    }
}

/// Whether an input schema takes every argument, so that an argument that it no longer names is still taken.
pub(super) fn takes_any_argument(schema: Option<&Json>) -> bool {
    schema.is_none_or(|schema| takes_any_member(schema, &Schema::new(schema).members(schema)))
}

/// Whether an object with these members explicitly takes any others, or names no members at all.
fn takes_any_member(schema: &Json, members: &Members<'_>) -> bool {
    let says_so = match schema.get("additionalProperties") {
        Some(Json::Bool(admits)) => *admits,
        Some(Json::Object(keywords)) => keywords.iter().all(|(key, _)| PROSE.contains(&key.as_str())),
        _ => members.properties.is_empty(),
    };
    let is_object = |kind: &Json| kind.as_str() == Some("object");
    let may_be_object = schema.get("type").is_none_or(|kind| is_object(kind) || kind.elements().iter().any(is_object));
    says_so && may_be_object && !members.closed
}

/// Returns the definitions that a schema refers to, directly or through others, by their references.
fn used_definitions(schema: &Json) -> BTreeMap<&str, Json> {
    let reader = Schema::new(schema);
    let mut out = BTreeMap::new();
    let mut left: Vec<&Json> =
        schema.members().iter().filter(|(key, _)| !DEFINITIONS.contains(&key.as_str())).map(|(_, node)| node).collect();
    left.push(schema);
    while let Some(node) = left.pop() {
        if !std::ptr::eq(node, schema) {
            left.extend(node.members().iter().map(|(_, inner)| inner).chain(node.elements()));
        }
        if let (Some(reference), Some(target)) = (node.get("$ref").and_then(Json::as_str), reader.target(node))
            && !out.contains_key(reference)
        {
            out.insert(reference, without_annotations(target));
            left.push(target);
        }
    }
    out
}

/// Returns an input schema without its members.
fn around(input: &Json) -> Json {
    Json::Object(input.members().iter().filter(|(key, _)| key != "properties").cloned().collect())
}

/// Returns the descriptive texts of a schema, in order.
fn words(schema: &Json) -> Vec<Json> {
    fn collect(node: &Json, is_names: bool, out: &mut Vec<Json>) {
        for (key, value) in node.members() {
            if !is_names && PROSE.contains(&key.as_str()) {
                out.push(value.clone());
            } else {
                let names = !is_names && super::NAME_MAP_KEYWORDS.contains(&key.as_str());
                collect(value, names, out);
            }
        }
        node.elements().iter().for_each(|item| collect(item, false, out));
    }
    let mut out = Vec::new();
    collect(schema, false, &mut out);
    out
}
