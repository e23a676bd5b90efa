//! What of a tool is searched.

use ptc_catalog::{Catalog, Tool, Upstream};

use crate::build::{Builder, Field};

/// Bytes of the prose of a tool, of one note on an argument or on a field of the result, and of all notes together: later sentences are about special cases.
const MAX_PROSE: usize = 400;
const MAX_NOTE: usize = 200;
const MAX_NOTES: usize = 1_500;

/// The index over all tools of a catalog, in its order.
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
    // The text of `doc`: the reference, prose, facts with a label each, and notes, which are indented.
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

/// The first bytes of a text, up to a whole character.
fn start(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}
