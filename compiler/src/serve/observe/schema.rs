//! Shapes as JSON Schema 2020-12, which the lock file has.
//!
//! A schema that was read back has counts of its own: a required member was in its one object, and each value of an enumeration
//! occurred as often as it must. Merging it with new answers can only widen it.

use std::collections::BTreeMap;

use super::content::{Content, MediaType};
use super::formats::Formats;
use super::names::{self, MIN_COUNT};
use super::shape::{MAX_VALUES, Member, Number, Object, Shape, Text};
use crate::json::Json;

/// Maximum size of the schema of a tool in bytes. A larger one is cut at a smaller depth.
const MAX_BYTES: usize = 32 * 1024;

/// Maximum depth of a schema.
const MAX_DEPTH: usize = 32;

/// The numbers from which the names of objects count as data if they vary: objects, and names.
const MIN_VARYING: (u64, usize) = (3, 8);

impl Shape {
    /// Returns the shape of texts of which nothing else is known.
    pub(super) fn text() -> Shape {
        let text = Text { formats: Formats::named(None), values: None, is_blank: false, content: None };
        Shape { text: Some(text), ..Shape::default() }
    }

    /// Returns the schema. It admits every value that the shape was made from.
    pub fn to_schema(&self) -> Json {
        let mut depth = MAX_DEPTH;
        loop {
            let schema = self.schema(None, depth);
            if depth == 0 || schema.canonical().len() <= MAX_BYTES {
                return schema;
            }
            depth -= 1;
        }
    }

    /// Returns the schema of a value with up to `depth` levels. `name`: the name of the member that has the value.
    fn schema(&self, name: Option<&str>, depth: usize) -> Json {
        if self.is_any {
            return Json::Bool(true);
        }
        let mut plain: Vec<&str> = Vec::new();
        let mut described: Vec<Json> = Vec::new();
        plain.extend(self.boolean.then_some("boolean"));
        plain.extend(self.number.map(|number| if number == Number::Integer { "integer" } else { "number" }));
        match self.text.as_ref().map(|text| text.schema(name, depth)) {
            Some(schema) if schema.members().len() > 1 => described.push(schema),
            Some(_) => plain.push("string"),
            None => {}
        }
        described.extend(self.list.as_ref().map(|items| items.schema_of_list(depth)));
        described.extend(self.object.as_ref().map(|object| object.schema(depth)));
        let null = self.null.then_some("null");
        if self.null && plain.is_empty() && described.is_empty() {
            // Of a value that was always null, the other type is not known yet.
            let anything = [typed(&["null"]).unwrap_or_else(Json::object), Json::object()];
            return Json::object().with("anyOf", Json::Array(anything.to_vec()));
        }
        match (described.as_mut_slice(), plain.is_empty()) {
            ([], _) => {
                plain.extend(null);
                typed(&plain).unwrap_or_else(Json::object)
            }
            ([one], true) => {
                if let (Some(null), Some(Json::String(kind))) = (null, one.get("type")) {
                    let both = [kind.as_str(), null].map(Json::string).to_vec();
                    one.set("type", Json::Array(both));
                    if let Some(Json::Array(values)) = one.get_mut("enum") {
                        values.push(Json::Null);
                    }
                }
                one.clone()
            }
            _ => {
                plain.extend(null);
                described.extend(typed(&plain));
                Json::object().with("anyOf", Json::Array(described))
            }
        }
    }

    fn schema_of_list(&self, depth: usize) -> Json {
        let list = Json::object().with("type", Json::string("array"));
        if depth == 0 {
            return list.with("items", Json::Bool(true));
        }
        // No item was seen.
        if *self == Shape::default() { list } else { list.with("items", self.schema(None, depth - 1)) }
    }

    /// Reads a schema that [`Shape::to_schema`] wrote. Anything else may be any value.
    pub fn from_schema(schema: &Json) -> Shape {
        Shape::read(schema, MAX_DEPTH * 2)
    }

    fn read(schema: &Json, depth: usize) -> Shape {
        if depth == 0 || !matches!(schema, Json::Object(_)) {
            return Shape::any();
        }
        let mut shape = Shape::default();
        for branch in schema.get("anyOf").map(Json::elements).unwrap_or_default() {
            shape.merge(Shape::read(branch, depth - 1));
        }
        let types = match schema.get("type") {
            Some(Json::Array(types)) => types.iter().filter_map(Json::as_str).collect(),
            one => one.and_then(Json::as_str).into_iter().collect::<Vec<&str>>(),
        };
        for name in types {
            match name {
                "null" => shape.null = true,
                "boolean" => shape.boolean = true,
                "integer" => shape.number = shape.number.max(Some(Number::Integer)),
                "number" => shape.number = Some(Number::Any),
                "string" => shape.text = Some(Text::read(schema, depth)),
                "array" => {
                    let items = schema.get("items").map(|items| Shape::read(items, depth - 1));
                    shape.list = Some(Box::new(items.unwrap_or_default()));
                }
                "object" => shape.object = Some(Object::read(schema, depth)),
                _ => return Shape::any(),
            }
        }
        shape
    }
}

/// Returns the schema of types. `None` for no type.
fn typed(types: &[&str]) -> Option<Json> {
    let types: Vec<Json> = types.iter().map(|name| Json::string(*name)).collect();
    let types = match types.as_slice() {
        [] => return None,
        [one] => one.clone(),
        _ => Json::Array(types),
    };
    Some(Json::object().with("type", types))
}

impl Text {
    fn schema(&self, name: Option<&str>, depth: usize) -> Json {
        let mut schema = Json::object().with("type", Json::string("string"));
        if let Some(format) = self.formats.name() {
            schema.set("format", Json::string(format));
        }
        let is_category = name.is_some_and(names::names_a_category);
        let is_enumeration = |values: &&BTreeMap<String, u64>| {
            is_category && (2..=MAX_VALUES).contains(&values.len()) && values.values().all(|count| *count >= MIN_COUNT)
        };
        if let Some(values) = self.values.as_ref().filter(is_enumeration) {
            schema.set("enum", Json::Array(values.keys().map(|value| Json::string(&**value)).collect()));
        }
        if self.is_blank {
            // This admits any text. It says that no text has shown yet what the others hold.
            schema.set("minLength", Json::Number("0".to_owned()));
        }
        if let Some(content) = &self.content {
            schema.set("contentMediaType", Json::string(content.media_type.name()));
            if depth > 0 {
                schema.set("contentSchema", content.shape.schema(None, depth - 1));
            }
        }
        schema
    }

    fn read(schema: &Json, depth: usize) -> Text {
        let values = schema.get("enum").map(|values| {
            let texts = values.elements().iter().filter_map(Json::as_str);
            texts.map(|text| (text.to_owned(), MIN_COUNT)).collect()
        });
        let content = schema.get("contentMediaType").and_then(Json::as_str).and_then(MediaType::find).map(|media_type| {
            let shape = schema.get("contentSchema").map_or_else(Shape::any, |schema| Shape::read(schema, depth - 1));
            Content { media_type, shape: Box::new(shape) }
        });
        let formats = Formats::named(schema.get("format").and_then(Json::as_str));
        Text { formats, values, is_blank: schema.get("minLength").is_some(), content }
    }
}

impl Object {
    fn schema(&self, depth: usize) -> Json {
        let object = Json::object().with("type", Json::string("object"));
        if depth == 0 {
            return object.with("additionalProperties", Json::Bool(true));
        }
        if self.map.is_some() || self.has_varying_names() {
            return object.with("additionalProperties", self.values().schema(None, depth - 1));
        }
        if self.members.is_empty() {
            return object;
        }
        let properties = self.members.iter().map(|(name, member)| (name.clone(), member.shape.schema(Some(name), depth - 1)));
        let required = self.members.iter().filter(|(_, member)| member.seen >= self.seen);
        let required: Vec<Json> = required.map(|(name, _)| Json::string(&**name)).collect();
        let object = object.with("properties", Json::Object(properties.collect()));
        if required.is_empty() { object } else { object.with("required", Json::Array(required)) }
    }

    /// Whether no name is in more than half of the objects, so that the names are likely data, such as those of people.
    fn has_varying_names(&self) -> bool {
        let (objects, names) = MIN_VARYING;
        let is_rare = |member: &Member| member.seen.saturating_mul(2) <= self.seen;
        self.seen >= objects && self.members.len() >= names && self.members.values().all(is_rare)
    }

    fn read(schema: &Json, depth: usize) -> Object {
        let map = schema.get("additionalProperties").map(|values| Box::new(Shape::read(values, depth - 1)));
        let required = schema.get("required").map(Json::elements).unwrap_or_default();
        let is_required = |name: &str| required.iter().any(|known| known.as_str() == Some(name));
        let properties = schema.get("properties").map(Json::members).unwrap_or_default();
        let mut object = Object { seen: 1, map, ..Object::default() };
        for (name, schema) in properties {
            object.add(name, Member { seen: u64::from(is_required(name)), shape: Shape::read(schema, depth - 1) });
        }
        object
    }
}
