//! Decides which doubles are encoded as integers.

use ptc_catalog::Tool;
use ptc_lisp::{Kind, Value};

use crate::bounds::{MAX_DEPTH, MAX_STEPS};
use crate::input_schema::{InputSchema, member, parts, types};

/// Converts whole doubles to integers where the argument's schema admits integers and no other numbers. Returns `None` if nothing
/// changes.
pub(crate) fn with_integers(tool: &Tool, name: &str, value: &Value) -> Option<Value> {
    if !has_whole_double(value, &mut 0, 0) {
        return None;
    }
    let schema = InputSchema::for_tool(tool)?;
    Walk { schema, steps: 0 }.with_integers(&[schema.argument(name)?], value, 0)
}

/// Returns the integer that equals a double without a fraction.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    // From 2^63 on a double is encoded with an exponent, which JSON Schema also accepts as an integer.
    let double = value.as_f64().filter(|d| value.kind() == Kind::Double && d.fract() == 0.0 && d.abs() < 9.2e18)?;
    Some(double as i64)
}

fn has_whole_double(value: &Value, steps: &mut u32, depth: u32) -> bool {
    *steps += 1;
    if *steps > MAX_STEPS || depth > MAX_DEPTH {
        return false;
    }
    match value.kind() {
        Kind::Double => whole(value).is_some(),
        Kind::Vector | Kind::Set => value.items().into_iter().flatten().any(|item| has_whole_double(item, steps, depth + 1)),
        Kind::Map => value.entries().into_iter().flatten().any(|(_, item)| has_whole_double(item, steps, depth + 1)),
        _ => false,
    }
}

/// A traversal of a value with its schema.
struct Walk {
    schema: &'static InputSchema,
    steps: u32,
}

impl Walk {
    /// Converts a value. `schemas` are all schemas that may describe it.
    fn with_integers(&mut self, schemas: &[&'static Value], value: &Value, depth: u32) -> Option<Value> {
        self.steps += 1;
        if self.steps > MAX_STEPS || depth > MAX_DEPTH {
            return None;
        }
        let schemas = self.alternatives(schemas);
        match value.kind() {
            Kind::Double => {
                let integer = whole(value)?;
                let says = |kind: &str| schemas.iter().any(|schema| types(schema).any(|name| name == kind));
                (says("integer") && !says("number")).then(|| Value::int(integer))
            }
            Kind::Vector => {
                let items: Vec<&Value> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
                let mut changed = false;
                let replaced = value.items()?.map(|item| {
                    let new = self.with_integers(&items, item, depth + 1);
                    changed |= new.is_some();
                    new.unwrap_or_else(|| item.clone())
                });
                let replaced = replaced.collect();
                changed.then(|| Value::vector(replaced))
            }
            Kind::Map => {
                let mut changed = false;
                let mut replaced = Vec::with_capacity(value.len().unwrap_or(0));
                for (key, item) in value.entries()? {
                    let name = key.as_name().unwrap_or_default();
                    let named = |schema: &&'static Value| {
                        let property = schema.get("properties").and_then(|properties| member(properties, name));
                        property.or_else(|| schema.get("additionalProperties"))
                    };
                    let inner: Vec<&Value> = schemas.iter().filter_map(named).collect();
                    let new = self.with_integers(&inner, item, depth + 1);
                    changed |= new.is_some();
                    replaced.push((key.clone(), new.unwrap_or_else(|| item.clone())));
                }
                changed.then(|| Value::map(replaced))
            }
            _ => None,
        }
    }

    /// Returns the schemas together with the targets of their references and combinations.
    fn alternatives(&mut self, schemas: &[&'static Value]) -> Vec<&'static Value> {
        let (mut found, mut waiting, mut depth) = (Vec::new(), schemas.to_vec(), 0);
        while let Some(schema) = waiting.pop() {
            depth += 1;
            if depth > MAX_DEPTH {
                break;
            }
            waiting.extend(self.schema.target(schema));
            for key in ["allOf", "anyOf", "oneOf"] {
                waiting.extend(parts(schema, key));
            }
            found.push(schema);
        }
        found
    }
}
