//! Inserts probes into the IR of a program.

use std::collections::HashMap;
use std::sync::Arc;

use super::{BranchCoverage, Counter, Coverage, FormCoverage, FunctionCoverage};
use crate::analyzer::{Tools, analyze};
use crate::bindings::Bindings;
use crate::deadline::Deadline;
use crate::form::{Form, FormKind};
use crate::ir::{GroupIr, Ir, Op, Step};
use crate::{Program, Span, Value, reader};

/// The special forms that become an `if` with their own span.
const CONDITIONALS: [&str; 9] = ["if", "if-not", "when", "when-not", "if-let", "when-let", "if-some", "when-some", "when-first"];

/// What the text has at a span. The analyzer also makes expressions that no text corresponds to, and gives them the span of a form
/// around them.
#[derive(Debug, Clone, Copy)]
enum Written<'s> {
    /// A list with the name at its start, or the body of `#()`.
    List(Option<&'s str>),
    /// A vector, a map or a set.
    Collection,
    /// A name, a constant or a quoted form.
    Atom,
}

struct Instrumenter<'s> {
    written: HashMap<Span, Written<'s>>,
    /// The index of each counted form.
    counted: HashMap<Span, usize>,
    coverage: Coverage,
}

impl Coverage {
    /// Compiles a program with probes, and returns it with their counters. `None` if it refers to definitions of earlier programs.
    pub fn instrument(program: &Program) -> Option<(Program, Coverage)> {
        if program.unit.imported_globals > 0 {
            return None;
        }
        // These steps succeeded when the program was compiled.
        let known = Bindings::default();
        let forms = reader::read(&program.source).ok()?;
        let mut instrumenter = Instrumenter { written: HashMap::new(), counted: HashMap::new(), coverage: Coverage::default() };
        instrumenter.read(&forms);
        let source = Arc::new(known.before(Arc::clone(&program.source)));
        let mut unit = analyze(&source, &known, Tools::Any, forms, &Deadline::none()).ok()?;
        instrumenter.visit(&mut unit.body, None, true);
        let mut coverage = instrumenter.coverage;
        coverage.forms.sort_by_key(|form| form.span);
        coverage.branches.sort_by_key(|branch| branch.span);
        coverage.functions.sort_by_key(|function| function.span);
        Some((Program::of_unit(&source, unit), coverage))
    }
}

impl<'s> Instrumenter<'s> {
    /// Notes the spans of forms and their parts.
    fn read(&mut self, forms: &[Form<'s>]) {
        for form in forms {
            self.read_form(form);
        }
    }

    fn read_form(&mut self, form: &Form<'s>) {
        let (written, parts) = match &form.kind {
            FormKind::List(parts) => (Written::List(parts.first().and_then(Form::symbol)), parts.as_slice()),
            FormKind::ShortFn(parts) => {
                let body = Span::new(form.span.start + 1, form.span.end);
                self.written.insert(body, Written::List(parts.first().and_then(Form::symbol)));
                (Written::List(None), parts.as_slice())
            }
            FormKind::Vector(parts) | FormKind::Map(parts) | FormKind::Set(parts) => (Written::Collection, parts.as_slice()),
            _ => (Written::Atom, [].as_slice()),
        };
        self.written.insert(form.span, written);
        self.read(parts);
    }

    /// Inserts probes into an expression. `outer` is the span of the counted form around it. `starts` says that the expression is
    /// the first one of a branch or of a body.
    fn visit(&mut self, ir: &mut Ir, outer: Option<Span>, starts: bool) {
        let span = ir.span;
        let is_form = outer != Some(span) && self.is_form(ir, starts);
        self.parts(ir, if is_form { Some(span) } else { outer }, starts && !is_form);
        if is_form {
            probe(ir, self.form(span));
        }
    }

    fn is_form(&self, ir: &Ir, starts: bool) -> bool {
        let Some(written) = self.written.get(&ir.span) else { return false };
        let is_read = is_read(&ir.op);
        match (written, &ir.op) {
            (Written::List(head), Op::If(_)) => head.is_some_and(|head| CONDITIONALS.contains(&head)),
            (Written::List(_), _) => !is_read,
            (Written::Collection, Op::Vector(_) | Op::Map(_) | Op::Set(_)) => true,
            (Written::Collection, Op::Const(_)) => starts,
            (Written::Collection, _) | (Written::Atom, Op::If(_)) => false,
            // A name in a threading macro is a call.
            (Written::Atom, _) => starts || !is_read,
        }
    }

    /// Returns the counter of a form. A macro may evaluate one form at several places.
    fn form(&mut self, span: Span) -> Counter {
        let next = self.coverage.forms.len();
        let at = *self.counted.entry(span).or_insert(next);
        if at == next {
            self.coverage.forms.push(FormCoverage { span, counter: Counter::default() });
        }
        self.coverage.forms.get(at).map(|form| form.counter.clone()).unwrap_or_default()
    }

    fn parts(&mut self, ir: &mut Ir, outer: Option<Span>, starts: bool) {
        let span = ir.span;
        match &mut ir.op {
            Op::Const(_)
            | Op::Local(_)
            | Op::Capture(_)
            | Op::This
            | Op::Sibling(_)
            | Op::Global { .. }
            | Op::Context(_)
            | Op::History(_)
            | Op::Nth(..)
            | Op::Rest(..)
            | Op::Named(_)
            | Op::Probe { .. }
            | Op::Fault { .. } => {}
            Op::Vector(parts)
            | Op::Map(parts)
            | Op::Set(parts)
            | Op::Builtin { args: parts, .. }
            | Op::Recur { args: parts, .. } => self.all(parts, outer),
            Op::If(parts) => self.conditional(parts, span, outer),
            Op::And(parts) | Op::Or(parts) => {
                for (at, part) in parts.iter_mut().enumerate() {
                    self.visit(part, outer, at > 0 || starts);
                }
            }
            Op::Do(parts) => {
                for (at, part) in parts.iter_mut().enumerate() {
                    self.visit(part, outer, at == 0 && starts);
                }
            }
            Op::Let { bindings, body } => {
                for (_, value) in bindings {
                    self.visit(value, outer, false);
                }
                self.visit(body, outer, starts);
            }
            Op::Loop { inits, body, .. } => {
                self.all(inits, outer);
                self.visit(body, outer, starts);
            }
            Op::Fn(group) => self.functions(group, outer),
            Op::LetFn { group, body, .. } => {
                self.functions(group, outer);
                self.visit(body, outer, starts);
            }
            Op::Call { f, args } => {
                self.visit(f, outer, false);
                self.all(args, outer);
            }
            Op::Def { value, .. } => value.iter_mut().for_each(|value| self.visit(value, outer, false)),
            Op::Case(case) => {
                self.visit(&mut case.subject, outer, false);
                let branch = self.branch(span);
                case.arms.iter_mut().for_each(|arm| self.arm(branch, arm, span, outer));
            }
            Op::For { steps, .. } => {
                for step in steps {
                    match step {
                        Step::Each(_, ir) | Step::Bind(_, ir) | Step::When(ir) | Step::While(ir) => self.visit(ir, outer, false),
                        Step::Body(ir) => self.visit(ir, outer, true),
                    }
                }
            }
            Op::Key { default, .. } => default.iter_mut().for_each(|default| self.visit(default, outer, true)),
        }
    }

    fn all(&mut self, parts: &mut [Ir], outer: Option<Span>) {
        for part in parts {
            self.visit(part, outer, false);
        }
    }

    fn functions(&mut self, group: &mut GroupIr, outer: Option<Span>) {
        for member in &mut group.members {
            let counter = Counter::default();
            for arity in &mut member.arities {
                self.visit(&mut arity.body, outer, true);
                if member.name.is_some() {
                    probe(&mut arity.body, counter.clone());
                }
            }
            if let Some(name) = &member.name {
                let (name, span) = (Arc::clone(name), member.span);
                self.coverage.functions.push(FunctionCoverage { name, span, counter });
            }
        }
    }

    /// Adds a branch. Returns its index.
    fn branch(&mut self, span: Span) -> usize {
        self.coverage.branches.push(BranchCoverage { span, arms: Vec::new() });
        self.coverage.branches.len() - 1
    }

    /// Adds an arm to a branch. `span` is that of the branch.
    fn arm(&mut self, branch: usize, arm: &mut Ir, span: Span, outer: Option<Span>) {
        // An arm that the text does not have is a value with the span of its branch.
        if arm.span != span || !is_read(&arm.op) {
            self.visit(arm, outer, true);
        }
        let counter = Counter::default();
        probe(arm, counter.clone());
        if let Some(branch) = self.coverage.branches.get_mut(branch) {
            branch.arms.push(counter);
        }
    }

    /// Visits an `if`. The clauses of a `cond` are nested in each other, and become one branch.
    fn conditional(&mut self, parts: &mut [Ir; 3], span: Span, outer: Option<Span>) {
        let Some(kind) = Conditional::classify(self.written.get(&span), span, parts) else {
            // The condition of `dotimes`.
            let [test, then, otherwise] = parts;
            self.visit(test, outer, false);
            self.visit(then, outer, true);
            return self.visit(otherwise, outer, true);
        };
        let branch = self.branch(span);
        let (mut clause, mut span) = (parts, span);
        loop {
            let [test, then, otherwise] = clause;
            if kind != Conditional::NilTest {
                self.visit(test, outer, false);
            }
            self.arm(branch, then, span, outer);
            if kind != Conditional::Clause || !is_clause(otherwise) {
                return self.arm(branch, otherwise, span, outer);
            }
            span = otherwise.span;
            let Op::If(next) = &mut otherwise.op else { return };
            clause = next;
        }
    }
}

/// What an `if` was in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conditional {
    /// A form of its own.
    Form,
    /// A clause of `cond` or `condp`, with the span of its test.
    Clause,
    /// A step of `some->` or `some->>`, whose test is not in the text.
    NilTest,
    /// A step of `cond->` or `cond->>`, with the span of the step.
    Step,
}

impl Conditional {
    fn classify(written: Option<&Written<'_>>, span: Span, [test, then, otherwise]: &[Ir; 3]) -> Option<Conditional> {
        let is_nil = matches!(then.op, Op::Const(Value::Nil));
        match written {
            _ if test.span == span && then.span == span && is_nil => Some(Conditional::NilTest),
            _ if test.span == span => Some(Conditional::Clause),
            Some(Written::List(Some(head))) if CONDITIONALS.contains(head) => Some(Conditional::Form),
            _ if otherwise.span == span && matches!(otherwise.op, Op::Local(_)) => Some(Conditional::Step),
            _ => None,
        }
    }
}

/// Whether an operation is a constant, or reads a value that is there already.
fn is_read(op: &Op) -> bool {
    matches!(
        op,
        Op::Const(_)
            | Op::Local(_)
            | Op::Capture(_)
            | Op::This
            | Op::Sibling(_)
            | Op::Global { .. }
            | Op::Context(_)
            | Op::History(_)
            | Op::Nth(..)
            | Op::Rest(..)
            | Op::Key { .. }
            | Op::Named(_)
    )
}

fn is_clause(ir: &Ir) -> bool {
    matches!(&ir.op, Op::If(parts) if Conditional::classify(None, ir.span, parts) == Some(Conditional::Clause))
}

/// Replaces an expression by one that also increments a counter.
fn probe(ir: &mut Ir, counter: Counter) {
    if let Op::Probe { counters, .. } = &mut ir.op {
        return counters.push(counter);
    }
    let span = ir.span;
    let body = std::mem::replace(ir, Ir::new(span, Op::Const(Value::Nil)));
    ir.op = Op::Probe { counters: vec![counter], body: Box::new(body) };
}
