//! Compiled programs.

use std::sync::Arc;

use crate::analyzer::{Tools, analyze};
use crate::bindings::Bindings;
use crate::call_sites::{EarlierCalls, HostToolCall, ToolCallSite};
use crate::deadline::Deadline;
use crate::error::{Error, Span};
use crate::eval::{Closure, Code, Group, compile};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Source, Unit};
use crate::{Value, call_sites, reader};

/// A program, ready to run any number of times on any number of threads.
pub struct Program {
    pub(crate) source: Arc<str>,
    pub(crate) unit: Unit,
    pub(crate) code: Code,
    /// The pseudo-function of the top level.
    pub(crate) top: Arc<Closure>,
}

/// The spans of an entry of a map literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntrySpans {
    /// The range of the key.
    pub key: Span,
    /// The range of the value.
    pub value: Span,
}

impl Program {
    /// Parses, resolves and compiles a program without earlier definitions.
    ///
    /// # Errors
    ///
    /// Returns the first error of the text.
    pub fn compile(source: &str) -> Result<Program, Error> {
        Program::compile_with(source, &Bindings::default())
    }

    /// Compiles a program that may refer to definitions of earlier ones. It can be run with the given bindings, whose values may
    /// have changed, but not with others.
    ///
    /// # Errors
    ///
    /// Returns the first error of the text.
    pub fn compile_with(source: &str, known: &Bindings) -> Result<Program, Error> {
        Program::compile_for(source, known, &[])
    }

    /// Like [`Program::compile_with`], but also with tools of the embedding program. `tool/NAME` calls the tool of that name
    /// through [`Host::submit_tool`](crate::Host::submit_tool). Hyphens and underscores are equivalent.
    ///
    /// # Errors
    ///
    /// Returns the first error of the text.
    pub fn compile_for(source: &str, known: &Bindings, tools: &[&str]) -> Result<Program, Error> {
        Program::compile_until(source, known, tools, &Deadline::none())
    }

    /// Like [`Program::compile_for`], but with a time limit.
    ///
    /// # Errors
    ///
    /// The first fault of the text, or [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) or
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) once the deadline has passed.
    pub fn compile_until(source: &str, known: &Bindings, tools: &[&str], deadline: &Deadline) -> Result<Program, Error> {
        deadline.check()?;
        let forms = reader::read_until(source, deadline)?;
        let source = Arc::new(known.before(Arc::from(source)));
        let unit = analyze(&source, known, Tools::Named(tools), forms, deadline)?;
        deadline.check()?;
        let program = Program::of_unit(&source, unit);
        deadline.check()?;
        Ok(program)
    }

    /// Compiles a resolved program.
    pub(crate) fn of_unit(source: &Arc<Source>, unit: Unit) -> Program {
        let code = compile(&unit.body);
        let top = Arc::new(Closure::new(Arc::new(Group::top_level(source)), 0, None));
        Program { source: Arc::clone(&source.text), unit, code, top }
    }

    /// The source text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The resolved program, for checkers.
    pub fn ir(&self) -> &Ir {
        &self.unit.body
    }

    /// The names that the program defines, in order of their first definition.
    pub fn definitions(&self) -> impl Iterator<Item = &str> {
        self.unit.definitions.iter().filter_map(|place| self.unit.globals.get(*place as usize)).map(|name| &**name)
    }

    /// Finds every `(tool/call …)` in the text, in order, with its literal parts.
    pub fn tool_calls(&self) -> Vec<ToolCallSite> {
        call_sites::upstream_calls::<false>(&self.unit)
    }

    /// Like [`Program::tool_calls`], but a name counts as the literal that `let` or its only `def` binds it to. A call in a
    /// function of the program is also reported for each call of that function, with the literals that are passed there
    /// ([`ToolCallSite::call`]). A reported call may be in a branch that is never executed because of these values.
    pub fn tool_calls_by_name(&self) -> Vec<ToolCallSite> {
        call_sites::upstream_calls::<true>(&self.unit)
    }

    /// Finds the calls of tools in functions of earlier programs that this one can use: through the names of `known`, with which it was
    /// compiled, and through `results`, which are `*1 *2 *3`. `tools` are the names of [`Program::compile_for`].
    pub fn earlier_calls(&self, known: &Bindings, results: &[Value], tools: &[&str], deadline: &Deadline) -> EarlierCalls {
        call_sites::earlier_calls(&self.unit, known, results, tools, deadline)
    }

    /// The resolved program with its names.
    pub(crate) fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Finds every `(tool/NAME …)` in the text, in order, with its literal parts.
    pub fn host_tool_calls(&self) -> Vec<HostToolCall> {
        call_sites::host_tool_calls(&self.unit.body)
    }

    /// Finds an entry of the map literal at `map` by a path of keys, such as `["args", "limit"]`. `None` if the literal has no
    /// such entry. This parses the map on each call. Use [`Program::written_map`] for several entries of one map.
    pub fn entry(&self, map: Span, path: &[&str]) -> Option<EntrySpans> {
        self.written_map(map)?.entry(path)
    }

    /// Returns the map literal at `map`. Its text is parsed again, since constants do not store the spans of their parts.
    pub fn written_map(&self, map: Span) -> Option<WrittenMap<'_>> {
        let text = self.source.get(map.start as usize..map.end as usize)?;
        let form = reader::read(text).ok()?.into_iter().next()?;
        Some(WrittenMap { form, start: map.start })
    }
}

/// A map literal in a program's text.
#[derive(Debug)]
pub struct WrittenMap<'p> {
    form: Form<'p>,
    /// Offset of its first byte.
    start: u32,
}

impl WrittenMap<'_> {
    /// Finds an entry by a path of keys. `None` if the literal has no such entry.
    pub fn entry(&self, path: &[&str]) -> Option<EntrySpans> {
        let (mut form, mut found) = (&self.form, None);
        for name in path {
            let FormKind::Map(parts) = &form.kind else { return None };
            let (key, value) = parts.chunks_exact(2).find_map(|pair| match pair {
                [key, value] if key_name(key) == Some(*name) => Some((key, value)),
                _ => None,
            })?;
            let place = |span: Span| Span::new(self.start + span.start, self.start + span.end);
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
