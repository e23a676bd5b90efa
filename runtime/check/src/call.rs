//! One call in the text against the catalog. Wording and rules are those of the runtime, which checks every call again with
//! the values that it then has.

use ptc_catalog::{Arg, Catalog, Tool, Upstream};
use ptc_lisp::{ErrorKind, Program, Span, ToolCallSite, Value};

use crate::{Concern, Finding, argument, near_name};

/// Names that a hint lists before it says how many more there are.
const LISTED: usize = 30;

/// How a call is written.
const WRITTEN: &str = "write (tool/call {:server \"name\" :tool \"name\" :args {...}})";

pub(crate) fn check(program: &Program, site: &ToolCallSite, catalog: &Catalog, findings: &mut Vec<Finding>) {
    let request = site.request.unwrap_or(site.span);
    let whole =
        |path: &[&str]| path.get(..1).and_then(|first| program.entry(request, first)).map_or(request, |entry| entry.value);
    // What a name stands for is written somewhere else: then the name is the place.
    let key = |path: &[&str]| program.entry(request, path).map_or_else(|| whole(path), |entry| entry.key);
    let value = |path: &[&str]| program.entry(request, path).map_or_else(|| whole(path), |entry| entry.value);
    let finding = |concern, message, hint, span: Span| Finding { concern, message, hint, span };
    let (unknown, rejects) = (Concern::Fails(ErrorKind::UnknownTool), Concern::Fails(ErrorKind::ToolError));
    if let Some(message) = site.arity.clone() {
        return findings.push(finding(Concern::Fails(ErrorKind::ArityError), message, Some(WRITTEN.to_owned()), site.span));
    }
    if let Some(kind) = site.other_request {
        let message = format!("tool/call takes a map {{:server … :tool … :args {{…}}}}, got {}", kind.described());
        return findings.push(finding(rejects, message, Some(WRITTEN.to_owned()), site.span));
    }
    if let Some((message, hint, stray)) = malformed(site) {
        let span = stray.map_or(request, |name| key(&[name]));
        return findings.push(finding(rejects, message, Some(hint), span));
    }
    let Some(server) = &site.server else { return };
    let Some(upstream) = catalog.upstream(server) else {
        let hint = exists(server, "configured upstreams", catalog.upstreams.iter().map(|upstream| upstream.name));
        let message = format!("no upstream '{server}' configured");
        return findings.push(finding(unknown, message, Some(hint), value(&["server"])));
    };
    let Some(name) = &site.tool else { return };
    if upstream.tools.is_empty() {
        // Its tools may not have been asked for yet: the run will tell.
        return;
    }
    let Some(tool) = upstream.tool(name) else {
        let hint = exists(name, "its tools", upstream.tools.iter().map(|tool| tool.name));
        let message = format!("no tool '{name}' in upstream '{server}'");
        return findings.push(finding(unknown, message, Some(hint), value(&["tool"])));
    };
    if let Some(kind) = site.other_args {
        let message = rejected(upstream, tool, &format!(":args must be a map, got {}", kind.described()));
        return findings.push(finding(rejects, message, Some(documented(upstream, tool)), value(&["args"])));
    }
    let Some(args) = &site.args else { return };
    let missing: Vec<&str> = tool.args.iter().filter(|arg| arg.required && !is_given(arg, args)).map(|arg| arg.name).collect();
    if !missing.is_empty() {
        let message = rejected(upstream, tool, &format!("missing required args {}", missing.join(", ")));
        let hint = misspelt(tool, args, &missing).unwrap_or_else(|| documented(upstream, tool));
        findings.push(finding(rejects, message, Some(hint), value(&["args"])));
    }
    for (name, given) in args {
        if let Some(arg) = find(tool, name) {
            let literal = given.as_ref().filter(|value| !value.is_nil());
            if let Some(why) = literal.and_then(|value| argument::fault(arg, value)) {
                let message = rejected(upstream, tool, &why);
                findings.push(finding(rejects, message, Some(documented(upstream, tool)), value(&["args", name])));
            }
            continue;
        }
        let near = near_name(name, tool.args.iter().map(|arg| arg.name));
        if !tool.closed && near.is_none() {
            // An open object takes any name; without a near one there is nothing to say.
            continue;
        }
        let message = rejected(upstream, tool, &format!("unknown arg '{name}'"));
        let hint = exists(name, "its args", tool.args.iter().map(|arg| arg.name));
        findings.push(finding(if tool.closed { rejects } else { Concern::Doubtful }, message, Some(hint), key(&["args", name])));
    }
}

/// What is wrong with the keys of a request, whatever their values: message, hint, and the key that should not be there.
fn malformed(site: &ToolCallSite) -> Option<(String, String, Option<&str>)> {
    const KEYS: [&str; 3] = ["server", "tool", "args"];
    let keys = site.keys.as_ref()?;
    let is_known = |key: &Value| key.as_name().is_some_and(|name| KEYS.contains(&name));
    if let Some(stray) = keys.iter().find(|key| !is_known(key)) {
        let name = stray.as_name();
        let near = name.and_then(|name| near_name(name, KEYS));
        let hint = match near {
            Some(near) => format!("did you mean :{near}?"),
            None => "its keys are :server, :tool and :args; arguments of the tool go into :args".to_owned(),
        };
        let shown = name.map_or_else(|| argument::shown(stray), |name| format!("\"{name}\""));
        return Some((format!("tool/call got unknown key {shown}"), hint, name));
    }
    let lacking = KEYS.iter().take(2).find(|wanted| !keys.iter().any(|key| key.as_name() == Some(**wanted)))?;
    Some((format!("tool/call requires :{lacking} (string), got nil"), WRITTEN.to_owned(), None))
}

/// A keyword in Lisp's spelling finds the schema's: `:page-size` is `page_size`.
fn find(tool: &Tool, name: &str) -> Option<&'static Arg> {
    tool.arg(name).or_else(|| tool.arg(&name.replace('-', "_")))
}

/// `nil` leaves an argument out, unless the schema has a use for it.
fn is_given(arg: &Arg, args: &[(String, Option<Value>)]) -> bool {
    args.iter().any(|(name, value)| {
        let named = name == arg.name || name.replace('-', "_") == arg.name;
        let left_out = value.as_ref().is_some_and(Value::is_nil) && !arg.types.admits(ptc_catalog::Type::Null);
        named && !left_out
    })
}

/// That a missing argument is given under a name near its own.
fn misspelt(tool: &Tool, args: &[(String, Option<Value>)], missing: &[&str]) -> Option<String> {
    let mut unknown = args.iter().map(|(name, _)| name).filter(|name| find(tool, name).is_none());
    let (given, near) = unknown.find_map(|name| Some((name, near_name(name, missing.iter().copied())?)))?;
    Some(format!("did you mean '{near}' instead of '{given}'?"))
}

fn rejected(upstream: &Upstream, tool: &Tool, why: &str) -> String {
    format!("tool '{}.{}' rejected args: {why}", upstream.name, tool.name)
}

fn documented(upstream: &Upstream, tool: &Tool) -> String {
    format!("(doc \"{}/{}\") shows its arguments", upstream.name, tool.name)
}

/// A near name, or all names.
fn exists<'a>(wanted: &str, what: &str, names: impl ExactSizeIterator<Item = &'a str> + Clone) -> String {
    if let Some(near) = near_name(wanted, names.clone()) {
        return format!("did you mean '{near}'?");
    }
    let total = names.len();
    let listed = names.take(LISTED).collect::<Vec<_>>().join(", ");
    match total {
        0 => format!("{what}: none"),
        n if n > LISTED => format!("{what}: {listed}, … and {} more", n - LISTED),
        _ => format!("{what}: {listed}"),
    }
}
