//! Writes JSON values as canonical text, without white space and with sorted members.
//!
//! This is the JSON Canonicalization Scheme (RFC 8785) with one difference: numbers stay as written, because a conversion to
//! `f64` would change `1.0` and large integers. Keys are sorted by their UTF-16 code units.

use std::fmt::{self, Write};

pub use ptc_json::canonical::{order, quote};

use crate::tree::{Member, Node, Tree};

/// Writes the canonical text of a node. If a key is repeated, the last value counts.
///
/// # Errors
///
/// Those of `out`.
pub fn write(node: &Node, out: &mut impl Write) -> fmt::Result {
    match &node.value {
        Tree::Null => out.write_str("null"),
        Tree::Bool(value) => out.write_str(if *value { "true" } else { "false" }),
        Tree::Number(text) => out.write_str(text),
        Tree::String(text) => quote(text, out),
        Tree::Array(items) => {
            out.write_char('[')?;
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.write_char(',')?;
                }
                write(item, out)?;
            }
            out.write_char(']')
        }
        Tree::Object(members) if members.is_sorted_by(|a, b| order(&a.key, &b.key).is_lt()) => write_members(members, out),
        Tree::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            // The sort is stable, so that the last of several members with one key stays the last of them.
            sorted.sort_by(|a, b| order(&a.key, &b.key));
            let last =
                sorted.iter().enumerate().filter(|(at, member)| sorted.get(at + 1).is_none_or(|next| next.key != member.key));
            write_members(last.map(|(_, member)| *member), out)
        }
    }
}

fn write_members<'m>(members: impl IntoIterator<Item = &'m Member>, out: &mut impl Write) -> fmt::Result {
    out.write_char('{')?;
    for (at, member) in members.into_iter().enumerate() {
        if at > 0 {
            out.write_char(',')?;
        }
        quote(&member.key, out)?;
        out.write_char(':')?;
        write(&member.value, out)?;
    }
    out.write_char('}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Diagnostics;
    use crate::json::Json;
    use crate::source::Sources;
    use crate::tree;

    #[test]
    fn node_has_the_canonical_text_of_its_value() {
        let text = "{\"b\": [1.0, {}, [], \"\\u0001\\n\\\"é\\\\\"], \"\u{fb01}\": 1, \"\u{1f600}\": {\"y\": null, \"x\": true}, \"b\": [false, -0, \"\\b\\f\\r\\t/\"]}";
        let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
        let file = sources.add("a.json", text);
        let node = tree::parse_document(&sources, file, &mut diagnostics).unwrap();
        let mut written = String::new();
        write(&node, &mut written).unwrap();
        assert_eq!(written, Json::from(&node).canonical());
        assert_eq!(written, "{\"b\":[false,-0,\"\\b\\f\\r\\t/\"],\"\u{1f600}\":{\"x\":true,\"y\":null},\"\u{fb01}\":1}");
    }
}
