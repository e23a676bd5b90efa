//! Arguments that are written out, against the whole schema of their tool.
//!
//! Before a call the server compares types and lists of values only, and leaves the rest to the upstream. Whoever checks a program may
//! know before that the upstream is likely to refuse it.

use ptc_catalog::{Catalog, Tool};
use ptc_check::argument;
use ptc_lisp::{Program, Span, Value, json};
use ptc_runtime::schema::{Mismatch, Schema};

/// Bytes of one argument that are looked at.
pub(crate) const MOST_BYTES: usize = 1024 * 1024;

/// A constant argument that does not fit.
pub(crate) struct Misfit {
    /// Where it is written, or the name of it.
    pub(crate) span: Span,
    /// What does not fit.
    pub(crate) message: String,
    /// Where its schema is shown.
    pub(crate) hint: String,
}

/// The first misfit of every constant argument, those aside that the server refuses itself.
pub(crate) fn misfits(program: &Program, catalog: &Catalog) -> Vec<Misfit> {
    let mut out = Vec::new();
    for site in program.tool_calls_by_name() {
        let (Some(server), Some(name), Some(args)) = (&site.server, &site.tool, &site.args) else { continue };
        let Some(tool) = catalog.upstream(server).and_then(|upstream| upstream.tool(name)) else { continue };
        let constants = args.iter().filter_map(|(name, value)| Some((name, value.as_ref().filter(|value| !value.is_nil())?)));
        for (written, value) in constants {
            // A keyword in Lisp's spelling finds the schema's.
            let Some(arg) = tool.arg(written).or_else(|| tool.arg(&written.replace('-', "_"))) else { continue };
            if argument::fault(tool, arg, value).is_some() {
                continue;
            }
            let Some(misfit) = misfit(tool, arg.name, value) else { continue };
            let request = site.request.unwrap_or(site.span);
            let entry = |path: &[&str]| program.entry(request, path).map(|entry| entry.value);
            out.push(Misfit {
                span: entry(&["args", written]).or_else(|| entry(&["args"])).unwrap_or(request),
                message: format!("the schema of '{server}.{name}' does not allow '{}': {}", misfit.path, misfit.message()),
                hint: format!("(doc \"{server}/{name}\") shows its arguments"),
            });
        }
    }
    out
}

/// The first place where a constant is not what the schema of its argument asks for.
fn misfit(tool: &Tool, name: &str, value: &Value) -> Option<Mismatch> {
    // What is sent counts: keywords and dates are strings there.
    let sent = json::encode(value, MOST_BYTES).ok()?;
    let definition = json::decode(tool.definition.as_bytes()).ok()?;
    mismatch(&definition, name, &json::decode(sent.as_bytes()).ok()?)
}

/// The same of a value as JSON has it, by the definition of the tool. `None` too where there is no schema that is understood.
pub(crate) fn mismatch(definition: &Value, name: &str, value: &Value) -> Option<Mismatch> {
    let input = definition.get("inputSchema")?;
    let own = input.get("properties")?.get(name)?;
    // What the argument's own schema may refer to.
    let shared = ["$defs", "definitions"].into_iter().filter_map(|key| Some((Value::string(key), input.get(key)?.clone())));
    let parts = Value::vector(vec![own.clone()]);
    let schema = Schema::compile(&Value::map(shared.chain([(Value::string("allOf"), parts)]))).ok()?;
    schema.validate_named(name, value, &|| false).ok()?.mismatches.into_iter().next()
}
