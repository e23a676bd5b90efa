//! Constraints of a client on the form of an answer.

use serde_json::{Map, Value, json};

/// Constraints that the server enforces itself, independent of the planner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Constraints {
    /// Maximum number of items of a list, which is the answer itself or the first list in it.
    pub max_items: Option<usize>,
    /// Fields to which objects are reduced, if they have all of them.
    pub preferred_fields: Vec<String>,
}

impl Constraints {
    /// Parses the constraints. Also returns the names of unknown ones.
    pub fn read(members: &Map<String, Value>) -> (Constraints, Vec<String>) {
        let mut constraints = Constraints::default();
        let mut unsupported = Vec::new();
        for (name, value) in members {
            match (name.as_str(), value.as_u64(), value.as_array()) {
                ("max_items", Some(most @ 1..), _) => constraints.max_items = Some(usize::try_from(most).unwrap_or(usize::MAX)),
                ("preferred_fields", _, Some(fields)) => {
                    let fields = fields.iter().filter_map(Value::as_str).filter(|field| !field.is_empty());
                    constraints.preferred_fields = fields.map(str::to_owned).collect();
                }
                _ => unsupported.push(name.clone()),
            }
        }
        (constraints, unsupported)
    }

    /// Returns the constraints for the planner, or `None` if there are none.
    pub fn told(&self) -> Option<Value> {
        let mut told = Map::new();
        if let Some(most) = self.max_items {
            told.insert("max_items".into(), json!(most));
        }
        if !self.preferred_fields.is_empty() {
            told.insert("preferred_fields".into(), json!(self.preferred_fields));
        }
        (!told.is_empty()).then_some(Value::Object(told))
    }

    /// Applies the constraints to an answer.
    pub fn apply(&self, mut value: Value) -> Value {
        if let Some(most) = self.max_items {
            let list = match &mut value {
                Value::Array(items) => Some(items),
                Value::Object(members) => members.values_mut().find_map(Value::as_array_mut),
                _ => None,
            };
            if let Some(items) = list {
                items.truncate(most);
            }
        }
        if !self.preferred_fields.is_empty() {
            self.pick(&mut value);
        }
        value
    }

    fn pick(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.pick(item)),
            Value::Object(members) if self.preferred_fields.iter().all(|field| members.contains_key(field)) => {
                members.retain(|name, _| self.preferred_fields.contains(name));
            }
            Value::Object(members) => members.values_mut().for_each(|member| self.pick(member)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Constraints, Vec<String>) {
        Constraints::read(serde_json::from_str::<Value>(text).unwrap().as_object().unwrap())
    }

    #[test]
    fn supported_constraints_are_applied_and_others_reported() {
        let (wishes, unsupported) = read(r#"{"max_items": 2, "preferred_fields": ["id", "", 1], "language": "de"}"#);
        assert_eq!(unsupported, ["language"]);
        assert_eq!(wishes.told(), Some(json!({ "max_items": 2, "preferred_fields": ["id"] })));
        let row = |id: u64| json!({ "id": id, "more": true });
        assert_eq!(wishes.apply(json!([row(1), row(2), row(3)])), json!([{ "id": 1 }, { "id": 2 }]));
        assert_eq!(wishes.apply(json!({ "rows": [row(1), row(2), row(3)] })), json!({ "rows": [{ "id": 1 }, { "id": 2 }] }));
        assert_eq!(wishes.apply(json!("text")), json!("text"));
        assert_eq!(read(r#"{"max_items": 0, "preferred_fields": "id"}"#).1, ["max_items", "preferred_fields"]);
        assert_eq!(Constraints::default().told(), None);
    }
}
