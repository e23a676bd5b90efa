//! Renders the text that `(doc "server/tool")` prints.

use std::fmt::Write as _;

use ptc_catalog::{Annotations, BodyKind, Effect};

use super::lines;
use super::notes::{Side, inner_members, notes};
use super::sample::sample;
use super::shape;
use super::summary::{begins_with, title};
use super::text::{self, key, literal, one_line};
use crate::ir::Arg;
use crate::json::Json;
use crate::json_schema::Schema;

/// Target size in bytes of the types of all arguments together, and of one argument. Labels may exceed it.
const MAX_TYPES: usize = 2_000;
const MAX_TYPE: usize = 400;
/// Media types of answers that are listed.
const MAX_ANSWERS: usize = 6;

/// What the config says of a tool.
pub struct Stated {
    /// The effects that are relied on.
    pub effects: Annotations,
    /// How its list is paged, in words.
    pub pages: Option<String>,
    /// `call_timeout_ms`
    pub call_timeout_ms: Option<u64>,
    /// `example`: the arguments of a call.
    pub example: Option<Json>,
}

/// What is known of the results of a tool.
pub struct Returned<'a> {
    /// The shape; `any` if nothing is known.
    pub shape: String,
    /// The declared output schema, or the observed one.
    pub schema: Option<&'a Json>,
    /// Where a shape comes from that is not declared, with a comma before it. Otherwise empty.
    pub source: String,
}

/// Returns the whole text: the tool's name, its title, its description, its effect, its arguments, the required ones, a call
/// to edit, the shape of the result, how its list is paged, the time limit if it is not the default, and notes on single arguments
/// and on fields of the result.
///
/// ```text
/// petstore/list-pets
/// Pets for sale
/// Lists the pets of the store.
/// args: {:status enum<string>? :limit integer?}
/// required: []
/// call: (tool/call {:server "petstore" :tool "list-pets" :args {}})
/// returns: Result<[{:id integer :name string}]>
///   :limit - At most this many; 1 to 100; default 20
///   :status - one of "available" "sold"
/// result:
///   :name - What the pet is called
/// ```
pub fn doc(server: &str, tool: &str, definition: &Json, args: &[Arg], result: &Returned<'_>, stated: &Stated) -> String {
    static ANYTHING: Json = Json::Bool(true);
    let input = definition.get("inputSchema").unwrap_or(&ANYTHING);
    let schema = Schema::new(input);
    let members = schema.members(input);
    let schema_of = |name: &str| members.get(name).unwrap_or(&ANYTHING);

    let mut out = format!("{server}/{tool}\n");
    let prose = definition.get("description").and_then(Json::as_str).map(|d| one_line(d, text::LONG)).unwrap_or_default();
    if let Some(title) = title(tool, definition).filter(|title| !begins_with(&prose, title)) {
        let _ = writeln!(out, "{}", one_line(title, text::SHORT));
    }
    if !prose.is_empty() {
        let _ = writeln!(out, "{prose}");
    }
    if definition.get("_ptc").and_then(|ptc| ptc.get("deprecated")).is_some() {
        let _ = writeln!(out, "deprecated: the upstream may remove this operation");
    }
    let effect = Effect::new(stated.effects, None);
    let declared = Effect::new(super::declared(definition), None);
    let declared = declared.described().or(declared.is_read().then_some("reads"));
    if let Some(effect) = effect.described() {
        let _ = writeln!(out, "effect: {effect}");
    } else if let Some(declared) = declared.filter(|_| !effect.is_read()) {
        let _ = writeln!(out, "effect: not known (declared, not trusted: {declared})");
    }
    let mut room = MAX_TYPES;
    let typed = args.iter().map(|arg| {
        let label = typed(&schema, schema_of(&arg.name), arg, room.min(MAX_TYPE));
        room = room.saturating_sub(label.len());
        format!("{} {label}{}", key(&arg.name), if arg.required { "" } else { "?" })
    });
    let list: Vec<String> = typed.collect();
    let required: Vec<String> = args.iter().filter(|a| a.required).map(|a| key(&a.name)).collect();
    let given = stated.example.as_ref().map(|example| example.members().iter().map(argument).collect());
    let sampled = || {
        let required = args.iter().filter(|arg| arg.required);
        required.map(|arg| format!("{} {}", key(&arg.name), sample(&schema, schema_of(&arg.name)))).collect()
    };
    let call: Vec<String> = given.unwrap_or_else(sampled);
    let _ = writeln!(out, "args: {{{}}}", list.join(" "));
    let _ = writeln!(out, "required: [{}]", required.join(" "));
    let needs = definition.get("_ptc").map(|ptc| lines(ptc, "bodyNeeds")).unwrap_or_default();
    if !needs.is_empty() {
        let needs: Vec<String> = needs.iter().map(|name| key(name)).collect();
        let _ = writeln!(out, "required in the body, which is optional: [{}]", needs.join(" "));
    }
    let _ = writeln!(
        out,
        "call: (tool/call {{:server {} :tool {} :args {{{}}}}})",
        literal(&Json::string(server)),
        literal(&Json::string(tool)),
        call.join(" ")
    );
    let _ = write!(out, "returns: Result<{}>{}", result.shape, result.source);
    if let Some(answers) = answers(definition) {
        let _ = write!(out, "\nanswers: {answers}");
    }
    if let Some(pages) = &stated.pages {
        let _ = write!(out, "\npages: {pages}; tool/all reads all of them");
    }
    if let Some(time) = stated.call_timeout_ms {
        let _ = write!(out, "\ntime: a call may take {}", text::duration(time));
    }
    let given: Vec<(&str, &Json)> = args.iter().map(|arg| (arg.name.as_str(), schema_of(&arg.name))).collect();
    out.push_str(&notes(&Schema::new(input), &given, Side::Argument));
    if let Some(output) = result.schema {
        let schema = Schema::new(output);
        let fields = notes(&schema, &inner_members(&schema, output), Side::Result);
        if !fields.is_empty() {
            let _ = write!(out, "\nresult:{fields}");
        }
    }
    out
}

fn argument((name, value): &(String, Json)) -> String {
    format!("{} {}", key(name), literal(value))
}

/// Returns in words what a program gets of an operation that answers with something other than JSON. `None` for JSON.
fn answers(definition: &Json) -> Option<String> {
    let types = lines(definition.get("_ptc")?, "types");
    let described = |media: &String| {
        let how = match BodyKind::from_media_type(media) {
            BodyKind::Json => return media.clone(),
            BodyKind::Text => "as text",
            BodyKind::List => "as a list of its values",
            BodyKind::Bytes => "as {:content_type :bytes :base64}",
            BodyKind::Unknown => "as JSON if it is, else as text",
        };
        format!("{media} {how}")
    };
    let shown: Vec<String> = types.iter().take(MAX_ANSWERS).map(described).collect();
    let more = if types.len() > MAX_ANSWERS { ", …" } else { "" };
    match types.as_slice() {
        [] => None,
        [only] if BodyKind::from_media_type(only) == BodyKind::Json => None,
        // Nothing is declared.
        [json, any] if json == "application/json" && any == "*/*" => None,
        [_] => shown.first().cloned(),
        _ => Some(format!("{}{more}; :accept chooses", shown.join(", "))),
    }
}

/// Returns the type of an argument: its inner structure if that takes at most `room` bytes, else its label.
fn typed<'s>(schema: &Schema<'s>, node: &'s Json, arg: &Arg, room: usize) -> String {
    let body = schema.body(node);
    let has_inner = ["object", "array"].iter().any(|kind| arg.label.contains(kind));
    if !has_inner || arg.label.contains("enum") || arg.label.contains("const") {
        return arg.label.clone();
    }
    let shape = shape::shape_of(schema, body, room);
    let nullable = if arg.label.ends_with("|null") && !shape.ends_with("|null") { "|null" } else { "" };
    if shape.len() > room { arg.label.clone() } else { format!("{shape}{nullable}") }
}
