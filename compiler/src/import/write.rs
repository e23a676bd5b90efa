//! Writes the config, with a comment wherever a choice was made.

use std::fmt::Write as _;

use super::{Field, Upstream};
use crate::diag::text::on_one_line;
use crate::json::{self, Json};

/// Returns the text of a config that begins with comments.
pub(super) fn config(header: &[String], upstreams: &[Upstream], credentials: &[Field]) -> String {
    let mut out = String::new();
    for text in header {
        comment(&mut out, 0, text);
    }
    out.push_str("{\n  \"upstreams\": {");
    for (at, upstream) in upstreams.iter().enumerate() {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        upstream.comments.iter().for_each(|text| comment(&mut out, 4, text));
        let _ = writeln!(out, "    {}: {{", quote(&upstream.name));
        members(&mut out, 6, &upstream.fields);
        out.push_str("    }");
    }
    out.push_str(if upstreams.is_empty() { "}" } else { "\n  }" });
    if !credentials.is_empty() {
        out.push_str(",\n  \"credentials\": {\n");
        members(&mut out, 4, credentials);
        out.push_str("  }");
    }
    out.push_str("\n}\n");
    out
}

fn members(out: &mut String, indent: usize, fields: &[Field]) {
    for (at, field) in fields.iter().enumerate() {
        field.comments.iter().for_each(|text| comment(out, indent, text));
        let _ = write!(out, "{:indent$}{}: ", "", quote(&field.key));
        value(out, indent, &field.value);
        out.push_str(if at + 1 == fields.len() { "\n" } else { ",\n" });
    }
}

fn comment(out: &mut String, indent: usize, text: &str) {
    let _ = writeln!(out, "{:indent$}// {}", "", on_one_line(text));
}

/// Writes a value: lists of texts and small objects on one line, others on several.
fn value(out: &mut String, indent: usize, json: &Json) {
    match json {
        Json::Object(members) if !members.is_empty() => {
            let flat = one_line(json);
            if flat.len() <= 80 && members.iter().all(|(_, value)| !matches!(value, Json::Object(_) | Json::Array(_))) {
                out.push_str(&flat);
                return;
            }
            out.push_str("{\n");
            for (at, (key, inner)) in members.iter().enumerate() {
                let _ = write!(out, "{:1$}{2}: ", "", indent + 2, quote(key));
                value(out, indent + 2, inner);
                out.push_str(if at + 1 == members.len() { "\n" } else { ",\n" });
            }
            let _ = write!(out, "{:indent$}}}", "");
        }
        Json::Array(items) if items.iter().any(|item| matches!(item, Json::Object(_) | Json::Array(_))) => {
            let flat = one_line(json);
            if flat.len() <= 100 {
                out.push_str(&flat);
                return;
            }
            out.push_str("[\n");
            for (at, item) in items.iter().enumerate() {
                let _ = write!(out, "{:1$}", "", indent + 2);
                out.push_str(&one_line(item));
                out.push_str(if at + 1 == items.len() { "\n" } else { ",\n" });
            }
            let _ = write!(out, "{:indent$}]", "");
        }
        _ => out.push_str(&one_line(json)),
    }
}

/// Returns a value on one line. Members keep their order.
pub(super) fn one_line(json: &Json) -> String {
    match json {
        Json::Object(members) if !members.is_empty() => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}: {}", quote(key), one_line(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        other => other.canonical(),
    }
}

fn quote(text: &str) -> String {
    let mut out = String::new();
    json::quote(text, &mut out);
    out
}
