//! Compiled programs.

use std::sync::Arc;

use crate::analyzer::{Tools, analyze};
use crate::bindings::Bindings;
use crate::error::{Error, Span};
use crate::eval::{Closure, Code, Group, compile};
use crate::ir::{Ir, Op, Unit};
use crate::{Value, reader};

/// A program, ready to run any number of times on any number of threads.
pub struct Program {
    pub(crate) source: Arc<str>,
    pub(crate) unit: Unit,
    pub(crate) code: Code,
    /// Stands for the function under way at the top level.
    pub(crate) top: Arc<Closure>,
}

/// A call of an upstream tool in the text of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallSite {
    /// The call.
    pub span: Span,
    /// The request, where it is written as a map.
    pub request: Option<Span>,
    /// `:server`, where it is written as a string.
    pub server: Option<String>,
    /// `:tool`, where it is written as a string.
    pub tool: Option<String>,
    /// `:args`: its keys and the values that are constants; `None` where it is not written as a map. Empty without `:args`.
    pub args: Option<Vec<(String, Option<Value>)>>,
}

impl Program {
    /// Reads, resolves and compiles a program that stands alone. The first fault is the error.
    pub fn compile(source: &str) -> Result<Program, Error> {
        Program::compile_with(source, &Bindings::default())
    }

    /// Compiles a program that may refer to definitions of earlier ones. It can be run with these bindings, whose values may have
    /// changed, but not with others.
    pub fn compile_with(source: &str, known: &Bindings) -> Result<Program, Error> {
        Program::compile_for(source, known, &[])
    }

    /// The same with tools of the embedding program: `tool/NAME` calls the one of that name, hyphens and underscores being the same,
    /// through [`Host::submit_tool`](crate::Host::submit_tool).
    pub fn compile_for(source: &str, known: &Bindings, tools: &[&str]) -> Result<Program, Error> {
        let forms = reader::read(source)?;
        let source = Arc::new(known.before(Arc::from(source)));
        let unit = analyze(&source, known, Tools::Named(tools), forms)?;
        let code = compile(&unit.body);
        let group = Arc::new(Group::top_level(&source));
        let top = Arc::new(Closure::new(group, 0, None));
        Ok(Program { source: Arc::clone(&source.text), unit, code, top })
    }

    /// Its text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its resolved form, for checkers.
    pub fn ir(&self) -> &Ir {
        &self.unit.body
    }

    /// The names that it defines, in order of their first definition.
    pub fn definitions(&self) -> impl Iterator<Item = &str> {
        self.unit.definitions.iter().filter_map(|place| self.unit.globals.get(*place as usize)).map(|name| &**name)
    }

    /// Every `(tool/call …)` in its text, in order, with what is literal about it.
    pub fn tool_calls(&self) -> Vec<ToolCallSite> {
        let mut sites = Vec::new();
        find_calls(&self.unit.body, &mut sites);
        sites
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("source", &self.source).finish_non_exhaustive()
    }
}

fn find_calls(ir: &Ir, out: &mut Vec<ToolCallSite>) {
    if let Op::Builtin { row, args } = &ir.op
        && (row.namespace, row.name) == ("tool", "call")
    {
        out.push(site(ir.span, args.first()));
    }
    ir.children(&mut |child| find_calls(child, out));
}

fn site(span: Span, request: Option<&Ir>) -> ToolCallSite {
    let mut site = ToolCallSite { span, request: None, server: None, tool: None, args: None };
    let Some(request) = request else { return site };
    match &request.op {
        Op::Const(map @ Value::Map(_)) => {
            site.request = Some(request.span);
            site.server = map.get("server").and_then(Value::as_str).map(str::to_owned);
            site.tool = map.get("tool").and_then(Value::as_str).map(str::to_owned);
            site.args = match map.get("args") {
                None | Some(Value::Nil) => Some(Vec::new()),
                Some(args) => args.entries().map(|entries| entries.filter_map(constant_entry).collect()),
            };
        }
        Op::Map(parts) => {
            site.request = Some(request.span);
            site.args = Some(Vec::new());
            for pair in parts.chunks_exact(2) {
                let [Ir { op: Op::Const(key), .. }, value] = pair else { continue };
                let text = match &value.op {
                    Op::Const(value) => value.as_str().map(str::to_owned),
                    _ => None,
                };
                match key.as_name() {
                    Some("server") => site.server = text,
                    Some("tool") => site.tool = text,
                    Some("args") => site.args = arguments(value),
                    _ => {}
                }
            }
        }
        _ => {}
    }
    site
}

fn constant_entry((key, value): (&Value, &Value)) -> Option<(String, Option<Value>)> {
    Some((key.as_name()?.to_owned(), Some(value.clone())))
}

fn arguments(ir: &Ir) -> Option<Vec<(String, Option<Value>)>> {
    match &ir.op {
        Op::Const(args) => args.entries().map(|entries| entries.filter_map(constant_entry).collect()),
        Op::Map(parts) => {
            let mut out = Vec::with_capacity(parts.len() / 2);
            for pair in parts.chunks_exact(2) {
                let [Ir { op: Op::Const(key), .. }, value] = pair else { return None };
                let constant = match &value.op {
                    Op::Const(value) => Some(value.clone()),
                    _ => None,
                };
                out.push((key.as_name()?.to_owned(), constant));
            }
            Some(out)
        }
        _ => None,
    }
}
