//! What the user says about the upstream: its kind, its name, its credentials.

use std::path::Path;

use ptc_compiler::config::{is_loopback, packages};
use ptc_compiler::diag::quoted;
use ptc_compiler::import::{Description, looks_like_a_secret};
use ptc_compiler::json::Json;
use url::{Host, Url};

use super::args::{Init, SentAs};
use super::prompt::{Prompts, Question};
use crate::Failure;
use crate::shared_args::web_address;

/// Time for the first start of a package, which may have to be downloaded.
const DOWNLOAD_MS: &str = "120000";
/// Words of the names of packages and hosts that say nothing about the server.
const COMMON_WORDS: &[&str] = &["mcp", "server", "api", "www", "openapi", "rest", "the", "service", "specification"];
/// Programs whose first argument is the script that they run.
const INTERPRETERS: &[&str] =
    &["node", "deno", "bun", "python", "python3", "ruby", "java", "sh", "bash", "uv", "cargo", "docker"];

/// How the upstream is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// An MCP server that this command line starts.
    Command(Vec<String>),
    /// An MCP server at this URL.
    Url(String),
    /// A service with this OpenAPI document: a file or a URL.
    OpenApi(String),
}

impl Kind {
    /// Whether the upstream is contacted: a document that is a file is only read.
    pub(super) fn is_contacted(&self) -> bool {
        !matches!(self, Kind::OpenApi(document) if web_address(document).is_err())
    }
}

/// The environment variable with a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credential {
    pub(super) variable: String,
    sent: SentAs,
}

/// Returns the kind of the upstream: from the options, or by asking.
pub(super) fn kind(args: &Init, prompts: &mut Prompts) -> Result<Kind, Failure> {
    if let Some(line) = &args.command {
        return words(line).map(Kind::Command).map_err(|why| Failure::new(format!("--command: {why}")));
    }
    if let Some(url) = &args.url {
        return Ok(Kind::Url(url.clone()));
    }
    if let Some(document) = &args.openapi {
        return Ok(Kind::OpenApi(document.clone()));
    }
    if !prompts.are_asked() {
        let failure = Failure::new("no upstream is given, and there is no terminal to ask");
        return Err(failure.hint("name it with `--command LINE`, `--url URL` or `--openapi DOCUMENT`"));
    }
    let text = "What is the upstream?\n  1  a command that starts an MCP server\n  2  the URL of an MCP server\n  \
                3  an OpenAPI document, a file or a URL\nKind";
    let question = Question { text, default: Some("1"), flag: "--command" };
    let number = prompts.ask(&question, |answer| match answer {
        "1" | "2" | "3" => Ok(answer.to_owned()),
        _ => Err("answer `1`, `2` or `3`".to_owned()),
    })?;
    match number.as_str() {
        "1" => command(prompts),
        "2" => prompts.ask(&Question { text: "URL", default: None, flag: "--url" }, web_address).map(Kind::Url),
        _ => {
            let question = Question { text: "Path or URL of the document", default: None, flag: "--openapi" };
            prompts.ask(&question, |answer| Ok(Kind::OpenApi(answer.to_owned())))
        }
    }
}

/// Asks for a command line.
pub(super) fn command(prompts: &mut Prompts) -> Result<Kind, Failure> {
    let question = Question {
        text: "The command line of the server, such as npx -y some-server@1.2.3\nCommand",
        default: None,
        flag: "--command",
    };
    prompts.ask(&question, words).map(Kind::Command)
}

/// Splits a command line as a shell does. No shell runs it, so that variables and pipes would have no effect.
fn words(line: &str) -> Result<Vec<String>, String> {
    let words = shlex::split(line).ok_or("a quotation mark or a backslash at the end is not closed")?;
    match words.first() {
        None => Err("the command line is empty".to_owned()),
        Some(first) if first.contains('=') && !first.contains('/') => Err(format!(
            "{} is not a program; add variables to `env` of the config, or start the program with `env`",
            quoted(first)
        )),
        _ if words.iter().any(|word| matches!(word.as_str(), "|" | "||" | "&&" | ";" | ">" | "<" | "&")) => {
            Err("no shell runs the command line; for pipes and lists of commands, write `sh -c '…'`".to_owned())
        }
        _ => Ok(words),
    }
}

/// Returns the variables with the credentials: from the options, or by asking. The values are not read here.
pub(super) fn credentials(args: &Init, kind: &Kind, prompts: &mut Prompts) -> Result<Vec<Credential>, Failure> {
    let is_command = matches!(kind, Kind::Command(_));
    let variables = if args.credential_env.is_empty() && prompts.are_asked() {
        let text = if is_command {
            "Environment variables with the credentials that it needs, such as GITHUB_TOKEN\nVariables (empty: none)"
        } else {
            "The environment variable with its credential, such as BOARDS_TOKEN\nVariable (empty: none)"
        };
        let names = |answer: &str| answer.split([',', ' ']).filter(|name| !name.is_empty()).map(variable).collect();
        prompts.ask(&Question { text, default: Some(""), flag: "--credential-env" }, names)?
    } else {
        let names: Result<Vec<String>, String> = args.credential_env.iter().map(|name| variable(name)).collect();
        names.map_err(|why| Failure::new(format!("--credential-env: {why}")))?
    };
    if !is_command && variables.len() > 1 {
        let failure = Failure::new("one credential can be sent, and several variables are named");
        return Err(failure.hint("add the others to `auth` of the config afterwards"));
    }
    let sent = match &args.credential_as {
        Some(sent) => sent.clone(),
        None if is_command || variables.is_empty() => SentAs::Bearer,
        None => {
            let text = "How the credential is sent: bearer, basic, header:NAME, query:NAME or cookie:NAME\nSent as";
            let question = Question { text, default: Some("bearer"), flag: "--credential-as" };
            prompts.ask(&question, str::parse)?
        }
    };
    Ok(variables.into_iter().map(|variable| Credential { variable, sent: sent.clone() }).collect())
}

/// Accepts the name of a variable. A secret that was typed by mistake is not repeated: a name with small letters, which a password can
/// be, is only accepted if there is such a variable.
fn variable(name: &str) -> Result<String, String> {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit());
    let is_usual = !name.contains(|c: char| c.is_ascii_lowercase()) || std::env::var_os(name).is_some();
    if !is_name || !is_usual || name.is_empty() || looks_like_a_secret(name) {
        return Err(
            "expected the name of an environment variable, such as BOARDS_TOKEN; the secret itself is never written, and a \
                    name with small letters must be that of a variable that is set"
                .to_owned(),
        );
    }
    Ok(name.to_owned())
}

/// Checks that the variables have values, which are needed to ask the upstream.
pub(super) fn check_set(credentials: &[Credential]) -> Result<(), Failure> {
    let is_set = |credential: &&Credential| std::env::var_os(&credential.variable).is_some_and(|value| !value.is_empty());
    match credentials.iter().find(|credential| !is_set(credential)) {
        None => Ok(()),
        Some(Credential { variable, .. }) => Err(Failure::new(format!("the variable `{variable}` is not set"))
            .hint("set it, since the upstream is asked with its credential; with `--offline` it is not asked")),
    }
}

/// Returns a name for an upstream, or nothing if nothing describes it. `title` is that of its document.
pub(super) fn proposed_name(kind: &Kind, title: Option<&str>) -> String {
    let words = match kind {
        Kind::Command(words) => named_after_command(words),
        Kind::Url(url) => named_after_host(url),
        Kind::OpenApi(document) => match title {
            Some(title) => title.to_owned(),
            None => document.rsplit(['/', '\\']).next().and_then(|file| file.split('.').next()).unwrap_or_default().to_owned(),
        },
    };
    let lower = words.to_lowercase();
    let words = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && !COMMON_WORDS.contains(word) && !word.starts_with(|c: char| c.is_ascii_digit()));
    let name = words.take(3).collect::<Vec<_>>().join("-");
    if name.is_empty() { "upstream".to_owned() } else { name }
}

fn named_after_command(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some((command, args)) = words.split_first() else { return String::new() };
    if let Some(found) = packages::unpinned(command, args).map(|package| package.name).or_else(|| {
        packages::fetched(command, args).map(|fetched| match fetched {
            packages::Fetched::Pinned(_, package) | packages::Fetched::Other(package) => package,
        })
    }) {
        // Scope, version and extras do not belong to the name.
        let plain = found.rsplit_once('/').map_or(found, |(_, plain)| plain);
        return plain.split(['@', '=', '[']).next().unwrap_or(plain).to_owned();
    }
    let file = |path: &str| path.rsplit('/').next().and_then(|file| file.split('.').next()).unwrap_or_default().to_owned();
    let program = file(command);
    if !INTERPRETERS.contains(&program.as_str()) {
        return program;
    }
    args.iter().find(|arg| !arg.starts_with('-')).map_or(program, |script| file(script))
}

fn named_after_host(url: &str) -> String {
    let url = Url::parse(url).ok();
    match url.as_ref().and_then(Url::host) {
        // The last label is the top-level domain.
        Some(Host::Domain(domain)) => {
            let labels: Vec<&str> = domain.split('.').collect();
            let own = labels.len().saturating_sub(1).max(1);
            labels.into_iter().take(own).collect::<Vec<_>>().join("-")
        }
        _ => String::new(),
    }
}

/// An OpenAPI service as the config has it.
#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) base_url: String,
    pub(super) include: Vec<String>,
    pub(super) allow_writes: bool,
}

/// Describes the upstream with the keys of a config. `here` is the folder in which relative paths start, `folder` that of the config.
pub(super) fn description(
    kind: &Kind,
    name: &str,
    credentials: &[Credential],
    service: Option<&Service>,
    here: Option<&Path>,
    folder: Option<&Path>,
) -> Description {
    let text = Json::String;
    let mut entry = Json::object();
    match kind {
        Kind::Command(words) => {
            let mut words = words.iter();
            entry.set("transport", Json::string("mcp_stdio"));
            entry.set("command", text(words.next().cloned().unwrap_or_default()));
            entry.set("args", Json::Array(words.map(|word| text(word.clone())).collect()));
            if !credentials.is_empty() {
                let env = credentials.iter().map(|one| (one.variable.clone(), text(format!("${{{}}}", one.variable))));
                entry.set("env", Json::Object(env.collect()));
            }
            if is_fetched(kind) {
                entry.set("handshake_timeout_ms", Json::Number(DOWNLOAD_MS.to_owned()));
            }
            return Description { name: name.to_owned(), entry, credentials: Vec::new(), folder: shown(here) };
        }
        Kind::Url(url) => {
            entry.set("transport", Json::string("mcp_http"));
            entry.set("url", text(url.clone()));
        }
        Kind::OpenApi(document) => {
            entry.set("transport", Json::string("openapi"));
            let base_url = service.map(|service| service.base_url.clone()).unwrap_or_default();
            let is_insecure = is_plain_http_here(&base_url);
            entry.set("base_url", text(base_url));
            let is_url = web_address(document).is_ok();
            let path = if is_url || here == folder { document.clone() } else { absolute(here, document) };
            entry.set(if is_url { "schema_url" } else { "schema_file" }, text(path));
            let include = service.map(|service| service.include.clone()).unwrap_or_default();
            entry.set("include_operations", Json::Array(include.into_iter().map(text).collect()));
            if service.is_some_and(|service| service.allow_writes) {
                entry.set("allow_writes", Json::Bool(true));
            }
            if is_insecure {
                entry.set("allow_insecure_http", Json::Bool(true));
            }
        }
    }
    let mut bindings = Vec::new();
    if let Some(Credential { variable, sent }) = credentials.first() {
        let binding = format!("{name}-{}", if *sent == SentAs::Basic { "user-password" } else { "token" });
        bindings.push((binding.clone(), Json::object().with("source", Json::string("env")).with("var", text(variable.clone()))));
        let scheme = match sent {
            SentAs::Bearer => Json::object().with("scheme", Json::string("bearer")).with("binding", text(binding)),
            SentAs::Basic => Json::object().with("scheme", Json::string("basic")).with("binding", text(binding)),
            SentAs::ApiKey(place, key) => Json::object()
                .with("scheme", Json::string("api_key"))
                .with("binding", text(binding))
                .with("in", Json::string(*place))
                .with("name", text(key.clone())),
        };
        entry.set("auth", Json::Array(vec![scheme]));
        let url = entry.get("url").or_else(|| entry.get("base_url")).and_then(Json::as_str).unwrap_or_default();
        if is_plain_http_here(url) {
            entry.set("allow_insecure_auth", Json::Bool(true));
        }
    }
    Description { name: name.to_owned(), entry, credentials: bindings, folder: shown(here) }
}

/// Whether the command fetches a package when it starts.
fn is_fetched(kind: &Kind) -> bool {
    let Kind::Command(words) = kind else { return false };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.split_first().is_some_and(|(command, args)| packages::fetched(command, args).is_some())
}

/// Whether a URL is without TLS and leads to this machine.
fn is_plain_http_here(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "http" && is_loopback(&url))
}

fn absolute(here: Option<&Path>, path: &str) -> String {
    here.map_or_else(|| path.to_owned(), |here| here.join(path).display().to_string())
}

fn shown(path: Option<&Path>) -> Option<String> {
    path.and_then(Path::to_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_packages_hosts_and_titles() {
        let command = |line: &str| Kind::Command(words(line).unwrap_or_default());
        for (kind, title, expected) in [
            (command("npx -y @modelcontextprotocol/server-filesystem@2025.8.21 ."), None, "filesystem"),
            (command("npx -y mcp-server-notes"), None, "notes"),
            (command("uvx mcp-server-git==2025.1.1"), None, "git"),
            (command("uvx --from 'files[all]' run-files"), None, "files"),
            (command("/opt/notes-server --stdio"), None, "notes"),
            (command("node build/tickets.js"), None, "tickets"),
            (command("python3 -u server.py"), None, "upstream"),
            (Kind::Url("https://mcp.linear.app/mcp".to_owned()), None, "linear"),
            (Kind::Url("http://127.0.0.1:7411/mcp".to_owned()), None, "upstream"),
            (Kind::Url("http://localhost:7411/mcp".to_owned()), None, "localhost"),
            (Kind::OpenApi("api/petstore.openapi.json".to_owned()), None, "petstore"),
            (Kind::OpenApi("x.json".to_owned()), Some("Swagger Petstore - OpenAPI 3.0"), "swagger-petstore"),
        ] {
            assert_eq!(proposed_name(&kind, title), expected, "{kind:?}");
        }
    }

    #[test]
    fn command_lines_that_need_a_shell_are_refused() {
        for (line, message) in [
            ("a | b", "no shell runs"),
            ("TOKEN=x server", "is not a program"),
            ("server 'x", "is not closed"),
            ("  ", "is empty"),
        ] {
            let refused = words(line);
            assert!(refused.as_ref().is_err_and(|why| why.contains(message)), "{line}: {refused:?}");
        }
        assert_eq!(words("server 'a b' \"c\""), Ok(vec!["server".to_owned(), "a b".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn secret_in_place_of_a_variable_is_refused_and_not_repeated() {
        for name in ["sk-not-a-real-secret", "ghp_0000aaaa1111bbbb2222cccc3333", "not4real", "NAME=value", "", "1A"] {
            let refused = variable(name);
            assert!(refused.as_ref().is_err_and(|why| name.is_empty() || !why.contains(name)), "{name}: {refused:?}");
        }
        assert_eq!(variable("BOARDS_TOKEN"), Ok("BOARDS_TOKEN".to_owned()));
    }
}
