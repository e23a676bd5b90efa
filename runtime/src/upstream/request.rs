//! Reading `(tool/call {:server s :tool t :args {…}})` against the catalog.
//!
//! Whatever is wrong here is a fault of the program: the message says which call, what was expected, what was found, and
//! names what exists.

use std::borrow::Cow;

use ptc_catalog::{Catalog, Tool, Type, Upstream};
use ptc_check::argument::shown;
use ptc_check::near_name;
use ptc_lisp::host::Fault;
use ptc_lisp::print::excerpt;
use ptc_lisp::{ErrorKind, Kind, Value, json};

/// Names that a message lists before it says how many more there are.
const LISTED: usize = 30;
/// Bytes of the arguments of one call, as JSON.
const MAX_ARGUMENT_BYTES: usize = 8 * 1024 * 1024;

/// A call that the catalog allows.
#[derive(Debug)]
pub(crate) struct Call<'v> {
    pub(crate) upstream: &'static Upstream,
    pub(crate) tool: &'static Tool,
    /// Arguments by name, without those that are left out by `nil`, in the order of their keys.
    pub(crate) args: Vec<(Cow<'v, str>, &'v Value)>,
}

/// Checks a request.
pub(crate) fn read<'v>(catalog: &'static Catalog, request: &'v Value) -> Result<Call<'v>, Fault> {
    let entries = request.entries();
    let Some(entries) = entries else {
        let hint = "write (tool/call {:server \"name\" :tool \"name\" :args {...}})";
        return Err(Fault::new(ErrorKind::ToolError, format!("tool/call requires a map, got {}", shown(request))).with_hint(hint));
    };
    for (key, _) in entries {
        if !matches!(key.as_name(), Some("server" | "tool" | "args")) {
            let named = key.as_name().map_or_else(|| shown(key), |name| format!("\"{}\"", excerpt(name)));
            return Err(Fault::new(ErrorKind::ToolError, format!("tool/call got unknown key {named}"))
                .with_hint("its keys are :server, :tool and :args; arguments of the tool go into :args"));
        }
    }
    let nil = Value::nil();
    let server = request.get("server").unwrap_or(&nil);
    let Some(server) = server.as_name().filter(|name| !name.is_empty()) else {
        let names = listed(&names(catalog));
        let message = format!("tool/call requires :server (string), got {}. Configured upstreams: {names}", shown(server));
        return Err(Fault::new(ErrorKind::ToolError, message));
    };
    let upstream = find_upstream(catalog, server)?;
    let tool = request.get("tool").unwrap_or(&nil);
    let Some(tool) = tool.as_name().filter(|name| !name.is_empty()) else {
        let message = format!("tool/call on upstream '{server}' requires :tool (string), got {}", shown(tool));
        return Err(Fault::new(ErrorKind::ToolError, message));
    };
    let tool = find_tool(upstream, tool)?;
    let args = match request.get("args") {
        None => Vec::new(),
        Some(args) => match args.entries() {
            Some(entries) => check(tool, entries).map_err(|why| rejected(upstream, tool, &why))?,
            None => return Err(rejected(upstream, tool, &format!(":args must be a map, got {}", shown(args)))),
        },
    };
    let missing: Vec<&str> = tool
        .args
        .iter()
        .filter(|arg| arg.required && !args.iter().any(|(name, _)| name == arg.name))
        .map(|arg| arg.name)
        .collect();
    if !missing.is_empty() {
        let mut given = args.iter().map(|(name, _)| name.as_ref()).filter(|name| tool.arg(name).is_none());
        let meant = given.find_map(|name| near_name(name, missing.iter().copied()));
        let near = meant.map_or_else(String::new, |meant| format!(". Did you mean '{meant}'?"));
        return Err(rejected(upstream, tool, &format!("missing required args {}{near}", missing.join(", "))));
    }
    Ok(Call { upstream, tool, args })
}

/// The upstream of that name, or a fault that names the configured ones.
pub(crate) fn find_upstream(catalog: &'static Catalog, name: &str) -> Result<&'static Upstream, Fault> {
    catalog.upstream(name).ok_or_else(|| {
        let names = names(catalog);
        let near = near(name, &names);
        let (names, name) = (listed(&names), excerpt(name));
        Fault::new(ErrorKind::UnknownTool, format!("no upstream '{name}' configured. {near}Configured upstreams: {names}"))
    })
}

/// The tool of that name, or a fault that names a near one or all.
pub(crate) fn find_tool(upstream: &'static Upstream, name: &str) -> Result<&'static Tool, Fault> {
    upstream.tool(name).ok_or_else(|| {
        let names: Vec<&str> = upstream.tools.iter().map(|t| t.name).collect();
        let near = near(name, &names);
        let (server, names, name) = (upstream.name, listed(&names), excerpt(name));
        Fault::new(ErrorKind::UnknownTool, format!("no tool '{name}' in upstream '{server}'. {near}Known tools: {names}"))
    })
}

pub(crate) fn rejected(upstream: &Upstream, tool: &Tool, why: &str) -> Fault {
    let hint = format!("(doc \"{}/{}\") shows its arguments", upstream.name, tool.name);
    Fault::new(ErrorKind::ToolError, format!("tool '{}.{}' rejected args: {why}", upstream.name, tool.name)).with_hint(hint)
}

fn names(catalog: &'static Catalog) -> Vec<&'static str> {
    catalog.upstreams.iter().map(|upstream| upstream.name).collect()
}

/// The names, up to [`LISTED`].
fn listed(names: &[&str]) -> String {
    match names.split_at_checked(LISTED) {
        _ if names.is_empty() => "none".to_owned(),
        Some((first, rest)) if !rest.is_empty() => format!("{}, … and {} more", first.join(", "), rest.len()),
        _ => names.join(", "),
    }
}

/// `Did you mean 'x'? `, where a name is near.
fn near(name: &str, names: &[&str]) -> String {
    near_name(name, names.iter().copied()).map_or_else(String::new, |near| format!("Did you mean '{near}'? "))
}

fn check<'v>(
    tool: &'static Tool,
    entries: impl Iterator<Item = (&'v Value, &'v Value)>,
) -> Result<Vec<(Cow<'v, str>, &'v Value)>, String> {
    let mut args: Vec<(Cow<'v, str>, &'v Value)> = Vec::new();
    for (key, value) in entries {
        let Some(written) = key.as_name() else {
            return Err(format!("the name of an argument must be a keyword or string, got {}", shown(key)));
        };
        let arg = tool.arg(written);
        // A keyword in Lisp's spelling finds the schema's: `:page-size` is `page_size`.
        let (name, arg) = match arg {
            None if key.kind() == Kind::Keyword && written.contains('-') => {
                let snake = written.replace('-', "_");
                match tool.arg(&snake) {
                    Some(arg) => (Cow::Borrowed(arg.name), Some(arg)),
                    None => (Cow::Borrowed(written), None),
                }
            }
            arg => (Cow::Borrowed(written), arg),
        };
        if args.iter().any(|(other, _)| *other == name) {
            return Err(format!("'{}' is given twice", excerpt(&name)));
        }
        match arg {
            None if tool.closed => return Err(unknown(tool, written)),
            None => {}
            // Optional and nil: left out.
            Some(arg) if value.is_nil() && !(arg.required && arg.types.admits(Type::Null)) => continue,
            Some(arg) => ptc_check::argument::fault(arg, value).map_or(Ok(()), Err)?,
        }
        args.push((name, value));
    }
    Ok(args)
}

fn unknown(tool: &'static Tool, name: &str) -> String {
    let names: Vec<&str> = tool.args.iter().map(|a| a.name).collect();
    let all = if names.is_empty() { "it takes none".to_owned() } else { format!("Args: {}", listed(&names)) };
    format!("unknown arg '{}'. {}{all}", excerpt(name), near(name, &names))
}

/// The arguments as the JSON text of an object.
pub(crate) fn encode(call: &Call<'_>, is_over: &dyn Fn() -> bool) -> Result<String, Fault> {
    let mut text = String::from("{");
    for (name, value) in &call.args {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&super::mcp::wire::quoted(name));
        text.push(':');
        let encoded = json::encode_until(value, MAX_ARGUMENT_BYTES.saturating_sub(text.len()), is_over);
        text.push_str(&encoded.map_err(|why| {
            rejected(call.upstream, call.tool, &format!("not JSON-encodable (argument '{}': {why})", excerpt(name)))
        })?);
    }
    text.push('}');
    Ok(text)
}
