//! Reads the entries of `mcp_stdio`: child processes.

use std::collections::BTreeMap;

use ptc_catalog::RESERVED_PREFIX;
use ptc_secrets::heuristics;

use super::credentials::Bindings;
use super::fields::{Fields, Subject};
use super::model::{InheritEnv, McpStdio, Sandbox};
use super::placeholder::{self, Fault};
use super::reader::ConfigReader;
use super::{http, keys, packages};
use crate::diag::{Code, Diagnostic, quoted};
use crate::tree::{Node, Tree};

/// Reads the keys that only an `mcp_stdio` entry has.
pub(super) fn read(reader: &mut ConfigReader<'_>, fields: &Fields<'_>, bindings: &Bindings) -> Option<McpStdio> {
    for node in [fields.node("command"), fields.node("cd")].into_iter().flatten().chain(fields.nodes("args")) {
        check_nul(reader, node);
    }
    warn_of_line(reader, fields);
    let (mut env, mut env_places) = (BTreeMap::new(), BTreeMap::new());
    for member in fields.members("env") {
        check_variable(reader, &member.key, reader.key_place(member));
        check_nul(reader, &member.value);
        match placeholder::split(member.value.as_str().unwrap_or("")) {
            Ok(parts) => {
                env.insert(member.key.to_string(), parts);
                env_places.insert(member.key.to_string(), member.value.place(reader.file));
            }
            Err(fault) => bad_placeholder(reader, &member.value, &fault),
        }
    }
    for node in fields.nodes("inherit_env") {
        placeholder::check_variable(reader, node.as_str().unwrap_or(""), node.place(reader.file));
        check_inherited(reader, node, bindings);
    }
    if let Some(node) = fields.node("inherit_env").filter(|node| node.as_bool() == Some(true)) {
        let message = "`inherit_env: true` gives the child every variable of the server's environment";
        let hint = "name the variables that the child needs: \"inherit_env\": [\"CARGO_HOME\"]; secrets of other programs may be among the rest";
        reader.fault(Code::InheritsEverything, node, message, "all but settings of the server and credentials", hint);
    }
    packages::warn(reader, fields);
    Some(McpStdio {
        command: fields.spanned(reader, "command")?,
        args: fields.texts("args"),
        env,
        env_places,
        inherit_env: match fields.node("inherit_env").map(|node| &node.value) {
            Some(Tree::Bool(true)) => InheritEnv::All,
            Some(Tree::Array(_)) => InheritEnv::Names(fields.texts("inherit_env")),
            _ => InheritEnv::Base,
        },
        cd: fields.spanned(reader, "cd"),
        sandbox: sandbox(reader, fields),
        handshake_timeout_ms: fields.number("handshake_timeout_ms"),
        idle_timeout_ms: fields.optional_number("idle_timeout_ms"),
        max_response_bytes: fields.number("max_response_bytes"),
        max_concurrent_calls: fields.number("max_concurrent_calls"),
        listing: http::listing_limits(fields),
    })
}

fn sandbox(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) -> Option<Sandbox> {
    let member = fields.member("sandbox")?;
    let subject = Subject { name: "`sandbox`".to_owned(), place: reader.key_place(member) };
    let fields = Fields::read(reader, &subject, &keys::SANDBOX, &[], &member.value)?;
    for node in fields.nodes("read").iter().chain(fields.nodes("write")) {
        check_nul(reader, node);
    }
    Some(Sandbox {
        read: fields.spanned_texts(reader, "read").unwrap_or_default(),
        write: fields.spanned_texts(reader, "write").unwrap_or_default(),
        network: fields.flag("network"),
        memory_mb: fields.optional_number("memory_mb"),
        processes: fields.optional_number("processes"),
        open_files: fields.optional_number("open_files"),
        cpu_seconds: fields.optional_number("cpu_seconds"),
    })
}

/// Warns if `command` contains a whole command line, since no shell splits it. A path may contain blanks, but the name of a
/// program never does, and a path does not go on with a flag.
fn warn_of_line(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) {
    let Some(node) = fields.node("command") else { return };
    let line = node.as_str().unwrap_or_default().trim();
    let Some((program, rest)) = split_program(line) else { return };
    // The arguments may contain a secret. They are left out of the message, and if they look like a secret they are also masked
    // in the excerpt.
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.windows(2).any(|pair| matches!(pair, [before, word] if heuristics::scan_argument(before, word).is_some())) {
        reader.mask(node);
    }
    let count = rest.split_whitespace().count();
    let what = if count == 1 { "an argument".to_owned() } else { format!("{count} arguments") };
    let message = format!("`command` is the name of one program, and this one goes on with {what}");
    let hint = format!("write \"command\": \"{program}\", and the rest as \"args\", each in quotes of its own");
    reader.fault(Code::CommandLine, node, message, "looked up as one name", &hint);
}

/// Splits a command line after its program. `None` if it may be the path of a program.
fn split_program(line: &str) -> Option<(&str, &str)> {
    let (program, rest) = line.split_once(' ')?;
    if program.contains(['/', '\\']) {
        line.split_once(" -")
            .filter(|(_, flag)| flag.starts_with(|c: char| c == '-' || c.is_alphanumeric()))
            .map(|(program, _)| line.split_at(program.len()))
    } else {
        Some((program, rest))
    }
}

fn check_variable(reader: &mut ConfigReader<'_>, name: &str, place: crate::source::Span) {
    if name.is_empty() || name.contains(['=', '\0']) {
        let message = format!("{} cannot be the name of an environment variable", quoted(name));
        let label = if name.is_empty() { "empty" } else { "has `=` or a NUL character" };
        reader.report(Diagnostic::new(Code::BadVariableName, message).at(place, label));
    }
}

/// Reports variables in `inherit_env` that no child inherits: settings of the server and credentials. A child gets them only by
/// `env`.
fn check_inherited(reader: &mut ConfigReader<'_>, node: &Node, bindings: &Bindings) {
    let name = node.as_str().unwrap_or_default();
    let (what, label) = if name.starts_with(RESERVED_PREFIX) {
        ("is a setting of the server, which no child inherits".to_owned(), "the server's own")
    } else if let Some(binding) = bindings.of_variable(name) {
        (format!("holds the credential {}, which no child inherits", quoted(binding)), "a credential")
    } else {
        return;
    };
    let hint = format!("if the child needs it, give it: \"env\": {{ \"{name}\": \"${{{name}}}\" }}");
    let message = format!("the variable {} {what}", quoted(name));
    reader.fault(Code::WithheldVariable, node, message, label, &hint);
}

fn check_nul(reader: &mut ConfigReader<'_>, node: &Node) {
    if node.as_str().is_some_and(|text| text.contains('\0')) {
        let message = "a process cannot be given a NUL character";
        reader.fault(Code::NulCharacter, node, message, "holds U+0000", "remove `\\u0000`");
    }
}

/// Reports a faulty placeholder. Its text may be a secret, so the message does not contain it.
fn bad_placeholder(reader: &mut ConfigReader<'_>, node: &Node, fault: &Fault) {
    let (message, hint) = match fault {
        Fault::Unclosed => ("`${` is not closed", "close it with `}`: `${VAR}`"),
        Fault::Name(name) if name.contains([':', '-', '+', '?']) => (
            "a placeholder with more in it than the name of a variable",
            "defaults and other forms of the shell are not known here; only `${VAR}` is",
        ),
        Fault::Name(_) => (
            "a placeholder with something else in it than the name of a variable",
            "names are letters, digits and `_`, and start with no digit",
        ),
    };
    reader.fault(Code::BadPlaceholder, node, message, "", hint);
}
