//! Serialises bindings and results, so that another process can continue with them.
//!
//! Decoding does not evaluate anything. Data is stored as it is, each shared part once, so that its memory use stays the same. A
//! function is stored as the text of its program, its position in that text, and its captured values: decoding parses and
//! resolves the text with the names that were known then, and extracts that function. Builtins are stored by name.
//!
//! Infinite sequences and transducers cannot be stored. Everything else survives, including the order of functions among
//! themselves.
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
//! [`decode`] compiles programs and needs as much native stack as compiling. An image can take much more memory than its bytes:
//! [`decode_within`] bounds the memory and the time.

mod decode;
mod encode;
mod limits;
mod temporal;
mod wire;

use std::fmt;

pub use decode::{decode, decode_within};
pub use encode::encode;
pub use limits::DecodeLimits;

/// The first bytes of an image: a name and the version of the format. The version changes if images of the version before cannot
/// be read any more.
const HEAD: &[u8] = b"ptc-image\x01";

/// A value that cannot be stored in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeError {
    /// The binding, or `*1`, `*2`, `*3`, that holds it.
    pub name: String,
    /// The kind of the value, with its article.
    pub what: &'static str,
}

/// Why an image was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes are not an image of this version, with the reason.
    Invalid(&'static str),
    /// Its values need more than this number of bytes.
    OutOfMemory(u64),
    /// Decoding took too long, or was cancelled.
    OutOfTime,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} holds {}, which cannot be stored", self.name, self.what)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Invalid(why) => write!(f, "not an image that this version can read: {why}"),
            DecodeError::OutOfMemory(limit) => write!(f, "its values need more than {limit} bytes"),
            DecodeError::OutOfTime => f.write_str("decoding took too long or was cancelled"),
        }
    }
}

impl std::error::Error for EncodeError {}
impl std::error::Error for DecodeError {}

/// The tag of a value. Texts and objects are referenced by their index in the table of nodes.
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

/// The tag of a heap block that values share. A node follows the nodes that it refers to.
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
    /// An object of a tool's answer, or a changed copy of one.
    AnsweredMap,
}

impl Node {
    const ALL: [Node; 10] = [
        Node::Text,
        Node::BigInt,
        Node::Vector,
        Node::Map,
        Node::Set,
        Node::Regex,
        Node::Temporal,
        Node::Composed,
        Node::Closure,
        Node::AnsweredMap,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::bindings::Bindings;
    use crate::collection::Map;

    #[test]
    fn objects_of_results_remain_marked() {
        let object = |is_answered: bool| {
            let mut map: Map = [(Value::keyword("id"), Value::Int(i64::from(is_answered)))].into_iter().collect();
            if is_answered {
                map.mark_answered();
            }
            Value::Map(map)
        };
        let results = [Value::vector(vec![object(true), object(false)])];
        let (_, decoded) = decode(&encode(&Bindings::default(), &results).unwrap()).unwrap();
        assert_eq!(decoded, results);
        let marks = decoded[0].items().unwrap().map(|item| matches!(item, Value::Map(map) if map.is_answered()));
        assert_eq!(marks.collect::<Vec<_>>(), [true, false]);
    }
}
