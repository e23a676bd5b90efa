//! Validates a value against a compiled schema.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use ptc_catalog::Type;
use ptc_lisp::{Kind, Value, json, order};

use super::check::{Bound, Check, Id, Node, Properties, Size};
use super::exact::Exact;
use super::report::{Mismatch, Path, Report, described, listed};
use super::{Interrupted, MAX_DEPTH, MAX_STEPS, Schema};

/// Number of visits between two checks of `stop`.
const CHECK_INTERVAL: u64 = 4_096;

impl Schema {
    /// Validates a value, which must have been decoded from JSON. `stop` is polled and interrupts the validation when it returns
    /// true.
    ///
    /// # Errors
    ///
    /// Returns an error if `stop` returned true, or if the validation needs more steps or recursion than its maximum.
    pub fn validate(&self, value: &Value, stop: &dyn Fn() -> bool) -> Result<Report, Interrupted> {
        self.validate_named("return", value, stop)
    }

    /// Like [`Schema::validate`], for a value with a name, with which paths start.
    ///
    /// # Errors
    ///
    /// See [`Schema::validate`].
    pub fn validate_named(&self, name: &str, value: &Value, stop: &dyn Fn() -> bool) -> Result<Report, Interrupted> {
        let mut validation = Validation { schema: self, steps: 0, depth: 0, stop };
        let mut report = Report::default();
        validation.node(0, value, &Path::Root(name), Some(&mut report))?;
        Ok(report)
    }
}

struct Validation<'s> {
    schema: &'s Schema,
    steps: u64,
    depth: usize,
    stop: &'s dyn Fn() -> bool,
}

/// The evaluated parts of an object or array, for `unevaluatedProperties` and `unevaluatedItems`.
#[derive(Debug, Default)]
struct Seen<'v> {
    members: BTreeSet<&'v str>,
    items: BTreeSet<usize>,
}

impl Seen<'_> {
    fn merge(&mut self, other: Self) {
        self.members.extend(other.members);
        self.items.extend(other.items);
    }
}

/// Whether a value matches, and which of its parts were evaluated.
type Outcome<'v> = Result<(bool, Seen<'v>), Interrupted>;

impl<'s> Validation<'s> {
    fn step(&mut self) -> Result<(), Interrupted> {
        self.steps += 1;
        if self.steps % CHECK_INTERVAL == 1 {
            if (self.stop)() {
                return Err(Interrupted::Stopped);
            }
            if self.steps > MAX_STEPS {
                return Err(Interrupted::TooCostly);
            }
        }
        Ok(())
    }

    /// Applies a subschema to a value. With a report it finds all mismatches, without one it stops at the first.
    fn node<'v>(&mut self, id: Id, value: &'v Value, path: &Path<'_>, report: Option<&mut Report>) -> Outcome<'v> {
        self.step()?;
        if self.depth > 2 * MAX_DEPTH {
            return Err(Interrupted::TooDeep);
        }
        self.depth += 1;
        let answer = self.checks(id, value, path, report);
        self.depth -= 1;
        answer
    }

    fn checks<'v>(&mut self, id: Id, value: &'v Value, path: &Path<'_>, report: Option<&mut Report>) -> Outcome<'v> {
        let mut seen = Seen::default();
        let checks = match self.schema.nodes.get(id) {
            Some(Node::All(checks)) => checks,
            Some(Node::Constant(false)) => {
                if let Some(report) = report {
                    report.add(path, || format!("nothing is allowed here, got {}", described(value)));
                }
                return Ok((false, seen));
            }
            _ => return Ok((true, seen)),
        };
        let mut valid = true;
        let mut report = report;
        for check in checks {
            if !self.check(check, value, path, report.as_deref_mut(), &mut seen)? {
                valid = false;
                if report.is_none() {
                    break;
                }
            }
        }
        Ok((valid, seen))
    }

    /// Applies a subschema to the same value. If it matches, the parts that it evaluates count as evaluated.
    fn within<'v>(
        &mut self,
        id: Id,
        value: &'v Value,
        path: &Path<'_>,
        report: Option<&mut Report>,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Interrupted> {
        let (valid, evaluated) = self.node(id, value, path, report)?;
        if valid {
            seen.merge(evaluated);
        }
        Ok(valid)
    }

    /// Applies a subschema to a part of the value.
    fn inner(&mut self, id: Id, value: &Value, path: &Path<'_>, report: Option<&mut Report>) -> Result<bool, Interrupted> {
        Ok(self.node(id, value, path, report)?.0)
    }

    fn check<'v>(
        &mut self,
        check: &'s Check,
        value: &'v Value,
        path: &Path<'_>,
        mut report: Option<&mut Report>,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Interrupted> {
        match check {
            Check::Reference(id) => self.within(*id, value, path, report, seen),
            Check::AllOf(ids) => {
                let mut valid = true;
                for id in ids {
                    valid &= self.within(*id, value, path, report.as_deref_mut(), seen)?;
                    if !valid && report.is_none() {
                        break;
                    }
                }
                Ok(valid)
            }
            Check::AnyOf(ids) => self.any_of(ids, value, path, report, seen),
            Check::OneOf(ids) => self.one_of(ids, value, path, report, seen),
            Check::Not(id) => {
                let matches = self.inner(*id, value, path, None)?;
                Ok(claim(!matches, path, report, || format!("must not match the schema of `not`, got {}", described(value))))
            }
            Check::If { condition, then, otherwise } => {
                let branch = if self.within(*condition, value, path, None, seen)? { then } else { otherwise };
                branch.map_or(Ok(true), |id| self.within(id, value, path, report, seen))
            }
            Check::DependentSchemas(schemas) => {
                let mut valid = true;
                for (_, id) in schemas.iter().filter(|(name, _)| value.get(name).is_some()) {
                    valid &= self.within(*id, value, path, report.as_deref_mut(), seen)?;
                }
                Ok(valid)
            }
            Check::Properties(properties) => self.properties(properties, value, path, report, seen),
            Check::PropertyNames(id) => {
                let mut valid = true;
                for (name, _) in members(value) {
                    let key = Value::string(name);
                    valid &= self.inner(*id, &key, &Path::Member(path, name), report.as_deref_mut())?;
                }
                Ok(valid)
            }
            Check::UnevaluatedProperties(id) => {
                let mut valid = true;
                for (name, member) in members(value) {
                    if seen.members.insert(name) {
                        valid &= self.inner(*id, member, &Path::Member(path, name), report.as_deref_mut())?;
                    }
                }
                Ok(valid)
            }
            Check::Items { prefix, rest } => {
                let mut valid = true;
                for (at, item) in items(value) {
                    let Some(id) = prefix.get(at).copied().or(*rest) else { break };
                    self.saw_item(seen, at);
                    valid &= self.inner(id, item, &Path::Item(path, at), report.as_deref_mut())?;
                    if !valid && report.is_none() {
                        break;
                    }
                }
                Ok(valid)
            }
            Check::UnevaluatedItems(id) => {
                let mut valid = true;
                for (at, item) in items(value) {
                    if seen.items.insert(at) {
                        valid &= self.inner(*id, item, &Path::Item(path, at), report.as_deref_mut())?;
                    }
                }
                Ok(valid)
            }
            Check::Contains { schema, least, most } => {
                if value.kind() != Kind::Vector {
                    return Ok(true);
                }
                let mut found = 0;
                for (at, item) in items(value) {
                    if self.inner(*schema, item, &Path::Item(path, at), None)? {
                        found += 1;
                        self.saw_item(seen, at);
                    }
                }
                let valid = found >= *least && most.is_none_or(|most| found <= most);
                Ok(claim(valid, path, report, || {
                    let most = most.map_or_else(String::new, |most| format!(" and at most {most}"));
                    format!("must contain at least {least}{most} items that match `contains`, has {found}")
                }))
            }
            assertion => Ok(match failed(assertion, value) {
                None => true,
                Some(Failed::Here(message)) => claim(false, path, report, message),
                Some(Failed::Missing(names)) => {
                    for name in names {
                        claim(false, &Path::Member(path, name), report.as_deref_mut(), || "missing, but required".to_owned());
                    }
                    false
                }
            }),
        }
    }

    fn saw_item(&self, seen: &mut Seen<'_>, at: usize) {
        if self.schema.tracks {
            seen.items.insert(at);
        }
    }

    fn properties<'v>(
        &mut self,
        properties: &'s Properties,
        value: &'v Value,
        path: &Path<'_>,
        mut report: Option<&mut Report>,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Interrupted> {
        let mut valid = true;
        for (name, member) in members(value) {
            let place = Path::Member(path, name);
            let named = properties.named.binary_search_by(|(known, _)| known.as_str().cmp(name));
            let named = named.ok().and_then(|at| properties.named.get(at)).map(|(_, id)| *id);
            let patterns = properties.patterns.iter().filter(|(pattern, _)| pattern.is_match(name)).map(|(_, id)| *id);
            let mut ids: Vec<Id> = named.into_iter().chain(patterns).collect();
            if ids.is_empty() {
                let Some(rest) = properties.rest else { continue };
                if matches!(self.schema.nodes.get(rest), Some(Node::Constant(false))) {
                    valid = claim(false, &place, report.as_deref_mut(), || {
                        let known: Vec<&str> = properties.named.iter().map(|(known, _)| known.as_str()).collect();
                        format!("not allowed: the schema names {} and no more", listed(&known, "and"))
                    });
                    continue;
                }
                ids.push(rest);
            }
            if self.schema.tracks {
                seen.members.insert(name);
            }
            for id in ids {
                valid &= self.inner(id, member, &place, report.as_deref_mut())?;
            }
            if !valid && report.is_none() {
                break;
            }
        }
        Ok(valid)
    }

    fn any_of<'v>(
        &mut self,
        ids: &[Id],
        value: &'v Value,
        path: &Path<'_>,
        report: Option<&mut Report>,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Interrupted> {
        let mut valid = false;
        for id in ids {
            valid |= self.within(*id, value, path, None, seen)?;
            // The evaluations of further branches matter only if they are tracked.
            if valid && !self.schema.tracks {
                break;
            }
        }
        let Some(report) = report.filter(|_| !valid) else { return Ok(valid) };
        let nearest = self.nearest(ids, value, path)?;
        report.add_near(path, nearest, || format!("matches none of the {} schemas of anyOf", ids.len()));
        Ok(false)
    }

    fn one_of<'v>(
        &mut self,
        ids: &[Id],
        value: &'v Value,
        path: &Path<'_>,
        report: Option<&mut Report>,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Interrupted> {
        let mut matching = Vec::new();
        for (at, id) in ids.iter().enumerate() {
            if self.within(*id, value, path, None, seen)? {
                matching.push((at + 1).to_string());
            }
        }
        let valid = matching.len() == 1;
        let Some(report) = report.filter(|_| !valid) else { return Ok(valid) };
        if matching.is_empty() {
            let nearest = self.nearest(ids, value, path)?;
            report.add_near(path, nearest, || format!("matches none of the {} schemas of oneOf", ids.len()));
        } else {
            let (count, which) = (matching.len(), matching.join(", "));
            report.add(path, || format!("matches {count} schemas of oneOf ({which}), must match exactly one"));
        }
        Ok(false)
    }

    /// Returns the first mismatch of the nearest alternative: one that admits the value's type, with the fewest mismatches.
    fn nearest(&mut self, ids: &[Id], value: &Value, path: &Path<'_>) -> Result<Option<Box<Mismatch>>, Interrupted> {
        let mut best: Option<(bool, usize, Report)> = None;
        for id in ids {
            let mut report = Report::default();
            self.inner(*id, value, path, Some(&mut report))?;
            let wrong_type = matches!(self.schema.nodes.get(*id), Some(Node::All(checks))
                if checks.iter().any(|check| matches!(check, Check::Type(_)) && failed(check, value).is_some()));
            let rank = (wrong_type, report.total);
            if best.as_ref().is_none_or(|(other, total, _)| rank < (*other, *total)) {
                best = Some((wrong_type, report.total, report));
            }
        }
        let first = best.and_then(|(_, _, report)| report.mismatches.into_iter().next());
        // For nested alternatives, the innermost mismatch is the most specific.
        Ok(first.map(|mut mismatch| mismatch.nearest.take().unwrap_or_else(|| Box::new(mismatch))))
    }
}

/// Adds a mismatch to the report if `valid` is false.
fn claim(valid: bool, path: &Path<'_>, report: Option<&mut Report>, message: impl FnOnce() -> String) -> bool {
    if let Some(report) = report.filter(|_| !valid) {
        report.add(path, message);
    }
    valid
}

fn members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.entries().into_iter().flatten().filter_map(|(name, member)| Some((name.as_str()?, member)))
}

fn items(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    let items = (value.kind() == Kind::Vector).then(|| value.items()).flatten();
    items.into_iter().flatten().enumerate()
}

enum Failed<'c, M> {
    Here(M),
    /// Names of missing members.
    Missing(Vec<&'c str>),
}

/// Checks an assertion that depends only on the value itself. Returns the failure, if any.
fn failed<'c>(check: &'c Check, value: &'c Value) -> Option<Failed<'c, impl FnOnce() -> String>> {
    let fails = match check {
        Check::Type(types) => !admits(*types, value),
        Check::Enum(all) => !all.contains(value),
        Check::Const(wanted) => wanted != value,
        Check::Bound(bound, limit) => {
            value.as_f64().is_some() && {
                let ordering = order::compare(value, limit);
                match bound {
                    Bound::Minimum => ordering == Ordering::Less,
                    Bound::Maximum => ordering == Ordering::Greater,
                    Bound::ExclusiveMinimum => ordering != Ordering::Greater,
                    Bound::ExclusiveMaximum => ordering != Ordering::Less,
                }
            }
        }
        Check::MultipleOf(unit, _) => {
            value.as_f64().is_some() && Exact::from_value(value).is_some_and(|number| !number.is_multiple_of(unit))
        }
        Check::Size(size, limit) => measured(*size, value).is_some_and(|found| match size {
            Size::MinLength | Size::MinItems | Size::MinProperties => found < *limit,
            Size::MaxLength | Size::MaxItems | Size::MaxProperties => found > *limit,
        }),
        Check::Pattern(pattern, _) => value.as_str().is_some_and(|text| !pattern.is_match(text)),
        Check::UniqueItems => {
            let mut all: Vec<&Value> = items(value).map(|(_, item)| item).collect();
            all.sort_by(|a, b| order::compare(a, b));
            all.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
        }
        Check::Required(names) => return missing(names, value),
        Check::DependentRequired(rows) => {
            let mut rows = rows.iter().filter(|(name, _)| value.get(name).is_some());
            return rows.find_map(|(_, names)| missing(names, value));
        }
        _ => false,
    };
    if fails { Some(Failed::Here(move || expected(check, value))) } else { None }
}

fn missing<'c, M>(names: &'c [String], value: &Value) -> Option<Failed<'c, M>> {
    if value.kind() != Kind::Map {
        return None;
    }
    let absent: Vec<&str> = names.iter().map(String::as_str).filter(|name| value.get(name).is_none()).collect();
    if absent.is_empty() { None } else { Some(Failed::Missing(absent)) }
}

fn admits(types: ptc_catalog::Types, value: &Value) -> bool {
    match value.kind() {
        Kind::Nil => types.admits(Type::Null),
        Kind::Bool => types.admits(Type::Boolean),
        Kind::Int | Kind::BigInt => types.admits(Type::Integer),
        // JSON Schema counts a double without a fraction as an integer.
        Kind::Double => {
            types.admits(Type::Number) || types.admits(Type::Integer) && value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        Kind::Vector => types.admits(Type::Array),
        Kind::Map => types.admits(Type::Object),
        _ => types.admits(Type::String),
    }
}

/// Returns the quantity that a size limits, if the value has it.
fn measured(size: Size, value: &Value) -> Option<u64> {
    match size {
        Size::MinLength | Size::MaxLength => value.as_str().map(|text| text.chars().count() as u64),
        Size::MinItems | Size::MaxItems => (value.kind() == Kind::Vector).then(|| value.len().unwrap_or(0) as u64),
        Size::MinProperties | Size::MaxProperties => (value.kind() == Kind::Map).then(|| value.len().unwrap_or(0) as u64),
    }
}

/// Formats the expected and the actual value.
fn expected(check: &Check, value: &Value) -> String {
    let text = |value: &Value| json::encode(value, 200).unwrap_or_else(|_| "…".to_owned());
    let what = match check {
        Check::Type(types) => {
            let names: Vec<&str> =
                Type::ALL.iter().filter(|(kind, _)| types.0 & *kind as u8 != 0).map(|(_, name)| *name).collect();
            listed(&names, "or")
        }
        Check::Enum(all) => format!("one of {}", all.iter().take(20).map(text).collect::<Vec<_>>().join(", ")),
        Check::Const(wanted) => text(wanted),
        Check::Bound(Bound::Minimum, limit) => format!("at least {}", text(limit)),
        Check::Bound(Bound::Maximum, limit) => format!("at most {}", text(limit)),
        Check::Bound(Bound::ExclusiveMinimum, limit) => format!("more than {}", text(limit)),
        Check::Bound(Bound::ExclusiveMaximum, limit) => format!("less than {}", text(limit)),
        Check::MultipleOf(_, unit) => format!("a multiple of {}", text(unit)),
        Check::Size(size, limit) => {
            let (side, unit) = match size {
                Size::MinLength => ("at least", "characters"),
                Size::MaxLength => ("at most", "characters"),
                Size::MinItems => ("at least", "items"),
                Size::MaxItems => ("at most", "items"),
                Size::MinProperties => ("at least", "members"),
                Size::MaxProperties => ("at most", "members"),
            };
            format!("{side} {limit} {unit}")
        }
        Check::Pattern(_, pattern) => format!("a string that matches /{pattern}/"),
        Check::UniqueItems => return "items must be unique, some come twice".to_owned(),
        _ => "something else".to_owned(),
    };
    format!("expected {what}, got {}", described(value))
}
