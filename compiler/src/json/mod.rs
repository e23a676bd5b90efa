//! JSON that loses nothing: it keeps numbers as written and every field, and has a canonical text.
//!
//! - [`canonical`]: the canonical text of the nodes of a document.
//! - [`digest`]: SHA-256 of texts and of documents.

pub mod canonical;
pub mod digest;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

pub use ptc_json::{Json, quote};

use crate::tree::{Node, Tree};

impl From<&Node> for Json {
    /// Converts the value without its positions. If a key is repeated, the last value counts.
    fn from(node: &Node) -> Json {
        match &node.value {
            Tree::Null => Json::Null,
            Tree::Bool(value) => Json::Bool(*value),
            Tree::Number(text) => Json::Number(text.to_string()),
            Tree::String(text) => Json::String(text.to_string()),
            Tree::Array(items) => Json::Array(items.iter().map(Json::from).collect()),
            Tree::Object(members) => {
                let mut seen: HashMap<&str, usize> = HashMap::with_capacity(members.len());
                let mut out: Vec<(String, Json)> = Vec::with_capacity(members.len());
                for member in members {
                    let value = Json::from(&member.value);
                    match seen.entry(&*member.key) {
                        Entry::Occupied(at) => {
                            if let Some(slot) = out.get_mut(*at.get()) {
                                slot.1 = value;
                            }
                        }
                        Entry::Vacant(free) => {
                            free.insert(out.len());
                            out.push((member.key.to_string(), value));
                        }
                    }
                }
                Json::Object(out)
            }
        }
    }
}
