//! A service that is described by its OpenAPI document: `x-tables` has its tables, and `x-answer` of an operation describes its
//! responses.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::answer::{Answer, Failure, answer};
use super::{Tables, entries, http, member, read, tables};

/// Serves the operations of a document on a free port until the process ends, and returns the port.
pub fn serve(document: &Path) -> u16 {
    let document = read(document);
    let tables = tables(document.get("x-tables").unwrap_or(&Value::Null));
    http::serve(move |request| match get(&document, &tables, &request.url) {
        Ok(value) => (200, value.to_string()),
        Err(failure) => (failure.status, json!({ "status": failure.status, "detail": failure.message }).to_string()),
    })
}

fn get(document: &Value, tables: &Tables, url: &str) -> Result<Value, Failure> {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let mut args = Map::new();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        args.insert(name.to_owned(), json!(value.replace("%20", " ").replace("%3A", ":")));
    }
    let found = entries(member(document, "paths")).find_map(|(template, item)| {
        let names = template.split('/').map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')));
        let parts: Vec<_> = path.split('/').collect();
        let wanted: Vec<_> = template.split('/').zip(names).collect();
        if parts.len() != wanted.len() || !wanted.iter().zip(&parts).all(|((text, name), part)| name.is_some() || text == part) {
            return None;
        }
        for ((_, name), part) in wanted.iter().zip(&parts) {
            if let Some(name) = name {
                args.insert((*name).to_owned(), json!(part));
            }
        }
        item.get("get")?.get("x-answer")
    });
    let described = found.ok_or_else(|| Failure { message: format!("no resource at {path}"), status: 404 })?;
    match answer(described, &Value::Object(args), tables)? {
        Answer::Json(value) => Ok(value),
        Answer::Text(text) => Ok(json!(text)),
    }
}
