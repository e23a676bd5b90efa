//! Compiled programs.

use std::sync::Arc;

use crate::analyzer::{Tools, analyze};
use crate::bindings::Bindings;
use crate::error::{Error, Span};
use crate::eval::{Closure, Code, Group, compile};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Op, Unit};
use crate::{Value, reader, special};

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
    /// The keys of the request; `None` where it is not written as a map, or where one of them is computed.
    pub keys: Option<Vec<Value>>,
    /// `:server`, where it is written as a string or keyword.
    pub server: Option<String>,
    /// `:tool`, where it is written as a string or keyword.
    pub tool: Option<String>,
    /// `:args`: its keys and the values that are constants; `None` where it is not written as a map. Empty without `:args`.
    pub args: Option<Vec<(String, Option<Value>)>>,
}

/// A call of a tool of the embedding program, `(tool/NAME …)`, in the text of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCallSite {
    /// The call.
    pub span: Span,
    /// The tool, as it was offered to [`Program::compile_for`].
    pub name: String,
    /// The names that it gives, and the values that are constants; `None` where they are not written out.
    pub args: Option<Vec<(String, Option<Value>)>>,
}

/// Where an entry of a map stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntrySpans {
    /// Its key.
    pub key: Span,
    /// Its value.
    pub value: Span,
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

    /// Every `(tool/NAME …)` in its text, in order, with what is literal about it.
    pub fn own_calls(&self) -> Vec<OwnCallSite> {
        let mut sites = Vec::new();
        find_own_calls(&self.unit.body, &mut sites);
        sites
    }

    /// An entry of the map that is written at `map`, by its keys from the outside in, as in `["args", "limit"]`. `None` where no such
    /// entry is written. The text is read again, since constants know nothing of their parts' places.
    pub fn entry(&self, map: Span, path: &[&str]) -> Option<EntrySpans> {
        let text = self.source.get(map.start as usize..map.end as usize)?;
        let forms = reader::read(text).ok()?;
        let (mut form, mut found) = (forms.first()?, None);
        for name in path {
            let FormKind::Map(parts) = &form.kind else { return None };
            let (key, value) = parts.chunks_exact(2).find_map(|pair| match pair {
                [key, value] if key_name(key) == Some(*name) => Some((key, value)),
                _ => None,
            })?;
            let place = |span: Span| Span::new(map.start + span.start, map.start + span.end);
            found = Some(EntrySpans { key: place(key.span), value: place(value.span) });
            form = value;
        }
        found
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("source", &self.source).finish_non_exhaustive()
    }
}

fn key_name<'f>(key: &'f Form<'_>) -> Option<&'f str> {
    match &key.kind {
        FormKind::String(text) => Some(text),
        _ => key.keyword(),
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

fn find_own_calls(ir: &Ir, out: &mut Vec<OwnCallSite>) {
    if let Op::Builtin { row, args } = &ir.op
        && (row.namespace, row.name) == special::OWN_TOOL
        && let Some((Ir { op: Op::Const(Value::Str(name)), span }, args)) = args.split_first()
        // Where `tool/NAME` is taken for a function nothing but the name is written: its arguments come later.
        && *span != ir.span
    {
        out.push(OwnCallSite { span: ir.span, name: name.as_str().to_owned(), args: named(args) });
    }
    ir.children(&mut |child| find_own_calls(child, out));
}

/// Arguments as they are written: none, one map, or keys and values in turn.
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

fn site(span: Span, request: Option<&Ir>) -> ToolCallSite {
    let mut site = ToolCallSite { span, request: None, keys: None, server: None, tool: None, args: None };
    let Some(request) = request else { return site };
    match &request.op {
        Op::Const(map @ Value::Map(_)) => {
            site.request = Some(request.span);
            site.keys = map.entries().map(|entries| entries.map(|(key, _)| key.clone()).collect());
            site.server = map.get("server").and_then(Value::as_name).map(str::to_owned);
            site.tool = map.get("tool").and_then(Value::as_name).map(str::to_owned);
            site.args = match map.get("args") {
                None | Some(Value::Nil) => Some(Vec::new()),
                Some(args) => args.entries().map(|entries| entries.filter_map(constant_entry).collect()),
            };
        }
        Op::Map(parts) => {
            site.request = Some(request.span);
            site.args = Some(Vec::new());
            let keys = parts.iter().step_by(2).map(|key| match &key.op {
                Op::Const(key) => Some(key.clone()),
                _ => None,
            });
            site.keys = keys.collect();
            for pair in parts.chunks_exact(2) {
                let [Ir { op: Op::Const(key), .. }, value] = pair else { continue };
                let text = match &value.op {
                    Op::Const(value) => value.as_name().map(str::to_owned),
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
        Op::Const(args) => args.entries()?.map(constant_entry).collect(),
        Op::Map(parts) => parts.chunks_exact(2).map(entry).collect(),
        _ => None,
    }
}
