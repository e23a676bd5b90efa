//! The keys of an entry in the configs of all clients, and what each means.

use std::ops::Range;

use super::Context;
use crate::clients::Client;
use crate::config::keys;
use crate::diag::{Code, quoted};
use crate::tree::{Member, Node, Tree};

/// The unit of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    /// Clients differ; the size of the number decides.
    Either,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Kind,
    Command,
    Args,
    Env,
    EnvNames,
    EnvFile,
    Cwd,
    Url,
    Headers,
    EnvHeaders,
    BearerVariable,
    Bearer,
    Include,
    Exclude,
    CallTimeout(Unit),
    StartTimeout(Unit),
    Description,
    Disabled,
    Enabled,
    /// An object whose members count as members of the entry.
    Nested,
    /// The name of an entry in a list.
    Name,
    /// A setting of the client alone.
    Client,
    /// A setting that upstreams do not have; the advice for it.
    LeftOut(&'static str),
}

use Meaning::{
    Args, Bearer, BearerVariable, CallTimeout, Command, Cwd, Description, Disabled, Enabled, Env, EnvFile, EnvHeaders, EnvNames,
    Exclude, Headers, Include, Kind, LeftOut, Name, Nested, StartTimeout, Url,
};

const OAUTH: &str = "write `\"auth\": [{ \"scheme\": \"oauth2\", \"grant\": \"authorization_code\" }]`, and run `ptc-compile login`; the guide to identity has \
     the other keys";

#[rustfmt::skip]
const KEYS: &[(&str, Meaning)] = &[
    ("type", Kind),
    ("transport", Kind),
    ("transportType", Kind),
    ("command", Command),
    ("cmd", Command),
    ("path", Command),
    ("args", Args),
    ("env", Env),
    ("envs", Env),
    ("env_keys", EnvNames),
    ("env_vars", EnvNames),
    ("envFile", EnvFile),
    ("env_file", EnvFile),
    ("cwd", Cwd),
    ("workingDirectory", Cwd),
    ("url", Url),
    ("uri", Url),
    ("serverUrl", Url),
    ("serverURL", Url),
    ("httpUrl", Url),
    ("headers", Headers),
    ("http_headers", Headers),
    ("env_http_headers", EnvHeaders),
    ("bearer_token_env_var", BearerVariable),
    ("bearer_token", Bearer),
    ("apiKey", Bearer),
    ("includeTools", Include),
    ("enabled_tools", Include),
    ("enabledTools", Include),
    ("available_tools", Include),
    ("allowedTools", Include),
    ("tools", Include),
    ("excludeTools", Exclude),
    ("disabled_tools", Exclude),
    ("disabledTools", Exclude),
    ("timeout", CallTimeout(Unit::Either)),
    ("tool_timeout_sec", CallTimeout(Unit::Seconds)),
    ("startup_timeout_sec", StartTimeout(Unit::Seconds)),
    ("startup_timeout_ms", StartTimeout(Unit::Milliseconds)),
    ("connectionTimeout", StartTimeout(Unit::Milliseconds)),
    ("initTimeout", StartTimeout(Unit::Either)),
    ("description", Description),
    ("disabled", Disabled),
    ("enabled", Enabled),
    ("requestOptions", Nested),
    ("config", Nested),
    ("name", Name),
    ("trust", Meaning::Client),
    ("alwaysAllow", Meaning::Client),
    ("autoApprove", Meaning::Client),
    ("autoAllow", Meaning::Client),
    ("gallery", Meaning::Client),
    ("version", Meaning::Client),
    ("dev", Meaning::Client),
    ("display_name", Meaning::Client),
    ("displayName", Meaning::Client),
    ("bundled", Meaning::Client),
    ("faviconUrl", Meaning::Client),
    ("icon", Meaning::Client),
    ("source", Meaning::Client),
    ("required", Meaning::Client),
    ("remote", Meaning::Client),
    ("default_tools_approval_mode", Meaning::Client),
    ("supports_parallel_tool_calls", Meaning::Client),
    ("extensionName", Meaning::Client),
    ("sourceFile", Meaning::Client),
    ("registry", Meaning::Client),
    ("metadata", Meaning::Client),
    ("note", Meaning::Client),
    ("comment", Meaning::Client),
    ("_comment", Meaning::Client),
    ("$comment", Meaning::Client),
    ("oauth", LeftOut(OAUTH)),
    ("auth", LeftOut(OAUTH)),
    ("OAUTH", LeftOut(OAUTH)),
    ("scopes", LeftOut(OAUTH)),
    ("oauth_resource", LeftOut(OAUTH)),
    ("oauth_client_id", LeftOut(OAUTH)),
    ("authProviderType", LeftOut(OAUTH)),
    ("targetAudience", LeftOut(OAUTH)),
    ("targetServiceAccount", LeftOut(OAUTH)),
    ("headersHelper", LeftOut("run the program before the server, and hand its answer over in a variable or a file that `credentials` name")),
    ("settings", LeftOut("an extension reads these settings; give the server its own settings in `args` or `env`")),
    ("sandboxEnabled", LeftOut("upstreams have no sandbox of their own; a container can restrict the whole server")),
    ("sandbox", LeftOut("upstreams have no sandbox of their own; a container can restrict the whole server")),
    ("verifySsl", LeftOut("certificates are always verified")),
    ("caBundlePath", LeftOut("add the certificate to those of the system, or name the file in `SSL_CERT_FILE`")),
    ("proxy", LeftOut("write it as `proxy` of the upstream")),
];

/// A value with the key that it has.
#[derive(Debug, Clone)]
pub(super) struct Setting<'n> {
    pub(super) key: String,
    pub(super) key_range: Range<u32>,
    pub(super) node: &'n Node,
}

/// The members of an entry, by meaning.
#[derive(Debug, Default)]
pub(super) struct Raw<'n> {
    pub(super) kind: Option<Setting<'n>>,
    pub(super) command: Option<Setting<'n>>,
    pub(super) args: Vec<&'n Node>,
    pub(super) env: Vec<&'n Member>,
    pub(super) env_names: Vec<&'n Node>,
    pub(super) env_file: Option<Setting<'n>>,
    pub(super) cwd: Option<Setting<'n>>,
    pub(super) url: Option<Setting<'n>>,
    pub(super) headers: Vec<&'n Member>,
    pub(super) env_headers: Vec<&'n Member>,
    pub(super) bearer_variable: Option<Setting<'n>>,
    pub(super) bearer: Option<Setting<'n>>,
    pub(super) include: Option<Setting<'n>>,
    pub(super) exclude: Option<Setting<'n>>,
    pub(super) call_timeout: Option<(Setting<'n>, Unit)>,
    pub(super) start_timeout: Option<(Setting<'n>, Unit)>,
    pub(super) description: Option<Setting<'n>>,
    pub(super) is_off: bool,
    /// Keys of PtcRunner, which upstreams have too.
    pub(super) verbatim: Vec<Setting<'n>>,
}

impl<'n> Raw<'n> {
    /// Sorts the members of an entry. Reports members without a meaning for an upstream.
    pub(super) fn read(context: &mut Context<'_>, entry: &'n Node) -> Self {
        let mut raw = Raw::default();
        raw.members(context, entry, 0);
        raw
    }

    fn members(&mut self, context: &mut Context<'_>, object: &'n Node, depth: usize) {
        for member in object.members() {
            let key = &*member.key;
            let given = Setting { key: key.to_owned(), key_range: member.key_range.clone(), node: &member.value };
            if context.client.client == Client::PtcRunner {
                self.ptc_runner(context, given);
                continue;
            }
            let mut meaning = KEYS.iter().find(|(name, _)| *name == key).map(|(_, meaning)| *meaning);
            let is_object = matches!(member.value.value, Tree::Object(_));
            if let (Some(Command | Kind), true) = (meaning, is_object) {
                meaning = Some(Nested);
            }
            if let (Some(Include), true) = (meaning, is_object) {
                meaning = Some(Meaning::Client);
            }
            match meaning {
                Some(Nested) if depth < 3 => self.members(context, &member.value, depth + 1),
                Some(Meaning::Client) => {
                    let message = format!("{} concerns {} alone", quoted(key), context.client.label);
                    context.report(Code::ClientSetting, member.key_range.clone(), message, "");
                }
                Some(LeftOut(hint)) => {
                    let is_empty = is_object && member.value.members().is_empty() || matches!(member.value.value, Tree::Null);
                    if !is_empty {
                        let message = format!("{} is not carried over", quoted(key));
                        context.report(Code::SettingLeftOut, member.key_range.clone(), message, hint);
                    }
                }
                Some(meaning) => self.set(context, meaning, given),
                None => {
                    let message = format!("{} is not carried over: its meaning is unknown", quoted(key));
                    let hint = "if the upstream needs it, add the key that means the same to the result";
                    context.report(Code::SettingLeftOut, member.key_range.clone(), message, hint);
                }
            }
        }
    }

    fn ptc_runner(&mut self, context: &mut Context<'_>, given: Setting<'n>) {
        let meaning = match given.key.as_str() {
            "transport" => Kind,
            "command" => Command,
            "args" => Args,
            "env" => Env,
            "cd" => Cwd,
            "url" => Url,
            "static_headers" => Headers,
            "include_tools" => Include,
            key if keys::UPSTREAM.cases.iter().any(|table| table.key(key).is_some()) => {
                self.verbatim.push(given);
                return;
            }
            key => {
                let message = format!("{} is not carried over: upstreams do not have this key", quoted(key));
                context.report(Code::SettingLeftOut, given.key_range, message, "`ptc-compile schema` describes all keys");
                return;
            }
        };
        self.set(context, meaning, given);
    }

    fn set(&mut self, context: &mut Context<'_>, meaning: Meaning, given: Setting<'n>) {
        if matches!(given.node.value, Tree::Null) {
            return;
        }
        let unit = |unit: Unit| match (unit, context.client.client) {
            (Unit::Either, Client::Goose) => Unit::Seconds,
            (Unit::Either, Client::Gemini | Client::ClaudeCode) => Unit::Milliseconds,
            (unit, _) => unit,
        };
        match meaning {
            Kind => self.kind = Some(given),
            Command => self.command = Some(given),
            Args => match given.node.elements() {
                Some(elements) => self.args.extend(elements),
                None => self.args.push(given.node),
            },
            Env => self.env.extend(given.node.members()),
            EnvNames => self.env_names.extend(given.node.elements().unwrap_or(&[])),
            EnvFile => self.env_file = Some(given),
            Cwd => self.cwd = Some(given),
            Url => self.url = Some(given),
            Headers => self.headers.extend(given.node.members()),
            EnvHeaders => self.env_headers.extend(given.node.members()),
            BearerVariable => self.bearer_variable = Some(given),
            Bearer => self.bearer = Some(given),
            Include => self.include = Some(given),
            Exclude => self.exclude = Some(given),
            CallTimeout(of) => self.call_timeout = Some((given, unit(of))),
            StartTimeout(of) => self.start_timeout = Some((given, unit(of))),
            Description => self.description = Some(given),
            Disabled => self.is_off |= given.node.as_bool() == Some(true),
            Enabled => self.is_off |= given.node.as_bool() == Some(false),
            Nested | Name | Meaning::Client | LeftOut(_) => {}
        }
    }
}
