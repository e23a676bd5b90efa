//! Finds examples of calls that the schema of a tool refuses. `doc` does not show them.

use super::sample;
use crate::diag::{quoted, suggest};
use crate::json::Json;
use crate::json_schema::Schema;
use crate::json_schema::mismatch::mismatch;

/// Maximum depth to which members are compared with the schema.
const MAX_DEPTH: usize = 16;

/// Maximum bytes of an example in the config, as JSON.
const MAX_EXAMPLE: usize = 400;

/// Why an example is not shown.
pub struct ExampleFault {
    /// A sentence, which contains no value: it may be a secret.
    pub message: String,
    /// What was likely meant.
    pub hint: Option<String>,
}

/// Returns why the arguments of an example are not those of a call. `None` if they may be.
pub fn fault(example: &Json, definition: &Json) -> Option<ExampleFault> {
    let because = |message: String, hint: Option<String>| Some(ExampleFault { message, hint });
    if example.canonical().len() > MAX_EXAMPLE {
        return because(format!("the example has more than {MAX_EXAMPLE} bytes"), None);
    }
    let input = definition.get("inputSchema")?;
    let schema = Schema::new(input);
    let members = schema.members(input);
    let (args, is_closed) = schema.arguments();
    let has_default = |name: &str| definition.get("_ptc").and_then(|ptc| ptc.get("defaultArgs")?.get(name)).is_some();
    for (name, value) in example.members() {
        let Some(node) = members.get(name) else {
            // A tool without declared arguments may accept any argument.
            if !is_closed && args.is_empty() {
                continue;
            }
            let hint = suggest::hint(name, "argument", args.iter().map(|arg| arg.name.as_str()));
            return because(format!("the example gives {}, which is not an argument of the tool", quoted(name)), hint);
        };
        if let Some(found) = mismatch(&schema, node, value, "example", &quoted(name)) {
            return because(found.message, found.hint);
        }
        if let Some(found) = members_fault(&schema, node, value, &quoted(name), 0) {
            return Some(found);
        }
    }
    let missing = args.iter().find(|arg| arg.required && !has_default(&arg.name) && example.get(&arg.name).is_none());
    missing.and_then(|arg| because(format!("the example lacks the required argument {}", quoted(&arg.name)), None))
}

/// Returns the first object in an example that lacks a required member or has an unknown one. `what` is the argument in a sentence.
fn members_fault(schema: &Schema<'_>, node: &Json, value: &Json, what: &str, depth: usize) -> Option<ExampleFault> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let (Json::Array(values), Some(items)) = (value, schema.keyword(node, "items")) {
        let inner = |(at, value)| members_fault(schema, items, value, &format!("{what}[{at}]"), depth + 1);
        return values.iter().enumerate().find_map(inner);
    }
    let Json::Object(given) = value else { return None };
    let members = schema.members(node);
    if let Some(name) = members.required.iter().find(|name| value.get(name).is_none()) {
        let message = format!("the example of the argument {what} lacks {}", quoted(name));
        return Some(ExampleFault { message, hint: None });
    }
    let is_closed = members.closed && schema.keyword(node, "patternProperties").is_none();
    given.iter().find_map(|(name, value)| match members.get(name) {
        Some(inner) => members_fault(schema, inner, value, &format!("{what}.{}", quoted(name)), depth + 1),
        None if is_closed => Some(ExampleFault {
            message: format!("the example of the argument {what} has {}, which its schema does not name", quoted(name)),
            hint: suggest::hint(name, "member", members.properties.iter().map(|(name, _)| *name)),
        }),
        None => None,
    })
}

/// Returns why an example in the schema of an argument is not shown. `None` if there is no such example.
pub fn of_argument(definition: &Json) -> Option<ExampleFault> {
    let input = definition.get("inputSchema")?;
    let schema = Schema::new(input);
    let members = schema.members(input);
    let refused = |(name, node): &(&str, &Json)| {
        let mut examples = sample::examples(&schema, node);
        examples.find_map(|example| mismatch(&schema, node, example, "example", &quoted(name)))
    };
    let found = members.properties.iter().find_map(refused)?;
    Some(ExampleFault { message: found.message, hint: found.hint })
}
