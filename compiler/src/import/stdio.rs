//! Makes an `mcp_stdio` upstream of an entry with a command.

use std::ops::Range;

use super::Context;
use super::draft::{Draft, Entry, Env, Refusal, refuse};
use super::env;
use super::keys::Raw;
use super::text::{Part, parts};
use super::words::{Piece, Word, hide_secrets, plain, resolve, shell_word};
use crate::config::packages;
use crate::diag::{Code, quoted};
use crate::json::Json;
use crate::tree::Tree;

/// Variables that every child process gets.
const INHERITED: &[&str] = &["PATH", "HOME", "USER", "LANG", "TMPDIR", "TERM", "SHELL"];
/// File extensions of scripts, which are arguments of their interpreter.
const SCRIPTS: &[&str] = &[".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar", ".rb"];

/// Programs whose argument after `-c` is a command line.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash"];

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
    env::read(context, entry, raw, &mut env)?;
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
    env::docker_variables(context, entry, &mut texts, env);
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

/// Gives a package without a fixed version the version that is on this machine, or reports it.
fn pin(context: &mut Context<'_>, entry: &Entry, raw: &Raw<'_>, words: &mut [Word], comments: &mut Vec<String>) {
    // A word with a variable cannot be a package.
    let texts: Vec<String> = words.iter().map(|word| plain(word).unwrap_or_else(|| "$".to_owned())).collect();
    let Some((command, args)) = texts.split_first() else { return };
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(unpinned) = packages::unpinned(command, &args) else { return };
    let installed = context.machine.version(unpinned.name, unpinned.is_npm, context.project.as_deref());
    if let (Some(installed), Some(word)) = (&installed, words.get_mut(unpinned.index + 1)) {
        let arg = args.get(unpinned.index).copied().unwrap_or_default();
        *word = vec![Piece::Text(unpinned.pin(arg, &installed.version))];
        comments.push(format!(
            "{} was named without a version; {} is {}",
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
        (folder, vec!["it starts in the folder of the project, where its arguments are".to_owned()])
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
    let line: Vec<String> = words.iter().map(shell_word).collect();
    ("sh".to_owned(), vec!["-c".to_owned(), format!("exec {}", line.join(" "))])
}

/// Joins a folder and a relative path, without `./`.
fn join(folder: &str, path: &str) -> String {
    format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches("./"))
}
