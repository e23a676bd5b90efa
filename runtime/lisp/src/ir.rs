//! The resolved program: every name is a slot, a capture, a global or a builtin.
//!
//! The analyzer makes the IR, [`crate::eval`] compiles it to closures, and checkers read it. Slots are indices into a function's
//! frame. A slot may be reused after the scope that bound it has ended.

use std::sync::{Arc, OnceLock};

use crate::Value;
use crate::builtins::Builtin;
use crate::error::Span;

/// An expression with its span in the source.
#[derive(Debug)]
pub struct Ir {
    /// The range of the source text.
    pub span: Span,
    /// The operation.
    pub op: Op,
}

/// A read of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// Index of the slot in the frame.
    pub slot: u32,
    /// Whether nothing reads the slot's value afterwards. Then the value may be moved out, so that its receiver can update it in
    /// place.
    pub last: bool,
}

impl Local {
    /// A read that is not known to be the last one.
    pub const fn new(slot: u32) -> Self {
        Local { slot, last: false }
    }
}

/// The operation of an expression.
#[derive(Debug)]
pub enum Op {
    /// A constant value.
    Const(Value),
    /// Reads a slot.
    Local(Local),
    /// Reads a captured value of the current function.
    Capture(u32),
    /// The current function, referred to by its own name.
    This,
    /// A function of the same `letfn`.
    Sibling(u32),
    /// Reads a name bound by `def`. While it is unbound, the builtin of the same name is used.
    Global {
        /// Index into [`Unit::globals`].
        index: u32,
        /// The builtin that the name refers to while the global is unbound.
        fallback: Option<&'static Builtin>,
    },
    /// `data/name`: a value of the context.
    Context(Value),
    /// `*1`, `*2`, `*3`: earlier results.
    History(u8),
    /// `[…]` with parts to evaluate.
    Vector(Vec<Ir>),
    /// `{…}` with parts to evaluate: keys and values in alternation.
    Map(Vec<Ir>),
    /// `#{…}` with parts to evaluate.
    Set(Vec<Ir>),
    /// `(if test then else)`
    If(Box<[Ir; 3]>),
    /// `and`: the value of the first falsy part, or of the last part.
    And(Vec<Ir>),
    /// `or`: the value of the first truthy part, or of the last part.
    Or(Vec<Ir>),
    /// Evaluates every part in order and returns the value of the last.
    Do(Vec<Ir>),
    /// Fills slots one after the other, then evaluates the body.
    Let {
        /// Slots with the expressions that fill them.
        bindings: Vec<(u32, Ir)>,
        /// The body.
        body: Box<Ir>,
    },
    /// Evaluates the body. A `Recur` to `first` restarts it.
    Loop {
        /// The first of the loop's slots, which are consecutive.
        first: u32,
        /// The initial values. Empty for the body of a function, whose parameters are the slots.
        inits: Vec<Ir>,
        /// The body.
        body: Box<Ir>,
    },
    /// Refills the slots from `first` on and restarts the innermost loop.
    Recur {
        /// The loop's first slot.
        first: u32,
        /// One value for each slot.
        args: Vec<Ir>,
    },
    /// Makes a function.
    Fn(Box<FnIr>),
    /// Makes functions that can call each other, then evaluates the body.
    LetFn {
        /// One slot for each function.
        slots: Box<[u32]>,
        /// The functions, which share their captures.
        group: Box<GroupIr>,
        /// The body.
        body: Box<Ir>,
    },
    /// Calls a value.
    Call {
        /// The value that is called.
        f: Box<Ir>,
        /// The arguments.
        args: Vec<Ir>,
    },
    /// Calls a builtin.
    Builtin {
        /// The row of the builtin.
        row: &'static Builtin,
        /// The arguments.
        args: Vec<Ir>,
    },
    /// `(def name value)`. Without a value it only declares the name.
    Def {
        /// Index into [`Unit::globals`].
        index: u32,
        /// The value that is bound.
        value: Option<Box<Ir>>,
        /// `defonce`: a bound name keeps its value.
        once: bool,
    },
    /// `(case …)` over constants.
    Case(Box<CaseIr>),
    /// `for` and `doseq`.
    For {
        /// The clauses in order. The last one is the body.
        steps: Vec<Step>,
        /// Whether the values of the body are collected, as `for` does.
        collect: bool,
    },
    /// Destructuring: the item at an index, or nil past the end.
    Nth(Local, u32),
    /// Destructuring: the items after the first ones, or nil if there are none.
    Rest(Local, u32),
    /// Destructuring: the value at a key of a map.
    Key {
        /// The map.
        from: Local,
        /// The key.
        key: Value,
        /// The value for a missing key.
        default: Option<Box<Ir>>,
    },
    /// Keyword arguments: converts a vector of keys and values to a map.
    Named(Local),
    /// Raises a fault: a builtin is called with a number of arguments that it does not accept.
    Fault {
        /// The row of the builtin.
        row: &'static Builtin,
        /// The fault.
        fault: Box<crate::machine::Fault>,
    },
    /// Increments counters, then evaluates the body. Only programs with [`coverage`](crate::coverage) contain it.
    #[cfg(feature = "coverage")]
    Probe {
        /// The counters.
        counters: Vec<crate::coverage::Counter>,
        /// The body.
        body: Box<Ir>,
    },
}

/// The parts of a `case` expression.
#[derive(Debug)]
pub struct CaseIr {
    /// The expression whose value selects an arm.
    pub subject: Ir,
    /// Constants, each with the index of its arm.
    pub table: Vec<(Value, u32)>,
    /// The results. The last one is the default.
    pub arms: Vec<Ir>,
}

/// A clause of `for` or `doseq`.
#[derive(Debug)]
pub enum Step {
    /// Iterates over a collection, with each item in the slot.
    Each(u32, Ir),
    /// `:let`: fills a slot.
    Bind(u32, Ir),
    /// `:when`: skips the iteration if the test is falsy.
    When(Ir),
    /// `:while`: ends the innermost iteration if the test is falsy.
    While(Ir),
    /// The body.
    Body(Ir),
}

/// The text of a program and the definitions before it: everything that is needed to compile its functions again.
#[derive(Debug)]
pub struct Source {
    /// The source text.
    pub text: Arc<str>,
    /// Number of names that earlier programs had defined. They have the first indices of the globals.
    pub imported_globals: u32,
    /// The indices of those names that had no value any more.
    pub unbound: Box<[u32]>,
    /// Number of names that the program itself defines. They have the next indices. Set during analysis.
    pub declared_globals: OnceLock<u32>,
}

/// One function, or several that can call each other, with their captures.
#[derive(Debug)]
pub struct GroupIr {
    /// The program that contains the functions.
    pub source: Arc<Source>,
    /// The number of the group within the program, in the order of analysis.
    pub number: u32,
    /// The values to capture when the functions are made.
    pub captures: Vec<Capture>,
    /// The functions.
    pub members: Vec<MemberIr>,
}

/// A group with a single function.
pub type FnIr = GroupIr;

/// The source of a captured value.
#[derive(Debug, Clone, Copy)]
pub enum Capture {
    /// A slot of the enclosing function.
    Local(Local),
    /// A capture of the enclosing function.
    Capture(u32),
    /// The enclosing function itself.
    This,
    /// A function of the `letfn` that the enclosing function belongs to.
    Sibling(u32),
}

/// One function with all of its arities.
#[derive(Debug)]
pub struct MemberIr {
    /// The name, for messages and for recursion.
    pub name: Option<Arc<str>>,
    /// The range of the source text.
    pub span: Span,
    /// The doc string of `defn`.
    pub doc: Option<Arc<str>>,
    /// The arities, sorted by number of fixed parameters.
    pub arities: Vec<ArityIr>,
}

/// One arity of a function.
#[derive(Debug)]
pub struct ArityIr {
    /// The parameters in source form.
    pub arglist: Arc<str>,
    /// Number of fixed parameters, which are the first slots.
    pub fixed: u32,
    /// Whether the slot after them receives the remaining arguments.
    pub variadic: bool,
    /// Size of the frame in slots.
    pub slots: u32,
    /// The body.
    pub body: Ir,
}

// A program consists of many of these, and they are moved during analysis. Rare and large variants are boxed.
const _: () = assert!(size_of::<Ir>() <= 48);

/// A whole program.
#[derive(Debug)]
pub struct Unit {
    /// The names of all globals by index: those known before the program, then its own.
    pub globals: Arc<[Arc<str>]>,
    /// Number of globals that were known before the program.
    pub imported_globals: u32,
    /// The indices of the globals that `def` binds, in the order of the text.
    pub definitions: Box<[u32]>,
    /// Size of the top-level frame in slots.
    pub slots: u32,
    /// The program, as one `do`.
    pub body: Ir,
}

impl Ir {
    /// Makes an expression at a span.
    pub fn new(span: Span, op: Op) -> Self {
        Ir { span, op }
    }

    /// Calls `visit` with every expression directly inside this one, bodies of functions included.
    pub fn children<'a>(&'a self, visit: &mut dyn FnMut(&'a Ir)) {
        match &self.op {
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
            | Op::Fault { .. } => {}
            Op::Vector(parts) | Op::Map(parts) | Op::Set(parts) | Op::And(parts) | Op::Or(parts) | Op::Do(parts) => {
                parts.iter().for_each(visit);
            }
            Op::If(parts) => parts.iter().for_each(visit),
            Op::Let { bindings, body } => {
                for (_, value) in bindings {
                    visit(value);
                }
                visit(body);
            }
            Op::Loop { inits, body, .. } => {
                inits.iter().for_each(&mut *visit);
                visit(body);
            }
            Op::Recur { args, .. } | Op::Builtin { args, .. } => args.iter().for_each(visit),
            Op::Fn(group) => group.children(visit),
            Op::LetFn { group, body, .. } => {
                group.children(visit);
                visit(body);
            }
            Op::Call { f, args } => {
                visit(f);
                args.iter().for_each(visit);
            }
            Op::Def { value, .. } => value.iter().for_each(|value| visit(value)),
            Op::Case(case) => {
                visit(&case.subject);
                case.arms.iter().for_each(visit);
            }
            Op::For { steps, .. } => steps.iter().for_each(|step| match step {
                Step::Each(_, ir) | Step::Bind(_, ir) | Step::When(ir) | Step::While(ir) | Step::Body(ir) => visit(ir),
            }),
            Op::Key { default, .. } => default.iter().for_each(|default| visit(default)),
            #[cfg(feature = "coverage")]
            Op::Probe { body, .. } => visit(body),
        }
    }
}

impl GroupIr {
    fn children<'a>(&'a self, visit: &mut dyn FnMut(&'a Ir)) {
        for member in &self.members {
            member.arities.iter().for_each(|arity| visit(&arity.body));
        }
    }
}
