//! What `(doc "server/tool")` shows.

use std::fmt::Write as _;

use ptc_catalog::Type;

use super::schema::Schema;
use super::text::{self, key, literal, one_line};
use crate::ir::{Arg, Json};

/// Values of an `enum` that are listed.
const LISTED: usize = 12;

/// The whole text: reference, prose, arguments, what is required, a call to edit, the shape of the result, how its list is paged, and what
/// is known of single arguments.
///
/// ```text
/// petstore/list-pets
/// Lists the pets of the store.
/// args: {:status enum<string>? :limit integer?}
/// required: []
/// call: (tool/call {:server "petstore" :tool "list-pets" :args {}})
/// returns: Result<[{:id integer :name string}]>
///   :limit - At most this many.
///   :status - one of "available" "sold"
/// ```
pub fn doc(server: &str, tool: &str, definition: &Json, args: &[Arg], result: &str, pages: Option<&str>) -> String {
    static ANYTHING: Json = Json::Bool(true);
    let input = definition.get("inputSchema").unwrap_or(&ANYTHING);
    let schema = Schema::new(input);
    let members = schema.members(input);
    let schema_of = |name: &str| members.get(name).unwrap_or(&ANYTHING);

    let mut out = format!("{server}/{tool}\n");
    let prose = definition.get("description").and_then(Json::as_str).map(|d| one_line(d, text::LONG)).unwrap_or_default();
    if !prose.is_empty() {
        let _ = writeln!(out, "{prose}");
    }
    let list: Vec<String> =
        args.iter().map(|a| format!("{} {}{}", key(&a.name), a.label, if a.required { "" } else { "?" })).collect();
    let required: Vec<String> = args.iter().filter(|a| a.required).map(|a| key(&a.name)).collect();
    let call: Vec<String> = args
        .iter()
        .filter(|a| a.required)
        .map(|a| format!("{} {}", key(&a.name), sample(&schema, schema_of(&a.name), a)))
        .collect();
    let _ = writeln!(out, "args: {{{}}}", list.join(" "));
    let _ = writeln!(out, "required: [{}]", required.join(" "));
    let _ = writeln!(
        out,
        "call: (tool/call {{:server {} :tool {} :args {{{}}}}})",
        literal(&Json::string(server)),
        literal(&Json::string(tool)),
        call.join(" ")
    );
    let _ = write!(out, "returns: Result<{result}>");
    if let Some(pages) = pages {
        let _ = write!(out, "\npages: {pages}; tool/all reads all of them");
    }
    for arg in args {
        if let Some(note) = note(&schema, schema_of(&arg.name), arg) {
            let _ = write!(out, "\n  {} - {note}", key(&arg.name));
        }
    }
    out
}

/// Prose, admitted values and default of one argument.
fn note(schema: &Schema<'_>, node: &Json, arg: &Arg) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(prose) = schema.keyword(node, "description").and_then(Json::as_str) {
        parts.push(one_line(prose, text::ARGUMENT));
    }
    if let (Some(Json::Array(values)), true) = (schema.keyword(node, "enum"), arg.label.starts_with("enum")) {
        let mut shown: Vec<String> = values.iter().take(LISTED).map(|v| one_line(&literal(v), 60)).collect();
        if values.len() > LISTED {
            shown.push(format!("and {} more", values.len() - LISTED));
        }
        parts.push(format!("one of {}", shown.join(" ")));
    }
    if let Some(default) = schema.keyword(node, "default").filter(|d| **d != Json::Null) {
        parts.push(format!("default {}", one_line(&literal(default), 60)));
    }
    parts.retain(|p| !p.is_empty());
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A value to edit: what the schema offers, else a plain one of the right type.
fn sample(schema: &Schema<'_>, node: &Json, arg: &Arg) -> String {
    let offered = ["const", "default", "example"]
        .into_iter()
        .find_map(|k| schema.keyword(node, k))
        .or_else(|| ["examples", "enum"].into_iter().find_map(|k| schema.keyword(node, k)?.elements().first()));
    if let Some(value) = offered {
        let text = literal(value);
        if text.len() <= 80 {
            return text;
        }
    }
    let first =
        [(Type::String, "\"...\""), (Type::Integer, "1"), (Type::Boolean, "true"), (Type::Array, "[]"), (Type::Object, "{}")];
    first.iter().find(|(kind, _)| arg.types.admits(*kind)).map_or("nil", |(_, text)| text).to_owned()
}
