//! Finds calls of tools in a program and extracts their literal parts.
//!
//! Optionally, a name counts as the literal that it is bound to if it can have no other value: a `let` binding of the same or an
//! enclosing function, or a global that the program defines exactly once and that was undefined before.

use std::rc::Rc;

use crate::error::Span;
use crate::ir::{Capture, GroupIr, Ir, Op, Step, Unit};
use crate::{Kind, Value, host_functions};

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

/// Finds every call of an upstream tool, in the order of the text.
pub(crate) fn upstream_calls<const BY_NAME: bool>(unit: &Unit) -> Vec<ToolCallSite> {
    let mut calls = Calls::<BY_NAME> { known: unit.known, globals: Vec::new(), sites: Vec::new() };
    if BY_NAME {
        calls.define(&unit.body);
    }
    calls.find(&unit.body, &mut Names::new(Rc::default()));
    calls.sites
}

/// The literals that names of the current function are bound to.
struct Names<'a> {
    slots: Vec<Option<&'a Ir>>,
    captures: Rc<[Option<&'a Ir>]>,
}

impl<'a> Names<'a> {
    fn new(captures: Rc<[Option<&'a Ir>]>) -> Names<'a> {
        Names { slots: Vec::new(), captures }
    }

    fn slot(&self, slot: u32) -> Option<&'a Ir> {
        self.slots.get(slot as usize).copied().flatten()
    }
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

/// Finds calls. With `BY_NAME`, names count as the literals that they are bound to. It is a const parameter so that binaries that
/// only run programs do not contain the second variant.
struct Calls<'a, const BY_NAME: bool> {
    /// Number of globals that may be defined before the program runs.
    known: u32,
    /// The definitions of the program's own globals, by index.
    globals: Vec<Defined<'a>>,
    sites: Vec<ToolCallSite>,
}

impl<'a, const BY_NAME: bool> Calls<'a, BY_NAME> {
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
                self.sites.push(site);
            }
            Op::Fault { row, fault } if is_upstream_call(row.namespace, row.name) => {
                let site = self.site(ir.span, row.name, &[], names);
                self.sites.push(ToolCallSite { arity: Some(fault.message.clone()), ..site });
            }
            Op::Let { bindings, body } if BY_NAME => {
                for (slot, value) in bindings {
                    self.find(value, names);
                    let literal = self.literal(value, names);
                    bind(names, *slot, literal);
                }
                return self.find(body, names);
            }
            Op::Loop { first, inits, body } if BY_NAME => {
                for (at, init) in inits.iter().enumerate() {
                    self.find(init, names);
                    bind(names, *first + at as u32, None);
                }
                return self.find(body, names);
            }
            Op::Fn(group) if BY_NAME => return self.function(group, names),
            Op::LetFn { slots, group, body } if BY_NAME => {
                slots.iter().for_each(|slot| bind(names, *slot, None));
                self.function(group, names);
                return self.find(body, names);
            }
            Op::For { steps, .. } if BY_NAME => {
                for step in steps {
                    match step {
                        Step::Each(slot, items) => {
                            self.find(items, names);
                            bind(names, *slot, None);
                        }
                        Step::Bind(slot, value) => {
                            self.find(value, names);
                            let literal = self.literal(value, names);
                            bind(names, *slot, literal);
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

    fn function(&mut self, group: &'a GroupIr, names: &Names<'a>) {
        let captured = |capture: &Capture| match capture {
            Capture::Local(local) => names.slot(local.slot),
            Capture::Capture(at) => names.captures.get(*at as usize).copied().flatten(),
            Capture::This | Capture::Sibling(_) => None,
        };
        // Shared, since the functions of a `letfn` can be many and have many captures.
        let captures: Rc<[Option<&Ir>]> = group.captures.iter().map(captured).collect();
        for arity in group.members.iter().flat_map(|member| &member.arities) {
            self.find(&arity.body, &mut Names::new(Rc::clone(&captures)));
        }
    }

    /// Returns the constant or map literal of an expression, or of the name that it reads.
    fn literal(&self, ir: &'a Ir, names: &Names<'a>) -> Option<&'a Ir> {
        let found = match &ir.op {
            _ if !BY_NAME => Some(ir),
            Op::Local(local) => names.slot(local.slot),
            Op::Capture(at) => names.captures.get(*at as usize).copied().flatten(),
            Op::Global { index, fallback: None } => match self.globals.get(index.checked_sub(self.known)? as usize) {
                Some(Defined::Once(value)) => Some(*value),
                _ => None,
            },
            _ => Some(ir),
        }?;
        matches!(found.op, Op::Const(_) | Op::Map(_) | Op::Vector(_) | Op::Set(_)).then_some(found)
    }

    fn constant(&self, ir: &'a Ir, names: &Names<'a>) -> Option<&'a Value> {
        match self.literal(ir, names)?.op {
            Op::Const(ref value) => Some(value),
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
        };
        let Some(request) = args.first().and_then(|request| self.literal(request, names)) else { return site };
        site.other_request = no_map(request);
        match &request.op {
            Op::Const(map @ Value::Map(_)) => {
                site.request = Some(request.span);
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
                site.request = Some(request.span);
                site.args = Some(Vec::new());
                let keys = parts.iter().step_by(2).map(|key| match &key.op {
                    Op::Const(key) => Some(key.clone()),
                    _ => None,
                });
                site.keys = keys.collect();
                if site.keys.is_some() {
                    (site.bad_server, site.bad_tool) = (Some(Value::Nil), Some(Value::Nil));
                }
                for pair in parts.chunks_exact(2) {
                    let [Ir { op: Op::Const(key), .. }, value] = pair else { continue };
                    match key.as_name() {
                        Some("server") => (site.server, site.bad_server) = name_at(self.constant(value, names)),
                        Some("tool") => (site.tool, site.bad_tool) = name_at(self.constant(value, names)),
                        Some("max") => site.max = self.constant(value, names).cloned(),
                        Some("args") => {
                            let literal = self.literal(value, names);
                            site.args = literal.and_then(|args| self.named(args, names));
                            site.other_args = literal.and_then(no_map);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        site
    }

    /// Returns the entries of a map literal.
    fn named(&self, map: &'a Ir, names: &Names<'a>) -> Option<Vec<(String, Option<Value>)>> {
        match &map.op {
            Op::Map(parts) => parts
                .chunks_exact(2)
                .map(|pair| {
                    let (name, written) = entry(pair)?;
                    Some((name, written.or_else(|| self.constant(pair.get(1)?, names).cloned())))
                })
                .collect(),
            _ => arguments(map),
        }
    }
}

fn bind<'a>(names: &mut Names<'a>, slot: u32, literal: Option<&'a Ir>) {
    *place(&mut names.slots, slot) = literal;
}

/// Returns the item at an index. The list grows to contain it.
fn place<T: Default>(list: &mut Vec<T>, at: u32) -> &mut T {
    let at = at as usize;
    while list.len() <= at {
        list.push(T::default());
    }
    #[expect(clippy::indexing_slicing, reason = "the loop above makes it long enough")]
    &mut list[at]
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
