//! The output schema of a tool, with which changed and generated answers are checked.

use ptc_catalog::Tool;
use ptc_compiler::json::Json;
use ptc_lisp::json;
use ptc_runtime::schema::Schema;

/// What the definition of a tool states about its answers.
pub(super) struct Promise {
    /// The output schema, and its compiled form. `None` if there is none, or none that can be used: any answer is possible then.
    schema: Option<(Json, Schema)>,
}

impl Promise {
    pub(super) fn new(tool: &Tool) -> Promise {
        let schema = Json::parse(tool.definition).and_then(|definition| definition.get("outputSchema").cloned());
        let compiled = schema.and_then(|schema| {
            let compiled = Schema::compile(&json::decode(schema.canonical().as_bytes()).ok()?).ok()?;
            Some((schema, compiled))
        });
        Promise { schema: compiled }
    }

    /// Returns the promise, unless the recorded answer breaks it: then nothing can be relied on.
    pub(super) fn kept_by(self, recorded: &Json) -> Promise {
        if self.permits(recorded) { self } else { Promise { schema: None } }
    }

    /// Returns the output schema.
    pub(super) fn schema(&self) -> Option<&Json> {
        self.schema.as_ref().map(|(schema, _)| schema)
    }

    /// Whether a tool with this promise may give the answer.
    pub(super) fn permits(&self, answer: &Json) -> bool {
        let Some((_, schema)) = &self.schema else { return true };
        let Ok(value) = json::decode(answer.canonical().as_bytes()) else { return false };
        schema.validate(&value, &|| false).is_ok_and(|report| report.mismatches.is_empty())
    }
}
