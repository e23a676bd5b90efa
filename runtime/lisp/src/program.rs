//! Compiled programs.

use std::sync::Arc;

use crate::analyzer::{Tools, analyze};
use crate::bindings::Bindings;
use crate::call_sites::{OwnCallSite, ToolCallSite};
use crate::deadline::Deadline;
use crate::error::{Error, Span};
use crate::eval::{Closure, Code, Group, compile};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Unit};
use crate::{call_sites, reader};

/// A program, ready to run any number of times on any number of threads.
pub struct Program {
    pub(crate) source: Arc<str>,
    pub(crate) unit: Unit,
    pub(crate) code: Code,
    /// Stands for the function under way at the top level.
    pub(crate) top: Arc<Closure>,
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
        Program::compile_until(source, known, tools, &Deadline::none())
    }

    /// [`Program::compile_for`] within a time limit.
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
        let code = compile(&unit.body);
        deadline.check()?;
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
        call_sites::upstream_calls::<false>(&self.unit)
    }

    /// The same; a name counts as the literal that `let` or the only `def` gives it. A call may stand where it is never made, just because
    /// of what its names stand for.
    pub fn tool_calls_by_name(&self) -> Vec<ToolCallSite> {
        call_sites::upstream_calls::<true>(&self.unit)
    }

    /// Every `(tool/NAME …)` in its text, in order, with what is literal about it.
    pub fn own_calls(&self) -> Vec<OwnCallSite> {
        call_sites::own_calls(&self.unit.body)
    }

    /// An entry of the map that is written at `map`, by its keys from the outside in, as in `["args", "limit"]`. `None` where no such
    /// entry is written. Reads the map each time: [`Program::written_map`] is for several entries of one map.
    pub fn entry(&self, map: Span, path: &[&str]) -> Option<EntrySpans> {
        self.written_map(map)?.entry(path)
    }

    /// The map that is written at `map`. Its text is read again, since constants know nothing of their parts' places.
    pub fn written_map(&self, map: Span) -> Option<WrittenMap<'_>> {
        let text = self.source.get(map.start as usize..map.end as usize)?;
        let form = reader::read(text).ok()?.into_iter().next()?;
        Some(WrittenMap { form, start: map.start })
    }
}

/// A map in the text of a program.
#[derive(Debug)]
pub struct WrittenMap<'p> {
    form: Form<'p>,
    /// Its first byte.
    start: u32,
}

impl WrittenMap<'_> {
    /// An entry, by its keys from the outside in; `None` where no such entry is written.
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
