//! PTC-Lisp: a small, eager, bounded Clojure for programs that call tools.
//!
//! A program is compiled once and run many times, each run with its own limits, data and host:
//!
//! ```
//! use ptc_lisp::{Program, Run, Value, json, print};
//!
//! let program = Program::compile("(->> data/orders (filter :paid) (sum-by :total))")?;
//! let orders = json::decode(br#"[{"paid": true, "total": 12.5}, {"paid": false, "total": 3}]"#)?;
//! let outcome = Run::new(&program).context(Value::map([(Value::keyword("orders"), orders)])).execute_on_thread();
//! assert_eq!(print::readable(&outcome.result?), "12.5");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The pipeline from text to answer:
//!
//! - [`reader`] parses text to [`form`]s. The analyzer resolves forms to [`ir`], using the rows of [`special_forms`]. [`eval`] compiles
//!   the IR to closures, which run on a [`machine`] that counts steps, time and memory against [`limits`].
//! - [`value`] defines the values of programs: [`number`]s, text, [`collection`]s and functions, with the one [`order`] of
//!   equality and sorting. [`temporal`] defines dates and times. [`builtins`] are the functions of the language, as rows of
//!   tables. [`pattern`] implements their regular expressions.
//! - A [`Program`] is compiled once and run many times. A [`Run`] takes limits, a host, data and the [`Bindings`] of earlier
//!   programs, and returns an [`Outcome`]. [`Cancel`] stops it from another thread. With [`share`] a scheduler divides processors
//!   and memory among runs. With [`fiber`] many of them wait on few threads.
//! - [`json`] and [`print`](mod@print) convert values from and to text. An [`image`] transfers bindings, functions included, to
//!   another process. [`host`] is the only interface to the outside world. [`signature`] describes and checks the arguments and
//!   results of tools.
#![forbid(unsafe_code)]

mod analyzer;
mod args;
mod bindings;
pub mod builtins;
mod call_sites;
pub mod collection;
mod comparison_budget;
#[cfg(feature = "coverage")]
pub mod coverage;
mod deadline;
pub mod error;
pub mod eval;
pub mod failed_calls;
pub mod fiber;
pub mod form;
pub mod host;
pub mod host_functions;
pub mod image;
mod infinite;
pub mod interrupt;
pub mod ir;
pub mod json;
pub mod limits;
pub mod list_uses;
pub mod machine;
mod metered;
pub mod missing_keys;
pub mod mixed_comparisons;
pub mod number;
pub mod order;
pub mod packed_docs;
mod parallel;
pub mod print;
mod program;
pub mod reader;
mod run;
pub mod share;
pub mod signature;
pub mod special_forms;
pub mod temporal;
pub mod value;

pub use bindings::Bindings;
pub use call_sites::{EarlierCalls, HostToolCall, ToolCallSite, has_upstream_call, is_upstream_call, is_upstream_call_value};
pub use deadline::Deadline;
pub use error::{Error, ErrorKind, Position, Span};
pub use host::Host;
pub use infinite::InfiniteSeq;
pub use limits::{Cancel, Limits};
pub use program::{EntrySpans, Program, WrittenMap};
pub use ptc_regex as pattern;
pub use run::{Outcome, Run, STACK_BYTES, STACK_SLACK_BYTES};
pub use share::Share;
pub use value::{Kind, Value};

/// Types that are sent between threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Program>();
    shared::<Cancel>();
    shared::<Value>();
    shared::<Bindings>();
    shared::<Error>();
    shared::<Outcome>();
};
