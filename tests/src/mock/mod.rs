//! Mock upstreams that are described by data: a JSON file has their tables and tools, and each tool has a description of its
//! responses.
//!
//! - [`table`]: computes rows from descriptions of columns; the rows are equal in every run.
//! - [`answer`]: computes the response of a tool.
//! - [`mcp`]: an MCP server over standard input and output, or over HTTP.
//! - [`openapi`]: a service that is described by its OpenAPI document.
//! - [`http`]: the HTTP server of both.

pub mod answer;
pub mod http;
pub mod mcp;
pub mod openapi;
pub mod table;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

/// Tables by name; a table is a list of rows.
pub type Tables = BTreeMap<String, Vec<Value>>;

/// Reads a JSON file.
pub fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Computes the tables from their descriptions.
pub fn tables(described: &Value) -> Tables {
    let described = described.as_object().cloned().unwrap_or_default();
    described.into_iter().map(|(name, description)| (name, table::rows(&description))).collect()
}

/// Returns the member of an object, which must exist.
fn member<'v>(object: &'v Value, name: &str) -> &'v Value {
    object.get(name).unwrap_or_else(|| panic!("no member {name:?} in {object}"))
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
