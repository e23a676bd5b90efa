//! Bindings and results as bytes, for a process that goes on with them elsewhere.
//!
//! Nothing is evaluated to bring them back. Data goes as it is, each shared part once, so that what it occupies is the same
//! afterwards. A function goes as the text of the program that made it, its place in that text, and the values that it has captured: the
//! text is read and resolved again, with the names that were known then, and only that function is taken out of it. Builtins go by name.
//!
//! Two kinds of values have no place in an image: sequences without an end and transducers, which are work under way. Everything
//! else survives, the order of functions among themselves included.
//!
//! ```
//! use ptc_lisp::{Bindings, Program, Run, Value, image};
//!
//! let program = Program::compile("(def rate 3) (defn scaled [xs] (map #(* rate %) xs))")?;
//! let bindings = Run::new(&program).execute_on_thread().bindings;
//! let (bindings, _) = image::decode(&image::encode(&bindings, &[])?)?;
//! let program = Program::compile_with("(scaled [1 2])", &bindings)?;
//! let outcome = Run::new(&program).bindings(bindings).execute_on_thread();
//! assert_eq!(outcome.result?, Value::vector(vec![3.into(), 6.into()]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`decode`] compiles, so that its thread needs the native stack that compiling does.

mod decode;
mod encode;
mod temporal;
mod wire;

use std::fmt;

pub use decode::decode;
pub use encode::encode;

/// The first bytes of an image: a name and the version of the form. Where the form changes, so does the version.
const HEAD: &[u8] = b"ptc-image\x01";

/// A value that has no place in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unstorable {
    /// The binding, or `*1`, `*2`, `*3`, that holds it.
    pub name: String,
    /// What it is, with its article.
    pub what: &'static str,
}

/// Bytes that are no image of this version: the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged(pub(crate) &'static str);

impl fmt::Display for Unstorable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} holds {}, which cannot be stored", self.name, self.what)
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an image that this version can read: {}", self.0)
    }
}

impl std::error::Error for Unstorable {}
impl std::error::Error for Damaged {}

/// What stands for a value where it is used. Text and objects are named by their places in the table of nodes.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Slot {
    Nil,
    False,
    True,
    Int,
    Double,
    Builtin,
    String,
    Keyword,
    Symbol,
    Var,
    Object,
}

impl Slot {
    const ALL: [Slot; 11] = [
        Slot::Nil,
        Slot::False,
        Slot::True,
        Slot::Int,
        Slot::Double,
        Slot::Builtin,
        Slot::String,
        Slot::Keyword,
        Slot::Symbol,
        Slot::Var,
        Slot::Object,
    ];
}

/// A block of memory that values share. Those that a node refers to stand before it.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Node {
    Text,
    BigInt,
    Vector,
    Map,
    Set,
    Regex,
    Temporal,
    Composed,
    Closure,
}

impl Node {
    const ALL: [Node; 9] = [
        Node::Text,
        Node::BigInt,
        Node::Vector,
        Node::Map,
        Node::Set,
        Node::Regex,
        Node::Temporal,
        Node::Composed,
        Node::Closure,
    ];
}
