//! Converts the names of arguments to those of a JSON Schema, for deserializers that expect names with hyphens.

use super::schema::resolve;
use super::underscored;
use crate::Value;
use crate::collection::Map;

/// Converts arguments, whose keys have underscores, to the form that the schema of a type describes. Keys become the names of its
/// properties, such as `max-rows`, at any depth. A nil is removed where the property may be missing but not null.
///
/// ```
/// use ptc_lisp::{json, signature::to_property_names};
///
/// let schema = json::decode(br#"{"properties": {"max-rows": {"type": "integer"}, "order": {"type": "string"}}}"#)?;
/// let args = json::decode(br#"{"max_rows": 3, "order": null}"#)?;
/// assert_eq!(to_property_names(args, &schema), json::decode(br#"{"max-rows": 3}"#)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_property_names(args: Value, schema: &Value) -> Value {
    Names { root: schema }.value(&args, &[schema]).unwrap_or(args)
}

struct Names<'s> {
    root: &'s Value,
}

impl<'s> Names<'s> {
    /// Returns the converted value, or `None` if it stays unchanged. The value matches at least one of the schemas.
    fn value(&self, value: &Value, schemas: &[&'s Value]) -> Option<Value> {
        match value {
            Value::Map(map) => self.map(map, &self.alternatives(schemas)),
            Value::Vector(_) => self.list(value, &self.alternatives(schemas)),
            _ => None,
        }
    }

    fn list(&self, list: &Value, schemas: &[&'s Value]) -> Option<Value> {
        let mut is_changed = false;
        let mut convert = |(at, item): (usize, &Value)| {
            let of_item = |schema: &&'s Value| {
                let by_position = schema.get("prefixItems").and_then(|items| items.items()?.nth(at));
                by_position.or_else(|| schema.get("items"))
            };
            // Most lists contain only texts and numbers.
            let changed = matches!(item, Value::Map(_) | Value::Vector(_))
                .then(|| self.value(item, &schemas.iter().filter_map(of_item).collect::<Vec<_>>()));
            let changed = changed.flatten();
            is_changed |= changed.is_some();
            changed.unwrap_or_else(|| item.clone())
        };
        let items: Vec<Value> = list.items()?.enumerate().map(&mut convert).collect();
        is_changed.then(|| Value::vector(items))
    }

    fn map(&self, map: &Map, schemas: &[&'s Value]) -> Option<Value> {
        let mut changed = None;
        for (key, part) in map {
            let Some(name) = key.as_str() else { continue };
            let properties: Vec<Property<'s>> = schemas.iter().filter_map(|schema| Property::find(schema, name)).collect();
            let target = properties.iter().find(|property| property.name == name).or(properties.first());
            let target = target.map_or(name, |property| property.name);
            let of_part = if properties.is_empty() {
                schemas.iter().filter_map(|schema| schema.get("additionalProperties")).collect()
            } else {
                properties.iter().map(|property| property.of).collect::<Vec<_>>()
            };
            let is_missing = part.is_nil()
                && !properties.is_empty()
                && !properties.iter().any(|property| property.is_required || self.may_be_null(property.of));
            let converted = self.value(part, &of_part);
            if is_missing || converted.is_some() || target != name {
                let changed = changed.get_or_insert_with(|| map.clone());
                changed.remove(key);
                if !is_missing {
                    changed.insert(Value::string(target), converted.unwrap_or_else(|| part.clone()));
                }
            }
        }
        changed.map(Value::Map)
    }

    /// Returns the schemas with those that they refer to, and the options of unions.
    fn alternatives(&self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let mut found: Vec<&Value> = schemas.to_vec();
        let mut at = 0;
        while let Some(schema) = found.get(at).copied() {
            at += 1;
            let target = schema.get("$ref").and_then(|reference| resolve(self.root, reference.as_str()?));
            let options = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|union| schema.get(union)?.items()).flatten();
            for inner in target.into_iter().chain(options) {
                if !found.iter().any(|known| std::ptr::eq(*known, inner)) {
                    found.push(inner);
                }
            }
        }
        found
    }

    /// Whether null matches the schema, or may match it.
    fn may_be_null(&self, schema: &'s Value) -> bool {
        self.alternatives(&[schema]).iter().any(|schema| match schema.get("type") {
            Some(Value::Vector(types)) => types.iter().any(|of| of.as_str() == Some("null")),
            Some(of) => of.as_str() == Some("null"),
            None => !["$ref", "anyOf", "oneOf", "allOf", "enum"].iter().any(|keyword| schema.get(keyword).is_some()),
        })
    }
}

/// A property of a schema.
struct Property<'s> {
    name: &'s str,
    of: &'s Value,
    is_required: bool,
}

impl<'s> Property<'s> {
    /// Finds the property with this name, with hyphens or underscores.
    fn find(schema: &'s Value, name: &str) -> Option<Property<'s>> {
        let properties = schema.get("properties")?;
        let of_name = |(key, of): (&'s Value, &'s Value)| {
            let key = key.as_str()?;
            (underscored(key) == name).then_some((key, of))
        };
        let (name, of) = properties.entries()?.find_map(of_name)?;
        let is_required = schema
            .get("required")
            .is_some_and(|names| names.items().is_some_and(|mut names| names.any(|required| required.as_str() == Some(name))));
        Some(Property { name, of, is_required })
    }
}
