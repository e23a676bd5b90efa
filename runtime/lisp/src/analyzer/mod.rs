//! Analyses forms to resolved IR: names become slots, captures, globals or builtins, and macros are expanded.

mod function;
mod hints;
mod literal;
mod liveness;
mod names;
mod pattern;
mod scope;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::bindings::Bindings;
use crate::builtins::Builtin;
use crate::deadline::Deadline;
use crate::error::{Error, ErrorKind, Span};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Local, Op, Source, Unit};
use crate::machine::stack;
use crate::signature::underscored;
use crate::{Value, builtins, host_functions, special_forms};

pub(crate) use function::Written;
pub(crate) use hints::namespace as namespace_hint;
pub(crate) use names::{aliases, builtin, namespace, near_builtin, plain, qualified, written_namespaces};
pub(crate) use scope::{Mark, Target};
use scope::{ResolvedName, Scope, Siblings};

/// Maximum nesting of expressions after macro expansion.
const MAX_DEPTH: u32 = 600;

/// Expressions and patterns that analysis may produce per byte of source text, in addition to [`FREE_EXPRESSIONS`]. A form takes
/// at least two bytes. `as->` and `loop` analyse a pattern several times, and nesting them multiplies that.
const EXPRESSIONS_PER_BYTE: usize = 4;
const FREE_EXPRESSIONS: usize = 10_000;

/// Bytes of native stack that analysis may use. The thread that compiles must have at least twice as much.
const STACK: usize = 900 * 1024;

/// The names that `tool/NAME` may call in addition to the functions of that namespace.
#[derive(Clone, Copy)]
pub(crate) enum Tools<'s> {
    Named(&'s [&'s str]),
    /// Any name. For a program that was compiled before, when the names were checked.
    Any,
}

/// Resolves the names of a program.
pub(crate) fn analyze<'s>(
    source: &'s Arc<Source>,
    known: &'s Bindings,
    tools: Tools<'s>,
    forms: Vec<Form<'s>>,
    deadline: &'s Deadline,
) -> Result<Unit, Error> {
    let mut analyzer = Analyzer {
        source: &source.text,
        shared_source: source,
        deadline,
        expressions_left: source.text.len().saturating_mul(EXPRESSIONS_PER_BYTE).saturating_add(FREE_EXPRESSIONS),
        tools,
        groups: 0,
        globals: HashMap::default(),
        places: HashMap::default(),
        names: Vec::new(),
        first: 0,
        definitions: Vec::new(),
        defined: HashSet::new(),
        scopes: vec![Scope::new(None, Siblings::default())],
        depth: 0,
        floor: stack::here().saturating_sub(STACK),
        aliases: HashMap::default(),
        referred: HashMap::default(),
        texts: HashMap::default(),
        regexes: HashMap::default(),
        regex_weight: 0,
    };
    for (place, (name, value)) in (0..).zip(known.places()) {
        analyzer.places.insert(name, place);
        if value.is_some() {
            analyzer.globals.insert(name, place);
        }
        analyzer.first = place + 1;
    }
    for form in &forms {
        analyzer.find_definitions(form);
    }
    deadline.check()?;
    let span = Span::new(0, source.text.len() as u32);
    let body = analyzer.body(span, forms, false)?;
    let mut unit = Unit {
        globals: known.extended(&analyzer.names),
        imported_globals: analyzer.first,
        definitions: analyzer.definitions.into(),
        slots: analyzer.scopes.first().map_or(0, Scope::size),
        body,
    };
    liveness::mark(&mut unit, deadline);
    deadline.check()?;
    source.declared_globals.get_or_init(|| unit.globals.len() as u32 - unit.imported_globals);
    Ok(unit)
}

/// The state of the analysis of one program. Special forms receive it to analyse their parts.
pub(crate) struct Analyzer<'s> {
    pub(crate) source: &'s str,
    shared_source: &'s Arc<Source>,
    deadline: &'s Deadline,
    expressions_left: usize,
    tools: Tools<'s>,
    /// Number of groups of functions so far.
    groups: u32,
    /// The globals that can be referred to at this point, with their indices.
    globals: HashMap<&'s str, u32, RandomState>,
    /// The indices of all names that were known before this program, bound or not.
    places: HashMap<&'s str, u32, RandomState>,
    /// The names that the program itself introduces. Their indices start at `first`.
    names: Vec<&'s str>,
    first: u32,
    /// Indices of the globals that the program defines, in order.
    definitions: Vec<u32>,
    defined: HashSet<u32>,
    scopes: Vec<Scope<'s>>,
    depth: u32,
    floor: usize,
    /// Namespaces by the aliases that `require` gave them.
    aliases: HashMap<&'s str, &'static str, RandomState>,
    /// Builtins that `require` made available without their namespace.
    referred: HashMap<&'s str, &'static Builtin, RandomState>,
    /// One shared value for each keyword and string of the program.
    texts: HashMap<(&'s str, bool), Value, RandomState>,
    /// One shared value for each regex of the program, and their total weight.
    regexes: HashMap<&'s str, Value, RandomState>,
    regex_weight: u32,
}

pub(crate) type Analysed = Result<Ir, Error>;

impl<'s> Analyzer<'s> {
    /// Resolves one form. `tail` means that its value is that of the innermost loop or function, so that `recur` is allowed.
    pub(crate) fn expr(&mut self, form: Form<'s>, tail: bool) -> Analysed {
        let span = form.span;
        self.step(span)?;
        let op = match form.kind {
            FormKind::Symbol(name) => return self.symbol(name, span),
            FormKind::List(parts) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH || stack::here() < self.floor {
                    let error = self.error(ErrorKind::InvalidForm, span, "expressions are nested too deep");
                    return Err(error.with_hint("give inner parts a name with def or let"));
                }
                let result = self.list(parts, span, tail);
                self.depth -= 1;
                return result;
            }
            FormKind::ShortFn(parts) => return self.short_fn(parts, span),
            FormKind::Vector(_) | FormKind::Map(_) | FormKind::Set(_) => return self.collection(form),
            FormKind::Var(name) => {
                if !self.globals.contains_key(name) && self.builtin(name).is_none() {
                    return Err(self.unbound(name, span));
                }
                Op::Const(Value::Var(name.into()))
            }
            FormKind::Quote(inner) => return self.quote(*inner),
            other => Op::Const(self.constant(other, span)?),
        };
        Ok(Ir::new(span, op))
    }

    /// Counts an expression or a pattern against the limits.
    fn step(&mut self, span: Span) -> Result<(), Error> {
        if self.deadline.step() {
            self.deadline.check()?;
        }
        if let Some(left) = self.expressions_left.checked_sub(1) {
            self.expressions_left = left;
            return Ok(());
        }
        let error = self.error(ErrorKind::InvalidForm, span, "the program is too large once its patterns are taken apart");
        Err(error.with_hint("take values apart with let inside the body instead of in as-> or loop"))
    }

    /// Resolves a body, such as that of `do`, `let` or `fn`.
    pub(crate) fn body(&mut self, span: Span, forms: Vec<Form<'s>>, tail: bool) -> Analysed {
        let count = forms.len();
        if count == 0 {
            return Ok(Ir::new(span, Op::Const(Value::Nil)));
        }
        let mut parts = Vec::with_capacity(count);
        for (index, form) in forms.into_iter().enumerate() {
            parts.push(self.expr(form, tail && index + 1 == count)?);
        }
        if count == 1 {
            return parts.pop().ok_or_else(|| self.internal(span));
        }
        Ok(Ir::new(span, Op::Do(parts)))
    }

    pub(crate) fn exprs(&mut self, forms: impl IntoIterator<Item = Form<'s>>) -> Result<Vec<Ir>, Error> {
        let forms = forms.into_iter();
        // Collecting `Result`s would not reserve capacity.
        let mut all = Vec::with_capacity(forms.size_hint().0);
        for form in forms {
            all.push(self.expr(form, false)?);
        }
        Ok(all)
    }

    fn symbol(&mut self, name: &'s str, span: Span) -> Analysed {
        Ok(Ir::new(span, self.reference(name, span)?))
    }

    /// Resolves a name to the operation that reads it.
    fn reference(&mut self, name: &'s str, span: Span) -> Result<Op, Error> {
        if let Some(place) = scope::resolve(&mut self.scopes, name) {
            return Ok(match place {
                ResolvedName::Local(slot) => Op::Local(Local::new(slot)),
                ResolvedName::Capture(index) => Op::Capture(index),
                ResolvedName::This => Op::This,
                ResolvedName::Sibling(index) => Op::Sibling(index),
            });
        }
        if let Some(&index) = self.globals.get(name) {
            return Ok(Op::Global { index, fallback: self.builtin(name) });
        }
        match name {
            "*1" => return Ok(Op::History(1)),
            "*2" => return Ok(Op::History(2)),
            "*3" => return Ok(Op::History(3)),
            _ => {}
        }
        if let Some(key) = name.strip_prefix("data/").filter(|key| !key.is_empty()) {
            return Ok(Op::Context(Value::keyword(key)));
        }
        if let Some(value) = names::constant(name) {
            return Ok(Op::Const(value));
        }
        if let Some(row) = self.builtin(name) {
            return Ok(Op::Const(Value::Builtin(row)));
        }
        if self.tool(name).is_some() {
            return Ok(host_functions::tool_as_value(self, name, span)?.op);
        }
        Err(self.unbound(name, span))
    }

    /// Returns the builtin or special function of a name. Shadowing is not considered.
    pub(crate) fn builtin(&self, name: &str) -> Option<&'static Builtin> {
        if !(self.aliases.is_empty() && self.referred.is_empty()) {
            if let Some(row) = self.referred.get(name) {
                return Some(row);
            }
            if let Some((written, short)) = name.split_once('/')
                && let Some(namespace) = self.aliases.get(written)
            {
                return names::qualified(namespace, short);
            }
        }
        names::builtin(name)
    }

    /// Returns the host's name of the tool that `tool/NAME` calls.
    fn tool(&self, name: &'s str) -> Option<&'s str> {
        let short = name.strip_prefix("tool/").filter(|short| !short.is_empty())?;
        match self.tools {
            Tools::Named(tools) => {
                let wanted = underscored(short);
                tools.iter().copied().find(|tool| underscored(tool) == wanted)
            }
            Tools::Any => Some(short),
        }
    }

    /// Returns the namespace for a written name, if one exists.
    #[expect(clippy::unused_self, reason = "callers resolve names through the analyzer")]
    pub(crate) fn known_namespace(&self, written: &str) -> Option<&'static str> {
        names::known_namespace(written)
    }

    /// Adds an alias of a namespace.
    pub(crate) fn alias(&mut self, alias: &'s str, namespace: &'static str) {
        self.aliases.insert(alias, namespace);
    }

    /// Makes a name of a namespace available without the namespace. Returns false if the name does not exist.
    pub(crate) fn refer(&mut self, namespace: &'static str, name: &'s str) -> bool {
        let row = names::qualified(namespace, name);
        self.referred.extend(row.map(|row| (name, row)));
        row.is_some()
    }

    /// Whether the program binds `name` in an enclosing scope or by `def`.
    pub(crate) fn is_bound(&mut self, name: &str) -> bool {
        self.globals.contains_key(name) || self.is_local(name)
    }

    pub(crate) fn is_local(&mut self, name: &str) -> bool {
        scope::resolve(&mut self.scopes, name).is_some()
    }

    fn list(&mut self, mut parts: Vec<Form<'s>>, span: Span, tail: bool) -> Analysed {
        let Some(head) = parts.first() else {
            let error = self.error(ErrorKind::InvalidForm, span, "() calls nothing");
            return Err(error.with_hint("an empty collection is []; conj adds at its end, cons at the front"));
        };
        if let Some(name) = head.symbol()
            && let Some(row) = special_forms::find(names::plain(name))
            && (row.is_reserved || !self.is_local(name))
        {
            let head = parts.remove(0);
            return self.special(row, head.span, span, parts, tail);
        }
        let head = parts.remove(0);
        self.call(head, parts, span)
    }

    fn special(
        &mut self,
        row: &'static special_forms::Special,
        head: Span,
        span: Span,
        parts: Vec<Form<'s>>,
        tail: bool,
    ) -> Analysed {
        let count = parts.len();
        if count < row.min || row.max.is_some_and(|max| count > max) {
            let mut error =
                self.error(ErrorKind::InvalidArity, head, format!("{} got {}", row.name, crate::form::counted(count)));
            error = error.with_hint(format!("expected {}", row.usage()));
            return Err(error);
        }
        match row.expand {
            special_forms::Expand::Form(analyse) => analyse(self, span, parts, tail),
            special_forms::Expand::Macro(expand) => {
                let form = expand(self, span, parts).map_err(|error| shown(error, row))?;
                self.expr(form, tail)
            }
        }
        .map_err(|error| shown(error, row))
    }

    fn call(&mut self, head: Form<'s>, args: Vec<Form<'s>>, span: Span) -> Analysed {
        let f = match head.symbol() {
            Some(name) => {
                if let Some(tool) = self.tool(name).filter(|_| self.builtin(name).is_none()) {
                    let args = self.exprs(args)?;
                    return Ok(Ir::new(span, host_functions::tool_call(tool, head.span, args)));
                }
                let f = self.reference(name, head.span)?;
                if let Op::Const(Value::Builtin(row)) = f {
                    let args = host_functions::quoted_names(row, args, self);
                    let args = self.exprs(args)?;
                    return Ok(Ir::new(span, builtin_call(row, args)));
                }
                // `(Long/MAX_VALUE)` reads a static field, as `Long/MAX_VALUE` does.
                if args.is_empty() && matches!(f, Op::Const(_)) && name.contains('/') && names::constant(name).is_some() {
                    return Ok(Ir::new(span, f));
                }
                Ir::new(head.span, f)
            }
            None => self.expr(head, false)?,
        };
        let args = self.exprs(args)?;
        Ok(Ir::new(span, Op::Call { f: Box::new(f), args }))
    }

    /// Collects the names that `def` binds anywhere in a form, so that functions can refer to later definitions.
    fn find_definitions(&mut self, form: &Form<'s>) {
        let parts = match &form.kind {
            FormKind::List(parts) => {
                if let [head, name, ..] = parts.as_slice()
                    && matches!(head.symbol().map(names::plain), Some("def" | "defn" | "defonce" | "defn-"))
                    && let Some(name) = name.symbol()
                {
                    let place = self.global(name);
                    if self.defined.insert(place) {
                        self.definitions.push(place);
                    }
                }
                parts
            }
            FormKind::Vector(parts) | FormKind::Map(parts) | FormKind::Set(parts) | FormKind::ShortFn(parts) => parts,
            _ => return,
        };
        for part in parts {
            self.find_definitions(part);
        }
    }

    /// Returns the index of the global `name`, adding it if necessary.
    pub(crate) fn global(&mut self, name: &'s str) -> u32 {
        let place = if let Some(place) = self.globals.get(name).or_else(|| self.places.get(name)) {
            *place
        } else {
            self.names.push(name);
            self.first + self.names.len() as u32 - 1
        };
        self.globals.insert(name, place);
        place
    }

    fn unbound(&mut self, name: &str, span: Span) -> Error {
        if special_forms::find(names::plain(name)).is_some() {
            let error = self.error(ErrorKind::InvalidForm, span, format!("{name} is a special form, not a value"));
            return error.with_hint(format!("call it, or wrap it: (fn [x] ({name} x …))"));
        }
        let mut known: Vec<&str> = self.globals.keys().copied().collect();
        known.sort_unstable();
        known.extend(self.scopes.iter().flat_map(Scope::names));
        let aliased = name.split_once('/').and_then(|(alias, short)| Some(format!("{}/{short}", self.aliases.get(alias)?)));
        let (kind, message, hint) = match (self.tools, name.strip_prefix("tool/")) {
            (Tools::Named(tools), Some(short)) if !tools.is_empty() => names::unknown_tool(short, tools),
            _ => names::unknown(aliased.as_deref().unwrap_or(name), &known),
        };
        let error = self.error(kind, span, message);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    pub(crate) fn error(&self, kind: ErrorKind, span: Span, message: impl Into<String>) -> Error {
        Error::at(kind, message, self.source, span)
    }

    /// Makes an `invalid_form` error at a span.
    pub(crate) fn invalid(&self, span: Span, message: impl Into<String>) -> Error {
        self.error(ErrorKind::InvalidForm, span, message)
    }

    pub(crate) fn internal(&self, span: Span) -> Error {
        self.error(ErrorKind::InternalError, span, "the analyzer lost its place")
    }

    fn scope(&mut self) -> &mut Scope<'s> {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::new(None, Siblings::default()));
        }
        let last = self.scopes.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the line above makes it non-empty")]
        &mut self.scopes[last]
    }

    /// Allocates a slot in the current function.
    pub(crate) fn slot(&mut self) -> u32 {
        self.scope().slot()
    }

    /// Binds `name` to a slot until the scope ends.
    pub(crate) fn name(&mut self, name: &'s str, slot: u32) {
        self.scope().name(name, slot);
    }

    /// Starts a scope, which [`Analyzer::leave`] ends.
    pub(crate) fn enter(&mut self) -> Mark {
        self.scope().mark()
    }

    /// Ends a scope.
    pub(crate) fn leave(&mut self, mark: Mark) {
        self.scope().reset(mark);
    }

    /// Sets the target of `recur` and returns the previous one.
    pub(crate) fn retarget(&mut self, target: Option<Target>) -> Option<Target> {
        std::mem::replace(&mut self.scope().target, target)
    }

    pub(crate) fn target(&mut self) -> Option<Target> {
        self.scope().target
    }
}

/// Replaces the general hint of a special form's error by the usage of the form. A more specific hint is kept.
fn shown(error: Error, row: &special_forms::Special) -> Error {
    let general = error.kind.advice().is_some_and(|advice| error.hint.as_deref() == Some(advice));
    match error.kind {
        ErrorKind::InvalidForm | ErrorKind::InvalidArity if general => error.with_hint(format!("write {}", row.usage())),
        _ => error,
    }
}

/// Makes a call of a builtin, or the fault for a wrong number of arguments.
pub(crate) fn builtin_call(row: &'static Builtin, args: Vec<Ir>) -> Op {
    match builtins::arity_fault(row, args.len()) {
        None => Op::Builtin { row, args },
        Some(fault) => Op::Fault { row, fault: Box::new(fault) },
    }
}

/// Makes a read of a slot.
pub(crate) fn read(span: Span, slot: u32) -> Ir {
    Ir::new(span, Op::Local(Local::new(slot)))
}
