//! The resolved program: every name is a slot, a capture, a global or a builtin.
//!
//! The analyzer makes it, [`crate::eval`] turns it into closures, and checkers read it. Slots are places of a function's
//! frame; a slot may be used again when the scope that bound it has ended.

use std::sync::{Arc, OnceLock};

use crate::Value;
use crate::builtins::Builtin;
use crate::error::Span;

/// An expression and where it stands.
#[derive(Debug)]
pub struct Ir {
    /// Its place.
    pub span: Span,
    /// What it does.
    pub op: Op,
}

/// A read of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// The slot.
    pub slot: u32,
    /// Nothing reads the slot's value afterwards: it may be moved out, so that its holder can change it in place.
    pub last: bool,
}

impl Local {
    /// A read that is not known to be the last.
    pub const fn of(slot: u32) -> Self {
        Local { slot, last: false }
    }
}

/// What an expression does.
#[derive(Debug)]
pub enum Op {
    /// Gives a value.
    Const(Value),
    /// Reads a slot.
    Local(Local),
    /// Reads what the function under way has captured.
    Capture(u32),
    /// The function under way, by its own name.
    This,
    /// A function of the same `letfn`.
    Sibling(u32),
    /// Reads a name bound by `def`; until then, the builtin of that name.
    Global {
        /// Index into [`Unit::globals`].
        index: u32,
        /// The builtin that the name stands for while nothing is defined.
        fallback: Option<&'static Builtin>,
    },
    /// `data/name`
    Context(Value),
    /// `*1`, `*2`, `*3`
    History(u8),
    /// `[…]` with parts to evaluate.
    Vector(Vec<Ir>),
    /// `{…}` with parts to evaluate: keys and values by turns.
    Map(Vec<Ir>),
    /// `#{…}` with parts to evaluate.
    Set(Vec<Ir>),
    /// `(if test then else)`
    If(Box<[Ir; 3]>),
    /// The first part that is falsy, else the last.
    And(Vec<Ir>),
    /// The first part that is truthy, else the last.
    Or(Vec<Ir>),
    /// Every part in order; gives the last.
    Do(Vec<Ir>),
    /// Fills slots one after the other, then evaluates the body.
    Let {
        /// Slots and what fills them.
        bindings: Vec<(u32, Ir)>,
        /// The body.
        body: Box<Ir>,
    },
    /// Evaluates the body; `Recur` to `first` starts it over.
    Loop {
        /// The first of the loop's slots, which follow each other.
        first: u32,
        /// What they start with. Empty for the body of a function, whose parameters are the slots.
        inits: Vec<Ir>,
        /// The body.
        body: Box<Ir>,
    },
    /// Refills the slots from `first` on and starts the innermost loop over.
    Recur {
        /// The loop's first slot.
        first: u32,
        /// One value for each slot.
        args: Vec<Ir>,
    },
    /// Makes a function.
    Fn(Box<FnIr>),
    /// Makes functions that can call each other, and evaluates the body.
    LetFn {
        /// A slot for each function.
        slots: Box<[u32]>,
        /// The functions; they capture the same values.
        group: Box<GroupIr>,
        /// The body.
        body: Box<Ir>,
    },
    /// Calls a value.
    Call {
        /// What is called.
        f: Box<Ir>,
        /// Its arguments.
        args: Vec<Ir>,
    },
    /// Calls a builtin.
    Builtin {
        /// Its row.
        row: &'static Builtin,
        /// Its arguments.
        args: Vec<Ir>,
    },
    /// `(def name value)`; without a value it only makes the name known.
    Def {
        /// Index into [`Unit::globals`].
        index: u32,
        /// What it is bound to.
        value: Option<Box<Ir>>,
        /// `defonce`: a bound name stays as it is.
        once: bool,
    },
    /// `(case …)` over constants.
    Case(Box<CaseIr>),
    /// `for` and `doseq`.
    For {
        /// What happens in turn; the last is the body.
        steps: Vec<Step>,
        /// `for` collects what the body gives.
        collect: bool,
    },
    /// The item at an index of what is taken apart; nil past its end.
    Nth(Local, u32),
    /// What is left of it after some items; nil if nothing.
    Rest(Local, u32),
    /// The value at a key of a map that is taken apart.
    Key {
        /// The map.
        from: Local,
        /// The key.
        key: Value,
        /// What stands for a missing key.
        default: Option<Box<Ir>>,
    },
    /// Arguments by name: a vector of keys and values as a map.
    Named(Local),
    /// Raises: a builtin that is called with a number of arguments that it does not take.
    Fault {
        /// Its row.
        row: &'static Builtin,
        /// What is raised.
        fault: Box<crate::machine::Fault>,
    },
}

/// `(case …)` over constants.
#[derive(Debug)]
pub struct CaseIr {
    /// What is looked up.
    pub subject: Ir,
    /// Constants, each with the index of its arm.
    pub table: Vec<(Value, u32)>,
    /// The results; the last is the default.
    pub arms: Vec<Ir>,
}

/// A part of `for` or `doseq`.
#[derive(Debug)]
pub enum Step {
    /// Goes over a collection, one item in the slot at a time.
    Each(u32, Ir),
    /// Fills a slot.
    Bind(u32, Ir),
    /// `:when`
    When(Ir),
    /// `:while`
    While(Ir),
    /// The body.
    Body(Ir),
}

/// The text of a program and what was defined before it: all that its functions are made from.
#[derive(Debug)]
pub struct Source {
    /// The text.
    pub text: Arc<str>,
    /// Names that earlier programs had defined: theirs are the first places of the globals.
    pub known: u32,
    /// The places of those that had no value any more.
    pub unbound: Box<[u32]>,
    /// How many names the program defines: theirs are the next places. Known when it is resolved.
    pub own: OnceLock<u32>,
}

/// A function or several that know each other, and what they take from around.
#[derive(Debug)]
pub struct GroupIr {
    /// The program that they stand in.
    pub source: Arc<Source>,
    /// Its place among the groups of that program, in the order in which they were resolved.
    pub number: u32,
    /// What is captured when the functions are made.
    pub captures: Vec<Capture>,
    /// The functions.
    pub members: Vec<MemberIr>,
}

/// A single function.
pub type FnIr = GroupIr;

/// Where a captured value comes from.
#[derive(Debug, Clone, Copy)]
pub enum Capture {
    /// A slot of the function around.
    Local(Local),
    /// A capture of the function around.
    Capture(u32),
    /// The function around itself.
    This,
    /// A function of the `letfn` that the function around belongs to.
    Sibling(u32),
}

/// One function with all of its arities.
#[derive(Debug)]
pub struct MemberIr {
    /// Its name, for messages and for calling itself.
    pub name: Option<Arc<str>>,
    /// Where it stands.
    pub span: Span,
    /// The doc string of `defn`.
    pub doc: Option<Arc<str>>,
    /// Its arities, by number of fixed parameters.
    pub arities: Vec<ArityIr>,
}

/// One arity of a function.
#[derive(Debug)]
pub struct ArityIr {
    /// The parameters as written.
    pub arglist: Arc<str>,
    /// Fixed parameters; they are the first slots.
    pub fixed: u32,
    /// Whether the slot after them takes the arguments that are left.
    pub variadic: bool,
    /// Size of the frame.
    pub slots: u32,
    /// The body.
    pub body: Ir,
}

// A program is many of these, and they are moved on the way up: what is seldom and large is boxed.
const _: () = assert!(size_of::<Ir>() <= 48);

/// A whole program.
#[derive(Debug)]
pub struct Unit {
    /// The names of all globals by place: those known before the program, then its own.
    pub globals: Arc<[Arc<str>]>,
    /// How many of the globals were known before the program.
    pub known: u32,
    /// The places of what `def` binds, in the order of the text.
    pub definitions: Box<[u32]>,
    /// Size of the frame of the top level.
    pub slots: u32,
    /// The program, as one `do`.
    pub body: Ir,
}

impl Ir {
    /// An expression at a place.
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
