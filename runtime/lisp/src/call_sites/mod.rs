//! Finds calls of tools in a program and extracts their literal parts.
//!
//! Optionally, a name counts as the literal that it is bound to if it can have no other value: a `let` binding of the same or an
//! enclosing function, or a global that the program defines exactly once and that was undefined before. Calls of the program's
//! own functions are then followed: their arguments are the literals of the parameters.

mod earlier;
mod followed;
mod names;

use crate::error::Span;
use crate::ir::{GroupIr, Ir, Op, Step, Unit};
use crate::{Kind, Value, host_functions};

pub(crate) use earlier::earlier_calls;
pub use earlier::{EarlierCalls, has_upstream_call, is_upstream_call_value};
use followed::Followed;
use names::{Known, Names, Parts, place};

/// Maximum depth of literals in literals, and of names that stand for names.
const MAX_DEPTH: u32 = 8;

/// Functions in the namespace `tool` that call an upstream tool. All of them take one request.
const UPSTREAM_CALLS: [&str; 3] = ["all", "call", "value"];

/// Whether a function, such as `tool/call`, calls upstream tools.
pub fn is_upstream_call(namespace: &str, name: &str) -> bool {
    namespace == "tool" && UPSTREAM_CALLS.contains(&name)
}

/// A call of an upstream tool in a program's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallSite {
    /// The range of the call.
    pub span: Span,
    /// The name of the called function without its namespace: `all`, `call` or `value`.
    pub function: &'static str,
    /// The range of the request, if it is a map literal.
    pub request: Option<Span>,
    /// The keys of the request. `None` if it is not a map literal, or if one of its keys is computed.
    pub keys: Option<Vec<Value>>,
    /// The value of `:server`, if it is a string or keyword literal.
    pub server: Option<String>,
    /// The value of `:tool`, if it is a string or keyword literal.
    pub tool: Option<String>,
    /// The value of `:max`, if it is constant.
    pub max: Option<Value>,
    /// The constant at `:server` that is not a name. Nil if the keys are known and lack `:server`.
    pub bad_server: Option<Value>,
    /// The constant at `:tool` that is not a name. Nil if the keys are known and lack `:tool`.
    pub bad_tool: Option<Value>,
    /// The keys of `:args` with the values that are constants. `None` if it is not a map literal. Empty without `:args`.
    pub args: Option<Vec<(String, Option<Value>)>>,
    /// The error message for a wrong number of arguments. The function takes one.
    pub arity: Option<String>,
    /// The kind of the request, if it is certainly not a map.
    pub other_request: Option<Kind>,
    /// The kind of `:args`, if it is certainly not a map.
    pub other_args: Option<Kind>,
    /// The call of a function of the program that leads to this call with these literals. `None` for the call as it is written.
    pub call: Option<Span>,
    /// Whether other sites cover this one, so that it shows nothing more: the sites of all calls of the function around it, or
    /// else the site as it is written.
    pub is_covered: bool,
    /// The keys of the request whose values are in `call`, with their ranges.
    pub passed: Vec<(String, Span)>,
}

impl ToolCallSite {
    /// Returns the range to report for a part of the call: `span`, or the call of the function if `span` is outside of it.
    pub fn shown_at(&self, span: Span) -> Span {
        self.call.filter(|call| !call.contains(span)).unwrap_or(span)
    }
}

/// A call of a tool of the embedding program, `(tool/NAME …)`, in a program's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostToolCall {
    /// The range of the call.
    pub span: Span,
    /// The name of the tool, as passed to [`crate::Program::compile_for`].
    pub name: String,
    /// The argument names with the values that are constants. `None` if the arguments are not literal.
    pub args: Option<Vec<(String, Option<Value>)>>,
}

/// Finds every call of an upstream tool, in the order of the text. With `BY_NAME`, calls in functions of the program are also
/// reported for each call of the function.
pub(crate) fn upstream_calls<const BY_NAME: bool>(unit: &Unit) -> Vec<ToolCallSite> {
    let mut calls = Calls {
        by_name: BY_NAME,
        known: unit.imported_globals,
        globals: Vec::new(),
        sites: Vec::new(),
        followed: Followed::default(),
    };
    if BY_NAME {
        calls.define(&unit.body);
    }
    calls.find(&unit.body, &mut Names::new(None));
    if BY_NAME {
        calls.followed.finish(&mut calls.sites);
    }
    calls.sites
}

/// The definitions of a global in the program.
#[derive(Default, Clone, Copy)]
enum Defined<'a> {
    #[default]
    Never,
    /// Defined exactly once: it has this value or none.
    Once(&'a Ir),
    Ambiguous,
}

/// Finds calls.
struct Calls<'a> {
    /// Whether names count as the literals that they are bound to.
    by_name: bool,
    /// Number of globals that may be defined before the program runs.
    known: u32,
    /// The definitions of the program's own globals, by index.
    globals: Vec<Defined<'a>>,
    sites: Vec<ToolCallSite>,
    followed: Followed,
}

impl<'a> Calls<'a> {
    fn define(&mut self, ir: &'a Ir) {
        if let Op::Def { index, value, .. } = &ir.op
            && let Some(own) = index.checked_sub(self.known)
        {
            let defined = match (place(&mut self.globals, own), value) {
                (Defined::Never, Some(value)) => Defined::Once(value),
                _ => Defined::Ambiguous,
            };
            *place(&mut self.globals, own) = defined;
        }
        ir.children(&mut |child| self.define(child));
    }

    fn find(&mut self, ir: &'a Ir, names: &mut Names<'a>) {
        match &ir.op {
            Op::Builtin { row, args } if is_upstream_call(row.namespace, row.name) => {
                let site = self.site(ir.span, row.name, args, names);
                self.push(site);
            }
            Op::Fault { row, fault } if is_upstream_call(row.namespace, row.name) => {
                let site = self.site(ir.span, row.name, &[], names);
                self.push(ToolCallSite { arity: Some(fault.message.clone()), ..site });
            }
            _ if self.by_name && !self.followed.step() => return,
            Op::Let { bindings, body } if self.by_name => {
                for (slot, value) in bindings {
                    self.find(value, names);
                    let value = self.value(value, names);
                    names.bind(*slot, value);
                }
                return self.find(body, names);
            }
            Op::Loop { first, inits, body } if self.by_name => {
                if inits.is_empty() {
                    // `recur` rebinds the parameters of the function.
                    names.unbind_from(*first);
                }
                for (at, init) in inits.iter().enumerate() {
                    self.find(init, names);
                    names.bind(*first + at as u32, None);
                }
                return self.find(body, names);
            }
            Op::Call { f, args } if self.by_name => {
                for arg in args {
                    self.find(arg, names);
                }
                let function = self.value(f, names).and_then(Known::into_function);
                if function.is_none() || matches!(f.op, Op::Fn(_)) {
                    self.find(f, names);
                }
                if let Some((group, captures)) = function {
                    self.follow(group, captures, args, ir.span, names);
                }
                return;
            }
            // A function that is used as a value may be called with any arguments.
            Op::Local(_) | Op::Capture(_) | Op::Global { .. } if self.by_name => {
                if let Some((group, _)) = self.value(ir, names).and_then(Known::into_function) {
                    self.followed.escapes(group);
                }
            }
            Op::This | Op::Sibling(_) if self.by_name => self.followed.current_escapes(),
            Op::Fn(group) if self.by_name => return self.function(group, names),
            Op::LetFn { slots, group, body } if self.by_name => {
                slots.iter().for_each(|slot| names.bind(*slot, None));
                self.function(group, names);
                return self.find(body, names);
            }
            Op::For { steps, .. } if self.by_name => {
                for step in steps {
                    match step {
                        Step::Each(slot, items) => {
                            self.find(items, names);
                            names.bind(*slot, None);
                        }
                        Step::Bind(slot, value) => {
                            self.find(value, names);
                            let value = self.value(value, names);
                            names.bind(*slot, value);
                        }
                        Step::When(part) | Step::While(part) | Step::Body(part) => self.find(part, names),
                    }
                }
                return;
            }
            _ => {}
        }
        let mut inside = Vec::new();
        ir.children(&mut |child| inside.push(child));
        for child in inside {
            self.find(child, names);
        }
    }

    fn push(&mut self, mut site: ToolCallSite) {
        if self.by_name {
            site.call = self.followed.call();
            self.followed.note();
        }
        self.sites.push(site);
    }

    fn function(&mut self, group: &'a GroupIr, names: &Names<'a>) {
        // Shared, since the functions of a `letfn` can be many and have many captures.
        let captures = names.captured(group);
        self.followed.enter(group);
        for arity in group.members.iter().flat_map(|member| &member.arities) {
            self.find(&arity.body, &mut Names::new(captures.clone()));
        }
        self.followed.leave();
    }

    /// Visits the body of a function of the program with the arguments of one call of it.
    fn follow(&mut self, group: &'a GroupIr, captures: Parts<'a>, args: &'a [Ir], span: Span, names: &Names<'a>) {
        let arity = group.members.iter().flat_map(|member| &member.arities).find(|arity| {
            let fixed = arity.fixed as usize;
            fixed == args.len() || arity.variadic && fixed < args.len()
        });
        let Some(arity) = arity else { return self.followed.escapes(group) };
        if !self.followed.begin(group, span) {
            return;
        }
        let mut inside = Names::new(captures);
        for (slot, arg) in args.iter().take(arity.fixed as usize).enumerate() {
            inside.bind(slot as u32, self.value(arg, names));
        }
        self.find(&arity.body, &mut inside);
        self.followed.end();
    }

    /// Returns what is known of the value of an expression.
    fn value(&self, ir: &'a Ir, names: &Names<'a>) -> Option<Known<'a>> {
        self.value_within(ir, names, MAX_DEPTH)
    }

    fn value_within(&self, ir: &'a Ir, names: &Names<'a>, depth: u32) -> Option<Known<'a>> {
        match &ir.op {
            Op::Const(_) | Op::Vector(_) | Op::Set(_) => Some(Known { ir, parts: None }),
            Op::Map(_) if !self.by_name => Some(Known { ir, parts: None }),
            _ if !self.by_name => None,
            Op::Map(parts) => {
                let depth = depth.checked_sub(1)?;
                let values = parts.iter().skip(1).step_by(2).map(|value| self.value_within(value, names, depth)).collect();
                Some(Known { ir, parts: Some(values) })
            }
            Op::Fn(group) => Some(Known { ir, parts: names.captured(group) }),
            Op::Local(local) => names.slot(local.slot),
            Op::Capture(at) => names.capture(*at),
            Op::Global { index, fallback: None } => match self.globals.get(index.checked_sub(self.known)? as usize)? {
                Defined::Once(value)
                    if matches!(value.op, Op::Const(_) | Op::Map(_) | Op::Vector(_) | Op::Set(_) | Op::Fn(_)) =>
                {
                    self.value_within(value, &Names::new(None), depth.checked_sub(1)?)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the value of the entry number `at` of a map literal.
    fn entry(&self, map: &Known<'a>, at: usize, names: &Names<'a>) -> Option<Known<'a>> {
        match (&map.parts, &map.ir.op) {
            (Some(parts), _) => parts.get(at)?.clone(),
            (None, Op::Map(parts)) if !self.by_name => self.value(parts.get(2 * at + 1)?, names),
            _ => None,
        }
    }

    fn site(&self, span: Span, function: &'static str, args: &'a [Ir], names: &Names<'a>) -> ToolCallSite {
        let mut site = ToolCallSite {
            span,
            function,
            request: None,
            keys: None,
            server: None,
            tool: None,
            max: None,
            bad_server: None,
            bad_tool: None,
            args: None,
            arity: None,
            other_request: None,
            other_args: None,
            call: None,
            is_covered: false,
            passed: Vec::new(),
        };
        let Some(request) = args.first().and_then(|request| self.value(request, names)) else { return site };
        site.other_request = no_map(request.ir);
        match &request.ir.op {
            Op::Const(map @ Value::Map(_)) => {
                site.request = Some(request.ir.span);
                site.keys = map.entries().map(|entries| entries.map(|(key, _)| key.clone()).collect());
                (site.server, site.bad_server) = name_at(Some(map.get("server").unwrap_or(&Value::Nil)));
                (site.tool, site.bad_tool) = name_at(Some(map.get("tool").unwrap_or(&Value::Nil)));
                site.max = map.get("max").cloned();
                let args = map.get("args");
                site.args = match args {
                    None => Some(Vec::new()),
                    Some(args) => args.entries().map(|entries| entries.filter_map(constant_entry).collect()),
                };
                site.other_args = args.map(Value::kind).filter(|kind| *kind != Kind::Map);
            }
            Op::Map(parts) => {
                site.request = Some(request.ir.span);
                site.args = Some(Vec::new());
                let keys = parts.iter().step_by(2).map(|key| match &key.op {
                    Op::Const(key) => Some(key.clone()),
                    _ => None,
                });
                site.keys = keys.collect();
                if site.keys.is_some() {
                    (site.bad_server, site.bad_tool) = (Some(Value::Nil), Some(Value::Nil));
                }
                for (at, key) in parts.iter().step_by(2).enumerate() {
                    let Op::Const(key) = &key.op else { continue };
                    // A call reads the keyword if there is a text with the same name.
                    let is_text =
                        matches!(key, Value::Str(_)) && matches!(key.as_name(), Some("server" | "tool" | "max" | "args"));
                    let is_same =
                        |other: &Ir| matches!(&other.op, Op::Const(Value::Keyword(name)) if Some(name.as_str()) == key.as_name());
                    if is_text && parts.iter().step_by(2).any(is_same) {
                        continue;
                    }
                    let value = self.entry(&request, at, names);
                    let constant = value.as_ref().and_then(Known::constant);
                    match key.as_name() {
                        Some("server") => (site.server, site.bad_server) = name_at(constant),
                        Some("tool") => (site.tool, site.bad_tool) = name_at(constant),
                        Some("max") => site.max = constant.cloned(),
                        Some("args") => {
                            site.args = value.as_ref().and_then(|args| self.named(args, names));
                            site.other_args = value.as_ref().and_then(|args| no_map(args.ir));
                        }
                        _ => {}
                    }
                    if self.by_name
                        && let (Some(name), Some(value)) = (key.as_name(), value)
                    {
                        site.passed.extend(self.followed.passed(value.ir.span).map(|span| (name.to_owned(), span)));
                    }
                }
            }
            _ => {}
        }
        site
    }

    /// Returns the entries of a map literal.
    fn named(&self, map: &Known<'a>, names: &Names<'a>) -> Option<Vec<(String, Option<Value>)>> {
        let Op::Map(parts) = &map.ir.op else { return arguments(map.ir) };
        let named = |(at, pair): (usize, &[Ir])| {
            let (name, written) = entry(pair)?;
            Some((name, written.or_else(|| self.entry(map, at, names)?.constant().cloned())))
        };
        parts.chunks_exact(2).enumerate().map(named).collect()
    }
}

/// Splits a constant into a name, or the constant itself if it is not a name. Neither for a computed value.
fn name_at(constant: Option<&Value>) -> (Option<String>, Option<Value>) {
    let Some(value) = constant else { return (None, None) };
    match value.as_name().filter(|name| !name.is_empty()) {
        Some(name) => (Some(name.to_owned()), None),
        None => (None, Some(value.clone())),
    }
}

/// The kind of a literal that is not a map.
fn no_map(literal: &Ir) -> Option<Kind> {
    match &literal.op {
        Op::Const(value) => Some(value.kind()).filter(|kind| *kind != Kind::Map),
        Op::Vector(_) => Some(Kind::Vector),
        Op::Set(_) => Some(Kind::Set),
        _ => None,
    }
}

/// Finds every call of a tool of the embedding program, in the order of the text.
pub(crate) fn host_tool_calls(ir: &Ir) -> Vec<HostToolCall> {
    let mut sites = Vec::new();
    find_host_tool_calls(ir, &mut sites);
    sites
}

fn find_host_tool_calls(ir: &Ir, out: &mut Vec<HostToolCall>) {
    if let Op::Builtin { row, args } = &ir.op
        && (row.namespace, row.name) == host_functions::HOST_TOOL
        && let Some((Ir { op: Op::Const(Value::Str(name)), span }, args)) = args.split_first()
        // In `tool/NAME` as a value, the name and the call have the same span. Its arguments are not known yet.
        && *span != ir.span
    {
        out.push(HostToolCall { span: ir.span, name: name.as_str().to_owned(), args: named(args) });
    }
    ir.children(&mut |child| find_host_tool_calls(child, out));
}

/// Returns literal arguments: none, one map, or keys and values in alternation.
fn named(args: &[Ir]) -> Option<Vec<(String, Option<Value>)>> {
    match args {
        [] | [Ir { op: Op::Const(Value::Nil), .. }] => Some(Vec::new()),
        [map] => arguments(map),
        pairs if pairs.len() % 2 == 0 => pairs.chunks_exact(2).map(entry).collect(),
        _ => None,
    }
}

fn entry(pair: &[Ir]) -> Option<(String, Option<Value>)> {
    let [Ir { op: Op::Const(key), .. }, value] = pair else { return None };
    let constant = match &value.op {
        Op::Const(value) => Some(value.clone()),
        _ => None,
    };
    Some((key.as_name()?.to_owned(), constant))
}

fn constant_entry((key, value): (&Value, &Value)) -> Option<(String, Option<Value>)> {
    Some((key.as_name()?.to_owned(), Some(value.clone())))
}

fn arguments(ir: &Ir) -> Option<Vec<(String, Option<Value>)>> {
    match &ir.op {
        Op::Const(args) => args.entries()?.map(constant_entry).collect(),
        Op::Map(parts) => parts.chunks_exact(2).map(entry).collect(),
        _ => None,
    }
}
