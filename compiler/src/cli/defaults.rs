//! Checks default arguments of operations, and examples of calls, against the whole schemas of the arguments.
//!
//! The library has already compared types, listed values and bounds, and has left out operations whose defaults do not match. The
//! runtime's validator checks the rest of JSON Schema.

use ptc_compiler::checks::examples;
use ptc_compiler::config::Config;
use ptc_compiler::config::model::OpenApi;
use ptc_compiler::config::operation_selector;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Subject, quoted};
use ptc_compiler::json::Json;
use ptc_compiler::lock::{Lock, LockedTool, LockedUpstream};
use ptc_compiler::lower::example;
use ptc_compiler::source::Span;
use ptc_lisp::{Value, json};

use crate::const_args;

/// Reports the first mismatch of every default argument. The values may be secrets, so messages do not contain them.
pub(crate) fn check(entry: &OpenApi, locked: &LockedUpstream, diagnostics: &mut Diagnostics) {
    for tool in locked.tools.values() {
        let Some(operation) = tool.definition.get("_ptc") else { continue };
        let defaults = operation.get("defaultArgs").map(Json::members).unwrap_or_default();
        if defaults.is_empty() {
            continue;
        }
        let Ok(definition) = json::decode(tool.canonical.as_bytes()) else { continue };
        for (name, value) in defaults {
            let Some(what) = fault(&definition, name, value) else { continue };
            let id = operation.get("operationId").and_then(Json::as_str).unwrap_or_default();
            let message = format!("{}: the default of the argument {} {what}", quoted(id), quoted(name));
            let place = given(entry, operation, name, value).unwrap_or_else(|| entry.schema.place.clone());
            diagnostics.push(Diagnostic::new(Code::DefaultArgs, message).about(Subject::default().operation(id)).at(place, ""));
        }
    }
}

/// Reports examples that the library has found no fault in, and that the whole schema refuses.
pub(crate) fn check_examples(config: &Config, lock: &Lock, diagnostics: &mut Diagnostics) {
    for found in examples::examples(config, lock) {
        if example::fault(found.example.args, &found.tool.definition).is_some() {
            continue;
        }
        for (argument, what) in example_faults(found.tool, found.example.args) {
            diagnostics.push(found.finding(&format!("the example of the argument {} {what}", quoted(&argument)), None));
        }
    }
}

/// Returns whether the arguments of a call satisfy the schema of the tool, so that they can be its example.
pub(crate) fn is_example(tool: &LockedTool, args: &Json) -> bool {
    example::fault(args, &tool.definition).is_none() && example_faults(tool, args).is_empty()
}

/// Drops the recorded examples that the whole schemas of changed definitions refuse. The library has dropped those that it finds a fault in.
pub(crate) fn drop_examples(old: &Lock, new: &mut Lock) {
    for (upstream, locked) in &mut new.upstreams {
        for (name, tool) in &mut locked.tools {
            let known = old.upstreams.get(upstream).and_then(|known| known.tools.get(name));
            if known.is_none_or(|known| known.digest != tool.digest)
                && tool.example.as_ref().is_some_and(|args| !is_example(tool, args))
            {
                tool.example = None;
            }
        }
    }
}

/// Returns the arguments of an example that the whole schema refuses, each with its fault as the rest of a sentence.
fn example_faults(tool: &LockedTool, args: &Json) -> Vec<(String, String)> {
    let Ok(definition) = json::decode(tool.canonical.as_bytes()) else { return Vec::new() };
    let faulty = |(argument, value): &(String, Json)| Some((argument.clone(), fault(&definition, argument, value)?));
    args.members().iter().filter_map(faulty).collect()
}

/// Returns the fault of a value of an argument as the rest of a sentence.
fn fault(definition: &Value, name: &str, given: &Json) -> Option<String> {
    let read = json::decode(given.canonical().as_bytes()).map_err(|why| why.to_string());
    // A number may be too large to be sent.
    let sent = read.and_then(|value| json::encode(&value, const_args::MAX_BYTES).map(|_| value).map_err(|why| why.to_string()));
    let value = match sent {
        Ok(value) => value,
        Err(why) => return Some(format!("cannot be sent: {why}")),
    };
    let mismatch = const_args::mismatch(definition, name, &value)?;
    let within = if mismatch.path == *name { String::new() } else { format!(" at {}", quoted(&mismatch.path)) };
    Some(format!("is not what its schema asks for{within}: {}", mismatch.without_value()))
}

/// Returns where the config gives an argument this default: under the operation's id, its path, or the entry that includes it.
/// Returns `None` if the default comes from the document.
fn given(entry: &OpenApi, operation: &Json, name: &str, value: &Json) -> Option<Span> {
    let said = |key: &str| operation.get(key).and_then(Json::as_str).unwrap_or_default();
    let named = |is: &dyn Fn(&str) -> bool| {
        let overrides = entry.operation_overrides.iter().filter(|(key, _)| is(key));
        let mut defaults = overrides.filter_map(|(_, overriding)| overriding.default_args.as_ref()?.get(name));
        defaults.find(|default| default.value.canonical() == value.canonical()).map(|default| default.place.clone())
    };
    named(&|key| key == said("operationId"))
        .or_else(|| named(&|key| operation_selector::names_operation(key, said("method"), said("path"))))
        .or_else(|| named(&|_| true))
}
