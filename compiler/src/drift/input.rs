//! Input schemas compared level by level: members of objects, items of lists, and bounds.
//!
//! Keywords of a schema hold all together, so that one more refuses something and one less admits something, if nothing else
//! changed. Where several changed at once, nobody can tell without solving them: then what was and what is are shown.

use std::collections::BTreeSet;

use super::without_annotations;
use crate::diag::{Code, quoted};
use crate::ir::{Arg, Json};
use crate::lower::schema::{PROSE, Schema};
use crate::lower::text::one_line;

/// Bounds: the keyword, and whether what is larger admits more.
const BOUNDS: [(&str, bool); 10] = [
    ("maximum", true),
    ("exclusiveMaximum", true),
    ("maxLength", true),
    ("maxItems", true),
    ("maxProperties", true),
    ("minimum", false),
    ("exclusiveMinimum", false),
    ("minLength", false),
    ("minItems", false),
    ("minProperties", false),
];

/// Keywords that only refuse.
const REFUSING: [&str; 15] = [
    "allOf",
    "anyOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "items",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "prefixItems",
    "propertyNames",
    "unevaluatedItems",
    "uniqueItems",
];

/// Keywords with alternatives and parts, of which types, values and members were compared.
const COMBINING: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords that are compared as what they mean, or hold what others refer to.
const KNOWN: [&str; 11] = [
    "type",
    "enum",
    "const",
    "nullable",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "$defs",
    "definitions",
    "$ref",
];

/// Characters of a value that a message shows.
const SHOWN: usize = 80;

/// Reports how two input schemas differ beyond names, types and enumerations of arguments. `reported`: arguments already covered by
/// another finding.
pub(super) fn compare(before: &Json, after: &Json, reported: &BTreeSet<&str>, out: &mut Vec<(Code, String)>) {
    let mut walk = Walk { old: Schema::new(before), new: Schema::new(after), seen: BTreeSet::new(), out };
    let (known, now) = (walk.old.members(before), walk.new.members(after).properties);
    let mut prose = Vec::new();
    for (name, now) in now {
        let Some(was) = known.get(name) else { continue };
        let path = Path(name.to_owned());
        walk.inside(&path, was, now, reported.contains(name));
        if words(was) != words(now)
            && (without_annotations(was) == without_annotations(now) || was.get("description") != now.get("description"))
        {
            prose.push(path.shown());
        }
    }
    let start = walk.out.len();
    walk.keywords("its arguments", before, after);
    let reported = !reported.is_empty() || walk.out.len() > start;
    walk.combined("its arguments", before, after, reported);
    // What members share may be reached in a way that was not followed.
    let shared = |input: &Json| ["$defs", "definitions"].map(|key| input.get(key).map(without_annotations));
    if walk.out.is_empty() && shared(before) != shared(after) {
        walk.out.push((Code::InputChanged, "bounds its arguments differently".to_owned()));
    }
    if words(&around(before)) != words(&around(after)) {
        prose.push("its arguments".to_owned());
    }
    if !prose.is_empty() {
        out.push((Code::DescriptionChanged, format!("describes {} differently", prose.join(", "))));
    }
}

/// What is different of the types and values that two arguments take. Whether there is anything.
pub(super) fn kinds(name: &str, old: &Arg, new: &Arg, out: &mut Vec<(Code, String)>) -> bool {
    let lost = ptc_catalog::Type::ALL.iter().any(|(kind, _)| old.types.admits(*kind) && !new.types.admits(*kind));
    let won = ptc_catalog::Type::ALL.iter().any(|(kind, _)| new.types.admits(*kind) && !old.types.admits(*kind));
    if lost {
        out.push((Code::InputBreaking, format!("takes {} for {name}, which was {}", new.label, old.label)));
    } else if won {
        out.push((Code::InputWidened, format!("takes {} for {name}, which was {}", new.label, old.label)));
    }
    // No list is every value.
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
        out.push((Code::InputBreaking, format!("refuses {} for {name}", one_line(&refused.join(", "), SHOWN))));
    }
    if !admitted.is_empty() {
        out.push((Code::InputWidened, format!("now takes {} for {name}", one_line(&admitted.join(", "), SHOWN))));
    }
    lost || won || !admitted.is_empty() || !refused.is_empty()
}

/// Values that others are not among.
fn beyond<'v>(values: &'v [String], others: &[String]) -> Vec<&'v str> {
    let others: BTreeSet<&str> = others.iter().map(String::as_str).collect();
    values.iter().map(String::as_str).filter(|value| !others.contains(value)).collect()
}

/// A place inside of an argument: `filter.since`, `tags[]`.
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
    /// Pairs that were compared: schemas may hold themselves, and one may be shared by many.
    seen: BTreeSet<(*const Json, *const Json)>,
    out: &'o mut Vec<(Code, String)>,
}

impl<'a> Walk<'a, '_> {
    /// Two schemas of one place; `reported` where its types and values are told of.
    fn inside(&mut self, path: &Path, was: &'a Json, now: &'a Json, reported: bool) {
        let (outer_was, outer_now) = (was, now);
        let (was, now) = (self.old.body(was), self.new.body(now));
        let is_wrapped = !std::ptr::eq(outer_was, was) || !std::ptr::eq(outer_now, now);
        if is_wrapped && outer_was.get("default") != outer_now.get("default") {
            self.keyword("default", &path.shown(), outer_was, outer_now);
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
        self.keywords(&path.shown(), was, now);
        let reported = reported || self.out.len() > start;
        self.combined(&path.shown(), was, now, reported);
    }

    /// The same of a place that is no argument, of whose types and values nothing is told yet.
    fn nested(&mut self, path: &Path, was: &'a Json, now: &'a Json) {
        let arg = |schema: &Schema<'a>, node| Arg {
            name: String::new(),
            required: false,
            types: schema.types(node),
            label: schema.label(node),
            allowed: schema.allowed(node),
        };
        let reported = kinds(&path.shown(), &arg(&self.old, was), &arg(&self.new, now), self.out);
        self.inside(path, was, now, reported);
    }

    fn members(&mut self, path: &Path, was: &'a Json, now: &'a Json) {
        let (old, new) = (self.old.members(was), self.new.members(now));
        for (name, was) in &old.properties {
            match new.get(name) {
                None => self.out.push((Code::InputBreaking, format!("no longer takes {}", path.member(name).shown()))),
                Some(now) => self.nested(&path.member(name), was, now),
            }
        }
        for (name, _) in new.properties.iter().filter(|(name, _)| old.get(name).is_none()) {
            if !new.requires(name) {
                self.out.push((Code::InputWidened, format!("takes the new member {}", path.member(name).shown())));
            }
        }
        for name in new.required.iter().filter(|name| !old.requires(name)) {
            self.out.push((Code::InputBreaking, format!("now requires {}", path.member(name).shown())));
        }
        for name in old.required.iter().filter(|name| !new.requires(name)) {
            // One that is gone is told.
            if new.get(name).is_some() || old.get(name).is_none() {
                self.out.push((Code::InputWidened, format!("no longer requires {}", path.member(name).shown())));
            }
        }
        match (old.closed, new.closed) {
            (false, true) => {
                self.out.push((Code::InputBreaking, format!("refuses members of {} that it does not name", path.shown())));
            }
            (true, false) => {
                self.out.push((Code::InputWidened, format!("takes members of {} that it does not name", path.shown())));
            }
            _ => {}
        }
    }

    /// Bounds, and whatever else is no schema of something inside.
    fn keywords(&mut self, name: &str, was: &Json, now: &Json) {
        let keys: BTreeSet<&str> = was.members().iter().chain(now.members()).map(|(key, _)| key.as_str()).collect();
        for key in keys {
            let is_compared = KNOWN.contains(&key)
                || PROSE.contains(&key)
                || COMBINING.contains(&key)
                || key == "items" && is_object(was.get(key)) && is_object(now.get(key));
            let (from, to) = (was.get(key), now.get(key));
            let is_silent = REFUSING.contains(&key) && !says(from) && !says(to);
            if !is_compared && !is_silent && from.map(without_annotations) != to.map(without_annotations) {
                self.keyword(key, name, was, now);
            }
        }
    }

    fn keyword(&mut self, key: &str, name: &str, was: &Json, now: &Json) {
        let (from, to) = (was.get(key), now.get(key));
        self.out.push((direction(key, from, to), format!("now has `{key}` {} for {name}, which was {}", shown(to), shown(from))));
    }

    /// Alternatives and parts, where nothing is told of what they come to.
    fn combined(&mut self, name: &str, was: &Json, now: &Json, reported: bool) {
        let of = |schema: &Json| COMBINING.map(|key| schema.get(key).map(without_annotations));
        if reported || of(was) == of(now) {
            return;
        }
        // One more part refuses more only where all the rest stayed.
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
                self.out.push((code, format!("now has `{key}` {} for {name}, which was {}", shown(to), shown(from))));
            }
        }
    }
}

/// Whether a keyword that changed, came or went refuses more than before.
fn direction(key: &str, from: Option<&Json>, to: Option<&Json>) -> Code {
    if let Some((_, larger_admits)) = BOUNDS.iter().find(|(bound, _)| *bound == key) {
        let number = |value: Option<&Json>| match value {
            Some(Json::Number(text)) => text.parse::<f64>().ok(),
            _ => None,
        };
        return match (from, to, number(from), number(to)) {
            (None, Some(_), _, Some(_)) => Code::InputBreaking,
            (Some(_), None, Some(_), _) => Code::InputWidened,
            (_, _, Some(from), Some(to)) if (to > from) == *larger_admits => Code::InputWidened,
            (_, _, Some(_), Some(_)) => Code::InputBreaking,
            _ => Code::InputChanged,
        };
    }
    match (REFUSING.contains(&key), says(from), says(to)) {
        (true, false, true) => Code::InputBreaking,
        (true, true, false) => Code::InputWidened,
        _ => Code::InputChanged,
    }
}

/// Whether a keyword that only refuses is there: `uniqueItems` that is `false` is as good as none.
fn says(value: Option<&Json>) -> bool {
    value.is_some_and(|value| *value != Json::Bool(false))
}

fn is_object(node: Option<&Json>) -> bool {
    matches!(node, Some(Json::Object(_)))
}

fn shown(value: Option<&Json>) -> String {
    value.map_or_else(|| "unsaid".to_owned(), |value| one_line(&value.canonical(), SHOWN))
}

/// An input schema without its members.
fn around(input: &Json) -> Json {
    Json::Object(input.members().iter().filter(|(key, _)| key != "properties").cloned().collect())
}

/// What a schema only says about itself, in order.
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
