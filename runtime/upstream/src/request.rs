//! Validates `(tool/call {:server s :tool t :args {…}})` against the catalog.
//!
//! Every error is a fault of the program. Its message names the call, the expected and the actual value, and the existing names.

use ptc_text::join_limited;
use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_check::OPTIONS;
use ptc_check::argument::shown;
use ptc_check::argument_names::{self, MAX_COMPARED, Refusal};
#[cfg(feature = "http")]
use ptc_check::{ACCEPT, BODY, IDEMPOTENCY_KEY};
use ptc_lisp::host::Fault;
use ptc_lisp::print::excerpt;
use ptc_lisp::{ErrorKind, Kind, Value};
use ptc_text::closest_match;

use super::arguments::{self, Bounds, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, Unsendable};
#[cfg(feature = "http")]
use super::openapi::CallOptions;

/// Maximum number of names listed in a message. The rest is counted.
const LISTED: usize = 30;
/// Maximum bytes of the names of all arguments of one call.
const MAX_NAME_BYTES: usize = 1024 * 1024;

/// A valid call.
#[derive(Debug)]
pub(crate) struct Call<'v> {
    pub(crate) upstream: &'static Upstream,
    pub(crate) tool: &'static Tool,
    /// Arguments by name, in the order of their keys, without those that are omitted by `nil`.
    pub(crate) args: Vec<(&'v str, Cow<'v, Value>)>,
    /// `:accept` and `:body`
    #[cfg(feature = "http")]
    pub(crate) options: CallOptions<'v>,
}

/// Validates a request.
pub(crate) fn read<'v>(catalog: &'static Catalog, request: &'v Value, bounds: &Bounds) -> Result<Call<'v>, Fault> {
    let entries = request.entries();
    let Some(entries) = entries else {
        let hint = "write (tool/call {:server \"name\" :tool \"name\" :args {...}})";
        return Err(Fault::new(ErrorKind::ToolError, format!("tool/call requires a map, got {}", shown(request))).with_hint(hint));
    };
    for (key, _) in entries {
        if !matches!(key.as_name(), Some("server" | "tool" | "args" | "accept" | "body" | "idempotency_key")) {
            let named = key.as_name().map_or_else(|| shown(key), |name| format!("\"{}\"", excerpt(name)));
            return Err(Fault::new(ErrorKind::ToolError, format!("tool/call got unknown key {named}"))
                .with_hint("its keys are :server, :tool and :args; arguments of the tool go into :args"));
        }
    }
    let nil = Value::nil();
    let server = request.get("server").unwrap_or(&nil);
    let Some(server) = server.as_name().filter(|name| !name.is_empty()) else {
        let fault = Fault::new(ErrorKind::ToolError, ptc_check::requires_server(server, catalog));
        let meant = request.get("tool").and_then(Value::as_name).and_then(|tool| ptc_check::meant_tool(tool, None, catalog));
        return Err(match meant {
            Some((upstream, tool)) => {
                fault.with_hint(format!("did you mean {{:server {:?} :tool {:?}}}?", upstream.name, tool.name))
            }
            None => fault,
        });
    };
    let tool = request.get("tool").unwrap_or(&nil);
    let upstream = catalog.upstream(server).ok_or_else(|| no_upstream(catalog, server, tool.as_name()))?;
    let Some(tool) = tool.as_name().filter(|name| !name.is_empty()) else {
        return Err(Fault::new(ErrorKind::ToolError, ptc_check::requires_tool(Some(server), tool)));
    };
    let tool = find_tool(catalog, upstream, tool)?;
    for key in OPTIONS {
        if let Some(value) = request.get(key)
            && let Some(why) = ptc_check::option_fault(upstream, tool, key, value)
        {
            return Err(Fault::new(ErrorKind::ToolError, why));
        }
    }
    #[cfg(feature = "http")]
    let options = CallOptions {
        accept: request.get(ACCEPT).and_then(Value::as_name),
        idempotency_key: request.get(IDEMPOTENCY_KEY).and_then(Value::as_str),
        without_bytes: request.get(BODY).and_then(Value::as_bool) == Some(false),
    };
    let args = match request.get("args") {
        None => Vec::new(),
        Some(args) => check(upstream, tool, args, bounds)?,
    };
    let is_given = |name: &str| args.iter().any(|(given, _)| *given == name);
    let undeclared = args.iter().map(|(name, _)| *name).filter(|name| tool.arg(name).is_none());
    if let Some(refusal) = argument_names::missing(tool, is_given, undeclared) {
        return Err(wrong_names(upstream, tool, refusal));
    }
    Ok(Call {
        upstream,
        tool,
        args,
        #[cfg(feature = "http")]
        options,
    })
}

impl Call<'_> {
    /// Returns undeclared arguments with names similar to declared ones that are not given, together with these.
    pub(crate) fn misspelt(&self) -> Vec<(&str, &'static str)> {
        if self.tool.closed {
            return Vec::new();
        }
        let undeclared = self.args.iter().map(|(name, _)| *name).filter(|name| self.tool.arg(name).is_none());
        let near = undeclared.take(MAX_COMPARED).filter_map(|name| Some((name, argument_names::misspelt(self.tool, name)?)));
        near.filter(|(_, near)| !self.args.iter().any(|(given, _)| given == near)).collect()
    }
}

/// Returns the upstream with this name, or a fault that lists the configured ones.
pub(crate) fn find_upstream(catalog: &'static Catalog, name: &str) -> Result<&'static Upstream, Fault> {
    catalog.upstream(name).ok_or_else(|| no_upstream(catalog, name, None))
}

/// Returns the fault of a call of a tool that a catalog does not have.
pub fn unknown_tool(catalog: &'static Catalog, server: &str, tool: Option<&str>) -> Fault {
    let upstream = catalog.upstream(server).ok_or_else(|| no_upstream(catalog, server, tool));
    let found = upstream.and_then(|upstream| find_tool(catalog, upstream, tool.unwrap_or_default()));
    found.err().unwrap_or_else(|| Fault::new(ErrorKind::UnknownTool, format!("no tool '{}'", excerpt(tool.unwrap_or_default()))))
}

fn no_upstream(catalog: &'static Catalog, name: &str, tool: Option<&str>) -> Fault {
    let names = names(catalog);
    let near = near(name, &names);
    let meant = if near.is_empty() { meant(catalog, name, tool) } else { near };
    let (names, name) = (listed(&names), excerpt(name));
    Fault::new(ErrorKind::UnknownTool, format!("no upstream '{name}' configured. {meant}Configured upstreams: {names}"))
}

/// Returns the tool with this name, or a fault that names a similar one or lists all.
pub(crate) fn find_tool(catalog: &'static Catalog, upstream: &'static Upstream, name: &str) -> Result<&'static Tool, Fault> {
    upstream.tool(name).ok_or_else(|| {
        let names: Vec<&str> = upstream.tools.iter().map(|t| t.name).collect();
        let near = near(name, &names);
        let near = if near.is_empty() { meant(catalog, upstream.name, Some(name)) } else { near };
        let (server, names, name) = (upstream.name, listed(&names), excerpt(name));
        Fault::new(ErrorKind::UnknownTool, format!("no tool '{name}' in upstream '{server}'. {near}Known tools: {names}"))
    })
}

/// Returns `Did you mean tool 'x' of upstream 'y'? ` if upstream and tool were written in another way, otherwise an empty text.
fn meant(catalog: &Catalog, server: &str, tool: Option<&str>) -> String {
    ptc_check::meant_tool(server, tool, catalog).map_or_else(String::new, |(upstream, tool)| {
        format!("Did you mean tool '{}' of upstream '{}'? ", tool.name, upstream.name)
    })
}

pub(crate) fn rejected(upstream: &Upstream, tool: &Tool, why: &str) -> Fault {
    let hint = format!("(doc \"{}/{}\") shows its arguments", upstream.name, tool.name);
    Fault::new(ErrorKind::ToolError, format!("tool '{}.{}' rejected args: {why}", upstream.name, tool.name)).with_hint(hint)
}

fn wrong_names(upstream: &Upstream, tool: &Tool, refusal: Refusal) -> Fault {
    let fault = rejected(upstream, tool, &refusal.message);
    match refusal.hint {
        Some(hint) => fault.with_hint(hint),
        None => fault,
    }
}

fn names(catalog: &'static Catalog) -> Vec<&'static str> {
    catalog.upstreams.iter().map(|upstream| upstream.name).collect()
}

/// Lists the names, up to [`LISTED`].
fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { join_limited(names, ", ", LISTED) }
}

/// Returns `Did you mean 'x'? ` if a name is similar, otherwise an empty text.
fn near(name: &str, names: &[&str]) -> String {
    closest_match(name, names.iter().copied()).map_or_else(String::new, |near| format!("Did you mean '{near}'? "))
}

fn check<'v>(
    upstream: &Upstream,
    tool: &'static Tool,
    args: &'v Value,
    bounds: &Bounds,
) -> Result<Vec<(&'v str, Cow<'v, Value>)>, Fault> {
    let invalid = |why: String| Err(rejected(upstream, tool, &why));
    let Some(entries) = args.entries() else {
        return invalid(format!(":args must be a map, got {}", shown(args)));
    };
    let count = args.len().unwrap_or(0);
    if count > MAX_ARGUMENTS {
        return invalid(format!("{count} arguments are given, and one call takes at most {MAX_ARGUMENTS}"));
    }
    let mut checked: Vec<(&'v str, Cow<'v, Value>)> = Vec::with_capacity(count);
    let mut names: HashSet<&str> = HashSet::with_capacity(count);
    let mut name_bytes = 0_usize;
    for (key, value) in entries {
        if bounds.is_over() {
            return Err(Bounds::stopped());
        }
        let Some(written) = key.as_name() else {
            return invalid(format!("the name of an argument must be a keyword or string, got {}", shown(key)));
        };
        // This check precedes all work on names, which takes time proportional to their length.
        name_bytes += written.len();
        if name_bytes > MAX_NAME_BYTES {
            return invalid(format!("their names are longer than {MAX_NAME_BYTES} bytes together"));
        }
        let arg = argument_names::declared(tool, written, key.kind() == Kind::Keyword);
        match arg {
            None if tool.closed => {
                let near = argument_names::misspelt(tool, written);
                return Err(wrong_names(upstream, tool, argument_names::unknown(tool, written, near)));
            }
            None => {}
            Some(arg) if argument_names::is_left_out(tool, arg, value) => continue,
            Some(arg) => {
                if let Some(why) = ptc_check::argument::fault(tool, arg, value) {
                    return invalid(why);
                }
            }
        }
        let name = arg.map_or(written, |arg| arg.name);
        // The keys of a map are distinct, but two of them can be the same name: `:a` and `"a"`, or `:a-b` and `:a_b`.
        if !names.insert(name) {
            return invalid(format!("'{}' is given twice", excerpt(name)));
        }
        let integers = arg.and_then(|arg| ptc_check::argument::with_integers(tool, arg, value));
        checked.push((name, integers.map_or(Cow::Borrowed(value), Cow::Owned)));
    }
    Ok(checked)
}

/// Encodes the arguments as a JSON object. Its bytes are reserved in the memory of the program.
pub(crate) fn encode(call: &Call<'_>, bounds: &Bounds) -> Result<Bytes, Fault> {
    let of = |name: &str, why: Unsendable| match why {
        Unsendable::Invalid(why) => Unsendable::Invalid(format!("not JSON-encodable (argument '{}': {why})", excerpt(name))),
        other => other,
    };
    // The size consists of the brackets and, for each argument, its quoted name, a colon and a comma.
    let mut names = Vec::with_capacity(call.args.len());
    let (mut bytes, mut sizes) = (2_usize, Vec::with_capacity(call.args.len()));
    for (name, value) in &call.args {
        let name = super::mcp::wire::quoted(name);
        bytes = bytes.saturating_add(name.len() + 2);
        let room = MAX_ARGUMENT_BYTES.saturating_sub(bytes);
        let size = arguments::measure(value, room, bounds).map_err(|why| unsendable(call, of(&name, why)))?;
        bytes = bytes.saturating_add(size);
        names.push(name);
        sizes.push(size);
    }
    let reservation = bounds.reserve(bytes)?;
    let mut text = String::with_capacity(bytes);
    text.push('{');
    for (((arg, value), name), size) in call.args.iter().zip(&names).zip(&sizes) {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(name);
        text.push(':');
        arguments::encode(&mut text, value, *size, bounds).map_err(|why| unsendable(call, of(arg, why)))?;
    }
    text.push('}');
    Ok(arguments::counted(text, reservation))
}

fn unsendable(call: &Call<'_>, why: Unsendable) -> Fault {
    refused(call.upstream, call.tool, why)
}

/// Creates the fault of a call whose arguments cannot be sent.
pub(crate) fn refused(upstream: &Upstream, tool: &Tool, why: Unsendable) -> Fault {
    match why {
        Unsendable::Fault(fault) => fault,
        Unsendable::Invalid(why) => rejected(upstream, tool, &why),
        Unsendable::TooLarge => {
            let why = format!("they are longer than {MAX_ARGUMENT_BYTES} bytes as JSON, the limit of one call");
            rejected(upstream, tool, &why)
                .with_hint("send less with one call: a part of the data, or only the fields that the tool needs")
        }
    }
}
