//! The definitions of the tools in `tools/list`. Models receive them in every turn, so that they are as short as possible while a
//! model still writes correct programs.
//!
//! Their texts and schemas are in [`description`](crate::description).

use std::borrow::Cow;
use std::collections::BTreeSet;

use ptc_catalog::{Catalog, Deployment, StoredProgram};
use ptc_check::{CalledTool, Cost, Effects};
use ptc_lisp::{Program, STACK_BYTES};
use serde_json::{Value, json};

#[cfg(feature = "agentic")]
use crate::agentic;
use crate::description::{catalog, is_destructive, is_read_only, output, text};
use crate::session::tools::Tool as SessionTool;
use crate::settings::Settings;

/// The name of the tool that evaluates programs.
pub const TOOL_NAME: &str = "lisp_eval";

/// Returns the exact result of `tools/list` for clients of the handshake era.
pub fn tools_list_json(deployment: &Deployment, settings: &Settings) -> String {
    let tools = tools(deployment, settings, &|text| Cow::Borrowed(text));
    #[cfg(feature = "agentic")]
    let tools = with_tasks(tools, deployment, settings);
    format!(r#"{{"tools":{}}}"#, json!(tools))
}

/// Adds `lisp_task` after `lisp_eval`, which is always first, if the settings enable it.
#[cfg(feature = "agentic")]
fn with_tasks(mut tools: Vec<Value>, deployment: &Deployment, settings: &Settings) -> Vec<Value> {
    if settings.agentic.on && !deployment.catalog.upstreams.is_empty() {
        tools.insert(1, agentic::tool::planned(is_read_only(deployment, settings), deployment.catalog, settings));
    }
    tools
}

/// Returns the tools without `lisp_task`, which its planner defines. Texts of upstreams are passed through `clean`.
pub fn tools(deployment: &Deployment, settings: &Settings, clean: &dyn Fn(&str) -> Cow<'_, str>) -> Vec<Value> {
    let mut tool = json!({
        "name": TOOL_NAME,
        "description": description(deployment, settings, clean),
        "inputSchema": input_schema(),
        "annotations": annotations(deployment, settings),
    });
    let aggregator = !deployment.catalog.upstreams.is_empty();
    advertise(&mut tool, output::of_programs(settings.response_profile, aggregator, false));
    let mut tools = vec![tool];
    if settings.sessions {
        tools.extend(SessionTool::ALL.iter().map(|(name, session_tool)| session(name, *session_tool, deployment, settings)));
    }
    tools.extend(deployment.programs.iter().map(|program| stored(program, deployment, settings, clean)));
    if settings.diagnostics.tool {
        tools.push(crate::diagnostics::tool::described());
    }
    tools
}

/// The key of a stored program's digest in `_meta` of its tool.
const PROGRAM_KEY: &str = "ptc-compile/program";

/// Returns the definition of a stored program.
fn stored(program: &StoredProgram, deployment: &Deployment, settings: &Settings, clean: &dyn Fn(&str) -> Cow<'_, str>) -> Value {
    let schema = |text: &str| serde_json::from_str::<Value>(text).ok();
    let mut tool = json!({
        "name": program.name,
        "description": clean(program.description),
        "inputSchema": schema(program.args).unwrap_or_else(|| json!({ "type": "object" })),
        "annotations": program_annotations(program, deployment, settings),
        "_meta": { PROGRAM_KEY: program.digest },
    });
    // The protocol permits only schemas of objects. Other results are validated too.
    let output = schema(program.output_schema).filter(|schema| schema.get("type").and_then(Value::as_str) == Some("object"));
    advertise(&mut tool, output);
    tool
}

/// Returns the definition of a session tool. `lisp_session_eval` has the arguments and answers of `lisp_eval`.
fn session(name: &str, tool: SessionTool, deployment: &Deployment, settings: &Settings) -> Value {
    let (description, mut schema) = tool.described();
    let annotated = session_annotations(tool, deployment, settings);
    if tool == SessionTool::Eval {
        let mut shared = input_schema();
        let shared = shared.get_mut("properties").and_then(Value::as_object_mut).map(std::mem::take).unwrap_or_default();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.extend(shared);
        }
    }
    let mut told = json!({ "name": name, "description": description, "inputSchema": schema, "annotations": annotated });
    let aggregator = !deployment.catalog.upstreams.is_empty();
    let output = match tool.answered() {
        Some(members) => Some(output::of_data(members)),
        None => output::of_programs(settings.response_profile, aggregator, true),
    };
    advertise(&mut told, output);
    told
}

fn advertise(tool: &mut Value, output: Option<Value>) {
    if let (Some(output), Some(members)) = (output, tool.as_object_mut()) {
        members.insert("outputSchema".into(), output);
    }
}

fn description(deployment: &Deployment, settings: &Settings, clean: &dyn Fn(&str) -> Cow<'_, str>) -> String {
    if deployment.catalog.upstreams.is_empty() {
        return text::plain(settings);
    }
    let catalog = catalog::render(deployment.catalog, settings);
    format!("{}\n\n{}", text::with_upstreams(settings), clean(&catalog))
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "program": { "type": "string", "description": "PTC-Lisp source text." },
            "context": { "type": "object", "description": "Values for the program: key k is bound as data/k." },
            "output_schema": { "type": "object", "description": "JSON Schema 2020-12 that the result must match." },
        },
        "required": ["program"],
    })
}

fn annotations(deployment: &Deployment, settings: &Settings) -> Value {
    annotated(deployment, is_read_only(deployment, settings), is_destructive(deployment, settings))
}

/// Returns the annotations of a stored program. In a deployment that grants writes, they depend on the calls in its text.
fn program_annotations(program: &StoredProgram, deployment: &Deployment, settings: &Settings) -> Value {
    let of_deployment = (is_read_only(deployment, settings), is_destructive(deployment, settings));
    let (is_read_only, is_destructive) = match cost(program, deployment.catalog).filter(|_| !of_deployment.0) {
        Some(cost) => (cost.effects <= Effects::ReadOnly, cost.may_destroy && of_deployment.1),
        None => of_deployment,
    };
    annotated(deployment, is_read_only, is_destructive)
}

fn annotated(deployment: &Deployment, is_read_only: bool, is_destructive: bool) -> Value {
    let closed = deployment.catalog.upstreams.is_empty();
    json!({
        "readOnlyHint": is_read_only,
        "destructiveHint": is_destructive,
        "idempotentHint": closed,
        "openWorldHint": !closed,
    })
}

/// Returns the number of calls that a program can make, and their effects.
fn cost(program: &StoredProgram, catalog: &Catalog) -> Option<Cost> {
    analysed(program, |program| ptc_check::cost::estimate(program, catalog))
}

/// Returns the tools that a stored program may call.
pub(crate) fn called_tools(program: &StoredProgram) -> Option<BTreeSet<CalledTool>> {
    analysed(program, ptc_check::called_tools)
}

/// Analyses the text of a program on a thread with the stack that this may take.
fn analysed<T: Send>(program: &StoredProgram, analyse: impl Fn(&Program) -> T + Sync) -> Option<T> {
    let analysed = || Program::compile(program.source).ok().map(|program| analyse(&program));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("analysis".into()).stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, analysed).ok().and_then(|running| running.join().ok()).flatten()
    })
}

/// Returns the annotations of a session tool. The protocol's defaults for a tool that is not read-only are destructive and not
/// idempotent. Both hints are meaningless for a read-only tool and are omitted there.
fn session_annotations(tool: SessionTool, deployment: &Deployment, settings: &Settings) -> Value {
    match tool {
        SessionTool::List | SessionTool::Inspect => json!({ "readOnlyHint": true, "openWorldHint": false }),
        SessionTool::Start => json!({ "readOnlyHint": false, "destructiveHint": false, "openWorldHint": false }),
        // A repeated call of these has no further effect.
        SessionTool::Forget | SessionTool::Close => {
            json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false })
        }
        // `def` changes the session, and `(def n (inc n))` changes it again with every call, even if all upstreams are read-only.
        SessionTool::Eval => json!({
            "readOnlyHint": false,
            "destructiveHint": is_destructive(deployment, settings),
            "idempotentHint": false,
            "openWorldHint": !deployment.catalog.upstreams.is_empty(),
        }),
    }
}
