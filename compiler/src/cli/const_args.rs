//! Checks constant arguments against the whole schema of their tool.
//!
//! Before a call the server compares only types and enumerations, and leaves the rest to the upstream. When a program is checked,
//! the whole schema is used, so that calls that the upstream is likely to refuse are found.

use ptc_catalog::{Catalog, Tool};
use ptc_check::{CallSpans, argument};
use ptc_lisp::{Program, Span, Value, json};
use ptc_runtime::schema::{Mismatch, Schema};

/// Maximum size of an argument that is checked, as JSON in bytes.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;

/// A constant argument that does not match its schema.
pub(crate) struct ArgMismatch {
    /// The position of the call, if the mismatch is in the call as it is written.
    written: Option<Span>,
    /// The position of the value, or of its name.
    pub(crate) span: Span,
    /// The mismatch.
    pub(crate) message: String,
    /// How to show the schema.
    pub(crate) hint: String,
}

/// Returns the first mismatch of every constant argument, except those that the server itself refuses.
pub(crate) fn mismatches(program: &Program, catalog: &Catalog) -> Vec<ArgMismatch> {
    let mut out: Vec<ArgMismatch> = Vec::new();
    let mut sites = program.tool_calls_by_name();
    sites.sort_by_key(|site| site.call.is_some());
    for site in sites {
        let (Some(server), Some(name), Some(args)) = (&site.server, &site.tool, &site.args) else { continue };
        let Some(tool) = catalog.upstream(server).and_then(|upstream| upstream.tool(name)) else { continue };
        let constants = args.iter().filter_map(|(name, value)| Some((name, value.as_ref().filter(|value| !value.is_nil())?)));
        for (written, value) in constants {
            // Programs may write an argument in kebab case where the schema has underscores.
            let Some(arg) = tool.arg(written).or_else(|| tool.arg(&written.replace('-', "_"))) else { continue };
            if argument::fault(tool, arg, value).is_some() {
                continue;
            }
            let Some(mismatch) = first_mismatch(tool, arg.name, value) else { continue };
            let message = format!("the schema of '{server}.{name}' does not allow '{}': {}", mismatch.path, mismatch.message());
            let span = CallSpans::new(program, &site).value(&["args", written]);
            // A mismatch that does not depend on the arguments of a function is found again in each call of the function.
            let is_same = |known: &ArgMismatch| known.written == Some(site.span) || known.span == span;
            if site.call.is_some() && out.iter().any(|known| known.message == message && is_same(known)) {
                continue;
            }
            out.push(ArgMismatch {
                written: site.call.is_none().then_some(site.span),
                span,
                message,
                hint: format!("(doc \"{server}/{name}\") shows its arguments"),
            });
        }
    }
    out
}

/// Returns the first mismatch of a constant with the schema of its argument.
fn first_mismatch(tool: &Tool, name: &str, value: &Value) -> Option<Mismatch> {
    // Compare the encoded value: keywords and dates are sent as strings.
    let sent = json::encode(value, MAX_BYTES).ok()?;
    let definition = json::decode(tool.definition.as_bytes()).ok()?;
    mismatch(&definition, name, &json::decode(sent.as_bytes()).ok()?)
}

/// Returns the first mismatch of a JSON value with the schema in the definition of the tool. Also returns `None` if the schema is
/// missing or unsupported.
pub(crate) fn mismatch(definition: &Value, name: &str, value: &Value) -> Option<Mismatch> {
    let input = definition.get("inputSchema")?;
    let own = input.get("properties")?.get(name)?;
    // The argument's own schema may refer to these definitions.
    let shared = ["$defs", "definitions"].into_iter().filter_map(|key| Some((Value::string(key), input.get(key)?.clone())));
    let parts = Value::vector(vec![own.clone()]);
    let schema = Schema::compile(&Value::map(shared.chain([(Value::string("allOf"), parts)]))).ok()?;
    schema.validate_named(name, value, &|| false).ok()?.mismatches.into_iter().next()
}
