//! The environment variables of a child process.

use std::ops::Range;

use super::Context;
use super::draft::{Entry, Env, Refusal, refuse};
use super::keys::{Raw, Setting};
use super::secrets;
use super::text::{Part, parts};
use super::words::{Piece, Resolved, plain, resolve};
use crate::clients::Client;
use crate::config::placeholder::{is_faulty, is_variable};
use crate::diag::{Code, quoted};
use crate::tree::{Node, Tree};

/// Replaces `-e NAME=secret` of a container runtime by `-e NAME`, and sets the variable for it.
pub(super) fn docker_variables(context: &mut Context<'_>, entry: &Entry, texts: &mut [(String, Range<u32>)], env: &mut Env) {
    let program = texts.first().map(|(text, _)| text.rsplit('/').next().unwrap_or(text).to_owned()).unwrap_or_default();
    if !matches!(program.as_str(), "docker" | "podman" | "nerdctl") {
        return;
    }
    let mut before = String::new();
    for (text, range) in texts.iter_mut() {
        if matches!(before.as_str(), "-e" | "--env")
            && let Some((name, value)) = text.clone().split_once('=')
            && is_variable(name)
            && (parts(value).iter().any(|part| !matches!(part, Part::Text(_))) || secrets::is_secret(name, value))
            && let Ok((value, comments)) = env_value(context, entry, name, value, range.clone())
        {
            env.set(name, value);
            env.comments.extend(comments);
            name.clone_into(text);
        }
        before.clone_from(text);
    }
}

/// Reads the variables of an entry.
pub(super) fn read(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, env: &mut Env) -> Result<(), Refusal> {
    for member in &raw.env {
        let value = match &member.value.value {
            Tree::String(text) | Tree::Number(text) => text.to_string(),
            Tree::Bool(value) => value.to_string(),
            _ => {
                let message = format!("the variable {} is not carried over: its value is not a text", quoted(&member.key));
                context.report(Code::SettingLeftOut, member.key_range.clone(), message, "");
                continue;
            }
        };
        if member.key.is_empty() || member.key.contains(['=', '\0']) {
            let message = format!("{} is not carried over: it cannot be the name of a variable", quoted(&member.key));
            context.report(Code::SettingLeftOut, member.key_range.clone(), message, "");
            continue;
        }
        match env_value(context, entry, &member.key, &value, member.value.range.clone()) {
            Ok((value, comments)) => {
                env.set(&member.key, value);
                env.comments.extend(comments);
            }
            Err(refusal) => {
                let message = format!("the variable {} is not carried over: {}", quoted(&member.key), refusal.why);
                context.report(Code::SettingLeftOut, member.key_range.clone(), message, refusal.hint);
            }
        }
    }
    for node in &raw.env_names {
        let name = node.as_str().or_else(|| node.get("name").and_then(Node::as_str)).unwrap_or_default();
        if !is_variable(name) {
            let message = format!("{} is not carried over: it cannot be the name of a variable", quoted(name));
            context.report(Code::SettingLeftOut, node.range.clone(), message, "");
        } else if context.client.client == Client::Goose || ptc_secrets::heuristics::names_a_secret(name) {
            env.set(name, format!("${{{name}}}"));
            let label = context.client.label;
            env.comments.push(format!("{} comes from {label} itself; set the variable where the server starts", quoted(name)));
        } else if !env.inherited.iter().any(|known| known == name) {
            env.inherited.push(name.to_owned());
        }
    }
    if let Some(given) = &raw.env_file {
        env_file(context, entry, given, env)?;
    }
    Ok(())
}

/// Returns the value of a variable in the result.
fn env_value(
    context: &mut Context<'_>,
    entry: &Entry,
    name: &str,
    value: &str,
    range: Range<u32>,
) -> Result<(String, Vec<String>), Refusal> {
    let Resolved { pieces, mut comments } = resolve(context, entry, name, value)?;
    let is_secret = pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if secrets::is_secret(name, text)));
    if is_secret {
        let variable = context.variables.replacing(name, &entry.name, value);
        let message =
            format!("the secret {} of {} is read from the variable {}", quoted(name), quoted(&entry.name), quoted(&variable));
        context.report(Code::SecretReplaced, range, message, "set the variable where the server starts");
        comments.push(format!("the value of {} in the file is left out: set the variable {}", quoted(name), quoted(&variable)));
        return Ok((format!("${{{variable}}}"), comments));
    }
    let value = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable(name) => format!("${{{name}}}"),
    });
    let value: String = value.collect();
    // A bracket that is not closed would be an error in the result.
    if is_faulty(&value) {
        return refuse("it has `${` without a variable", "write the value in the result");
    }
    Ok((value, comments))
}

/// Sets the variables that a file names. Their values stay there.
fn env_file(context: &mut Context<'_>, entry: &Entry, given: &Setting<'_>, env: &mut Env) -> Result<(), Refusal> {
    let text = given.node.as_str().unwrap_or_default();
    let path = resolve(context, entry, "", text)?;
    let path = plain(&path.pieces).unwrap_or_default();
    let project = context.project.clone().unwrap_or_default();
    let path = if path.starts_with('/') || project.is_empty() {
        path
    } else {
        format!("{}/{}", project.trim_end_matches('/'), path.trim_start_matches("./"))
    };
    if let Some(names) = context.machine.variables(&path) {
        for name in names.iter().filter(|name| is_variable(name)) {
            env.set(name, format!("${{{name}}}"));
        }
        env.comments.push(format!("the variables of {} are named; load the file where the server starts", quoted(text)));
    } else {
        let message = format!("{} is not carried over: {} cannot be read", quoted(&given.key), quoted(text));
        let hint = "name its variables in `env`, each as `${NAME}`, and load the file where the server starts";
        context.report(Code::SettingLeftOut, given.key_range.clone(), message, hint);
    }
    Ok(())
}
