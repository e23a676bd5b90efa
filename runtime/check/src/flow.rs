//! Data-flow analysis: where the results of upstream calls go in a program, and which parts of them are read.
//!
//! An expression is either known to be a place in a result, or unknown. Places are followed through `let`, destructuring,
//! captures, look-ups, and functions that pass items to a function literal. Any other code that receives a whole result is
//! assumed to check its `:ok`.

mod builtins;
mod functions;

use std::collections::HashMap;
use std::hash::RandomState;
use std::rc::Rc;

use litemap::LiteMap;
use ptc_catalog::{Catalog, Tool};
use ptc_lisp::ir::{GroupIr, Ir, Op, Step as Turn};
use ptc_lisp::{Deadline, Program, Span, ToolCallSite, Value};

use functions::{Captures, Function, Loop, captured};

use crate::BY_OUTPUT_SCHEMA;
use crate::output::{self, Step};
use crate::{Finding, FindingKind, MAX_FINDINGS, MissingKey, tool_of};

/// The possible keys of a result.
pub(crate) const RESULT: &[&str] = &["ok", "value", "value_kind", "reason", "message", "status", "headers", "body"];

/// Maximum depth of followed calls of the program's own functions, and maximum number of expressions visited in all of them.
const MAX_HELPER_DEPTH: u32 = 8;
const MAX_HELPER_STEPS: u32 = 100_000;

/// Maximum length of a path in a result. Each name that a program binds to a part of a part makes a path longer.
const MAX_PATH: usize = 64;

/// A place in the result of a call, or a list of such places.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ResultPath {
    site: usize,
    path: Vec<Step>,
    /// Number of nested lists around the place, made by functions such as `map`.
    lists: usize,
}

impl ResultPath {
    /// Whether this is the whole result.
    fn is_result(&self) -> bool {
        self.path.is_empty() && self.lists == 0
    }

    /// Whether this is part of the tool's value.
    fn is_value(&self) -> bool {
        matches!(self.path.first(), Some(Step::Key(first)) if first == "value")
    }
}

/// A call with the observed uses of its result.
struct Site {
    tool: Option<&'static Tool>,
    name: String,
    /// Whether code checks the call's success, or may do so.
    checked: bool,
    /// The position of the first use of its `:value`.
    used: Option<Span>,
    /// The first look-up of a key that no result has, as message and position.
    misread: Option<(String, Span)>,
    /// Whether the value of such a look-up, which is nil, is used.
    misused: bool,
    /// The first function that uses the result as a list.
    listed: Option<(String, Span)>,
}

/// Places and functions in the slots and captures of the current function.
#[derive(Default)]
struct Frame<'p> {
    slots: LiteMap<u32, ResultPath>,
    /// Functions of the program in slots.
    functions: LiteMap<u32, Function<'p>>,
    captures: Captures<'p>,
}

/// The traversal.
struct Walk<'a, 'p> {
    /// Whether every finding is reported. Otherwise only those are that hold for any answer, and no schema is read.
    all: bool,
    /// Names that the program defines once, with their places.
    globals: LiteMap<u32, Option<ResultPath>>,
    known: HashMap<Span, (Option<&'static Tool>, String), RandomState>,
    sites: Vec<Site>,
    /// Decoded output schemas, by the address of the tool's definition.
    schemas: HashMap<usize, Option<Rc<Value>>, RandomState>,
    /// Functions that the program defines, `None` for names with several definitions. If this is set, calls of them are followed.
    helpers: Option<HashMap<u32, Option<&'p GroupIr>, RandomState>>,
    /// Depth of the current calls of helpers, and number of expressions visited in all of them.
    depth: u32,
    helper_steps: u32,
    /// Whether functions as values and loops are followed.
    follows_values: bool,
    /// The loops around the current expression.
    loops: Vec<Loop>,
    /// Positions of keys that a closed schema excludes.
    closed: Vec<Span>,
    deadline: &'a Deadline,
    findings: &'a mut Vec<Finding>,
}

/// Adds findings about the results of a program's calls.
pub(crate) fn follow<const ALL: bool>(
    program: &Program,
    catalog: &Catalog,
    sites: &[ToolCallSite],
    findings: &mut Vec<Finding>,
    deadline: &Deadline,
) {
    let sites = sites_of::<ALL>(program, catalog, sites, findings, deadline);
    for site in &sites {
        let Some((what, span)) = &site.misread else { continue };
        // A program that also reads `:ok` or `:value` evidently knows that it has a result map.
        let is_certain = site.misused && !site.checked && site.used.is_none();
        if is_certain || ALL {
            findings.push(Finding {
                kind: if is_certain { FindingKind::ResultUsedAsValue } else { FindingKind::UnknownPath },
                message: what.clone(),
                hint: Some("it has :ok and :value, or :reason and :message; what the tool gives is under :value".to_owned()),
                span: *span,
            });
        }
    }
    for site in sites.iter().filter(|site| !site.checked) {
        if let (Some((name, span)), None) = (&site.listed, site.used) {
            findings.push(Finding {
                kind: FindingKind::ResultUsedAsList,
                message: format!("{name} gets the result of {}, which is a map whatever the tool gives", site.name),
                hint: Some("what the tool gives is under :value, where :ok is true".to_owned()),
                span: *span,
            });
        }
        let Some(span) = site.used.filter(|_| ALL) else { continue };
        findings.push(Finding {
            kind: FindingKind::Unchecked,
            message: format!("the value of {} is used without a look at :ok", site.name),
            hint: Some("when the call fails, :value is nil and :message says why".to_owned()),
            span,
        });
    }
}

/// Returns the literal keys that output schemas lack, and whether the schema is closed. Calls of functions that the program
/// defines are followed.
pub(crate) fn missing_keys(
    program: &Program,
    catalog: &Catalog,
    sites: &[ToolCallSite],
    deadline: &Deadline,
    follows_values: bool,
) -> Vec<MissingKey> {
    let name = |site: &ToolCallSite| format!("{}/{}", site.server.as_deref().unwrap_or("?"), site.tool.as_deref().unwrap_or("?"));
    let known = sites.iter().map(|site| (site.span, (tool_of(site, catalog), name(site)))).collect();
    let mut findings = Vec::new();
    let mut walk = Walk::new(true, known, &mut findings, deadline);
    walk.helpers = Some(HashMap::default());
    walk.follows_values = follows_values;
    walk.expr(program.ir(), &mut Frame::default());
    let closed = std::mem::take(&mut walk.closed);
    let mut missing: Vec<MissingKey> = Vec::new();
    for finding in findings {
        // A helper is visited for each of its calls and would be reported repeatedly.
        if missing.len() < MAX_FINDINGS && !missing.iter().any(|known| known.finding == finding) {
            missing.push(MissingKey { is_closed: closed.contains(&finding.span), finding });
        }
    }
    missing
}

/// Collects the calls of a program and the uses of their results.
fn sites_of<const ALL: bool>(
    program: &Program,
    catalog: &Catalog,
    sites: &[ToolCallSite],
    findings: &mut Vec<Finding>,
    deadline: &Deadline,
) -> Vec<Site> {
    let name = |site: &ToolCallSite| match (&site.server, &site.tool) {
        (Some(server), Some(tool)) => format!("{server}/{tool}"),
        _ => "the call".to_owned(),
    };
    let known = sites.iter().map(|site| (site.span, (tool_of(site, catalog), name(site)))).collect();
    let mut walk = Walk::new(ALL, known, findings, deadline);
    let mut frame = Frame::default();
    let value = walk.expr(program.ir(), &mut frame);
    // The program's value is shown completely, including any status.
    walk.escapes(value);
    walk.sites
}

impl<'a> Walk<'a, '_> {
    fn new(
        all: bool,
        known: HashMap<Span, (Option<&'static Tool>, String), RandomState>,
        findings: &'a mut Vec<Finding>,
        deadline: &'a Deadline,
    ) -> Self {
        Walk {
            all,
            globals: LiteMap::new(),
            known,
            sites: Vec::new(),
            schemas: HashMap::default(),
            helpers: None,
            follows_values: false,
            depth: 0,
            helper_steps: 0,
            loops: Vec::new(),
            closed: Vec::new(),
            deadline,
            findings,
        }
    }

    /// Returns the output schema of a tool.
    fn schema(&mut self, tool: &Tool) -> Option<Rc<Value>> {
        let address = tool.definition.as_ptr().addr();
        self.schemas.entry(address).or_insert_with(|| output::schema(tool).map(Rc::new)).clone()
    }
}

impl<'p> Walk<'_, 'p> {
    /// Returns the place of an expression's value, if known.
    fn expr(&mut self, ir: &'p Ir, frame: &mut Frame<'p>) -> Option<ResultPath> {
        if self.depth > 0 || !self.loops.is_empty() {
            self.helper_steps += 1;
        }
        if self.deadline.step() || self.helper_steps > MAX_HELPER_STEPS {
            return None;
        }
        match &ir.op {
            Op::Local(local) => frame.slots.get(&local.slot).cloned(),
            Op::Capture(at) => frame.captures.places.get(*at as usize).cloned().flatten(),
            Op::Let { bindings, body } => {
                for (slot, value) in bindings {
                    let place = self.expr(value, frame);
                    set(frame, *slot, place);
                    self.set_function(*slot, value, frame);
                }
                self.expr(body, frame)
            }
            Op::Do(parts) => {
                let mut last = None;
                for part in parts {
                    last = self.expr(part, frame);
                }
                last
            }
            Op::If(parts) => {
                let [test, then, otherwise] = &**parts;
                let test = self.expr(test, frame);
                self.asked(test);
                let then = self.expr(then, frame);
                let otherwise = self.expr(otherwise, frame);
                if then == otherwise { then } else { self.either(vec![then, otherwise]) }
            }
            Op::And(parts) => {
                let mut last = None;
                for part in parts {
                    self.asked(last);
                    last = self.expr(part, frame);
                }
                // Operands before the last one can only contribute nil or false.
                self.either(vec![last])
            }
            Op::Or(parts) => {
                let places: Vec<Option<ResultPath>> = parts.iter().map(|part| self.expr(part, frame)).collect();
                for place in &places {
                    self.asked(place.clone());
                }
                self.either(places)
            }
            Op::Def { index, value: Some(value), .. } if self.all => {
                if let (Some(helpers), Op::Fn(group)) = (&mut self.helpers, &value.op) {
                    let function = if helpers.contains_key(index) { None } else { Some(&**group) };
                    helpers.insert(*index, function);
                }
                let place = self.expr(value, frame);
                let place = if self.globals.contains_key(index) { self.either(vec![place, None]) } else { place };
                self.globals.insert(*index, place);
                None
            }
            Op::Global { index, .. } => self.globals.get(index).cloned().flatten(),
            Op::Key { from, key, default } => {
                if let Some(part) = default {
                    let place = self.expr(part, frame);
                    self.escapes(place);
                }
                let place = frame.slots.get(&from.slot).cloned()?;
                self.key(place, key, ir.span)
            }
            Op::Nth(from, _) => frame.slots.get(&from.slot).cloned().map(item),
            Op::Rest(from, _) => frame.slots.get(&from.slot).cloned(),
            Op::Call { f, args } => self.call(f, args, ir.span, frame),
            Op::Builtin { row, args } => self.builtin(row.namespace, row.name, args, ir.span, frame),
            Op::Fn(group) => {
                let given = self.function(group, frame, 0, None);
                self.escapes(given);
                None
            }
            Op::For { steps, collect } => {
                let mut given = None;
                for step in steps {
                    match step {
                        Turn::Each(slot, items) => {
                            let place = self.expr(items, frame).map(item);
                            set(frame, *slot, place);
                        }
                        Turn::Bind(slot, value) => {
                            let place = self.expr(value, frame);
                            set(frame, *slot, place);
                        }
                        Turn::When(test) | Turn::While(test) => {
                            let place = self.expr(test, frame);
                            self.asked(place);
                        }
                        Turn::Body(body) => {
                            given = self.expr(body, frame);
                        }
                    }
                }
                given.filter(|_| *collect).map(list)
            }
            Op::Loop { first, inits, body } if self.follows_values() => self.follow_loop(*first, inits, body, frame),
            Op::Recur { first, args } if self.follows_values() => {
                self.recur(*first, args, frame);
                None
            }
            Op::Loop { first, inits, body } => {
                // A loop without initial values covers the parameters of a function, which `recur` rebinds.
                if inits.is_empty() {
                    set(frame, *first, None);
                }
                for (at, init) in inits.iter().enumerate() {
                    let place = self.expr(init, frame);
                    self.escapes(place);
                    set(frame, *first + at as u32, None);
                }
                self.expr(body, frame)
            }
            Op::LetFn { group, body, slots } => {
                for slot in slots {
                    set(frame, *slot, None);
                }
                let given = self.function(group, frame, 0, None);
                self.escapes(given);
                self.set_group(slots, group, frame);
                self.expr(body, frame)
            }
            // The values of other expressions are unknown, but their operands are visited.
            _ => {
                let mut inside = Vec::new();
                ir.children(&mut |child| inside.push(child));
                for child in inside {
                    let place = self.expr(child, frame);
                    self.escapes(place);
                }
                None
            }
        }
    }

    fn call(&mut self, f: &'p Ir, args: &'p [Ir], span: Span, frame: &mut Frame<'p>) -> Option<ResultPath> {
        if let (Op::Const(key), [from, rest @ ..]) = (&f.op, args)
            && matches!(key, Value::Keyword(_))
        {
            let place = self.expr(from, frame);
            self.each_escapes(rest, frame);
            return self.key(place?, key, span);
        }
        if let Op::Global { index, .. } = &f.op
            && let Some(group) = self.helpers.as_ref().and_then(|helpers| helpers.get(index).copied().flatten())
        {
            return self.helper(group, args, frame);
        }
        if let Ok(given) = self.call_value(f, args, frame) {
            return given;
        }
        let place = self.expr(f, frame);
        if let (Some(place), [Ir { op: Op::Const(key), .. }]) = (place.clone(), args) {
            return self.key(place, key, span);
        }
        self.escapes(place);
        self.each_escapes(args, frame);
        None
    }

    /// Visits a function literal and returns the place of its value. `last` is the place of the argument for its last parameter,
    /// whose index is `at`.
    fn function(&mut self, group: &'p GroupIr, frame: &Frame<'p>, at: u32, last: Option<&ResultPath>) -> Option<ResultPath> {
        let captures = captured(group, frame);
        let arities: Vec<_> = group.members.iter().flat_map(|member| &member.arities).collect();
        let mut given = Vec::new();
        for arity in arities {
            let mut inner = Frame { captures: captures.clone(), ..Frame::default() };
            if arity.fixed == at + 1 && !arity.variadic {
                set(&mut inner, at, last.cloned());
            }
            given.push(self.expr(&arity.body, &mut inner));
        }
        if given.len() == 1 { given.pop().flatten() } else { self.either(given) }
    }

    /// Visits a call of a function that the program defines, with the places of its arguments.
    fn helper(&mut self, group: &'p GroupIr, args: &'p [Ir], frame: &mut Frame<'p>) -> Option<ResultPath> {
        let places: Vec<Option<ResultPath>> = args.iter().map(|arg| self.expr(arg, frame)).collect();
        let mut arities = group.members.iter().flat_map(|member| &member.arities);
        let arity = arities.find(|arity| !arity.variadic && arity.fixed as usize == args.len())?;
        if !group.captures.is_empty() || self.depth >= MAX_HELPER_DEPTH {
            return None;
        }
        self.depth += 1;
        let mut inner = Frame::default();
        for (slot, place) in places.into_iter().enumerate() {
            set(&mut inner, slot as u32, place);
        }
        let given = self.expr(&arity.body, &mut inner);
        self.depth -= 1;
        given
    }

    /// Returns the place at a key of a place.
    fn key(&mut self, from: ResultPath, key: &Value, span: Span) -> Option<ResultPath> {
        let Some(name) = key.as_name() else { return Some(item(from)) };
        let mut place = from;
        self.used(&place);
        if place.lists > 0 {
            // A list has no keys. Its items are not visited.
            return None;
        }
        let site = self.sites.get_mut(place.site)?;
        if place.path == [Step::Item] {
            // The items of a result are pairs of a key and a value, which have no keys.
            let what = format!("the items of the result of {} are its keys with their values, which have no '{name}'", site.name);
            site.misread.get_or_insert((what, span));
            site.misused = true;
            return None;
        }
        if place.path.is_empty() {
            match name {
                "value" => {
                    site.used.get_or_insert(span);
                }
                "headers" => {}
                name if RESULT.contains(&name) => site.checked = true,
                name => {
                    let what = format!("the result of {} has no '{name}'", site.name);
                    site.misread.get_or_insert((what, span));
                }
            }
        }
        if place.path.len() >= MAX_PATH {
            return None;
        }
        place.path.push(Step::Key(name.to_owned()));
        if self.all
            && let Some((Step::Key(first), rest)) = place.path.split_first()
            && first == "value"
            && !rest.is_empty()
            && let (Some(tool), site_name) = (site.tool, site.name.clone())
            && let Some(missing) = self.schema(tool).and_then(|schema| output::missing(&schema, rest))
        {
            if missing.is_closed {
                self.closed.push(span);
            }
            self.findings.push(Finding {
                kind: FindingKind::UnknownPath,
                message: format!("{site_name}: {}{BY_OUTPUT_SCHEMA}", missing.message),
                hint: missing.hint,
                span,
            });
            // There is no schema for the rest of the path.
            return None;
        }
        Some(place)
    }

    /// Records that a place is used as a condition, which checks for a value.
    fn asked(&mut self, place: Option<ResultPath>) {
        // A whole result and a list are always truthy, so that the condition checks nothing.
        let place = place.filter(|place| !place.path.is_empty() && place.lists == 0);
        if let Some(site) = place.and_then(|place| self.sites.get_mut(place.site)) {
            site.checked = true;
        }
    }

    /// Records that a place is passed to code that is not followed. Such code may check the `:ok` of a whole result.
    fn escapes(&mut self, place: Option<ResultPath>) {
        let Some(place) = place else { return };
        self.used(&place);
        if place.path.is_empty()
            && let Some(site) = self.sites.get_mut(place.site)
        {
            site.checked = true;
        }
    }

    /// Records that the value at a place is used.
    fn used(&mut self, place: &ResultPath) {
        if let Some(Step::Key(first)) = place.path.first()
            && !RESULT.contains(&first.as_str())
            && let Some(site) = self.sites.get_mut(place.site)
        {
            site.misused = true;
        }
    }

    fn each_escapes(&mut self, args: &'p [Ir], frame: &mut Frame<'p>) {
        for arg in args {
            let place = self.expr(arg, frame);
            self.escapes(place);
        }
    }

    /// Returns the place of a value that is one of several. It is known only if all known alternatives are the same part of a
    /// tool's value.
    fn either(&mut self, places: Vec<Option<ResultPath>>) -> Option<ResultPath> {
        let mut known: Vec<ResultPath> = places.into_iter().flatten().collect();
        known.dedup();
        if known.len() == 1 && known.iter().all(|place| place.is_value() && self.all) {
            return known.pop();
        }
        for place in known {
            self.escapes(Some(place));
        }
        None
    }
}

/// Returns the place of a list that a function makes from a value per item.
fn list(mut place: ResultPath) -> ResultPath {
    place.lists += 1;
    place
}

fn set(frame: &mut Frame<'_>, slot: u32, place: Option<ResultPath>) {
    match place {
        Some(place) => frame.slots.insert(slot, place),
        None => frame.slots.remove(&slot),
    };
    frame.functions.remove(&slot);
}

fn item(mut place: ResultPath) -> ResultPath {
    match place.lists.checked_sub(1) {
        Some(lists) => place.lists = lists,
        // A longer path is truncated, since schemas are not followed to this depth.
        None if place.path.len() >= MAX_PATH => {}
        None => place.path.push(Step::Item),
    }
    place
}
