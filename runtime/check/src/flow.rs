//! Where the results of upstream calls go in a program, and what is taken out of them.
//!
//! An expression is known to be a place in a result, or nothing is known of it. Places go through `let`, destructuring, captures,
//! look-ups and the functions that hand items to a function literal. Anything else that gets a whole result may look at its `:ok`.

use std::collections::HashMap;
use std::hash::RandomState;
use std::rc::Rc;

use litemap::LiteMap;
use ptc_catalog::{Catalog, Paging, Tool};
use ptc_lisp::ir::{Capture, GroupIr, Ir, Op, Step as Turn};
use ptc_lisp::{Deadline, Program, Span, ToolCallSite, Value, is_upstream_call};

use crate::output::{self, Step};
use crate::{EACH, EACH_SECOND, Finding, FindingKind, MAX_FINDINGS, MissingKey, tool_of};

/// Functions that give each item of their last argument to their first, or some of them twice or not at all; besides [`EACH`].
const SOME_ITEMS: &[&str] = &["max-by", "min-by", "partition-by", "split-with", "sum-by", "take-while", "drop-while"];
/// Functions that give one item.
const ONE: &[&str] = &["first", "second", "last", "peek", "rand-nth", "nth"];
/// Functions that give what they get, with fewer items or in another order.
const SAME: &[&str] = &["vec", "doall", "seq", "rest", "next", "reverse", "distinct", "sort", "butlast", "shuffle", "identity"];
/// The same, where what they get comes last.
const SAME_LAST: &[&str] = &["filter", "filterv", "remove", "take", "drop", "sort-by", "take-while", "drop-while", "distinct-by"];
/// Functions of a list that make no sense of a result, which is a map of two or more keys whatever the tool gives; it comes last.
const OF_LISTS: &[&str] = &["count", "empty?", "frequencies", "not-empty", "reduce"];
/// Functions that make a list of what their first argument gives for each item.
const LISTS_OF: &[&str] = &["map", "map-indexed", "mapv", "pmap"];
/// Functions that ask whether there is a value.
const ASKS: &[&str] = &["nil?", "some?", "not", "boolean", "empty?", "not-empty", "true?", "false?", "contains?"];

/// What a result can have.
pub(crate) const RESULT: &[&str] = &["ok", "value", "value_kind", "reason", "message"];

/// Calls of a program's own functions that are followed inside each other, and expressions that are looked at inside of all.
const MAX_HELPER_DEPTH: u32 = 8;
const MAX_HELPER_STEPS: u32 = 100_000;

/// Steps into a result that are followed: each name that a program gives to a part of a part has a path one step longer.
const MAX_PATH: usize = 64;

/// A place in the result of a call, or a list of such places.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    site: usize,
    path: Vec<Step>,
    /// How many lists are around it: of what a function gave for each item.
    lists: usize,
}

impl Place {
    /// The whole result.
    fn is_result(&self) -> bool {
        self.path.is_empty() && self.lists == 0
    }

    /// Something of what the tool gave.
    fn is_value(&self) -> bool {
        matches!(self.path.first(), Some(Step::Key(first)) if first == "value")
    }
}

/// A call and what was seen of its result.
struct Site {
    tool: Option<&'static Tool>,
    name: String,
    /// Something asks whether it went well, or may do so.
    checked: bool,
    /// The first use of its `:value`.
    used: Option<Span>,
    /// The first look at a key that no result has: what is said of it, and where it is.
    misread: Option<(String, Span)>,
    /// Something is done with what such a look gave, which is nil.
    misused: bool,
    /// The first function that takes the result for a list.
    listed: Option<(String, Span)>,
}

/// What slots and captures of the function under way hold.
#[derive(Default)]
struct Frame {
    slots: LiteMap<u32, Place>,
    captures: Rc<[Option<Place>]>,
}

/// A walk that finds `ALL`, or only what holds whatever upstreams answer; no schema is read for that. Two kinds of code, so that a binary
/// that reviews nothing has nothing of the other.
struct Walk<'a, 'p, const ALL: bool> {
    /// Names that the program defines once, and what as.
    globals: LiteMap<u32, Option<Place>>,
    known: HashMap<Span, (Option<&'static Tool>, String), RandomState>,
    sites: Vec<Site>,
    /// Output schemas, decoded once each, by the address of their tool's definition.
    schemas: HashMap<usize, Option<Rc<Value>>, RandomState>,
    /// Functions that the program defines, `None` where a name is defined twice. Calls of them are followed where this is there.
    helpers: Option<HashMap<u32, Option<&'p GroupIr>, RandomState>>,
    /// Calls of helpers that are under way, and expressions that were looked at inside of all.
    depth: u32,
    helper_steps: u32,
    /// Places of keys that a closed schema does not have.
    closed: Vec<Span>,
    deadline: &'a Deadline,
    findings: &'a mut Vec<Finding>,
}

/// Adds what is found about the results of a program's calls.
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
        // Who also reads what results have knows what they are.
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

/// The literal keys that output schemas do not have, with whether the schema is closed; also behind calls of functions that the program
/// defines.
pub(crate) fn missing_keys(program: &Program, catalog: &Catalog, sites: &[ToolCallSite], deadline: &Deadline) -> Vec<MissingKey> {
    let name = |site: &ToolCallSite| format!("{}/{}", site.server.as_deref().unwrap_or("?"), site.tool.as_deref().unwrap_or("?"));
    let known = sites.iter().map(|site| (site.span, (tool_of(site, catalog), name(site)))).collect();
    let mut findings = Vec::new();
    let mut walk = Walk::<true>::new(known, &mut findings, deadline);
    walk.helpers = Some(HashMap::default());
    walk.expr(program.ir(), &mut Frame::default());
    let closed = std::mem::take(&mut walk.closed);
    let mut missing: Vec<MissingKey> = Vec::new();
    for finding in findings {
        // What a helper does is found for each of its calls.
        if missing.len() < MAX_FINDINGS && !missing.iter().any(|known| known.finding == finding) {
            missing.push(MissingKey { is_closed: closed.contains(&finding.span), finding });
        }
    }
    missing
}

/// The calls of a program, and what is seen of their results.
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
    let mut walk = Walk::<ALL>::new(known, findings, deadline);
    let mut frame = Frame::default();
    let value = walk.expr(program.ir(), &mut frame);
    // Whoever reads the program's value sees all of it.
    walk.escapes(value);
    walk.sites
}

impl<'a, const ALL: bool> Walk<'a, '_, ALL> {
    fn new(
        known: HashMap<Span, (Option<&'static Tool>, String), RandomState>,
        findings: &'a mut Vec<Finding>,
        deadline: &'a Deadline,
    ) -> Self {
        Walk {
            globals: LiteMap::new(),
            known,
            sites: Vec::new(),
            schemas: HashMap::default(),
            helpers: None,
            depth: 0,
            helper_steps: 0,
            closed: Vec::new(),
            deadline,
            findings,
        }
    }

    /// The output schema of a tool.
    fn schema(&mut self, tool: &Tool) -> Option<Rc<Value>> {
        let address = tool.definition.as_ptr().addr();
        self.schemas.entry(address).or_insert_with(|| output::schema(tool).map(Rc::new)).clone()
    }
}

impl<'p, const ALL: bool> Walk<'_, 'p, ALL> {
    /// What an expression is known to be.
    fn expr(&mut self, ir: &'p Ir, frame: &mut Frame) -> Option<Place> {
        if self.depth > 0 {
            self.helper_steps += 1;
        }
        if self.deadline.step() || self.helper_steps > MAX_HELPER_STEPS {
            return None;
        }
        match &ir.op {
            Op::Local(local) => frame.slots.get(&local.slot).cloned(),
            Op::Capture(at) => frame.captures.get(*at as usize).cloned().flatten(),
            Op::Let { bindings, body } => {
                for (slot, value) in bindings {
                    let place = self.expr(value, frame);
                    set(frame, *slot, place);
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
                // Of what comes before the last, only nil and false are given.
                self.either(vec![last])
            }
            Op::Or(parts) => {
                let places: Vec<Option<Place>> = parts.iter().map(|part| self.expr(part, frame)).collect();
                for place in &places {
                    self.asked(place.clone());
                }
                self.either(places)
            }
            Op::Def { index, value: Some(value), .. } if ALL => {
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
            Op::Loop { first, inits, body } => {
                // The parameters of a function, which `recur` fills with something else.
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
                self.expr(body, frame)
            }
            // Of the rest nothing is known but what is inside.
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

    fn call(&mut self, f: &'p Ir, args: &'p [Ir], span: Span, frame: &mut Frame) -> Option<Place> {
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
        let place = self.expr(f, frame);
        if let (Some(place), [Ir { op: Op::Const(key), .. }]) = (place.clone(), args) {
            return self.key(place, key, span);
        }
        self.escapes(place);
        self.each_escapes(args, frame);
        None
    }

    fn builtin(&mut self, namespace: &str, name: &str, args: &'p [Ir], span: Span, frame: &mut Frame) -> Option<Place> {
        if is_upstream_call(namespace, name) {
            self.each_escapes(args, frame);
            let (tool, called) = self.known.get(&span).cloned().unwrap_or((None, "the call".to_owned()));
            // Any other function than `tool/call` gives the value of a call that went well, and ends the program otherwise.
            let is_result = name == "call";
            let mut path = if is_result { Vec::new() } else { vec![Step::Key("value".to_owned())] };
            if name == "all"
                && let Some(paging) = tool.and_then(|tool| Paging::parse(tool.paging))
            {
                path.extend(paging.items.split('.').filter(|key| !key.is_empty()).map(|key| Step::Key(key.to_owned())));
            }
            let site = Site { tool, name: called, checked: !is_result, used: None, misread: None, misused: false, listed: None };
            self.sites.push(site);
            return Some(Place { site: self.sites.len() - 1, path, lists: 0 });
        }
        match (name, args) {
            ("get", [from, Ir { op: Op::Const(key), .. }, rest @ ..]) => {
                let place = self.expr(from, frame);
                self.each_escapes(rest, frame);
                self.key(place?, key, span)
            }
            ("get-in", [from, Ir { op: Op::Const(keys), .. }, rest @ ..]) => {
                let mut place = self.expr(from, frame);
                self.each_escapes(rest, frame);
                for key in keys.items().into_iter().flatten() {
                    place = match key.as_name() {
                        Some(_) => self.key(place?, key, span),
                        None => place.map(item),
                    };
                }
                place
            }
            ("select-keys", [from, Ir { op: Op::Const(keys), .. }]) => {
                let place = self.expr(from, frame)?;
                for key in keys.items().into_iter().flatten() {
                    self.key(place.clone(), key, span);
                }
                Some(place)
            }
            (name, [f, between @ .., items])
                if EACH.contains(&name) || EACH_SECOND.contains(&name) || SOME_ITEMS.contains(&name) =>
            {
                let at = u32::from(EACH_SECOND.contains(&name));
                self.each_escapes(between, frame);
                let place = self.expr(items, frame);
                if self.is_listed(name, place.as_ref(), span) {
                    let f = self.expr(f, frame);
                    self.escapes(f);
                    return None;
                }
                let each = place.clone().map(item);
                let given = match (&f.op, each) {
                    (Op::Const(key @ Value::Keyword(_)), Some(each)) if at == 0 => self.key(each, key, f.span),
                    (Op::Fn(group), each) => {
                        let given = self.function(group, frame, at, each.as_ref());
                        if !LISTS_OF.contains(&name) {
                            self.escapes(given.clone());
                        }
                        given
                    }
                    _ => {
                        let f = self.expr(f, frame);
                        self.escapes(f);
                        self.escapes(place.clone());
                        None
                    }
                };
                if LISTS_OF.contains(&name) { given.map(list) } else { place.filter(|_| SAME_LAST.contains(&name)) }
            }
            (name, [rest @ .., from]) if OF_LISTS.contains(&name) => {
                self.each_escapes(rest, frame);
                let place = self.expr(from, frame);
                if !self.is_listed(name, place.as_ref(), span) {
                    self.asked(place.clone().filter(|_| ASKS.contains(&name)));
                    self.escapes(place);
                }
                None
            }
            (name, [from, rest @ ..]) if ONE.contains(&name) => {
                let place = self.expr(from, frame);
                self.each_escapes(rest, frame);
                place.map(item)
            }
            (name, [from]) if SAME.contains(&name) => self.expr(from, frame),
            (name, [.., from]) if SAME_LAST.contains(&name) => self.expr(from, frame),
            (name, [from, rest @ ..]) if ASKS.contains(&name) => {
                let place = self.expr(from, frame);
                self.asked(place.clone());
                // There is always a result.
                self.escapes(place.filter(|place| !place.is_result() || name == "contains?"));
                self.each_escapes(rest, frame);
                None
            }
            _ => {
                self.each_escapes(args, frame);
                None
            }
        }
    }

    /// Takes note of a function of lists that gets a whole result.
    fn is_listed(&mut self, name: &str, place: Option<&Place>, span: Span) -> bool {
        let result = place.filter(|place| place.is_result() && OF_LISTS.contains(&name));
        let Some(site) = result.and_then(|place| self.sites.get_mut(place.site)) else { return false };
        site.listed.get_or_insert_with(|| (name.to_owned(), span));
        true
    }

    /// A function literal; `last` is what the last of its parameters, `at`, gets, where that is known. Tells what it gives.
    fn function(&mut self, group: &'p GroupIr, frame: &Frame, at: u32, last: Option<&Place>) -> Option<Place> {
        // Shared: a `letfn` has as many functions and captures as it likes.
        let captures: Rc<[Option<Place>]> = group
            .captures
            .iter()
            .map(|capture| match capture {
                Capture::Local(local) => frame.slots.get(&local.slot).cloned(),
                Capture::Capture(at) => frame.captures.get(*at as usize).cloned().flatten(),
                Capture::This | Capture::Sibling(_) => None,
            })
            .collect();
        let arities: Vec<_> = group.members.iter().flat_map(|member| &member.arities).collect();
        let mut given = Vec::new();
        for arity in arities {
            let mut inner = Frame { slots: LiteMap::new(), captures: Rc::clone(&captures) };
            if arity.fixed == at + 1 && !arity.variadic {
                set(&mut inner, at, last.cloned());
            }
            given.push(self.expr(&arity.body, &mut inner));
        }
        if given.len() == 1 { given.pop().flatten() } else { self.either(given) }
    }

    /// A call of a function that the program defines, with what its arguments are known to be.
    fn helper(&mut self, group: &'p GroupIr, args: &'p [Ir], frame: &mut Frame) -> Option<Place> {
        let places: Vec<Option<Place>> = args.iter().map(|arg| self.expr(arg, frame)).collect();
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

    /// The place at a key of a place.
    fn key(&mut self, from: Place, key: &Value, span: Span) -> Option<Place> {
        let Some(name) = key.as_name() else { return Some(item(from)) };
        let mut place = from;
        self.used(&place);
        if place.lists > 0 {
            // A list has no keys, and nobody looks at what is in it.
            return None;
        }
        let site = self.sites.get_mut(place.site)?;
        if place.path == [Step::Item] {
            // The items of a result are its keys with their values, which have no keys.
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
        if ALL
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
                message: format!("{site_name}: {}, by its output schema", missing.message),
                hint: missing.hint,
                span,
            });
            // What follows has no schema any more.
            return None;
        }
        Some(place)
    }

    /// A place is a condition: that asks whether there is anything.
    fn asked(&mut self, place: Option<Place>) {
        // There is always a result, and always a list.
        let place = place.filter(|place| !place.path.is_empty() && place.lists == 0);
        if let Some(site) = place.and_then(|place| self.sites.get_mut(place.site)) {
            site.checked = true;
        }
    }

    /// A place goes where nobody follows it: who gets a whole result may look at its `:ok`.
    fn escapes(&mut self, place: Option<Place>) {
        let Some(place) = place else { return };
        self.used(&place);
        if place.path.is_empty()
            && let Some(site) = self.sites.get_mut(place.site)
        {
            site.checked = true;
        }
    }

    /// Something is done with what is at a place.
    fn used(&mut self, place: &Place) {
        if let Some(Step::Key(first)) = place.path.first()
            && !RESULT.contains(&first.as_str())
            && let Some(site) = self.sites.get_mut(place.site)
        {
            site.misused = true;
        }
    }

    fn each_escapes(&mut self, args: &'p [Ir], frame: &mut Frame) {
        for arg in args {
            let place = self.expr(arg, frame);
            self.escapes(place);
        }
    }

    /// One of several places: nobody knows which. What the tool gave is followed where it is the only one.
    fn either(&mut self, places: Vec<Option<Place>>) -> Option<Place> {
        let mut known: Vec<Place> = places.into_iter().flatten().collect();
        known.dedup();
        if known.len() == 1 && known.iter().all(|place| place.is_value() && ALL) {
            return known.pop();
        }
        for place in known {
            self.escapes(Some(place));
        }
        None
    }
}

/// The place of what a function gave for each item.
fn list(mut place: Place) -> Place {
    place.lists += 1;
    place
}

fn set(frame: &mut Frame, slot: u32, place: Option<Place>) {
    match place {
        Some(place) => frame.slots.insert(slot, place),
        None => frame.slots.remove(&slot),
    };
}

fn item(mut place: Place) -> Place {
    match place.lists.checked_sub(1) {
        Some(lists) => place.lists = lists,
        // A longer path is as good as one of this length: no schema is looked at so deep.
        None if place.path.len() >= MAX_PATH => {}
        None => place.path.push(Step::Item),
    }
    place
}
