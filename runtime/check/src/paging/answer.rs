//! Access to the parts of one answer.

use ptc_catalog::paging::Shape;
use ptc_lisp::{Kind, Value};
use ptc_text::join_limited;

/// Maximum number of members of an object and maximum depth of objects in a shape.
const MAX_MEMBERS: usize = 200;
const MAX_DEPTH: usize = 4;

/// Returns the value at a path of keys separated by dots. A key may contain dots itself, as in `@odata.nextLink`.
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

/// Returns the keys that lead to the value at a path.
pub(super) fn keys_to(value: &Value, path: &str) -> Option<Vec<String>> {
    if path.is_empty() {
        return Some(Vec::new());
    }
    if value.get(path).is_some() {
        return Some(vec![path.to_owned()]);
    }
    path.match_indices('.').find_map(|(dot, _)| {
        let key = path.get(..dot)?;
        let mut keys = keys_to(value.get(key)?, path.get(dot + 1..)?)?;
        keys.insert(0, key.to_owned());
        Some(keys)
    })
}

/// Returns the count at a path. Strings of digits count as numbers.
pub(super) fn count_at(value: &Value, path: Option<&str>) -> Option<i64> {
    let found = at(value, path?)?;
    found.as_int().or_else(|| found.as_str()?.parse().ok()).filter(|count| *count >= 0)
}

/// Returns the shape of an answer. Items of lists are not examined.
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

/// Describes an answer for a message by its members and their kinds.
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
    fn paths_are_found_with_and_without_dots_in_keys() {
        let value = json::decode(br#"{"a.b": 1, "a": {"b": 2, "c.d": {"e": 3}}, "n": null}"#).unwrap();
        let int = |path: &str| at(&value, path).and_then(Value::as_int);
        assert_eq!((int("a.b"), int("a.c.d.e"), int("a.x"), int("x.y")), (Some(1), Some(3), None, None));
        assert!(at(&value, "n").is_some_and(Value::is_nil));
        assert!(at(&value, "n.x").is_none());
        assert!(at(&value, "").is_some_and(|whole| whole.kind() == Kind::Map));
    }
}
