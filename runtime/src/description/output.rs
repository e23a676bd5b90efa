//! The output schemas of tools: one for a success and one for an error, for every tool.
//!
//! Members that may be absent are not `required`, since a profile omits members without information.

use serde_json::{Map, Value, json};

use crate::session::Fault;
use ptc_engine::evaluation::Reason;
use ptc_engine::response::Profile;

fn text() -> Value {
    json!({ "type": "string" })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn object() -> Value {
    json!({ "type": "object" })
}

fn side(properties: &Value, required: &Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

/// Returns the output schema of a tool that runs programs, with or without a session. `None` if its answers are text only.
pub(crate) fn of_programs(profile: Profile, aggregator: bool, in_session: bool) -> Option<Value> {
    let required = match profile {
        Profile::Slim => return None,
        Profile::Structured => json!(["status"]),
        Profile::Debug => json!(["status", "prints", "feedback", "truncated"]),
    };
    let full = profile == Profile::Debug;
    let mut ok = json!({
        "status": { "const": "ok" }, "result": text(), "truncated": flag(), "output_truncated": flag(),
        "validated": {}, "validated_preview": text(), "validated_preview_truncated": flag(),
        "validated_bytes": { "type": "integer" },
    });
    let reason = if full { json!({ "enum": reasons(in_session) }) } else { text() };
    let mut error = json!({
        "status": { "const": "error" }, "reason": reason, "message": text(), "feedback": text(), "result": text(),
        "truncated": flag(), "output_truncated": flag(), "feedback_truncated": flag(),
    });
    for side in [&mut ok, &mut error] {
        add(side, [("prints", json!({ "type": "array", "items": text() })), ("prints_truncated", flag())]);
    }
    let calls = || json!({ "type": "array", "items": object() });
    if full || aggregator {
        add(&mut ok, [("feedback", text())]);
    }
    if aggregator {
        add(&mut error, [("upstream_calls", calls())]);
        if full {
            add(&mut ok, [("upstream_calls", calls()), ("ptc_metrics", object())]);
            add(&mut error, [("ptc_metrics", object())]);
        }
    }
    if in_session {
        // A session that was closed while the program ran is null.
        let session = || json!({ "type": ["object", "null"] });
        add(&mut ok, [("session", session()), ("memory", object())]);
        add(&mut error, [("session", session())]);
    }
    let error = side(&error, &json!(["status", "reason", "message"]));
    Some(json!({ "type": "object", "oneOf": [side(&ok, &required), error] }))
}

/// Returns the reasons of failures.
fn reasons(in_session: bool) -> Vec<&'static str> {
    let faults: &[&str] = if in_session { &Fault::REASONS } else { &[] };
    let own = Reason::ALL.iter().map(|reason| reason.name()).filter(|name| !Fault::REASONS.contains(name));
    own.chain(faults.iter().copied()).collect()
}

/// Returns the output schema of a session tool that runs no program. All these members are required.
pub fn of_data(members: &[(&'static str, &'static str)]) -> Value {
    let mut properties = Map::new();
    properties.insert("status".into(), json!({ "const": "ok" }));
    properties.extend(members.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind }))));
    let required: Vec<&str> = std::iter::once("status").chain(members.iter().map(|(name, _)| *name)).collect();
    json!({ "type": "object", "oneOf": [side(&json!(properties), &json!(required)), refused()] })
}

/// Returns the schema of an error of a tool that answers with data.
pub fn refused() -> Value {
    side(
        &json!({ "status": { "const": "error" }, "reason": text(), "message": text(), "feedback": text() }),
        &json!(["status", "reason", "message"]),
    )
}

fn add<const N: usize>(to: &mut Value, more: [(&str, Value); N]) {
    if let Some(members) = to.as_object_mut() {
        members.extend(more.map(|(name, schema)| (name.to_owned(), schema)));
    }
}
