//! Computes the response of a tool from its description and the arguments of a call.
//!
//! | description | response |
//! |---|---|
//! | `{"list": table, "under": name}` | the matching rows, under that key or, without one, as an array |
//! | `{"one": table, "by": [argument, column]}` | the row with that value, under `under` if given; a failure if there is none |
//! | `{"lines": table, "line": "{id}\t{name}"}` | text, a line for each row |
//! | `{"value": v}`, `{"text": "…"}` | always that value or text |
//! | `{"echo": {…}}` | the object, with the arguments of the call |
//! | `{"fail": message, "status": 503}` | a failure |
//!
//! Further keys for `list` and `lines`: `where` (argument → column that must be equal), `least`, `most` (argument → column that
//! must be at least or at most that large), `search` (argument → column that must contain the text), `keep` (the columns that are
//! returned), `page` (`{"style": "page" | "cursor", "size": argument, "default": 20}`). A further key for all: `fails` (argument
//! → value → failure).

use serde_json::{Map, Value, json};

use super::{Tables, entries, member};

/// A failed call.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The error message.
    pub message: String,
    /// The status of the HTTP response, if the upstream is a service.
    pub status: u16,
}

/// The response of a tool.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A JSON value.
    Json(Value),
    /// A text that is not JSON.
    Text(String),
}

/// Returns the response of a tool to these arguments.
///
/// # Errors
///
/// The failure that the description has for these arguments.
pub fn answer(described: &Value, args: &Value, tables: &Tables) -> Result<Answer, Failure> {
    for (arg, values) in described.get("fails").into_iter().flat_map(entries) {
        let given = args.get(arg).map(plain).unwrap_or_default();
        if let Some(failure) = values.get(&given) {
            return Err(self::failure(failure));
        }
    }
    let (kind, given) = described
        .as_object()
        .and_then(|described| described.iter().find(|(name, _)| KINDS.contains(&name.as_str())))
        .unwrap_or_else(|| panic!("no kind of answer in {described}"));
    let table = || given.as_str().and_then(|name| tables.get(name)).unwrap_or_else(|| panic!("no table {given}"));
    match kind.as_str() {
        "list" => Ok(Answer::Json(list(described, args, &admitted(described, args, table())))),
        "lines" => {
            let line = described.get("line").and_then(Value::as_str).unwrap_or_default();
            let rows = admitted(described, args, table());
            Ok(Answer::Text(rows.iter().map(|row| filled(line, row)).collect::<Vec<_>>().join("\n")))
        }
        "one" => {
            let by = |at: usize| described.get("by").and_then(|by| by.get(at)).and_then(Value::as_str).unwrap_or("id");
            let wanted = args.get(by(0)).map(plain).unwrap_or_default();
            let row = table().iter().find(|row| row.get(by(1)).map(plain).as_ref() == Some(&wanted));
            let row = row.ok_or_else(|| Failure { message: format!("no {} {wanted}", by(0)), status: 404 })?;
            let row = kept(described, row);
            Ok(Answer::Json(match described.get("under").and_then(Value::as_str) {
                Some(name) => json!({ name: row }),
                None => row,
            }))
        }
        "value" => Ok(Answer::Json(given.clone())),
        "text" => Ok(Answer::Text(given.as_str().unwrap_or_default().to_owned())),
        "echo" => {
            let mut object = given.as_object().cloned().unwrap_or_default();
            object.extend(entries(args).map(|(name, value)| (name.clone(), value.clone())));
            Ok(Answer::Json(Value::Object(object)))
        }
        _ => Err(failure(described)),
    }
}

const KINDS: [&str; 7] = ["list", "lines", "one", "value", "text", "echo", "fail"];

fn failure(described: &Value) -> Failure {
    let message = member(described, "fail").as_str().unwrap_or_default().to_owned();
    let status = described.get("status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok()).unwrap_or(400);
    Failure { message, status }
}

/// Returns the rows that match the arguments of a call.
fn admitted<'t>(described: &Value, args: &Value, table: &'t [Value]) -> Vec<&'t Value> {
    let each = |name: &str, holds: &dyn Fn(&Value, &Value) -> bool, row: &Value| {
        described.get(name).into_iter().flat_map(entries).all(|(arg, column)| {
            let cell = column.as_str().and_then(|path| row.pointer(&format!("/{}", path.replace('.', "/"))));
            args.get(arg).filter(|given| !given.is_null()).is_none_or(|given| cell.is_some_and(|cell| holds(cell, given)))
        })
    };
    let has = |cell: &Value, given: &Value| match cell.as_array() {
        Some(items) => items.iter().any(|item| plain(item) == plain(given)),
        None => plain(cell) == plain(given),
    };
    let rows = table.iter().filter(|row| {
        each("where", &has, row)
            && each("least", &|cell, given| at_least(cell, given), row)
            && each("most", &|cell, given| at_least(given, cell), row)
            && each("search", &|cell, given| plain(cell).to_lowercase().contains(&plain(given).to_lowercase()), row)
    });
    rows.collect()
}

/// Compares numbers by value and everything else as text, which is correct for dates.
fn at_least(large: &Value, small: &Value) -> bool {
    match (large.as_f64(), small.as_f64()) {
        (Some(large), Some(small)) => large >= small,
        _ => plain(large) >= plain(small),
    }
}

fn list(described: &Value, args: &Value, rows: &[&Value]) -> Value {
    let keep = |rows: &[&Value]| rows.iter().map(|row| kept(described, row)).collect::<Vec<_>>();
    let number = |name: &str| args.get(name).and_then(|given| plain(given).parse::<usize>().ok());
    let under = described.get("under").and_then(Value::as_str);
    let Some(page) = described.get("page") else {
        let size = number("limit").unwrap_or(rows.len()).min(rows.len());
        let items = json!(keep(rows.get(..size).unwrap_or(rows)));
        return under.map_or_else(|| items.clone(), |name| json!({ name: items }));
    };
    let size_name = member(page, "size").as_str().unwrap_or("limit");
    let usual = page.get("default").and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok()).unwrap_or(20);
    let size = number(size_name).unwrap_or(usual).max(1);
    let of_cursor = || args.get("cursor").and_then(Value::as_str).and_then(|cursor| cursor.strip_prefix("c")?.parse().ok());
    let by_cursor = page.get("style").and_then(Value::as_str) == Some("cursor");
    let at = if by_cursor { of_cursor().unwrap_or(0) } else { number("page").unwrap_or(1).saturating_sub(1) };
    let items = keep(&rows.iter().copied().skip(at * size).take(size).collect::<Vec<_>>());
    let has_more = (at + 1) * size < rows.len();
    let name = under.unwrap_or("items");
    match (by_cursor, page.get("style").and_then(Value::as_str)) {
        (true, _) => {
            json!({ name: items, "meta": { "count": rows.len(), "next_cursor": has_more.then(|| format!("c{}", at + 1)) } })
        }
        (_, Some("pages")) => json!({ name: items, "page": at + 1, "pages": rows.len().div_ceil(size), "total": rows.len() }),
        _ => json!({ name: items, "next": has_more.then_some(at + 2), "total": rows.len() }),
    }
}

/// Returns a row with the columns of the response.
fn kept(described: &Value, row: &Value) -> Value {
    let Some(names) = described.get("keep").and_then(Value::as_array) else { return row.clone() };
    let kept: Map<String, Value> = entries(row)
        .filter(|(name, _)| names.iter().any(|keep| keep == *name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Value::Object(kept)
}

/// Replaces each `{name}` in a line by that column of a row.
fn filled(line: &str, row: &Value) -> String {
    entries(row).fold(line.to_owned(), |line, (name, value)| line.replace(&format!("{{{name}}}"), &plain(value)))
}

/// Returns a value as it is written in a URL: a string without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
