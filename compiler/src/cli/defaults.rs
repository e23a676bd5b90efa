//! Default arguments of operations against the whole schemas of their parameters.
//!
//! The library has compared types, lists of values and bounds, and left out the operations where these do not fit. For the rest of JSON
//! Schema there is the runtime's validator.

use ptc_compiler::config::model::OpenApi;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, quoted};
use ptc_compiler::ir::Json;
use ptc_compiler::lock::LockedUpstream;
use ptc_compiler::tree::Place;
use ptc_lisp::json;

use crate::literals;

/// Reports the first misfit of every default argument. The values are not repeated: they may be secrets.
pub(crate) fn check(entry: &OpenApi, locked: &LockedUpstream, diagnostics: &mut Diagnostics) {
    for tool in locked.tools.values() {
        let Some(operation) = tool.definition.get("_ptc") else { continue };
        let defaults = operation.get("defaultArgs").map(Json::members).unwrap_or_default();
        if defaults.is_empty() {
            continue;
        }
        let Ok(definition) = json::decode(tool.canonical.as_bytes()) else { continue };
        for (name, value) in defaults {
            let Ok(default) = json::decode(value.canonical().as_bytes()) else { continue };
            let Some(misfit) = literals::mismatch(&definition, name, &default) else { continue };
            let within = if misfit.path == *name { String::new() } else { format!(" at {}", quoted(&misfit.path)) };
            let what = misfit.without_value();
            let message = format!("the default of the argument {} is not what its schema asks for{within}: {what}", quoted(name));
            let id = operation.get("operationId").and_then(Json::as_str).unwrap_or_default();
            let place = given(entry, id, name, value).unwrap_or_else(|| entry.schema.place.clone());
            diagnostics.push(Diagnostic::new(Code::DefaultArgs, message).at(place, ""));
        }
    }
}

/// Where the config gives an argument that default: under the operation's id, or under the path or the words that include it. `None`
/// where the document does.
fn given(entry: &OpenApi, id: &str, name: &str, value: &Json) -> Option<Place> {
    let overrides = entry.operation_overrides.get(id).into_iter().chain(entry.operation_overrides.values());
    let mut defaults = overrides.filter_map(|overriding| overriding.default_args.as_ref()?.get(name));
    defaults.find(|default| Json::from(&default.value) == *value).map(|default| default.place.clone())
}
