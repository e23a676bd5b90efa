//! The definition of `lisp_task` for clients.

use std::borrow::Cow;

use ptc_catalog::Catalog;
use serde_json::{Value, json};

use super::plan::Plan;
use super::{NAME, summary};
use crate::settings::Settings;

/// Returns the definition for `tools/list`. Texts of upstreams are passed through `clean`.
pub fn described(plan: &Plan, catalog: &Catalog, clean: &dyn Fn(&str) -> Cow<'_, str>) -> Value {
    shown(plan.read_only, &told(plan, catalog), clean)
}

/// Like [`described`], before there is a plan and with a generated summary.
pub fn planned(read_only: bool, catalog: &Catalog, settings: &Settings) -> Value {
    let summary = summary::summarize(catalog, settings.catalog_mode, settings.agentic.summary_max_bytes);
    shown(read_only, &summary, &|text| Cow::Borrowed(text))
}

fn shown(read_only: bool, summary: &str, clean: &dyn Fn(&str) -> Cow<'_, str>) -> Value {
    json!({
        "name": NAME,
        "description": description(summary, clean),
        "inputSchema": {
            "type": "object",
            "properties": {
                "task": { "type": "string", "description": "What you want, in plain words." },
                "context": { "type": "object", "description": "Values for the task, as JSON." },
                "constraints": { "type": "object", "description": "Wishes: max_items, preferred_fields." },
            },
            "required": ["task"],
        },
        "outputSchema": output_schema(),
        "annotations": {
            "readOnlyHint": read_only,
            "destructiveHint": !read_only,
            "idempotentHint": false,
            "openWorldHint": true,
        },
    })
}

/// Returns the capability summary, which the operator provides or which is generated from the catalog.
pub fn told(plan: &Plan, catalog: &Catalog) -> String {
    let generated = || summary::summarize(catalog, plan.server.catalog_mode, plan.settings.summary_max_bytes);
    plan.summary.clone().unwrap_or_else(generated)
}

fn description(summary: &str, clean: &dyn Fn(&str) -> Cow<'_, str>) -> String {
    let mut text =
        "Does a bounded task over this server's upstreams: say in plain words what you want to have. The server plans and \
                    makes the calls itself; you need no names of tools and write no program."
            .to_owned();
    if !summary.trim().is_empty() {
        text.push_str("\n\nIt can reach:\n");
        text.push_str(&clean(summary.trim_end()));
    }
    text
}

fn output_schema() -> Value {
    let objects = json!({ "type": "array", "items": { "type": "object" } });
    let object = json!({ "type": "object" });
    let text = json!({ "type": "string" });
    let both = |mut own: Value| {
        if let Some(members) = own.as_object_mut() {
            for (name, schema) in [
                ("warnings", &objects),
                ("planner", &object),
                ("execution", &object),
                ("upstream_calls", &objects),
                ("ptc_metrics", &object),
            ] {
                members.insert(name.into(), schema.clone());
            }
            members.insert("program".into(), text.clone());
        }
        own
    };
    json!({
        "type": "object",
        "oneOf": [
            {
                "type": "object",
                "properties": both(json!({ "status": { "const": "ok" }, "answer": text, "structured_result": {} })),
                "required": ["status", "answer", "structured_result", "warnings", "planner", "execution", "upstream_calls"],
            },
            {
                "type": "object",
                "properties": both(json!({ "status": { "const": "error" }, "reason": text, "message": text, "feedback": text })),
                "required": ["status", "reason", "message"],
            },
        ],
    })
}
