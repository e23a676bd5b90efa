//! Compares a value with a type in one walk: validation, and coercion if the rules allow it.

use num_bigint::BigInt;

use super::findings::{Step, path};
use super::{Field, Findings, Type, hyphenated, underscored};
use crate::Value;
use crate::collection::Map;
use crate::print::preview_line;
use crate::reader::is_keyword_name;
use crate::temporal::{Temporal, parse_date_time, parse_instant};
use crate::value::Kind;

/// Maximum bytes of a value that a message shows.
const MAX_SHOWN_BYTES: usize = 60;
/// Maximum characters of a text that is parsed as a number.
const MAX_NUMBER_LEN: usize = 1_000;

/// What the walk is allowed to do.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Convert values of similar types. Conversions that may lose the author's intention add a warning.
    pub(super) coerce: bool,
    /// Parse keywords and instants from text.
    pub(super) wire: bool,
    /// Treat undeclared keys as mismatches everywhere.
    pub(super) closed: bool,
}

pub(super) struct Fit<'a> {
    rules: Rules,
    steps: Vec<Step<'a>>,
    mismatches: Findings,
    warnings: Findings,
}

impl<'a> Fit<'a> {
    pub(super) fn new(rules: Rules) -> Self {
        Fit { rules, steps: Vec::new(), mismatches: Findings::default(), warnings: Findings::default() }
    }

    /// Returns mismatches and warnings.
    pub(super) fn finish(self) -> (Findings, Findings) {
        (self.mismatches, self.warnings)
    }

    /// Checks a value and returns its converted form, or `None` if it stays unchanged.
    pub(super) fn value(&mut self, value: &'a Value, of: &'a Type) -> Option<Value> {
        match of {
            Type::Any => None,
            Type::Optional(inner) => {
                if value.is_nil() {
                    None
                } else {
                    self.value(value, inner)
                }
            }
            Type::List(item) => self.list(value, item),
            Type::Fields { fields, closed } => self.fields(value, fields, *closed),
            Type::String => match value {
                Value::Str(_) => None,
                Value::Keyword(name) if self.rules.coerce => Some(self.coerced(value, "string", Value::Str(name.clone()))),
                Value::Temporal(at) if self.rules.coerce => Some(self.coerced(value, "string", Value::from(at.to_string()))),
                other => self.mismatch("string", other),
            },
            Type::Int => match value {
                Value::Int(_) | Value::BigInt(_) => None,
                Value::Str(text) if self.rules.coerce => self.read(value, "int", integer(text.as_str())),
                other => self.mismatch("int", other),
            },
            Type::Float => match value {
                Value::Double(_) => None,
                Value::Int(_) | Value::BigInt(_) => value.as_f64().filter(|_| self.rules.coerce).map(Value::double),
                Value::Str(text) if self.rules.coerce => self.read(value, "float", float(text.as_str())),
                other => self.mismatch("float", other),
            },
            Type::Bool => match value {
                Value::True | Value::False => None,
                Value::Str(text) if self.rules.coerce => {
                    let read = match text.as_str() {
                        "true" => Some(Value::True),
                        "false" => Some(Value::False),
                        _ => None,
                    };
                    self.read(value, "bool", read)
                }
                other => self.mismatch("bool", other),
            },
            Type::Keyword => match value {
                Value::Keyword(_) => None,
                Value::Str(name) if is_keyword_name(name.as_str()) => {
                    let keyword = Value::Keyword(name.clone());
                    if self.rules.coerce {
                        return Some(self.coerced(value, "keyword", keyword));
                    }
                    self.rules.wire.then_some(keyword)
                }
                other => self.mismatch("keyword", other),
            },
            Type::Datetime => self.datetime(value),
            Type::Map => match value {
                Value::Map(_) => None,
                other => self.mismatch("map", other),
            },
        }
    }

    fn list(&mut self, value: &'a Value, item: &'a Type) -> Option<Value> {
        let from_set = self.rules.coerce && matches!(value, Value::Set(_));
        if !from_set && !matches!(value, Value::Vector(_)) {
            return self.mismatch("list", value);
        }
        // Items are copied only once one of them changes.
        let mut items: Option<Vec<Value>> = from_set.then(Vec::new);
        for (index, part) in value.items().into_iter().flatten().enumerate() {
            self.steps.push(Step::Index(index));
            let changed = self.value(part, item);
            self.steps.pop();
            if items.is_none() && changed.is_some() {
                items = Some(value.items().into_iter().flatten().take(index).cloned().collect());
            }
            if let Some(items) = &mut items {
                items.push(changed.unwrap_or_else(|| part.clone()));
            }
        }
        items.map(Value::vector)
    }

    /// Checks a map with these fields. Parameters are checked as the fields of the map of arguments.
    pub(super) fn fields(&mut self, value: &'a Value, fields: &'a [Field], closed: bool) -> Option<Value> {
        let Value::Map(map) = value else { return self.mismatch("map", value) };
        let mut changes: Vec<(Value, Value)> = Vec::new();
        let mut used: Vec<&Value> = Vec::new();
        for field in fields {
            self.steps.push(Step::Key(&field.name));
            if let Some((key, part)) = entry(map, &field.name) {
                used.push(key);
                changes.extend(self.value(part, &field.of).map(|changed| (key.clone(), changed)));
            } else if !field.of.is_optional() {
                self.mismatch(expected(&field.of), &Value::Nil);
            }
            self.steps.pop();
        }
        if (closed || self.rules.closed) && used.len() < map.len() {
            let extra: Vec<&Value> = map.iter().map(|(key, _)| key).filter(|key| !used.contains(key)).collect();
            for key in extra {
                let shown = key.as_name().map_or_else(|| preview_line(key, MAX_SHOWN_BYTES), str::to_owned);
                let mut steps: Vec<Step<'_>> = self.steps.clone();
                steps.push(Step::Key(&shown));
                self.mismatches
                    .add(path(&steps), "unexpected field: no other fields than the declared ones are allowed".to_owned());
            }
        }
        if changes.is_empty() {
            return None;
        }
        let mut changed = map.clone();
        for (key, part) in changes {
            changed.insert(key, part);
        }
        Some(Value::Map(changed))
    }

    fn datetime(&mut self, value: &Value) -> Option<Value> {
        let text = match value {
            Value::Temporal(at) if matches!(**at, Temporal::Instant(_) | Temporal::OffsetDateTime(_)) => return None,
            Value::Str(text) if self.rules.coerce || self.rules.wire => text.as_str(),
            other => return self.mismatch("datetime", other),
        };
        let Some(at) = parse_instant(text) else {
            let shown = preview_line(value, MAX_SHOWN_BYTES);
            let at = path(&self.steps);
            let why = if parse_date_time(text).is_some() {
                format!("expected datetime, got string {shown} without an offset: add Z, or one such as +02:00")
            } else {
                format!("expected datetime, got string {shown}: write ISO 8601 with an offset, such as 2026-05-03T09:14:00Z")
            };
            self.mismatches.add(at, why);
            return None;
        };
        if self.rules.coerce && !is_utc(text) {
            let at = path(&self.steps);
            self.warnings.add(at, format!("non-UTC offset in {}, normalized to UTC", preview_line(value, MAX_SHOWN_BYTES)));
        }
        Some(Value::from(Temporal::Instant(at)))
    }

    /// Returns the value parsed from a text and adds a warning. If `read` is `None`, adds a mismatch.
    fn read(&mut self, value: &Value, of: &'static str, read: Option<Value>) -> Option<Value> {
        match read {
            Some(read) => Some(self.coerced(value, of, read)),
            None => self.mismatch(of, value),
        }
    }

    fn coerced(&mut self, value: &Value, of: &'static str, changed: Value) -> Value {
        let at = path(&self.steps);
        self.warnings.add(at, format!("coerced {} to {of}", shown(value)));
        changed
    }

    fn mismatch(&mut self, of: &'static str, value: &Value) -> Option<Value> {
        let at = path(&self.steps);
        self.mismatches.add(at, format!("expected {of}, got {}", shown(value)));
        None
    }
}

/// Finds the entry of a field under a keyword or string: the name as written, with underscores, or with hyphens.
fn entry<'a>(map: &'a Map, name: &str) -> Option<(&'a Value, &'a Value)> {
    let under = underscored(name);
    let spellings = [name, &under, &hyphenated(&under)];
    spellings.iter().find_map(|name| map.find(&Value::keyword(name)).or_else(|| map.find(&Value::string(name))))
}

fn expected(of: &Type) -> &'static str {
    match of {
        Type::String => "string",
        Type::Int => "int",
        Type::Float => "float",
        Type::Bool => "bool",
        Type::Keyword => "keyword",
        Type::Datetime => "datetime",
        Type::Map | Type::Fields { .. } => "map",
        Type::List(_) => "list",
        Type::Any | Type::Optional(_) => "a value",
    }
}

/// Describes a value in the terms of signatures, including the value itself if it is short.
fn shown(value: &Value) -> String {
    let kind = match value.kind() {
        Kind::Nil => return "nil".to_owned(),
        Kind::Vector => return "list".to_owned(),
        Kind::Int | Kind::BigInt => "int",
        Kind::Double => "float",
        Kind::Bool => "bool",
        Kind::Temporal => match value.as_temporal() {
            Some(Temporal::Instant(_) | Temporal::OffsetDateTime(_)) => "datetime",
            Some(other) => return format!("{} {other}", other.described()),
            None => "time",
        },
        Kind::String => "string",
        Kind::Keyword => "keyword",
        other => return other.name().to_owned(),
    };
    format!("{kind} {}", preview_line(value, MAX_SHOWN_BYTES))
}

fn integer(text: &str) -> Option<Value> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || digits.len() > MAX_NUMBER_LEN || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse::<BigInt>().ok().map(Value::big)
}

fn float(text: &str) -> Option<Value> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // Excludes `inf`, `nan`, `.5` and `5.`, which the standard library accepts.
    let plain = digits.starts_with(|c: char| c.is_ascii_digit()) && digits.ends_with(|c: char| c.is_ascii_digit());
    if !plain || digits.len() > MAX_NUMBER_LEN {
        return None;
    }
    text.parse::<f64>().ok().filter(|read| read.is_finite()).map(Value::double)
}

/// Whether an ISO date-time is written with a UTC offset.
fn is_utc(text: &str) -> bool {
    let time = text.split_once(['T', 't', ' ']).map_or("", |(_, time)| time);
    match time.find(['+', '-']) {
        None => true,
        Some(at) => time.get(at..).is_some_and(|offset| offset.bytes().all(|b| matches!(b, b'+' | b'-' | b':' | b'0'))),
    }
}
