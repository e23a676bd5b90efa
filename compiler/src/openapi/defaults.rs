//! Checks default arguments of an operation against the schemas of its parameters.

use super::argument::Sent;
use super::faults::Faults;
use super::reference::References;
use crate::config::model::Override;
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::json::Json;
use crate::json_schema::{Schema, mismatch::mismatch};
use crate::source::Span;
use crate::tree::{Node, Tree};

/// Reads `x-ptc-default-args` and merges the override's `default_args` over it. Each default must name an argument and fit its
/// schema. `unread` is true if some parameters could not be read; then an unknown name is accepted, since it may belong to one of
/// them.
pub(super) fn read(
    references: References<'_>,
    operation: &Node,
    overriding: Option<&Override>,
    params: &[Sent],
    unread: bool,
    faults: &mut Faults,
) -> Json {
    let mut given: Vec<(String, Json, Span)> = Vec::new();
    if let Some(node) = operation.get("x-ptc-default-args") {
        if !matches!(node.value, Tree::Object(_)) {
            let message = format!("`x-ptc-default-args` is an object of arguments, found {}", node.kind());
            faults.push(Diagnostic::new(Code::DefaultArgs, message).at(node.place(references.file), ""));
        }
        for member in node.members() {
            given.push((member.key.to_string(), Json::from(&member.value), member.value.place(references.file)));
        }
    }
    for (name, value) in overriding.and_then(|o| o.default_args.as_ref()).into_iter().flatten() {
        given.retain(|(known, ..)| known != name);
        given.push((name.clone(), value.value.clone(), value.place.clone()));
    }
    given.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let mut out = Json::object();
    for (name, value, place) in given {
        let Some(param) = params.iter().find(|p| p.name == name) else {
            if unread {
                continue;
            }
            let mut diagnostic =
                Diagnostic::new(Code::DefaultArgs, format!("the operation has no argument `{name}` to give a default"))
                    .at(place, "");
            if let Some(hint) = suggest::hint(&name, "argument", params.iter().map(|p| p.name.as_str())) {
                diagnostic = diagnostic.hint(hint);
            }
            faults.push(diagnostic);
            continue;
        };
        if let Some(mismatch) = mismatch(&Schema::new(&param.schema), &param.schema, &value, "default", &quoted(&name)) {
            let mut diagnostic = Diagnostic::new(Code::DefaultArgs, mismatch.message).at(place, "");
            diagnostic.hints.extend(mismatch.hint);
            faults.push(diagnostic);
        }
        out.set(name, value);
    }
    out
}
