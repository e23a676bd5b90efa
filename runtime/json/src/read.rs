//! Parses a text of JSON.
//!
//! `serde_json` converts numbers. It passes values as they are written as [`RawValue`]s, each of which is parsed here in turn.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, Deserialize, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Json;

/// Maximum depth of arrays and objects.
pub const MAX_DEPTH: usize = 192;

/// Why a text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Line and column of a fault of syntax, both from 1.
    pub place: Option<(usize, usize)>,
    /// A phrase.
    pub message: String,
}

/// Parses a text.
pub(crate) fn value(text: &str) -> Result<Json, Error> {
    // This finds faults of syntax, with their place in the whole text.
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message).to_owned();
        Error { place: Some((error.line(), error.column())), message }
    })?;
    element(whole.get(), MAX_DEPTH).map_err(|message| Error { place: None, message })
}

fn element(text: &str, depth: usize) -> Result<Json, String> {
    let phrase = |error: serde_json::Error| error.to_string();
    let deeper = || depth.checked_sub(1).ok_or_else(|| format!("nested more than {MAX_DEPTH} levels deep"));
    match text.as_bytes().first() {
        Some(b'n') => Ok(Json::Null),
        Some(b't') => Ok(Json::Bool(true)),
        Some(b'f') => Ok(Json::Bool(false)),
        Some(b'"') => serde_json::from_str(text).map(Json::String).map_err(phrase),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(phrase)?;
            let depth = deeper()?;
            Ok(Json::Array(items.into_iter().map(|item| element(item.get(), depth)).collect::<Result<_, _>>()?))
        }
        Some(b'{') => {
            let Members(members) = serde_json::from_str(text).map_err(phrase)?;
            let depth = deeper()?;
            let mut seen = HashSet::with_capacity(members.len());
            if let Some((repeated, _)) = members.iter().find(|(key, _)| !seen.insert(key.as_str())) {
                return Err(format!("the key {repeated:?} is repeated"));
            }
            let member = |(key, value): (String, &RawValue)| Ok((key, element(value.get(), depth)?));
            Ok(Json::Object(members.into_iter().map(member).collect::<Result<_, String>>()?))
        }
        _ => Ok(Json::Number(text.to_owned())),
    }
}

/// The members of an object in their order.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject;

        impl<'de> Visitor<'de> for OfObject {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(OfObject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_written() {
        let text = r#"{"b":[1.0,-0,1e5,123456789012345678901234567890],"a":{"x":null,"é\n":"\u00e9"},"":[true,false,{}]}"#;
        let expected =
            "{\"\":[true,false,{}],\"a\":{\"x\":null,\"é\\n\":\"é\"},\"b\":[1.0,-0,1e5,123456789012345678901234567890]}";
        assert_eq!(value(&format!(" {text}\n")).map(|json| json.canonical()), Ok(expected.to_owned()));
    }

    #[test]
    fn texts_that_are_not_json_are_refused() {
        let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
        for (text, expected) in [
            ("", (Some((1, 0)), "EOF while parsing a value")),
            ("{\n\"a\": 01}", (Some((2, 7)), "invalid number")),
            ("[1,]", (Some((1, 4)), "expected value")),
            ("{\"a\": 1, \"b\": {\"x\": 1, \"x\": 2}}", (None, "the key \"x\" is repeated")),
            (r#""\ud800""#, (None, "unexpected end of hex escape")),
            ("1 2", (Some((1, 3)), "trailing characters")),
            (&deep, (None, "nested more than 192 levels deep")),
        ] {
            let Error { place, message } = value(text).expect_err(text);
            assert!(place == expected.0 && message.starts_with(expected.1), "{text}: {place:?} {message}");
        }
        assert!(value(&deep[1..=2 * MAX_DEPTH]).is_ok());
    }
}
