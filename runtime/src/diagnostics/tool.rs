//! The tool `lisp_debug`, with which a model inspects earlier calls.

use jiff::{SignedDuration, Timestamp};
use ptc_lisp::print::excerpt;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::record::{ID_BYTES, Outcome, Record, shown_id};
use super::{Diagnostics, stats};
use crate::description::output;
use ptc_engine::protocol::message::{Arguments, kind, string};

/// The tool's name.
pub const NAME: &str = "lisp_debug";

const OPERATIONS: [&str; 3] = ["stats", "recent", "get"];
/// The names of its arguments.
const ARGUMENTS: [&str; 5] = ["op", "request_id", "limit", "errors_only", "since_seconds"];
const MAX_RECENT: u64 = 200;
const MAX_SECONDS: u64 = 86_400;

/// Returns the definition of the tool for `tools/list`.
pub fn described() -> Value {
    json!({
        "name": NAME,
        "description": "How this server is doing. stats: calls, errors, durations, upstream calls. recent: the last calls, newest \
            first. get: one call by its request_id.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "op": { "type": "string", "enum": OPERATIONS },
                "request_id": { "type": ["string", "integer"], "maxLength": ID_BYTES, "description": "For get." },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_RECENT, "description": "For recent; 20 by default." },
                "errors_only": { "type": "boolean", "description": "For recent." },
                "since_seconds": { "type": "integer", "minimum": 1, "maximum": MAX_SECONDS },
            },
            "required": ["op"],
            "additionalProperties": false,
        },
        "outputSchema": { "type": "object", "oneOf": [shape("stats"), shape("recent"), shape("get"), output::refused()] },
        "annotations": { "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false },
    })
}

/// Returns the schema of an operation's answer, which `op` identifies. Members that a long answer omits are not required.
fn shape(operation: &str) -> Value {
    let members: &[(&str, &str)] = match operation {
        "stats" => &[("window", "object"), ("errors", "object"), ("ring_size", "integer"), ("ring_count", "integer")],
        "recent" => &[("count", "integer"), ("calls", "array")],
        _ => &[("request_id", "string"), ("found", "boolean"), ("source", "string")],
    };
    let mut properties = Map::new();
    properties.insert("op".into(), json!({ "const": operation }));
    properties.extend(members.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind }))));
    let required: Vec<&str> = properties.keys().map(String::as_str).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Returns the members of an answer, which contains nothing of other owners.
///
/// # Errors
///
/// Returns the message of an `args_error` if an argument is unknown, missing, of another type than expected or out of range.
pub fn answer(diagnostics: &Diagnostics, owner: &str, arguments: &Arguments<'_>) -> Result<Map<String, Value>, String> {
    check_names(arguments)?;
    let operation = read_operation(arguments)?;
    let since = integer(arguments, "since_seconds", MAX_SECONDS)?
        .map(|seconds| Timestamp::now() - SignedDuration::from_secs(seconds.cast_signed()));
    let (policy, most) = (diagnostics.settings.payloads, diagnostics.settings.max_response_bytes);
    let head = json!({ "op": operation, "payload_policy": policy.name(), "redaction_applied": true });
    let mut shown = if let Value::Object(head) = head { head } else { Map::new() };
    match operation {
        "stats" => {
            let ring = diagnostics.ring();
            let records: Vec<&Record> = ring.newest(owner, since).collect();
            shown.extend(stats::compute(&records, diagnostics.with_upstreams));
            shown.insert("debug_source".into(), "ring_buffer".into());
            shown.insert("ring_size".into(), diagnostics.settings.ring_size.into());
            shown.insert("ring_count".into(), ring.newest(owner, None).count().into());
            shown.insert("trace_dir_enabled".into(), diagnostics.traces.is_some().into());
        }
        "recent" => {
            let limit = integer(arguments, "limit", MAX_RECENT)?.unwrap_or(20) as usize;
            let errors_only = boolean(arguments, "errors_only")?;
            let ring = diagnostics.ring();
            let records =
                ring.newest(owner, since).filter(|record| !errors_only || matches!(record.outcome, Outcome::Error { .. }));
            let records: Vec<&Record> = records.take(limit).collect();
            let sizes: Vec<usize> = records.iter().map(|record| json_len(&record.brief())).collect();
            // Values need many times the memory of their text. Only calls that fit are converted.
            let mut count = records.len();
            while sizes.iter().take(count).sum::<usize>() > most {
                count /= 2;
            }
            if count < records.len() {
                shown.insert("truncated".into(), true.into());
            }
            let calls: Vec<Value> = records.into_iter().take(count).map(|record| json!(record.brief())).collect();
            shown.insert("count".into(), count.into());
            shown.insert("calls".into(), calls.into());
        }
        _ => {
            let id = shown_id(&request_id(arguments)?, &diagnostics.redactor);
            let found = {
                let ring = diagnostics.ring();
                let found = ring.newest(owner, since).find(|record| record.request_id == id);
                found.map(|record| {
                    let whole = record.whole();
                    (record.trace.clone(), (json_len(&whole) <= most).then(|| json!(whole)))
                })
            };
            // The lock of the ring is released, so that calls that end meanwhile do not wait for a file.
            let trace = found.as_ref().and_then(|(name, _)| diagnostics.traces.as_ref()?.lines(name.as_deref()?, most));
            shown.insert("source".into(), if trace.is_some() { "trace_file" } else { "ring_buffer" }.into());
            shown.insert("found".into(), found.is_some().into());
            shown.insert("request_id".into(), id.into());
            let record = match (trace, found) {
                (Some(lines), _) => Some((!lines.is_empty()).then(|| Value::from(lines))),
                (None, Some((_, record))) => Some(record),
                (None, None) => None,
            };
            match record {
                Some(Some(record)) => drop(shown.insert("record".into(), record)),
                Some(None) => drop(shown.insert("truncated".into(), true.into())),
                None => {}
            }
        }
    }
    Ok(within(shown, most))
}

/// Returns the length of a value's JSON text.
fn json_len(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX, |()| counter.0)
}

/// Truncates an answer to a number of bytes, and marks the truncation.
fn within(mut shown: Map<String, Value>, most: usize) -> Map<String, Value> {
    let bytes = |shown: &Map<String, Value>| serde_json::to_string(shown).map_or(0, |text| text.len());
    if bytes(&shown) <= most {
        return shown;
    }
    shown.insert("truncated".into(), true.into());
    // Removes the older half of the listed calls until the answer fits.
    while bytes(&shown) > most
        && let Some(Value::Array(calls)) = shown.get_mut("calls")
        && !calls.is_empty()
    {
        calls.truncate(calls.len() / 2);
        let count = calls.len();
        shown.insert("count".into(), count.into());
    }
    for part in ["payload_reduction", "by_tool", "upstream_calls", "record"] {
        if bytes(&shown) > most {
            shown.remove(part);
        }
    }
    shown
}

fn check_names(arguments: &Arguments<'_>) -> Result<(), String> {
    arguments.check()?;
    let Some((name, _)) = arguments.members.iter().find(|(name, _)| !ARGUMENTS.contains(&&**name)) else { return Ok(()) };
    Err(format!("unknown argument `{}`: it takes {}", excerpt(name), ARGUMENTS.join(", ")))
}

fn read_operation(arguments: &Arguments<'_>) -> Result<&'static str, String> {
    let all = OPERATIONS.join(", ");
    let Some(raw) = arguments.get("op") else { return Err(format!("argument `op` is required (one of: {all})")) };
    let named = string(raw).and_then(|name| OPERATIONS.into_iter().find(|operation| *operation == name));
    named.ok_or_else(|| format!("argument `op` must be one of {all} (got: {})", excerpt(raw)))
}

fn integer(arguments: &Arguments<'_>, name: &str, most: u64) -> Result<Option<u64>, String> {
    let Some(raw) = arguments.get(name).filter(|raw| *raw != "null") else { return Ok(None) };
    if kind(raw) != "integer" {
        return Err(format!("argument `{name}` must be an integer (got: {})", excerpt(raw)));
    }
    let number = raw.parse().ok().filter(|number| (1..=most).contains(number));
    number.map(Some).ok_or_else(|| format!("argument `{name}` must be between 1 and {most} (got: {})", excerpt(raw)))
}

fn boolean(arguments: &Arguments<'_>, name: &str) -> Result<bool, String> {
    match arguments.get(name) {
        None | Some("null" | "false") => Ok(false),
        Some("true") => Ok(true),
        Some(raw) => Err(format!("argument `{name}` must be a boolean (got: {})", excerpt(raw))),
    }
}

fn request_id(arguments: &Arguments<'_>) -> Result<String, String> {
    let raw = arguments.get("request_id").ok_or("argument `request_id` is required for op=get")?;
    // The id of a request may be a number, which is looked up by its digits.
    let id = if kind(raw) == "integer" { Some(raw.into()) } else { string(raw) };
    let id = id.ok_or_else(|| format!("argument `request_id` must be a string or an integer (got: {})", kind(raw)))?;
    if id.len() > ID_BYTES { Err(format!("argument `request_id` exceeds {ID_BYTES} bytes")) } else { Ok(id.into_owned()) }
}
