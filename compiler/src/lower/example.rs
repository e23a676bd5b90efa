//! Chooses the example call of a tool, and finds examples that its schema refuses. `doc` does not show these.

use super::sample;
use crate::config::model::Upstream;
use crate::diag::{quoted, suggest};
use crate::json::Json;
use crate::json_schema::Schema;
use crate::json_schema::mismatch::mismatch;
use crate::lock::LockedTool;
use crate::source::Span;

/// Maximum depth to which members are compared with the schema.
const MAX_DEPTH: usize = 16;

/// Maximum bytes of an example in the config or in the lock file, as JSON.
pub const MAX_EXAMPLE: usize = 400;

/// The arguments of an example call.
#[derive(Debug, Clone, Copy)]
pub struct Example<'a> {
    /// The arguments, an object.
    pub args: &'a Json,
    /// Their place in the config. `None` if the lock file has them, from a recorded call.
    pub place: Option<&'a Span>,
}

/// Returns the example call of a tool: that of the config, or the recorded one of the lock file unless the definition of the tool states
/// one itself. It may be one that the schema refuses.
pub fn of_tool<'a>(entry: Option<&'a Upstream>, name: &str, locked: &'a LockedTool) -> Option<Example<'a>> {
    if let Some(written) = entry.and_then(|entry| entry.example(name, &locked.definition)) {
        return Some(Example { args: &written.value, place: Some(&written.place) });
    }
    let args = locked.example.as_ref().filter(|_| !is_stated(&locked.definition))?;
    Some(Example { args, place: None })
}

/// Whether the definition of a tool states an example call: the schema of a required argument has an example, and no required argument
/// has to be made up.
pub fn is_stated(definition: &Json) -> bool {
    let Some(input) = definition.get("inputSchema") else { return false };
    let schema = Schema::new(input);
    let members = schema.members(input);
    let required = members.required.iter().filter(|name| !has_default(definition, name));
    sample::is_stated(&schema, required.map(|name| members.get(name).unwrap_or(&Json::Bool(true))))
}

/// Whether an operation has a default for an argument, which is sent if a call does not have it.
fn has_default(definition: &Json, name: &str) -> bool {
    definition.get("_ptc").and_then(|ptc| ptc.get("defaultArgs")?.get(name)).is_some()
}

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
    let missing = args.iter().find(|arg| arg.required && !has_default(definition, &arg.name) && example.get(&arg.name).is_none());
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
