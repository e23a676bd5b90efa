//! Which texts of a tool are indexed.

use ptc_catalog::{Catalog, Tool, Upstream};

use crate::build::{Builder, Field};

/// Maximum bytes of a tool's prose, of one note on an argument or on a field of the result, and of all notes together. Later
/// sentences usually describe special cases.
const MAX_PROSE: usize = 400;
const MAX_NOTE: usize = 200;
const MAX_NOTES: usize = 1_500;

/// Builds the index over all tools of a catalog, in the catalog's order.
pub fn index_of(catalog: &Catalog) -> Vec<u8> {
    let mut builder = Builder::new();
    for upstream in catalog.upstreams {
        for tool in upstream.tools {
            add(&mut builder, upstream, tool);
        }
    }
    builder.finish()
}

fn add(builder: &mut Builder, upstream: &Upstream, tool: &Tool) {
    builder.document(Some(upstream.name), tool.name);
    builder.add(Field::GroupDescription, upstream.description);
    // The lines of `doc` are the reference, prose, labelled facts, and indented notes.
    let mut lines = tool.doc.lines().skip(1).peekable();
    let prose = lines.next_if(|line| !line.starts_with("args: ")).unwrap_or(tool.description);
    builder.add(Field::Description, start(prose, MAX_PROSE));
    if let Some(operation) = tool.operation {
        builder.add(Field::ArgumentTexts, operation.path);
    }
    for arg in tool.args {
        builder.add(Field::Arguments, arg.name);
    }
    let mut room = MAX_NOTES;
    for note in lines.filter_map(|line| line.strip_prefix("  ")?.split_once(" - ")) {
        let note = start(note.1, MAX_NOTE.min(room));
        room -= note.len();
        builder.add(Field::ArgumentTexts, note);
    }
    for values in tool.args.iter().map(|arg| arg.allowed).filter(|values| !values.is_empty()) {
        let values = start(values, MAX_NOTE.min(room));
        room -= values.len();
        builder.add(Field::ArgumentTexts, values);
    }
    let effects = tool.annotations;
    for (said, word) in [
        (effects.read_only, "readonly"),
        (effects.destructive, "destructive"),
        (effects.idempotent, "idempotent"),
        (effects.open_world, "openworld"),
    ] {
        if said == Some(true) {
            builder.add(Field::ArgumentTexts, word);
        }
    }
}

/// Returns the longest prefix of a text that has at most `bytes` bytes and ends at a character boundary.
fn start(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}
