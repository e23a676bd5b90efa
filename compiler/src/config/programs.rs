//! Reads `programs`: programs of the deployment's owner that clients call as tools.

use super::fields::{Fields, Subject};
use super::keys;
use super::model::Program;
use super::reader::ConfigReader;
use crate::diag::{Code, Diagnostic, quoted};
use crate::json::Json;
use crate::tool_name;
use crate::tree::{Member, Node};

/// Maximum length of a name in characters, as MCP recommends for tools.
const MAX_NAME_LEN: usize = 64;

/// Prefix of the server's own tools.
const OWN: &str = "lisp_";

/// Reads one program. Returns `None` if it has errors.
pub(super) fn read(reader: &mut ConfigReader<'_>, member: &Member) -> Option<Program> {
    let before = reader.errors();
    let place = reader.key_place(member);
    check_name(reader, member);
    let subject = Subject { name: format!("program {}", quoted(&member.key)), place: place.clone() };
    let fields = Fields::read(reader, &subject, &keys::PROGRAM, &[], &member.value)?;
    let file = fields.spanned(reader, "file")?;
    let args = fields.node("args").map(|node| schema(reader, node, "args"));
    let output_schema = fields.node("output_schema").map(|node| schema(reader, node, "output_schema"));
    (reader.errors() == before).then(|| Program {
        place,
        file,
        description: fields
            .text("description")
            .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
            .unwrap_or_default(),
        args,
        output_schema,
        silence: fields.notes("silence"),
    })
}

fn check_name(reader: &mut ConfigReader<'_>, member: &Member) {
    let name: &str = &member.key;
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME_LEN {
        "it is longer than 64 characters"
    } else if !name.chars().all(tool_name::is_plain) {
        "it has characters other than letters, digits, `-`, `_` and `.`"
    } else if name.starts_with(OWN) {
        "names that begin with `lisp_` are those of the server's own tools"
    } else {
        return;
    };
    let message = format!("{} cannot be the name of a program: {reason}", quoted(name));
    let diagnostic = Diagnostic::new(Code::ProgramName, message)
        .at(reader.key_place(member), "")
        .hint("clients call the program by this name; something like `open-orders` says what it gives");
    reader.report(diagnostic);
}

/// Returns a schema unchanged. The schema of arguments must be one of an object, since clients send arguments as an object.
fn schema(reader: &mut ConfigReader<'_>, node: &Node, key: &str) -> crate::config::model::Spanned<Json> {
    let kind = node.get("type").and_then(Node::as_str);
    if key == "args" && kind != Some("object") {
        let hint = "write \"type\": \"object\" and describe each argument in \"properties\"";
        reader.fault(Code::WrongType, node, "`args` must be the schema of an object", "", hint);
    }
    crate::config::model::Spanned { value: Json::from(node), place: node.place(reader.file) }
}
