//! Looking into one answer.

use ptc_catalog::paging::Shape;
use ptc_lisp::{Kind, Value};
use ptc_text::join_limited;

/// Members of one object, and levels of objects, that the shape of an answer has.
const MAX_MEMBERS: usize = 200;
const MAX_DEPTH: usize = 4;

/// The value at a place: keys with dots between them. A key may have dots itself, as in `@odata.nextLink`.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    if value.kind() != Kind::Map {
        return None;
    }
    value.get(path).or_else(|| {
        let dots = path.match_indices('.').map(|(dot, _)| dot);
        dots.into_iter().find_map(|dot| at(value.get(path.get(..dot)?)?, path.get(dot + 1..)?))
    })
}

/// A number at a place that counts something; texts of digits count as numbers.
pub(super) fn count_at(value: &Value, path: Option<&str>) -> Option<i64> {
    let found = at(value, path?)?;
    found.as_int().or_else(|| found.as_str()?.parse().ok()).filter(|count| *count >= 0)
}

/// The form of an answer. What is inside of lists is not looked at.
pub(super) fn shape(value: &Value) -> Shape {
    shape_within(value, MAX_DEPTH)
}

fn shape_within(value: &Value, depth: usize) -> Shape {
    match value.kind() {
        Kind::Nil => Shape::Null,
        Kind::Bool => Shape::Bool,
        Kind::Int | Kind::BigInt | Kind::Double => Shape::Number,
        Kind::Vector => Shape::Array(Box::new(Shape::Any)),
        Kind::Map if depth == 0 => Shape::Object(Vec::new()),
        Kind::Map => {
            let members = value.entries().into_iter().flatten().take(MAX_MEMBERS);
            let named = members.filter_map(|(key, value)| Some((key.as_name()?.to_owned(), shape_within(value, depth - 1))));
            Shape::Object(named.collect())
        }
        _ => Shape::Text,
    }
}

/// An answer in a message: its members with their kinds.
pub(super) fn described(value: &Value) -> String {
    const LISTED: usize = 12;
    let Some(entries) = value.entries() else { return value.kind().described().to_owned() };
    let members = entries.filter_map(|(key, value)| {
        let count = value.len().filter(|_| value.kind() == Kind::Vector).map_or_else(String::new, |n| format!(" of {n}"));
        Some(format!("{} ({}{count})", key.as_name()?, value.kind().described()))
    });
    format!("an object with {}", join_limited(members, ", ", LISTED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptc_lisp::json;

    #[test]
    fn places_are_found_whether_keys_have_dots_or_not() {
        let value = json::decode(br#"{"a.b": 1, "a": {"b": 2, "c.d": {"e": 3}}, "n": null}"#).unwrap();
        let int = |path: &str| at(&value, path).and_then(Value::as_int);
        assert_eq!((int("a.b"), int("a.c.d.e"), int("a.x"), int("x.y")), (Some(1), Some(3), None, None));
        assert!(at(&value, "n").is_some_and(Value::is_nil));
        assert!(at(&value, "n.x").is_none());
        assert!(at(&value, "").is_some_and(|whole| whole.kind() == Kind::Map));
    }
}
