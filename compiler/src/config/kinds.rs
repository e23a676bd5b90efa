//! Checks values against the rows of their keys.

use super::reader::ConfigReader;
use super::table::{Key, Kind, Presence};
use crate::diag::{Code, Diagnostic, Severity, quoted};
use crate::tree::{Node, Tree};
use ptc_catalog::By;

/// Checks a value against its row and reports faults. Returns whether the value may be read.
pub(super) fn check(reader: &mut ConfigReader<'_>, key: &Key, node: &Node) -> bool {
    let before = reader.errors();
    match (key.kind, &node.value) {
        (Kind::AnyText, Tree::String(_))
        | (Kind::Flag | Kind::FlagOrNames, Tree::Bool(_))
        | (Kind::Paging, Tree::Bool(false))
        | (Kind::Object | Kind::Record(_) | Kind::TextOrRecord(_), Tree::Object(_))
        | (Kind::List, Tree::Array(_)) => {}
        (Kind::Text | Kind::TextOrRecord(_) | Kind::Secret, Tree::String(text)) => {
            if text.trim().is_empty() {
                empty(reader, key, node);
            }
        }
        (Kind::Number { min, max, unit }, Tree::Number(_)) => number(reader, key, node, min, max, unit),
        (Kind::Texts, Tree::Array(elements)) => {
            for element in elements {
                text_element(reader, key, element);
            }
        }
        (Kind::Names | Kind::FlagOrNames, Tree::Array(elements)) => names(reader, key, node, elements),
        (Kind::Notes, Tree::Array(elements)) => {
            for element in elements {
                if text_element(reader, key, element) {
                    note(reader, key, element);
                }
            }
        }
        (Kind::TextMap, Tree::Object(members)) => {
            for member in members {
                if member.value.as_str().is_none() {
                    let message =
                        format!("{} in `{}` must be a string, found {}", quoted(&member.key), key.name, member.value.kind());
                    reader.fault(Code::WrongType, &member.value, message, "expected a string", quotes_hint(&member.value));
                }
            }
        }
        (Kind::Secret, Tree::Object(members)) => {
            let is_pair = members.len() == 2
                && ["user", "pass"].iter().all(|part| node.get(part).is_some_and(|value| value.as_str().is_some()));
            if !is_pair {
                wrong_type(reader, key, node);
            }
        }
        (Kind::Paging, Tree::Object(_)) => paging(reader, node),
        (Kind::Choice(choices), Tree::String(text)) => {
            if !choices.contains(&&**text) {
                let listed: Vec<String> = choices.iter().map(|choice| quoted(choice)).collect();
                let hint = crate::diag::suggest::closest_match(text, choices.iter().copied())
                    .map_or_else(|| format!("expected one of {}", listed.join(", ")), |near| format!("did you mean `{near}`?"));
                let message = format!("{} is not a value of `{}`", reader.quoted(text, &node.place(reader.file)), key.name);
                reader.fault(key.code(), node, message, "", &hint);
            }
        }
        _ => wrong_type(reader, key, node),
    }
    reader.errors() == before
}

/// Checks that a string is a code whose default severity is note. Only findings that are notes are silenced.
fn note(reader: &mut ConfigReader<'_>, key: &Key, node: &Node) {
    let text = node.as_str().unwrap_or_default();
    let label = match Code::find(text).map(Code::severity) {
        Some(Severity::Note) => return,
        Some(Severity::Warning) => "a warning",
        Some(Severity::Error) => "an error",
        None => "no code",
    };
    let message = format!("{} in `{}` is not the code of a note", quoted(text), key.name);
    reader.fault(
        Code::NotANote,
        node,
        message,
        label,
        "`ptc-compile explain` lists all codes with their severity; only codes of notes can be silenced",
    );
}

/// Members of `paging` that are numbers, with descriptions.
pub(super) const PAGING_NUMBERS: [(&str, &str); 2] =
    [("first", "the number of the first page"), ("max_size", "the most items that a page can have")];
/// Members of `paging` that are strings, except `by`, with descriptions.
pub(super) const PAGING_TEXTS: [(&str, &str); 10] = [
    ("items", "where the list is in an answer: keys with dots between them; empty where the answer is the list"),
    ("argument", "the argument that asks for another page"),
    ("next", "where the token, number or link of the next page is"),
    ("more", "where it says whether there is more"),
    ("last", "where it says whether this is the last page"),
    ("total", "where the number of all items is"),
    ("pages", "where the number of all pages is"),
    ("page", "where the number of this page is"),
    ("id", "the member of an item that is its id"),
    ("size", "the argument for the number of items in a page"),
];

/// Checks the `paging` of an entry.
fn paging(reader: &mut ConfigReader<'_>, node: &Node) {
    let known = PAGING_TEXTS.iter().chain(&PAGING_NUMBERS).map(|(name, _)| *name).chain(["by"]);
    let is_text = |name: &str| PAGING_TEXTS.iter().any(|(own, _)| *own == name);
    let is_number = |name: &str| PAGING_NUMBERS.iter().any(|(own, _)| *own == name);
    for member in node.members() {
        let name = &*member.key;
        let is_fit = match (name, &member.value.value) {
            ("by", Tree::String(way)) => By::named(way).is_some(),
            (name, Tree::Number(_)) => is_number(name) && whole_number(&member.value).is_some(),
            (name, Tree::String(text)) => is_text(name) && !text.contains(char::is_control),
            _ => false,
        };
        if is_fit {
            continue;
        }
        let expected = match name {
            "by" => "one of the texts \"page\", \"offset\", \"cursor\", \"last_id\", \"link\", \"header\"",
            name if is_number(name) => "a whole number",
            name if is_text(name) => "a text of one line",
            _ => "no such member",
        };
        let near = crate::diag::suggest::closest_match(name, known.clone());
        let hint = match near.filter(|near| *near != name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "members are by, items, argument, next, more, last, total, pages, page, id, first, size and max_size".to_owned()
            }
        };
        let message = format!("{} in `paging` cannot be read", quoted(name));
        reader.fault(Code::BadPaging, &member.value, message, expected, &hint);
    }
    let has = |name: &str| node.get(name).is_some();
    let needs_argument = !matches!(node.get("by").and_then(Node::as_str), Some("link" | "header"));
    let missing = if !has("items") {
        Some("items")
    } else if needs_argument && !has("argument") {
        Some("argument")
    } else if !has("by") && !has("next") || node.get("by").and_then(Node::as_str) == Some("link") && !has("next") {
        Some("next")
    } else {
        None
    };
    if let Some(missing) = missing {
        let hint = "`items` is where the list is, `argument` asks for the next page with what is at `next`; another way than by token is named in `by`";
        reader.fault(Code::BadPaging, node, format!("`paging` has no `{missing}`"), "does not say how the list is paged", hint);
    }
}

/// Describes in a few words what a value must be.
pub(super) fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::AnyText | Kind::Choice(_) => "a string",
        Kind::Flag => "`true` or `false`",
        Kind::Number { .. } => "a whole number",
        Kind::Texts | Kind::Names | Kind::Notes => "an array of strings",
        Kind::FlagOrNames => "`true`, `false` or an array of strings",
        Kind::TextMap => "an object of strings",
        Kind::Secret => "a string, or an object with `user` and `pass`",
        Kind::Object | Kind::Record(_) => "an object",
        Kind::TextOrRecord(_) => "a string or an object",
        Kind::List => "an array",
        Kind::Paging => "`false` or an object",
    }
}

/// Returns the value of a non-negative whole number.
pub(super) fn whole_number(node: &Node) -> Option<u64> {
    match &node.value {
        Tree::Number(text) => text.parse().ok(),
        _ => None,
    }
}

fn wrong_type(reader: &mut ConfigReader<'_>, key: &Key, node: &Node) {
    let expected = expected(key.kind);
    let message = format!("`{}` must be {expected}, found {}", key.name, node.kind());
    let hint = match (key.kind, &node.value) {
        (_, Tree::Null) if key.presence == Presence::Required => format!("`{}`: {}", key.name, key.doc),
        (_, Tree::Null) => "leave the key out instead of setting it to null".to_owned(),
        (Kind::Flag | Kind::FlagOrNames, Tree::String(text)) if matches!(&**text, "true" | "false") => {
            format!("write `{text}` without quotes")
        }
        (Kind::Number { .. }, Tree::String(text)) if text.parse::<u64>().is_ok() => format!("write `{text}` without quotes"),
        (Kind::Number { unit, .. }, Tree::String(_)) => format!("write the number of {unit}, without quotes"),
        (Kind::Texts | Kind::Names | Kind::Notes | Kind::FlagOrNames, Tree::String(_)) => "put it in square brackets".to_owned(),
        (Kind::List, Tree::Object(_)) => "put the object in square brackets".to_owned(),
        (Kind::Text | Kind::AnyText | Kind::Choice(_), _) => quotes_hint(node).to_owned(),
        _ => String::new(),
    };
    reader.fault(Code::WrongType, node, message, &format!("expected {expected}"), &hint);
}

fn quotes_hint(node: &Node) -> &'static str {
    match node.value {
        Tree::Number(_) | Tree::Bool(_) => "put the value in double quotes",
        Tree::Null => "leave the key out instead of setting it to null",
        _ => "",
    }
}

fn empty(reader: &mut ConfigReader<'_>, key: &Key, node: &Node) {
    let hint = format!("`{}`: {}", key.name, key.doc);
    reader.fault(Code::EmptyValue, node, format!("`{}` must not be empty", key.name), "empty", &hint);
}

fn number(reader: &mut ConfigReader<'_>, key: &Key, node: &Node, min: u64, max: u64, unit: &str) {
    let Tree::Number(text) = &node.value else { return };
    let whole = !text.contains(['.', 'e', 'E']);
    match text.parse::<u64>() {
        Ok(value) if (min..=max).contains(&value) => {}
        // The number is negative, or has too many digits.
        Ok(_) | Err(_) if whole => {
            let message = format!("`{}` is {text}, outside of {min} to {max} {unit}", key.name);
            reader.fault(Code::OutOfRange, node, message, "out of range", "");
        }
        _ => {
            let message = format!("`{}` must be a whole number of {unit}, found {text}", key.name);
            reader.fault(Code::WrongType, node, message, "expected a whole number", "write it without a fraction or an exponent");
        }
    }
}

fn text_element(reader: &mut ConfigReader<'_>, key: &Key, element: &Node) -> bool {
    if element.as_str().is_some() {
        return true;
    }
    let message = format!("`{}` must hold strings only, found {}", key.name, element.kind());
    reader.fault(Code::WrongType, element, message, "expected a string", quotes_hint(element));
    false
}

fn names(reader: &mut ConfigReader<'_>, key: &Key, node: &Node, elements: &[Node]) {
    if elements.is_empty() {
        empty(reader, key, node);
    }
    for (at, element) in elements.iter().enumerate() {
        if !text_element(reader, key, element) {
            continue;
        }
        let name = element.as_str().unwrap_or("");
        if name.trim().is_empty() {
            reader.fault(Code::EmptyValue, element, format!("`{}` holds an empty name", key.name), "empty", "");
        } else if let Some(first) = elements.iter().take(at).find(|earlier| earlier.as_str() == Some(name)) {
            let diagnostic = Diagnostic::new(Code::RepeatedItem, format!("{} is listed twice in `{}`", quoted(name), key.name))
                .at(element.place(reader.file), "again here")
                .also(first.place(reader.file), "first here")
                .hint("remove one of the two");
            reader.report(diagnostic);
        }
    }
}
