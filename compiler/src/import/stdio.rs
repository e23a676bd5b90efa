//! Makes an `mcp_stdio` upstream of an entry with a command.

use std::ops::Range;

use super::Context;
use super::entry::{Draft, Entry, Refusal, refuse};
use super::keys::Raw;
use super::secrets::{self, owned_name};
use super::text::{Part, parts};
use crate::config::packages;
use crate::config::placeholder::is_variable;
use crate::diag::{Code, quoted};
use crate::json::Json;
use crate::tree::{Node, Tree};

/// Variables that every child process gets.
const INHERITED: &[&str] = &["PATH", "HOME", "USER", "LANG", "TMPDIR", "TERM", "SHELL"];
/// File extensions of scripts, which are arguments of their interpreter.
const SCRIPTS: &[&str] = &[".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar", ".rb"];

/// Programs whose argument after `-c` is a command line.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash"];

/// A part of a word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Variable(String),
}

type Word = Vec<Piece>;

/// A value with its placeholders resolved, as far as they can be.
pub(super) struct Resolved {
    pub(super) pieces: Vec<Piece>,
    pub(super) comments: Vec<String>,
}

/// Reads the entry.
pub(super) fn read(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, draft: &mut Draft) -> Result<(), Refusal> {
    let Some(command) = raw.command.as_ref() else {
        return refuse(
            "it has neither a command nor a URL",
            "an extension of the client may have them; add the server by its own command",
        );
    };
    let Some(text) = command.node.as_str().map(str::trim).filter(|text| !text.is_empty()) else {
        return refuse("its command is empty or not a text", "");
    };
    draft.add("transport", Json::string("mcp_stdio"));
    let mut comments = Vec::new();
    let mut env = Env::default();
    let mut words = words(context, entry, raw, text, &mut env, &mut comments)?;
    if words.first().is_none_or(|first| plain(first).as_deref() == Some("")) {
        return refuse("its command is empty", "");
    }
    pin(context, entry, raw, &mut words, &mut comments);
    read_env(context, entry, raw, &mut env)?;
    let folder = working_directory(context, raw, &mut words, &mut comments);
    let (command, args) = command_line(&words, &mut env, &mut comments);
    draft.with("command", Json::String(command), comments);
    if !args.is_empty() {
        draft.add("args", Json::Array(args.into_iter().map(Json::String).collect()));
    }
    if !env.set.is_empty() {
        draft.with("env", Json::Object(env.set), env.comments);
    }
    if !env.inherited.is_empty() {
        draft.add("inherit_env", Json::Array(env.inherited.into_iter().map(Json::String).collect()));
    }
    if let Some((folder, comments)) = folder {
        draft.with("cd", Json::String(folder), comments);
    }
    Ok(())
}

#[derive(Default)]
struct Env {
    set: Vec<(String, Json)>,
    inherited: Vec<String>,
    comments: Vec<String>,
}

impl Env {
    fn set(&mut self, name: &str, value: String) {
        if !self.set.iter().any(|(known, _)| known == name) {
            self.set.push((name.to_owned(), Json::String(value)));
        }
    }
}

/// Returns the words of the command line.
fn words(
    context: &mut Context<'_>,
    entry: &Entry,
    raw: &Raw<'_>,
    command: &str,
    env: &mut Env,
    comments: &mut Vec<String>,
) -> Result<Vec<Word>, Refusal> {
    let mut texts: Vec<(String, Range<u32>)> = Vec::new();
    let range = raw.command.as_ref().map_or(entry.place.clone(), |given| given.node.range.clone());
    let split: Vec<&str> = command.split_whitespace().collect();
    let is_line = raw.args.is_empty() && split.len() > 1 && split.first().is_some_and(|first| !first.contains(['/', '\\']));
    if is_line {
        comments.push("the client has the whole command line in `command`; its words are separate here".to_owned());
        texts.extend(split.iter().map(|word| ((*word).to_owned(), range.clone())));
    } else {
        texts.push((command.to_owned(), range));
    }
    for arg in &raw.args {
        match &arg.value {
            Tree::String(text) | Tree::Number(text) => texts.push((text.to_string(), arg.range.clone())),
            Tree::Bool(value) => texts.push((value.to_string(), arg.range.clone())),
            Tree::Null => {}
            _ => return refuse("an argument is neither a text nor a number", ""),
        }
    }
    without_cmd(&mut texts, comments);
    docker_variables(context, entry, &mut texts, env);
    let mut words = Vec::new();
    let mut before = String::new();
    let program = texts.first().map(|(text, _)| text.rsplit('/').next().unwrap_or(text).to_owned()).unwrap_or_default();
    for (at, (text, range)) in texts.into_iter().enumerate() {
        if before.starts_with('-') && before.ends_with('c') && SHELLS.contains(&program.as_str()) {
            words.push(vec![Piece::Text(shell_line(context, entry, &text, &range, env)?)]);
            before = text;
            continue;
        }
        let home = text.strip_prefix("~/").filter(|_| at == 0).map(|rest| format!("${{HOME}}/{rest}"));
        let resolved = resolve(context, entry, "", home.as_deref().unwrap_or(&text))?;
        comments.extend(resolved.comments);
        let option = if at == 0 { "" } else { before.as_str() };
        words.push(hide_secrets(context, entry, option, resolved.pieces, range, env));
        before = text;
    }
    Ok(words)
}

/// Replaces the secrets and placeholders of a line for a shell, which fills in variables itself.
fn shell_line(
    context: &mut Context<'_>,
    entry: &Entry,
    line: &str,
    range: &Range<u32>,
    env: &mut Env,
) -> Result<String, Refusal> {
    let mut words = Vec::new();
    let mut before = "";
    for word in line.split(' ') {
        let resolved = resolve(context, entry, "", word)?;
        let pieces = hide_secrets(context, entry, before, resolved.pieces, range.clone(), env);
        let texts = pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Variable(name) => {
                if !INHERITED.contains(&name.as_str()) {
                    env.set(&name, format!("${{{name}}}"));
                }
                format!("\"${name}\"")
            }
        });
        words.push(texts.collect::<String>());
        before = word;
    }
    Ok(words.join(" "))
}

/// Removes `cmd /c` before a command, which only Windows needs.
fn without_cmd(texts: &mut Vec<(String, Range<u32>)>, comments: &mut Vec<String>) {
    let is = |at: usize, names: &[&str]| {
        texts.get(at).is_some_and(|(text, _)| names.iter().any(|name| text.eq_ignore_ascii_case(name)))
    };
    if texts.len() > 2 && is(0, &["cmd", "cmd.exe"]) && is(1, &["/c"]) {
        texts.drain(..2);
        comments.push("without `cmd /c`, which only Windows needs".to_owned());
    }
}

/// Replaces `-e NAME=secret` of a container runtime by `-e NAME`, and sets the variable for it.
fn docker_variables(context: &mut Context<'_>, entry: &Entry, texts: &mut [(String, Range<u32>)], env: &mut Env) {
    let program = texts.first().map(|(text, _)| text.rsplit('/').next().unwrap_or(text).to_owned()).unwrap_or_default();
    if !matches!(program.as_str(), "docker" | "podman" | "nerdctl") {
        return;
    }
    let mut before = String::new();
    for (text, range) in texts.iter_mut() {
        if matches!(before.as_str(), "-e" | "--env")
            && let Some((name, value)) = text.clone().split_once('=')
            && is_variable(name)
        {
            let is_reference = parts(value).iter().any(|part| !matches!(part, Part::Text(_)));
            if is_reference || secrets::is_secret(name, value) {
                if let Ok((value, comments)) = env_value(context, entry, name, value, range.clone()) {
                    env.set(name, value);
                    env.comments.extend(comments);
                    name.clone_into(text);
                }
            }
        }
        before.clone_from(text);
    }
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
fn hide_secrets(context: &mut Context<'_>, entry: &Entry, before: &str, word: Word, range: Range<u32>, env: &mut Env) -> Word {
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
            env.comments.push(format!("{} replaces a secret in the arguments of the file", quoted(&name)));
            if !start.is_empty() {
                hidden.push(Piece::Text(start));
            }
            hidden.push(Piece::Variable(name));
            text = text.get(found.range.end..).unwrap_or_default().to_owned();
            before = "";
        }
        if !text.is_empty() || hidden.is_empty() {
            hidden.push(Piece::Text(text));
        }
    }
    hidden
}

/// Gives a package without a fixed version the version that is on this machine, or reports it.
fn pin(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, words: &mut [Word], comments: &mut Vec<String>) {
    // A word with a variable is no package.
    let texts: Vec<String> = words.iter().map(|word| plain(word).unwrap_or_else(|| "$".to_owned())).collect();
    let Some((command, args)) = texts.split_first() else { return };
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(unpinned) = packages::unpinned(command, &args) else { return };
    let installed = context.machine.version(unpinned.name, unpinned.is_npm, context.project.as_deref());
    if let (Some(installed), Some(word)) = (&installed, words.get_mut(unpinned.index + 1)) {
        let arg = args.get(unpinned.index).copied().unwrap_or_default();
        *word = vec![Piece::Text(unpinned.pin(arg, &installed.version))];
        comments.push(format!(
            "{} has no fixed version in the file; {} is {}",
            quoted(unpinned.name),
            installed.version,
            installed.whereabouts
        ));
        return;
    }
    let range = raw.args.get(unpinned.index).map_or(entry.place.clone(), |arg| arg.range.clone());
    let message = format!("{} has no fixed version, and none is on this machine", quoted(unpinned.name));
    let example = unpinned.pin(unpinned.written, "1.2.3");
    let look = if unpinned.is_npm { "npm view NAME version" } else { "uvx NAME --version" };
    let hint = format!(
        "write the version in the result, such as `{example}`; `{}` shows the newest",
        look.replace("NAME", unpinned.name)
    );
    context.report(Code::UnpinnedPackage, range, message, &hint);
    comments.push(format!("{} needs a fixed version, such as `{example}`", quoted(unpinned.name)));
}

fn read_env(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, env: &mut Env) -> Result<(), Refusal> {
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
        } else if context.client.client == crate::clients::Client::Goose || ptc_secrets::heuristics::names_a_secret(name) {
            env.set(name, format!("${{{name}}}"));
            env.comments.push(format!(
                "{} is kept by {} itself; set the variable where the server starts",
                quoted(name),
                context.client.label
            ));
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
    if crate::config::placeholder::is_faulty(&value) {
        return refuse("it has `${` without a variable", "write the value in the result");
    }
    Ok((value, comments))
}

/// Sets the variables that a file names. Their values stay there.
fn env_file(context: &mut Context<'_>, entry: &Entry, given: &super::keys::Given<'_>, env: &mut Env) -> Result<(), Refusal> {
    let text = given.node.as_str().unwrap_or_default();
    let path = resolve(context, entry, "", text)?;
    let path = plain(&path.pieces).unwrap_or_default();
    let project = context.project.clone().unwrap_or_default();
    let path = if path.starts_with('/') || project.is_empty() { path } else { join(&project, &path) };
    match context.machine.variables(&path) {
        Some(names) => {
            for name in names.iter().filter(|name| is_variable(name)) {
                env.set(name, format!("${{{name}}}"));
            }
            env.comments.push(format!("the variables of {} are named; load the file where the server starts", quoted(text)));
        }
        None => {
            let message = format!("{} is not carried over: {} cannot be read", quoted(&given.key), quoted(text));
            let hint = "name its variables in `env`, each as `${NAME}`, and load the file where the server starts";
            context.report(Code::SettingLeftOut, given.key_range.clone(), message, hint);
        }
    }
    Ok(())
}

/// Returns the value of `cd`, with comments. Makes a relative command absolute if the result is in another folder.
fn working_directory(
    context: &mut Context<'_>,
    raw: &Raw<'_>,
    words: &mut [Word],
    comments: &mut Vec<String>,
) -> Option<(String, Vec<String>)> {
    let project = context.project.clone();
    let is_here = project.is_some() && project == context.options.folder;
    if let Some(Piece::Text(command)) = words.first_mut().and_then(|word| word.first_mut())
        && command.contains('/')
        && !command.starts_with('/')
        && !is_here
        && let Some(project) = &project
    {
        *command = join(project, command);
        comments.push("the path of the command was relative to the project".to_owned());
    }
    if let Some(given) = &raw.cwd {
        let text = given.node.as_str().unwrap_or_default();
        let parts = parts(text);
        let is_known = parts.iter().all(|part| matches!(part, Part::Text(_) | Part::Folder)) && !text.starts_with('~');
        if is_known && !text.is_empty() {
            let folder: String = parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => text.clone(),
                    _ => project.clone().unwrap_or_else(|| ".".to_owned()),
                })
                .collect();
            return Some(match &project {
                Some(project) if folder == *project && is_here => (".".to_owned(), Vec::new()),
                Some(project) if !folder.starts_with('/') && !is_here => {
                    (join(project, &folder), vec!["relative to the project in the file".to_owned()])
                }
                _ => (folder, Vec::new()),
            });
        }
        let message = format!("{} is not carried over: it is not a path", quoted(&given.key));
        context.report(Code::SettingLeftOut, given.key_range.clone(), message, "write the path as `cd` of the upstream");
        return None;
    }
    let is_relative = |word: &Word| {
        plain(word).is_some_and(|text| {
            let is_script =
                SCRIPTS.iter().any(|end| text.ends_with(end)) && !text.contains([':', '@']) && !text.starts_with(['/', '~', '-']);
            text == "." || text.starts_with("./") || text.starts_with("../") || is_script
        })
    };
    let project = project?;
    words.iter().skip(1).any(is_relative).then(|| {
        let folder = if is_here { ".".to_owned() } else { project };
        (folder, vec!["the client starts it in the folder of the project, where its arguments are".to_owned()])
    })
}

/// Returns the command and its arguments. Words with variables need a shell, since `args` are passed as they are.
fn command_line(words: &[Word], env: &mut Env, comments: &mut Vec<String>) -> (String, Vec<String>) {
    let texts: Option<Vec<String>> = words.iter().map(plain).collect();
    if let Some(texts) = texts {
        let mut texts = texts.into_iter();
        return (texts.next().unwrap_or_default(), texts.collect());
    }
    for piece in words.iter().flatten() {
        if let Piece::Variable(name) = piece
            && !INHERITED.contains(&name.as_str())
        {
            env.set(name, format!("${{{name}}}"));
        }
    }
    comments.push("a shell fills in the variables, since `args` are passed unchanged".to_owned());
    let line: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    ("sh".to_owned(), vec!["-c".to_owned(), format!("exec {}", line.join(" "))])
}

fn shell_word(word: &Word) -> String {
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

/// Joins a folder and a relative path, without `./`.
fn join(folder: &str, path: &str) -> String {
    format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches("./"))
}
