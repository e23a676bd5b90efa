//! Checks one call in the text against the catalog. Wording and rules are those of the runtime, which checks every call again
//! with its actual values.

use ptc_text::join_limited;
use std::cell::OnceCell;
use std::collections::BTreeSet;

use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_lisp::{EntrySpans, ErrorKind, Program, Span, ToolCallSite, Value, WrittenMap};

use crate::argument_names::{self, MAX_COMPARED, Refusal};
use crate::call_options::{ACCEPT, BODY, IDEMPOTENCY_KEY, OPTIONS, option_refusal};
use crate::{Finding, FindingKind, MAX_FINDINGS, argument, meant_tool};
use ptc_text::closest_match;

/// Maximum number of names listed in a hint. The rest is counted.
const LISTED: usize = 30;

/// The syntax of a call, as hints show it.
const WRITTEN: &str = "write (tool/call {:server \"name\" :tool \"name\" :args {...}})";

pub(crate) fn check(program: &Program, site: &ToolCallSite, catalog: &Catalog, findings: &mut Vec<Finding>) {
    let request = site.request.unwrap_or(site.span);
    let spans = CallSpans::new(program, site);
    let key = |path: &[&str]| spans.key(path);
    let value = |path: &[&str]| spans.value(path);
    let named = |text: String| of_function(text, site.function);
    let finding = |kind, message, hint: Option<String>, span| Finding {
        kind,
        message: named(message),
        hint: hint.map(named),
        span: site.shown_at(span),
    };
    let (unknown, rejects) = (FindingKind::Fails(ErrorKind::UnknownTool), FindingKind::Fails(ErrorKind::ToolError));
    if let Some(message) = site.arity.clone() {
        return findings.push(finding(FindingKind::Fails(ErrorKind::ArityError), message, Some(WRITTEN.to_owned()), site.span));
    }
    if let Some(kind) = site.other_request {
        let message = format!("tool/call takes a map {{:server … :tool … :args {{…}}}}, got {}", kind.described());
        return findings.push(finding(rejects, message, Some(WRITTEN.to_owned()), site.span));
    }
    if let Some((message, hint, stray)) = malformed(site) {
        let span = stray.map_or(request, |name| key(&[name]));
        return findings.push(finding(rejects, message, Some(hint), span));
    }
    if let Some(max) = site.max.as_ref().filter(|max| !max.is_nil() && max.as_int().is_none_or(|max| max < 1)) {
        let message = format!("tool/all: :max must be a positive integer, got {}", argument::shown(max));
        let hint = "leave :max out for all items".to_owned();
        return findings.push(finding(rejects, message, Some(hint), value(&["max"])));
    }
    if let Some(found) = &site.bad_server {
        let message = requires_server(found, catalog);
        let meant = site.tool.as_deref().and_then(|tool| meant_tool(tool, None, catalog));
        let hint = meant.map_or_else(|| WRITTEN.to_owned(), did_you_mean);
        return findings.push(finding(rejects, message, Some(hint), value(&["server"])));
    }
    if site.server.as_deref() == Some("") {
        let message = requires_server(&Value::string(""), catalog);
        return findings.push(finding(rejects, message, Some(WRITTEN.to_owned()), value(&["server"])));
    }
    let upstream = site.server.as_deref().map(|server| (server, catalog.upstream(server)));
    if let Some((server, None)) = upstream {
        let names = catalog.upstreams.iter().map(|upstream| upstream.name);
        let is_near = closest_match(server, names.clone()).is_some();
        let meant = meant_tool(server, site.tool.as_deref(), catalog).filter(|_| !is_near);
        let hint = meant.map_or_else(|| exists(server, "configured upstreams", names), did_you_mean);
        let message = format!("no upstream '{server}' configured");
        return findings.push(finding(unknown, message, Some(hint), value(&["server"])));
    }
    if let Some(found) = &site.bad_tool {
        let message = requires_tool(site.server.as_deref(), found);
        return findings.push(finding(rejects, message, Some(WRITTEN.to_owned()), value(&["tool"])));
    }
    let Some((server, Some(upstream))) = upstream else { return };
    let Some(name) = &site.tool else { return };
    if name.is_empty() {
        let message = requires_tool(Some(server), &Value::string(""));
        return findings.push(finding(rejects, message, Some(WRITTEN.to_owned()), value(&["tool"])));
    }
    if upstream.tools.is_empty() {
        // The tools of this upstream may not have been fetched yet. The run reports an unknown tool.
        return;
    }
    let Some(tool) = upstream.tool(name) else {
        let names = upstream.tools.iter().map(|tool| tool.name);
        let is_near = closest_match(name, names.clone()).is_some();
        let meant = meant_tool(server, Some(name), catalog).filter(|_| !is_near);
        let hint = meant.map_or_else(|| exists(name, "its tools", names), did_you_mean);
        let message = format!("no tool '{name}' in upstream '{server}'");
        return findings.push(finding(unknown, message, Some(hint), value(&["tool"])));
    };
    let has_key = |name: &&str| site.keys.iter().flatten().any(|key| key.as_name() == Some(name));
    for option in OPTIONS.into_iter().filter(has_key) {
        if let Some(refusal) = option_refusal(upstream, tool, option) {
            let hint = format!("leave :{option} out; arguments of the tool go into :args");
            return findings.push(finding(rejects, refusal, Some(hint), key(&[option])));
        }
    }
    if let Some(kind) = site.other_args {
        let message = rejected(upstream, tool, &format!(":args must be a map, got {}", kind.described()));
        return findings.push(finding(rejects, message, Some(documented(upstream, tool)), value(&["args"])));
    }
    let Some(args) = &site.args else { return };
    let declared = |name: &str| argument_names::declared(tool, name, true);
    let given: BTreeSet<&str> = args
        .iter()
        .filter_map(|(name, value)| {
            let arg = declared(name)?;
            let is_left_out = value.as_ref().is_some_and(|value| argument_names::is_left_out(tool, arg, value));
            (!is_left_out).then_some(arg.name)
        })
        .collect();
    let undeclared = args.iter().map(|(name, _)| name.as_str()).filter(|name| declared(name).is_none());
    if let Some(Refusal { message, hint }) = argument_names::missing(tool, |name| given.contains(name), undeclared) {
        let hint = hint.unwrap_or_else(|| documented(upstream, tool));
        findings.push(finding(rejects, rejected(upstream, tool, &message), Some(hint), value(&["args"])));
    }
    let mut compared = 0;
    for (name, given) in args {
        if findings.len() >= MAX_FINDINGS {
            return;
        }
        if let Some(arg) = declared(name) {
            let literal = given.as_ref().filter(|value| !value.is_nil());
            if let Some(why) = literal.and_then(|value| argument::fault(tool, arg, value)) {
                let message = rejected(upstream, tool, &why);
                findings.push(finding(rejects, message, Some(documented(upstream, tool)), value(&["args", name])));
            }
            continue;
        }
        compared += 1;
        let near = if compared > MAX_COMPARED { None } else { argument_names::misspelt(tool, name) };
        if !tool.closed && near.is_none() {
            // An open object accepts any name. Only a similar declared name suggests a mistake.
            continue;
        }
        let Refusal { message, hint } = argument_names::unknown(tool, name, near);
        let kind = if tool.closed { rejects } else { FindingKind::Suspicious };
        findings.push(finding(kind, rejected(upstream, tool, &message), hint, key(&["args", name])));
    }
}

/// The ranges of the parts of a call.
#[derive(Debug)]
pub struct CallSpans<'p> {
    program: &'p Program,
    site: &'p ToolCallSite,
    /// The map is parsed at most once, and only if there is something to report.
    written: OnceCell<Option<WrittenMap<'p>>>,
}

impl<'p> CallSpans<'p> {
    /// The ranges of a call of this program.
    pub fn new(program: &'p Program, site: &'p ToolCallSite) -> Self {
        CallSpans { program, site, written: OnceCell::new() }
    }

    /// Returns the range of the key at a path in the request, such as `["args", "limit"]`, or of the part that contains it.
    pub fn key(&self, path: &[&str]) -> Span {
        self.entry(path).map_or_else(|| self.whole(path), |entry| entry.key)
    }

    /// Returns the range of the value at a path in the request, or of the part that contains it. The value of a name comes from
    /// another place in the text. In that case this is the name, or the literal that a call of a function passes for it.
    pub fn value(&self, path: &[&str]) -> Span {
        self.entry(path).map_or_else(|| self.whole(path), |entry| entry.value)
    }

    fn request(&self) -> Span {
        self.site.request.unwrap_or(self.site.span)
    }

    fn whole(&self, path: &[&str]) -> Span {
        let whole = path.get(..1).and_then(|path| self.entry(path)).map_or_else(|| self.request(), |entry| entry.value);
        self.site.shown_at(whole)
    }

    fn entry(&self, path: &[&str]) -> Option<EntrySpans> {
        let (first, rest) = path.split_first()?;
        if let Some((_, passed)) = self.site.passed.iter().find(|(key, _)| key == first) {
            return match rest {
                [] => Some(EntrySpans { key: *passed, value: *passed }),
                rest => self.program.entry(*passed, rest),
            };
        }
        let entry = self.written.get_or_init(|| self.program.written_map(self.request())).as_ref()?.entry(path)?;
        Some(EntrySpans { key: self.site.shown_at(entry.key), value: self.site.shown_at(entry.value) })
    }
}

/// Rewrites a text about `tool/call` for the function that the program calls.
fn of_function(text: String, function: &str) -> String {
    const CALL: &str = "tool/call";
    const WRITTEN: &str = "write (tool/call ";
    match (text.strip_prefix(CALL), text.strip_prefix(WRITTEN)) {
        _ if function == "call" => text,
        (Some(rest), _) => format!("tool/{function}{rest}"),
        (_, Some(rest)) => format!("write (tool/{function} {rest}"),
        _ => text,
    }
}

/// Formats the refusal of a request whose `:server` is not a name, before the run and in it.
pub fn requires_server(found: &Value, catalog: &Catalog) -> String {
    let names = listed(catalog.upstreams.iter().map(|upstream| upstream.name));
    format!("tool/call requires :server (string), got {}. Configured upstreams: {names}", argument::shown(found))
}

/// Formats the refusal of a request whose `:tool` is not a name, before the run and in it. `server` is `None` if it is computed
/// and the program has not run yet.
pub fn requires_tool(server: Option<&str>, found: &Value) -> String {
    let upstream = server.map_or_else(String::new, |server| format!(" on upstream '{server}'"));
    format!("tool/call{upstream} requires :tool (string), got {}", argument::shown(found))
}

/// Checks the keys of a request independently of their values. Returns message, hint, and the invalid key.
fn malformed(site: &ToolCallSite) -> Option<(String, String, Option<&str>)> {
    const KEYS: [&str; 7] = ["server", "tool", "args", ACCEPT, BODY, IDEMPOTENCY_KEY, "max"];
    let keys = if site.function == "all" { &KEYS[..] } else { &KEYS[..6] };
    let is_known = |key: &Value| key.as_name().is_some_and(|name| keys.contains(&name));
    let stray = site.keys.as_ref()?.iter().find(|key| !is_known(key))?;
    let name = stray.as_name();
    let near = name.and_then(|name| closest_match(name, keys.iter().copied()));
    let hint = match near {
        Some(near) => format!("did you mean :{near}?"),
        None if site.function == "all" => {
            "its keys are :server, :tool, :args and :max; arguments of the tool go into :args".to_owned()
        }
        None => "its keys are :server, :tool and :args; arguments of the tool go into :args".to_owned(),
    };
    let shown = name.map_or_else(|| argument::shown(stray), |name| format!("\"{name}\""));
    Some((format!("tool/call got unknown key {shown}"), hint, name))
}

fn rejected(upstream: &Upstream, tool: &Tool, why: &str) -> String {
    format!("tool '{}.{}' rejected args: {why}", upstream.name, tool.name)
}

fn documented(upstream: &Upstream, tool: &Tool) -> String {
    format!("(doc \"{}/{}\") shows its arguments", upstream.name, tool.name)
}

/// Suggests a tool in the syntax of a call.
fn did_you_mean((upstream, tool): (&Upstream, &Tool)) -> String {
    format!("did you mean {{:server {:?} :tool {:?}}}?", upstream.name, tool.name)
}

/// Suggests the most similar name, or else all names.
fn exists<'a>(wanted: &str, what: &str, names: impl ExactSizeIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = closest_match(wanted, names.clone()) {
        return format!("did you mean '{near}'?");
    }
    format!("{what}: {}", listed(names))
}

/// Lists the names, up to [`LISTED`].
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    if names.len() == 0 { "none".to_owned() } else { join_limited(names, ", ", LISTED) }
}
