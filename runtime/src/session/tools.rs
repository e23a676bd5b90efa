//! The tools of sessions: their descriptions, their arguments, and their answers. The exception is `lisp_session_eval`, which
//! runs a program and is answered like `lisp_eval`.

use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::print::excerpt;
use serde_json::{Map, Value as Json, json};

use super::inspect::View;
use super::{Fault, SessionLimits, SessionState, Sessions};
use ptc_engine::protocol::message::{Arguments, kind, string};

/// A tool of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Opens a session.
    Start,
    /// Lists the caller's sessions.
    List,
    /// Runs a program in a session.
    Eval,
    /// Shows the state of a session.
    Inspect,
    /// Removes parts of the state of a session.
    Forget,
    /// Ends a session.
    Close,
}

/// The name of a part of the state that can be cleared, and the function that clears it.
type Part = (&'static str, fn(&mut SessionState));

const CLEARED: [Part; 5] = [
    ("memory", |kept| kept.bindings.clear(&kept.results)),
    ("history", |kept| kept.results.clear()),
    ("prints", |kept| kept.prints = super::state::Log::default()),
    ("tool_calls", |_| {}),
    ("upstream_calls", |kept| kept.upstream_calls = super::state::Log::default()),
];

/// Maximum bytes of a title and of a reason.
const LABEL_BYTES: usize = 200;

impl Tool {
    /// Every tool with its name.
    pub const ALL: [(&'static str, Tool); 6] = [
        ("lisp_session_start", Tool::Start),
        ("lisp_session_list", Tool::List),
        ("lisp_session_eval", Tool::Eval),
        ("lisp_session_inspect", Tool::Inspect),
        ("lisp_session_forget", Tool::Forget),
        ("lisp_session_close", Tool::Close),
    ];

    /// Returns the tool with this name.
    pub fn named(name: &str) -> Option<Tool> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, tool)| *tool)
    }

    /// Returns description and input schema, without the program arguments of `lisp_session_eval`.
    pub fn described(self) -> (&'static str, Json) {
        let id = || json!({ "type": "string" });
        let object = |properties: Json, required: Json| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        match self {
            Tool::Start => (
                "Opens a session, in which definitions outlive a call. Answers with its session_id.",
                object(json!({ "title": { "type": "string" }, "ttl_ms": { "type": "integer", "minimum": 1 } }), json!([])),
            ),
            Tool::List => ("Your open sessions.", object(json!({}), json!([]))),
            Tool::Eval => (
                "As lisp_eval, in a session: what def and defn define is there in later calls, *1 *2 *3 are the last results. An \
                 error changes nothing.",
                object(json!({ "session_id": id() }), json!(["session_id", "program"])),
            ),
            Tool::Inspect => {
                let views: Vec<&str> = View::ALL.iter().map(|(name, _)| *name).collect();
                let view = json!({ "type": "string", "enum": views });
                ("What a session keeps.", object(json!({ "session_id": id(), "view": view }), json!(["session_id"])))
            }
            Tool::Forget => {
                let names = json!({ "type": "array", "items": { "type": "string" } });
                let parts: Vec<&str> = CLEARED.iter().map(|(name, _)| *name).collect();
                let clear = json!({ "type": "array", "items": { "type": "string", "enum": parts } });
                let properties = json!({ "session_id": id(), "bindings": names, "clear": clear });
                ("Takes bindings or whole histories out of a session.", object(properties, json!(["session_id"])))
            }
            Tool::Close => (
                "Ends a session and what runs in it.",
                object(json!({ "session_id": id(), "reason": { "type": "string" } }), json!(["session_id"])),
            ),
        }
    }

    /// Returns the members of its answer beside `status`, with their JSON types. `None` for `lisp_session_eval`, which answers
    /// like `lisp_eval`.
    pub fn answered(self) -> Option<&'static [(&'static str, &'static str)]> {
        Some(match self {
            Tool::Start => &[("session_id", "string"), ("expires_at", "string"), ("limits", "object")],
            Tool::List => &[("count", "integer"), ("sessions", "array")],
            Tool::Eval => return None,
            Tool::Inspect => &[("session_id", "string"), ("view", "string"), ("session", "object"), ("text", "string")],
            Tool::Forget => &[
                ("session_id", "string"),
                ("removed_bindings", "array"),
                ("cleared", "array"),
                ("stored_keys", "array"),
                ("usage", "object"),
            ],
            Tool::Close => &[("session_id", "string"), ("closed", "boolean")],
        })
    }

    /// Returns the names of its arguments.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Tool::Start => &["title", "ttl_ms"],
            Tool::List => &[],
            Tool::Eval => &["session_id", "program", "context", "output_schema"],
            Tool::Inspect => &["session_id", "view"],
            Tool::Forget => &["session_id", "bindings", "clear"],
            Tool::Close => &["session_id", "reason"],
        }
    }
}

/// A parsed and validated call of a session tool that runs no program. It can be executed on another thread.
#[derive(Debug)]
pub struct SessionCommand {
    tool: Tool,
    /// The session's id. Empty for a tool that takes none.
    id: String,
    /// The title for `Start`, the reason for `Close`.
    label: Option<String>,
    ttl: Duration,
    view: View,
    names: Vec<String>,
    parts: Vec<Part>,
}

impl SessionCommand {
    /// Parses the arguments.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::Args`] if an argument is unknown, missing, of another type than expected or out of range, and for
    /// [`Tool::Eval`], which runs a program.
    pub fn read(tool: Tool, limits: &SessionLimits, arguments: &Arguments<'_>) -> Result<SessionCommand, Fault> {
        check_names(tool, arguments)?;
        let most = limits.ttl;
        let mut command = SessionCommand {
            tool,
            id: String::new(),
            label: None,
            ttl: most,
            view: View::Overview,
            names: Vec::new(),
            parts: Vec::new(),
        };
        match tool {
            Tool::Eval => return Err(Fault::Args("lisp_session_eval runs a program".into())),
            Tool::List => {}
            Tool::Start => {
                if let Some(raw) = arguments.get("ttl_ms") {
                    let ttl = raw.parse().ok().map(Duration::from_millis).filter(|ttl| !ttl.is_zero() && *ttl <= most);
                    command.ttl = ttl.ok_or_else(|| {
                        Fault::Args(format!("`ttl_ms` must be an integer from 1 to {}, got {raw}", most.as_millis()))
                    })?;
                }
                command.label = label(arguments, "title")?;
            }
            Tool::Inspect => {
                command.id = session_id(arguments)?;
                command.view = view(arguments)?;
            }
            Tool::Forget => {
                command.id = session_id(arguments)?;
                command.names = strings(arguments, "bindings")?;
                command.parts = strings(arguments, "clear")?.iter().map(|name| part(name)).collect::<Result<_, _>>()?;
            }
            Tool::Close => {
                command.id = session_id(arguments)?;
                command.label = label(arguments, "reason")?;
            }
        }
        Ok(command)
    }

    /// Executes the call. Returns the members of the answer.
    ///
    /// # Errors
    ///
    /// Returns the errors of the called method: [`Sessions::start`], [`Sessions::peek`], [`Sessions::change`], or `list` or
    /// `close` of the [`Store`](super::store::Store).
    pub fn answer(self, sessions: &Arc<Sessions>, owner: &str) -> Result<Map<String, Json>, Fault> {
        let SessionCommand { tool, id, label, ttl, view, names, parts } = self;
        let shown = match tool {
            Tool::Start => {
                let session = sessions.start(owner, label.as_deref(), ttl)?;
                json!({
                    "session_id": session.session_id, "expires_at": session.expires_at, "limits": sessions.limits().told(),
                })
            }
            Tool::List => {
                let all = sessions.store().list(owner)?;
                json!({ "count": all.len(), "sessions": all })
            }
            // `read` has rejected this tool.
            Tool::Eval => Json::Null,
            Tool::Inspect => {
                let (session, copy) = sessions.peek(owner, &id)?;
                let mut shown = view.show(&copy.kept, sessions.limits());
                let name = View::ALL.iter().find(|(_, known)| *known == view).map(|(name, _)| *name);
                shown.extend([
                    ("view".to_owned(), json!(name)),
                    ("session_id".to_owned(), json!(id)),
                    ("session".to_owned(), json!(session)),
                ]);
                Json::Object(shown)
            }
            Tool::Forget => {
                let (removed, kept) = sessions.change(owner, &id, |kept| {
                    let before = kept.names();
                    for (_, clear) in &parts {
                        clear(kept);
                    }
                    for name in &names {
                        kept.bindings.forget(name);
                    }
                    kept.bindings.compact(&kept.results);
                    let left = kept.names();
                    before.into_iter().filter(|name| !left.contains(name)).collect::<Vec<_>>()
                })?;
                let cleared: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
                json!({
                    "session_id": id, "removed_bindings": removed, "cleared": cleared, "stored_keys": kept.names(),
                    "usage": kept.usage(),
                })
            }
            Tool::Close => {
                sessions.store().close(owner, &id)?;
                json!({ "session_id": id, "closed": true, "reason": label })
            }
        };
        let mut members = Map::new();
        members.insert("status".into(), json!("ok"));
        if let Json::Object(shown) = shown {
            members.extend(shown);
        }
        Ok(members)
    }
}

/// Returns the id of the session in which a program is to run.
///
/// # Errors
///
/// Returns [`Fault::Args`] if `session_id` is missing, not a string or empty.
pub fn session_id(arguments: &Arguments<'_>) -> Result<String, Fault> {
    let missing = || Fault::Args("`session_id` is required: the id that lisp_session_start gave".into());
    let raw = arguments.get("session_id").ok_or_else(missing)?;
    match string(raw) {
        Some(id) if !id.is_empty() => Ok(id.into_owned()),
        Some(_) => Err(Fault::Args("`session_id` must be a non-empty string, got an empty one".into())),
        None => Err(Fault::Args(format!("`session_id` must be a string, got {}", kind(raw)))),
    }
}

/// Checks that a call has only known arguments.
///
/// # Errors
///
/// Returns [`Fault::Args`] if an argument is unknown, or if [`Arguments::check`] fails.
pub fn check_names(tool: Tool, arguments: &Arguments<'_>) -> Result<(), Fault> {
    arguments.check().map_err(Fault::Args)?;
    let known = tool.arguments();
    let Some((name, _)) = arguments.members.iter().find(|(name, _)| !known.contains(&&**name)) else { return Ok(()) };
    let takes = if known.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", known.join(", ")) };
    Err(Fault::Args(format!("unknown argument `{}`: {takes}", excerpt(name))))
}

fn label(arguments: &Arguments<'_>, name: &str) -> Result<Option<String>, Fault> {
    let Some(raw) = arguments.get(name).filter(|raw| kind(raw) != "null") else { return Ok(None) };
    match string(raw) {
        Some(text) if text.len() <= LABEL_BYTES => Ok(Some(text.into_owned())),
        Some(_) => Err(Fault::Args(format!("`{name}` is longer than {LABEL_BYTES} bytes"))),
        None => Err(Fault::Args(format!("`{name}` must be a string, got {}", kind(raw)))),
    }
}

fn strings(arguments: &Arguments<'_>, name: &str) -> Result<Vec<String>, Fault> {
    let Some(raw) = arguments.get(name).filter(|raw| kind(raw) != "null") else { return Ok(Vec::new()) };
    // The error of another type quotes the value, which may be long.
    let strings = if kind(raw) == "array" { serde_json::from_str(raw).ok() } else { None };
    strings.ok_or_else(|| Fault::Args(format!("`{name}` must be an array of strings")))
}

fn part(name: &str) -> Result<Part, Fault> {
    CLEARED.into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let known: Vec<&str> = CLEARED.iter().map(|(known, _)| *known).collect();
        Fault::Args(format!("`clear` knows {}, got \"{name}\"", known.join(", ")))
    })
}

fn view(arguments: &Arguments<'_>) -> Result<View, Fault> {
    let Some(raw) = arguments.get("view").filter(|raw| kind(raw) != "null") else { return Ok(View::Overview) };
    let named = |name: &str| View::ALL.iter().find(|(known, _)| *known == name).map(|(_, view)| *view);
    string(raw).and_then(|name| named(&name)).ok_or_else(|| {
        let known: Vec<&str> = View::ALL.iter().map(|(known, _)| *known).collect();
        Fault::Args(format!("`view` is one of {}, got {}", known.join(", "), excerpt(raw)))
    })
}
