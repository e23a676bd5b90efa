//! Edits JSON with comments, with the concrete syntax tree of `jsonc-parser`.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};

use super::{Error, Server, line_of, members, section};
use crate::clients::Client;

pub(super) fn add(client: Client, text: &str, server: Server<'_>) -> Result<String, Error> {
    if text.trim().is_empty() {
        let empty = add(client, "{\n}\n", server)?;
        return Ok(empty);
    }
    let root = parse(text)?;
    let mut object = root.object_value().ok_or_else(|| Error::NotAnObject("the config".to_owned()))?;
    for key in section(client) {
        if object.get(key).is_none() {
            object.append(key, CstInputValue::Object(Vec::new()));
        }
        object = object.object_value(key).ok_or_else(|| Error::NotAnObject((*key).to_owned()))?;
    }
    if object.get(server.name).is_some() {
        return Err(if is_ours(&object, server) { Error::Unchanged } else { Error::Taken });
    }
    let mut entry: Vec<(String, CstInputValue)> = members(client, server)
        .into_iter()
        .map(|(key, value)| (key.to_owned(), CstInputValue::String(value.to_owned())))
        .collect();
    entry.push(("args".to_owned(), CstInputValue::Array(Vec::new())));
    object.append(server.name, CstInputValue::Object(entry));
    Ok(root.to_string())
}

pub(super) fn remove(client: Client, text: &str, server: Server<'_>) -> Result<String, Error> {
    let root = parse(text)?;
    let mut object = root.object_value().ok_or(Error::NotThere)?;
    for key in section(client) {
        object = object.object_value(key).ok_or(Error::NotThere)?;
    }
    let property = object.get(server.name).ok_or(Error::NotThere)?;
    if !is_ours(&object, server) {
        return Err(Error::Taken);
    }
    property.remove();
    Ok(root.to_string())
}

fn parse(text: &str) -> Result<CstRootNode, Error> {
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| Error::Syntax(error.kind().to_string(), line_of(text, error.range().start)))
}

/// Whether the entry with the server's name starts the server's program.
fn is_ours(object: &CstObject, server: Server<'_>) -> bool {
    let command =
        object.object_value(server.name).and_then(|entry| entry.get("command")?.value()?.as_string_lit()?.decoded_value().ok());
    command.as_deref() == Some(server.command)
}
