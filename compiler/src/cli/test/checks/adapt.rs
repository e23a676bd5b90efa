//! Adapts a recorded answer to another output schema.

use ptc_catalog::Tool;
use ptc_compiler::json::Json;
use ptc_compiler::json_schema::Schema;

use crate::answers::declared_output::DeclaredOutput;
use crate::answers::generate;

/// Maximum depth of the parts that are adapted.
const MAX_DEPTH: usize = 24;

/// Returns an answer of `before` as `now` would give it: without members that its output schema no longer has, and with generated
/// values for those that are new or have another type. Parts that a schema constrains in other ways stay as they are.
pub(in super::super) fn adapted(before: &Tool, now: &Tool, answer: &Json) -> Json {
    let (before, now) = (DeclaredOutput::new(before), DeclaredOutput::new(now));
    let (Some(old), Some(new)) = (before.schema(), now.schema()) else { return answer.clone() };
    let adaptation = Adaptation { old: Schema::new(old), new: Schema::new(new) };
    let mut adapted = answer.clone();
    adaptation.value(&[old], &[new], &mut adapted, 0);
    if now.permits(&adapted) {
        return adapted;
    }
    let generated = generate::answer(&now, 0).unwrap_or(Json::Null);
    adaptation.complete(new, &mut adapted, &generated, 0);
    adapted
}

struct Adaptation<'a> {
    old: Schema<'a>,
    new: Schema<'a>,
}

impl<'a> Adaptation<'a> {
    /// Removes the members that only the old schema has. A value satisfies one of the schemas on each side.
    fn value(&self, old: &[&'a Json], new: &[&'a Json], value: &mut Json, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match value {
            Json::Object(members) => {
                let (before, now) = (self.old.members_of_any(old), self.new.members_of_any(new));
                let is_open = self.new.has_unnamed_members(new);
                members.retain(|(name, _)| is_open || before.get(name).is_none() || now.get(name).is_some());
                for (name, value) in members {
                    if let (was @ [_, ..], is @ [_, ..]) = (before.schemas(name), now.schemas(name)) {
                        self.value(was, is, value, depth + 1);
                    }
                }
            }
            Json::Array(items) => {
                let (before, now) = (self.old.items_of_any(old), self.new.items_of_any(new));
                if !before.schemas.is_empty() && !now.schemas.is_empty() && !now.is_open {
                    for item in items {
                        self.value(&before.schemas, &now.schemas, item, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    /// Replaces values of types that the new schema refuses, and adds required members, by those of a generated answer.
    fn complete(&self, new: &'a Json, value: &mut Json, generated: &Json, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let new = self.new.body(new);
        if !self.new.types(new).admits(value.kind()) && value.kind() != generated.kind() {
            *value = generated.clone();
            return;
        }
        let allowed = self.new.allowed(new);
        if let Some(first) = allowed.first().filter(|_| !allowed.contains(&value.canonical())) {
            *value = Json::parse(first).unwrap_or(Json::Null);
            return;
        }
        match value {
            Json::Object(_) => {
                let now = self.new.members(new);
                for (name, schema) in &now.properties {
                    let made = generated.get(name).cloned().or_else(|| self.simplest(schema));
                    match (value.get_mut(name), made) {
                        (Some(value), Some(made)) => self.complete(schema, value, &made, depth + 1),
                        (None, Some(made)) if now.requires(name) => value.set(*name, made),
                        _ => {}
                    }
                }
            }
            Json::Array(items) => {
                let Some(schema) = self.new.keyword(new, "items") else { return };
                let made = generated.elements().first().cloned().or_else(|| self.simplest(schema)).unwrap_or(Json::Null);
                for item in items {
                    self.complete(schema, item, &made, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// Returns a value of a schema's type, if it is that of a value without parts.
    fn simplest(&self, schema: &'a Json) -> Option<Json> {
        use ptc_catalog::Type;
        if let Some(allowed) = self.new.allowed(schema).first() {
            return Json::parse(allowed);
        }
        let types = self.new.types(self.new.body(schema));
        let values = [
            (Type::Null, Json::Null),
            (Type::String, Json::string("a")),
            (Type::Integer, Json::Number("0".to_owned())),
            (Type::Number, Json::Number("0".to_owned())),
            (Type::Boolean, Json::Bool(false)),
            (Type::Array, Json::Array(Vec::new())),
            (Type::Object, Json::object()),
        ];
        values.into_iter().find(|(kind, _)| types.admits(*kind)).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_members_and_types_of_the_new_schema() {
        let tool = |schema: &str| Tool { definition: format!(r#"{{"outputSchema":{schema}}}"#).leak(), ..Tool::EMPTY };
        let list = |properties: &str, required: &str| {
            tool(&format!(
                r#"{{"type":"array","items":{{"type":"object","required":[{required}],"properties":{{{properties}}}}}}}"#
            ))
        };
        let before = list(r#""id":{"type":"integer"},"name":{"type":"string"}"#, r#""id""#);
        let answer = Json::parse(r#"[{"id":1,"name":"a","more":2},{"id":2}]"#).expect("JSON");
        for (properties, required, expected) in [
            (r#""id":{"type":"integer"}"#, r#""id""#, r#"[{"id":1,"more":2},{"id":2}]"#),
            (r#""id":{"type":"integer"},"name":{"type":"string"}"#, "", r#"[{"id":1,"more":2,"name":"a"},{"id":2}]"#),
            (r#""id":{"enum":["x"]},"name":{"type":"string"}"#, r#""id""#, r#"[{"id":"x","more":2,"name":"a"},{"id":"x"}]"#),
            (
                r#""id":{"type":"integer"},"title":{"const":"t"}"#,
                r#""title""#,
                r#"[{"id":1,"more":2,"title":"t"},{"id":2,"title":"t"}]"#,
            ),
        ] {
            assert_eq!(adapted(&before, &list(properties, required), &answer).canonical(), expected, "{properties}");
        }
    }

    #[test]
    fn member_that_one_alternative_still_has_is_kept() {
        let tool = |schema: &str| Tool { definition: format!(r#"{{"outputSchema":{schema}}}"#).leak(), ..Tool::EMPTY };
        let either = |one: &str, other: &str| {
            let object = |name: &str| format!(r#"{{"type":"object","properties":{{"{name}":{{"type":"integer"}}}}}}"#);
            tool(&format!(r#"{{"type":"object","properties":{{"pet":{{"anyOf":[{},{}]}}}}}}"#, object(one), object(other)))
        };
        let answer = Json::parse(r#"{"pet":{"lives":9}}"#).expect("JSON");
        let before = either("lives", "tricks");
        assert_eq!(adapted(&before, &either("tricks", "lives"), &answer).canonical(), r#"{"pet":{"lives":9}}"#);
        assert_eq!(adapted(&before, &either("tricks", "age"), &answer).canonical(), r#"{"pet":{}}"#);
    }
}
