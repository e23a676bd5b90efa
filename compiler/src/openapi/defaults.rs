//! Checks default arguments of an operation against the schemas of its parameters.

use ptc_catalog::Type;

use super::argument::Sent;
use super::faults::Faults;
use super::reference::References;
use crate::config::model::Override;
use crate::diag::{Code, Diagnostic, quoted, suggest};
use crate::json::Json;
use crate::json_schema::Schema;
use crate::source::Span;
use crate::tree::{Node, Tree};

/// Maximum depth to which a value is checked.
const MAX_DEPTH: usize = 16;

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
        if let Some(mismatch) = mismatch(&Schema::new(&param.schema), &param.schema, &value, &quoted(&name), 0) {
            let mut diagnostic = Diagnostic::new(Code::DefaultArgs, mismatch.message).at(place, "");
            diagnostic.hints.extend(mismatch.hint);
            faults.push(diagnostic);
        }
        out.set(name, value);
    }
    out
}

/// Why every call with a value would be refused. The value may be a secret, so the message never contains it.
struct Mismatch {
    message: String,
    hint: Option<String>,
}

/// Returns the first certain mismatch of a value: its type, listed values, bounds, and those of its elements and members. `what`
/// names the value in a sentence.
fn mismatch(schema: &Schema<'_>, node: &Json, value: &Json, what: &str, depth: usize) -> Option<Mismatch> {
    let plain = |message: String| Some(Mismatch { message, hint: None });
    let kind = value.kind();
    // JSON Schema treats `1.0` as an integer.
    let number = if let Json::Number(text) = value { text.parse::<f64>().ok() } else { None };
    let whole = number.is_some_and(|number| number.fract() == 0.0);
    let types = schema.types(node);
    let admitted = types.admits(kind) || whole && types.admits(Type::Integer);
    if !admitted {
        return plain(format!("the argument {what} is {}, its default is {}", schema.label(node), a_value_of(kind)));
    }
    let allowed = schema.allowed(node);
    let same = |text: &String| *text == value.canonical() || number.is_some() && text.parse::<f64>().ok() == number;
    if !allowed.is_empty() && !allowed.iter().any(same) {
        let bare: Vec<&str> = allowed.iter().map(|text| text.trim_matches('"')).collect();
        let hint = value.as_str().and_then(|text| suggest::hint(text, "value", bare));
        return Some(Mismatch { message: format!("the default of the argument {what} is none of its values"), hint });
    }
    let bound = |key: &str| match schema.keyword(node, key) {
        Some(Json::Number(text)) => text.parse::<f64>().ok().map(|bound| (bound, text.as_str())),
        _ => None,
    };
    let size = match value {
        Json::String(text) => Some((text.chars().count() as f64, "minLength", "maxLength", ("has", " characters"))),
        Json::Array(items) => Some((items.len() as f64, "minItems", "maxItems", ("has", " items"))),
        _ => number.map(|number| (number, "minimum", "maximum", ("is", ""))),
    };
    if let Some((size, least, most, (verb, unit))) = size {
        if let Some((_, text)) = bound(least).filter(|(bound, _)| size < *bound) {
            return plain(format!("the argument {what} {verb} at least {text}{unit}, its default {verb} less"));
        }
        if let Some((_, text)) = bound(most).filter(|(bound, _)| size > *bound) {
            return plain(format!("the argument {what} {verb} at most {text}{unit}, its default {verb} more"));
        }
    }
    if let Some(number) = number {
        if let Some((_, text)) = bound("exclusiveMinimum").filter(|(bound, _)| number <= *bound) {
            return plain(format!("the argument {what} is more than {text}, its default is not"));
        }
        if let Some((_, text)) = bound("exclusiveMaximum").filter(|(bound, _)| number >= *bound) {
            return plain(format!("the argument {what} is less than {text}, its default is not"));
        }
    }
    if depth == MAX_DEPTH {
        return None;
    }
    if let (Json::Array(values), Some(items)) = (value, schema.keyword(node, "items")) {
        let inner = |(at, value)| mismatch(schema, items, value, &format!("{what}[{at}]"), depth + 1);
        return values.iter().enumerate().find_map(inner);
    }
    let members = schema.members(node);
    value.members().iter().find_map(|(name, value)| {
        let inner = members.get(name)?;
        mismatch(schema, inner, value, &format!("{what}.{}", quoted(name)), depth + 1)
    })
}

/// Names a value of a type in a sentence.
fn a_value_of(kind: Type) -> &'static str {
    match kind {
        Type::Null => "null",
        Type::Boolean => "a boolean",
        Type::Integer => "an integer",
        Type::Number => "a number",
        Type::String => "a string",
        Type::Array => "an array",
        Type::Object => "an object",
    }
}
