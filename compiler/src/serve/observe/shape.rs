//! The shape of values: their types, the members of objects, and what texts have in common.
//!
//! Shapes of values are merged without regard to their order. Counts of strings and members exist only while answers are read.
//!
//! The crates `genson-rs` and `schema_analysis` also infer schemas. Neither decides what is safe to store, such as names of members
//! that are data, and the second keeps samples of values. These decisions are most of this module.

use std::collections::BTreeMap;

use super::content::Content;
use super::formats::Formats;
use super::names;
use crate::json::Json;

/// Maximum depth of a shape. Deeper values may be anything.
const MAX_DEPTH: usize = 12;

/// Maximum number of names of members that are kept of one object. An object with more is a map.
const MAX_MEMBERS: usize = 200;

/// Maximum number of different strings in an enumeration.
pub(super) const MAX_VALUES: usize = 8;

/// What values have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// Whether any value is possible. All other fields are empty then.
    pub(super) is_any: bool,
    pub(super) null: bool,
    pub(super) boolean: bool,
    pub(super) number: Option<Number>,
    pub(super) text: Option<Text>,
    /// The shape of all items. It is empty if all lists are.
    pub(super) list: Option<Box<Shape>>,
    pub(super) object: Option<Object>,
}

/// The kind of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Number {
    Integer,
    Any,
}

/// What strings have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// The formats that all strings have.
    pub(super) formats: Formats,
    /// How often each string occurred. `None` if there are too many for an enumeration, or if one is unfit for it.
    pub(super) values: Option<BTreeMap<String, u64>>,
    /// Whether all strings are blank.
    pub(super) is_blank: bool,
    /// What all other strings hold.
    pub(super) content: Option<Content>,
}

/// What objects have in common.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Object {
    /// The number of objects.
    pub(super) seen: u64,
    pub(super) members: BTreeMap<String, Member>,
    /// The shape of the values of a map, whose names are data. `members` is empty then.
    pub(super) map: Option<Box<Shape>>,
}

/// A member of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Member {
    /// The number of objects that have it.
    pub(super) seen: u64,
    pub(super) shape: Shape,
}

impl Shape {
    /// Returns the shape of one value.
    pub fn of(value: &Json) -> Shape {
        Shape::within(value, MAX_DEPTH)
    }

    /// Returns the shape of a value, with `depth` levels below it.
    pub(super) fn within(value: &Json, depth: usize) -> Shape {
        let mut shape = Shape::default();
        match value {
            Json::Null => shape.null = true,
            Json::Bool(_) => shape.boolean = true,
            Json::Number(number) => {
                let is_integer = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
                shape.number = Some(if is_integer { Number::Integer } else { Number::Any });
            }
            Json::String(text) => shape.text = Some(Text::of(text, depth)),
            Json::Array(_) | Json::Object(_) if depth == 0 => return Shape::any(),
            Json::Array(items) => {
                let mut all = Shape::default();
                for item in items {
                    all.merge(Shape::within(item, depth - 1));
                }
                shape.list = Some(Box::new(all));
            }
            Json::Object(members) => {
                let mut object = Object { seen: 1, ..Object::default() };
                for (name, value) in members {
                    object.add(name, Member { seen: 1, shape: Shape::within(value, depth - 1) });
                }
                object.limit();
                shape.object = Some(object);
            }
        }
        shape
    }

    /// Returns the shape of anything.
    pub(super) fn any() -> Shape {
        Shape { is_any: true, ..Shape::default() }
    }

    /// Extends the shape by that of other values. The order of merges does not matter.
    pub fn merge(&mut self, other: Shape) {
        if self.is_any || other.is_any {
            *self = Shape::any();
            return;
        }
        self.null |= other.null;
        self.boolean |= other.boolean;
        self.number = self.number.max(other.number);
        merge_option(&mut self.text, other.text, Text::merge);
        merge_option(&mut self.list, other.list, |items, other| items.merge(*other));
        merge_option(&mut self.object, other.object, Object::merge);
    }
}

fn merge_option<T>(slot: &mut Option<T>, other: Option<T>, merge: impl FnOnce(&mut T, T)) {
    match (slot.as_mut(), other) {
        (Some(known), Some(other)) => merge(known, other),
        (None, Some(other)) => *slot = Some(other),
        (_, None) => {}
    }
}

impl Text {
    fn of(text: &str, depth: usize) -> Text {
        let values = names::is_category(text).then(|| BTreeMap::from([(text.to_owned(), 1)]));
        Text { formats: Formats::of(text), values, is_blank: text.trim().is_empty(), content: Content::of(text, depth) }
    }

    fn merge(&mut self, other: Text) {
        self.formats = self.formats.common(other.formats);
        // An answer without text does not change what the other answers show.
        self.content = match (self.is_blank, other.is_blank) {
            (true, _) => other.content,
            (false, true) => self.content.take(),
            (false, false) => self.content.take().zip(other.content).and_then(|(content, other)| content.merged(other)),
        };
        self.is_blank &= other.is_blank;
        self.values = self.values.take().zip(other.values).map(|(mut values, other)| {
            for (value, count) in other {
                let known = values.entry(value).or_default();
                *known = known.saturating_add(count);
            }
            values
        });
        self.values = self.values.take().filter(|values| values.len() <= MAX_VALUES);
    }
}

impl Object {
    /// Adds a member. A name that may be data makes the object a map.
    pub(super) fn add(&mut self, name: &str, member: Member) {
        if self.map.is_some() || !names::is_name(name) {
            self.become_map().merge(member.shape);
            return;
        }
        let known = self.members.entry(name.to_owned()).or_default();
        known.seen = known.seen.saturating_add(member.seen);
        known.shape.merge(member.shape);
    }

    fn merge(&mut self, other: Object) {
        self.seen = self.seen.saturating_add(other.seen);
        if let Some(values) = other.map {
            self.become_map().merge(*values);
        }
        for (name, member) in other.members {
            self.add(&name, member);
        }
        self.limit();
    }

    /// Makes an object with too many members a map.
    fn limit(&mut self) {
        if self.members.len() > MAX_MEMBERS {
            self.become_map();
        }
    }

    /// Makes the object a map. Returns the shape of its values.
    fn become_map(&mut self) -> &mut Shape {
        let members = std::mem::take(&mut self.members);
        let values = self.map.get_or_insert_default();
        for member in members.into_values() {
            values.merge(member.shape);
        }
        values
    }

    /// Returns the shape of the values of all members.
    pub(super) fn values(&self) -> Shape {
        let mut all = self.map.as_deref().cloned().unwrap_or_default();
        for member in self.members.values() {
            all.merge(member.shape.clone());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_merges_does_not_matter() {
        let values = [
            r#"{"a": 1, "b": ["x"], "status": "open"}"#,
            r#"{"a": 1.5, "c": null, "status": "shut"}"#,
            r#"{"ann@example.com": {"a": true}}"#,
            r#"[1, "2026-01-31", {"a": {}}]"#,
            r#""{\"a\": 1}""#,
            r#""{\"a\": 1}\n{\"b\": 1}""#,
            r#""""#,
            "null",
            r#"{"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}}}}}}}}}"#,
        ];
        let shapes: Vec<Shape> = values.iter().filter_map(|text| Some(Shape::of(&Json::parse(text)?))).collect();
        assert_eq!(shapes.len(), values.len());
        for (at, first) in shapes.iter().enumerate() {
            for second in &shapes {
                let (mut ab, mut ba) = (first.clone(), second.clone());
                ab.merge(second.clone());
                ba.merge(first.clone());
                assert_eq!(ab, ba, "{at}");
                for third in &shapes {
                    let (mut left, mut inner) = (ab.clone(), second.clone());
                    left.merge(third.clone());
                    inner.merge(third.clone());
                    let mut right = first.clone();
                    right.merge(inner);
                    assert_eq!(left, right, "{at}");
                }
            }
        }
    }
}
