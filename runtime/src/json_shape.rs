//! Types and sizes of JSON values, read from their text without making the values, which could have many times its memory.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Type and size of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The type's name in JSON Schema.
    pub(crate) kind: &'static str,
    /// Bytes of a string, items of an array, or members of an object.
    pub(crate) count: Option<usize>,
}

impl Shape {
    /// Reads a valid JSON text that begins with its value.
    pub(crate) fn parse(json: &str) -> Shape {
        let items = || serde_json::from_str(json).ok().map(|Items(count)| count);
        let (kind, count) = match json.bytes().next() {
            Some(b'"') => ("string", serde_json::from_str(json).ok().map(|text: Cow<'_, str>| text.len())),
            Some(b'[') => ("array", items()),
            Some(b'{') => ("object", items()),
            Some(b't' | b'f') => ("boolean", None),
            Some(b'n') => ("null", None),
            _ => ("number", None),
        };
        Shape { kind, count }
    }
}

/// The number of items of an array, or of members of an object.
struct Items(usize);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counter;
        impl<'de> Visitor<'de> for Counter {
            type Value = Items;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array or an object")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items, A::Error> {
                let mut count = 0;
                while items.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Items(count))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Items, A::Error> {
                let mut count = 0;
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Items(count))
            }
        }
        deserializer.deserialize_any(Counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_sizes_are_read_from_the_text() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for (json, kind, count) in [
            ("[1,[2,3]]", "array", Some(2)),
            (&deep, "array", Some(1)),
            (r#"{"c":1,"d":[]}"#, "object", Some(2)),
            (r#""\u00e9€""#, "string", Some(5)),
            ("-1.5", "number", None),
            ("true", "boolean", None),
            ("null", "null", None),
        ] {
            assert_eq!(Shape::parse(json), Shape { kind, count }, "{}", json.get(..20).unwrap_or(json));
        }
    }
}
