//! Edits TOML with `toml_edit`.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{Error, Server, line_of, members, section};
use crate::clients::Client;

pub(super) fn add(client: Client, text: &str, server: Server<'_>) -> Result<String, Error> {
    let mut document = parse(text)?;
    // Without a line break at the end, the header of a table would be on the last line.
    let ends_in_line = !text.is_empty() && !text.ends_with('\n');
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in section(client) {
        if table.get(key).is_none() {
            let mut section = Table::new();
            section.set_implicit(true);
            table.insert(key, Item::Table(section));
        }
        let item = table.get_mut(key).ok_or(Error::NotThere)?;
        table = item.as_table_like_mut().ok_or_else(|| Error::NotAnObject((*key).to_owned()))?;
    }
    if let Some(entry) = table.get(server.name) {
        return Err(if is_ours(entry, server) { Error::Unchanged } else { Error::Taken });
    }
    let members = members(client, server).into_iter().map(|(key, value)| (key, Value::from(value)));
    let members = members.chain([("args", Value::from(Array::new()))]);
    let entry = if table.is_dotted() {
        let mut entry = InlineTable::new();
        members.for_each(|(key, value)| {
            entry.insert(key, value);
        });
        Item::Value(Value::InlineTable(entry))
    } else {
        let mut entry = Table::new();
        members.for_each(|(key, value)| {
            entry.insert(key, Item::Value(value));
        });
        if ends_in_line {
            entry.decor_mut().set_prefix("\n\n");
        } else if !text.is_empty() {
            entry.decor_mut().set_prefix("\n");
        }
        Item::Table(entry)
    };
    table.insert(server.name, entry);
    Ok(document.to_string())
}

pub(super) fn remove(client: Client, text: &str, server: Server<'_>) -> Result<String, Error> {
    let mut document = parse(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in section(client) {
        let item = table.get_mut(key).ok_or(Error::NotThere)?;
        table = item.as_table_like_mut().ok_or(Error::NotThere)?;
    }
    let entry = table.get(server.name).ok_or(Error::NotThere)?;
    if !is_ours(entry, server) {
        return Err(Error::Taken);
    }
    table.remove(server.name);
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, Error> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let line = line_of(text, error.span().unwrap_or_default().start);
        Error::Syntax(error.message().lines().next().unwrap_or_default().to_owned(), line)
    })
}

/// Whether an entry starts the server's program.
fn is_ours(entry: &Item, server: Server<'_>) -> bool {
    entry.as_table_like().and_then(|entry| entry.get("command")).and_then(Item::as_str) == Some(server.command)
}
