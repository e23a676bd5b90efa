//! Counts how often the forms and branches of a program are evaluated.
//!
//! [`Coverage::instrument`] compiles a program again and inserts probes into its IR after all names are resolved. A probe increments
//! counters and evaluates the expression that it replaces, with the same span. The values, the failures and the charged steps are
//! those of the program without probes; it only takes more time and native stack.
//!
//! - A *form* is a call, a special form, a function, or a collection with parts to evaluate. A name or a constant is a form where it
//!   is the first expression of a branch or of the body of a function, since no other form shows whether it was evaluated.
//! - A *branch* is an `if` with its variants, a `case`, all clauses of a `cond` or `condp`, or a step of `some->` or `cond->`. A
//!   missing `else` or default is an arm too.
//! - A *function* has a name. Its arities are counted together.

mod collector;
mod instrument;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Span;

pub use collector::Collector;

/// A counter. Its clones share the count, also between threads.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    #[inline]
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the count.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A form with the number of its evaluations.
#[derive(Debug, Clone)]
pub struct FormCoverage {
    /// The range of the source text.
    pub span: Span,
    /// The evaluations that were started.
    pub counter: Counter,
}

/// A branch with the evaluations of its arms.
#[derive(Debug, Clone)]
pub struct BranchCoverage {
    /// The range of the form that selects an arm. For `cond` and `condp` this is the first test.
    pub span: Span,
    /// The arms in the order of the text. Those that the text does not have come last.
    pub arms: Vec<Counter>,
}

/// A named function with the number of its calls.
#[derive(Debug, Clone)]
pub struct FunctionCoverage {
    /// The name.
    pub name: Arc<str>,
    /// The range of the source text.
    pub span: Span,
    /// The calls.
    pub counter: Counter,
}

/// The counters of a program, each list in the order of the text.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    /// The forms.
    pub forms: Vec<FormCoverage>,
    /// The branches.
    pub branches: Vec<BranchCoverage>,
    /// The functions.
    pub functions: Vec<FunctionCoverage>,
}
