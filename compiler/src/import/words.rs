//! The words of a command line, with variables in the place of placeholders and secrets.

use std::ops::Range;

use super::Context;
use super::draft::Env;
use super::draft::{Entry, Refusal, refuse};
use super::secrets::{self, owned_name};
use super::text::{Part, parts};
use crate::diag::{Code, quoted};
use crate::tree::Node;

/// A part of a word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Variable(String),
}

/// A word.
pub(super) type Word = Vec<Piece>;

/// A value with its placeholders resolved, as far as they can be.
pub(super) struct Resolved {
    pub(super) pieces: Vec<Piece>,
    pub(super) comments: Vec<String>,
}

/// Replaces the placeholders of a value.
///
/// # Errors
///
/// A [`Refusal`] if a placeholder has no value outside of the client.
pub(super) fn resolve(context: &mut Context<'_>, entry: &Entry, wanted: &str, value: &str) -> Result<Resolved, Refusal> {
    let mut resolved = Resolved { pieces: Vec::new(), comments: Vec::new() };
    for part in parts(value) {
        let piece = match part {
            Part::Text(text) => Piece::Text(text),
            Part::Variable(name, None) => Piece::Variable(name),
            Part::Variable(name, Some(default)) if secrets::is_secret(&name, &default) || secrets::is_secret("", &default) => {
                resolved
                    .comments
                    .push(format!("{} has a default in the file, which looks like a secret and is left out", quoted(&name)));
                Piece::Variable(name)
            }
            Part::Variable(name, Some(default)) => {
                resolved.comments.push(format!(
                    "the default of the variable {} is written here: a value with a default cannot be read from a variable",
                    quoted(&name)
                ));
                Piece::Text(default)
            }
            Part::Input(id) => {
                let input = context.inputs.iter().find(|input| input.get("id").and_then(Node::as_str) == Some(&id));
                let asked = input.and_then(|input| input.get("description")).and_then(Node::as_str).map(str::to_owned);
                let wanted = if wanted.is_empty() { id.as_str() } else { wanted };
                let name = context.variables.replacing_input(&id, wanted, &entry.name);
                let asked =
                    asked.filter(|text| !secrets::is_secret("", text)).map(|text| format!(": {text}")).unwrap_or_default();
                resolved.comments.push(format!("the variable {} replaces the input {}{asked}", quoted(&name), quoted(&id)));
                Piece::Variable(name)
            }
            Part::Folder => {
                let folder = context.project.clone();
                let Some(folder) = folder else {
                    return refuse(
                        "it refers to the folder of a project, and the config belongs to none",
                        "write the path instead, and import it again",
                    );
                };
                resolved.comments.push("the folder of the project is written here".to_owned());
                Piece::Text(folder)
            }
            Part::File(_) | Part::Unknown(_) => {
                return refuse(
                    "it has a placeholder that only the client can replace",
                    "write the value instead, or `${NAME}` with a variable, and import it again",
                );
            }
        };
        match (resolved.pieces.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (_, piece) => resolved.pieces.push(piece),
        }
    }
    Ok(resolved)
}

/// Replaces the secrets in a word by variables.
pub(super) fn hide_secrets(
    context: &mut Context<'_>,
    entry: &Entry,
    before: &str,
    word: Word,
    range: Range<u32>,
    env: &mut Env,
) -> Word {
    let mut hidden = Vec::new();
    for piece in word {
        let Piece::Text(mut text) = piece else {
            hidden.push(piece);
            continue;
        };
        let mut before = before;
        while let Some(found) = secrets::in_argument(before, &text) {
            let secret = text.get(found.range.clone()).unwrap_or_default().to_owned();
            let start = text.get(..found.range.start).unwrap_or_default().to_owned();
            let option = if start.trim().is_empty() { before } else { start.as_str() };
            let option = option.rsplit([' ', '?', '&']).find(|part| !part.is_empty()).unwrap_or_default();
            let option = if option.contains("://") { "password" } else { option };
            let wanted = owned_name(&entry.name, option);
            let name = context.variables.replacing(&wanted, &entry.name, &secret);
            let message =
                format!("a secret in the arguments of {} is read from the variable {}", quoted(&entry.name), quoted(&name));
            context.report(Code::SecretReplaced, range.clone(), message, "set the variable where the server starts");
            env.comments.push(format!("{} replaces a secret in the arguments", quoted(&name)));
            if !start.is_empty() {
                hidden.push(Piece::Text(start));
            }
            hidden.push(Piece::Variable(name));
            text.drain(..found.range.end);
            before = "";
        }
        if !text.is_empty() || hidden.is_empty() {
            hidden.push(Piece::Text(text));
        }
    }
    hidden
}

/// Returns a word as a shell reads it.
pub(super) fn shell_word(word: &Word) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    word.iter()
        .map(|piece| match piece {
            Piece::Variable(name) => format!("\"${name}\""),
            Piece::Text(text) if !text.is_empty() && text.chars().all(is_safe) => text.clone(),
            Piece::Text(text) => format!("'{}'", text.replace('\'', "'\\''")),
        })
        .collect()
}

/// Returns the text of a word without variables.
pub(super) fn plain(word: &Word) -> Option<String> {
    word.iter()
        .map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Variable(_) => None,
        })
        .collect()
}
