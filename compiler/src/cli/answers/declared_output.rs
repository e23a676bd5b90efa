//! The output schema of a tool, with which changed and generated answers are checked.

use ptc_catalog::Tool;
use ptc_compiler::json::Json;
use ptc_compiler::json_schema;
use ptc_lisp::json;
use ptc_runtime::schema::Schema;

use super::paths::Step;

/// What the definition of a tool declares about its answers.
pub(crate) struct DeclaredOutput {
    /// The output schema, and its compiled form. `None` if there is none, or none that can be used: any answer is possible then.
    schema: Option<(Json, Schema)>,
}

impl DeclaredOutput {
    pub(crate) fn new(tool: &Tool) -> DeclaredOutput {
        let schema = Json::parse(tool.definition).and_then(|definition| definition.get("outputSchema").cloned());
        DeclaredOutput::from_schema(schema)
    }

    /// Makes the declaration of an output schema.
    pub(crate) fn from_schema(schema: Option<Json>) -> DeclaredOutput {
        let compiled = schema.and_then(|schema| {
            let compiled = Schema::compile(&json::decode(schema.canonical().as_bytes()).ok()?).ok()?;
            Some((schema, compiled))
        });
        DeclaredOutput { schema: compiled }
    }

    /// Returns the declaration, unless a recorded answer does not match it. Then any answer is possible.
    pub(crate) fn unless_refuted_by(self, recorded: &Json) -> DeclaredOutput {
        if self.permits(recorded) { self } else { DeclaredOutput { schema: None } }
    }

    /// Returns the output schema.
    pub(crate) fn schema(&self) -> Option<&Json> {
        self.schema.as_ref().map(|(schema, _)| schema)
    }

    /// Returns the part of the output schema that describes the values at a path.
    pub(crate) fn at(&self, path: &[Step]) -> Option<(json_schema::Schema<'_>, &Json)> {
        let root = self.schema()?;
        let schema = json_schema::Schema::new(root);
        let mut node = root;
        for step in path {
            let body = schema.body(node);
            node = match step {
                Step::Items => schema.keyword(body, "items"),
                Step::Member(name) => schema.members(body).get(name),
            }?;
        }
        let body = schema.body(node);
        Some((schema, body))
    }

    /// Whether the answer matches the declaration.
    pub(crate) fn permits(&self, answer: &Json) -> bool {
        let Some((_, schema)) = &self.schema else { return true };
        let Ok(value) = json::decode(answer.canonical().as_bytes()) else { return false };
        schema.validate(&value, &|| false).is_ok_and(|report| report.mismatches.is_empty())
    }
}
