//! Runs `schema`, which prints the JSON Schemas of files and of machine-readable output. Except for that of the config, they are
//! derived from the types that are written.

mod lock;

use clap::ValueEnum;
use ptc_compiler::config;
use ptc_compiler::diag::render::Finding;
use ptc_runtime::command::BinaryVersion;
use ptc_runtime::diagnostics::lines::{Brief, Line, Whole};
use ptc_runtime::response::metrics::Metrics;
use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use crate::build::BuildResult;
use crate::explain::ExplainedCode;
use crate::operations::OperationLine;
use crate::policy::PolicyExplanation;
use crate::progress::ProgressEvent;
use crate::test::cases::Case;
use crate::test::report::json::{CheckLine, CoverageLine, Summary, TestLine};
use crate::version::CompilerVersion;

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// `upstreams.json`
    Config,
    /// `upstreams.lock.json`
    Lock,
    /// A line of findings with --format json
    Findings,
    /// Another line of --json: of a build, `operations`, `explain` or `policy explain`, or of progress on standard error
    Results,
    /// `version --json`, of ptc-compile or a pinned binary
    Version,
    /// A line of `test --format json`
    Tests,
    /// `*_cases.json`, which `test` runs
    Cases,
    /// A line of a trace file
    Trace,
    /// `ptc_metrics` of an answer
    Metrics,
    /// A call that `lisp_debug` shows
    Debug,
}

/// Returns the schema (2020-12) of a kind.
pub(crate) fn schema(kind: Kind) -> Value {
    let written = |description, parts| any_of(Contract::Serialize, description, parts);
    match kind {
        Kind::Config => config::schema::schema(),
        // Its types are only described, and optional members are not null.
        Kind::Lock => any_of(Contract::Deserialize, "The lock file of a config.", &[part::<lock::LockFile>]),
        Kind::Findings => written("A finding.", &[part::<Finding<'_>>]),
        Kind::Results => {
            let parts = &[
                part::<BuildResult<'_>>,
                part::<OperationLine<'_>>,
                part::<ExplainedCode>,
                part::<PolicyExplanation>,
                part::<ProgressEvent<'_>>,
            ];
            written(
                "A result of a build, of `operations`, of `explain` or of `policy explain`, or progress on standard error.",
                parts,
            )
        }
        Kind::Version => written("A version.", &[part::<CompilerVersion>, part::<BinaryVersion>]),
        Kind::Tests => {
            let parts = &[part::<TestLine<'_>>, part::<CheckLine<'_>>, part::<CoverageLine<'_>>, part::<Summary>];
            written("A test, a program that was run with other answers, the coverage of a program, or the numbers of all.", parts)
        }
        // Optional members are not null.
        Kind::Cases => any_of(Contract::Deserialize, "The cases of programs.", &[part::<Vec<Case>>]),
        Kind::Trace => written("A line of a trace file.", &[part::<Line<'_>>]),
        Kind::Metrics => written("The metrics of a call.", &[part::<Metrics>]),
        Kind::Debug => written(
            "A call in `calls` of `recent`, or `record` of `get`, which is the list of lines of the trace file if there is one.",
            &[part::<Brief<'_>>, part::<Whole<'_>>, part::<Vec<Line<'_>>>],
        ),
    }
}

fn part<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Returns the schema of a value that has one of these types.
fn any_of(contract: Contract, description: &str, parts: &[fn(&mut SchemaGenerator) -> Schema]) -> Value {
    let mut generator = SchemaSettings::draft2020_12().with(|settings| settings.contract = contract).into_generator();
    let parts: Vec<Schema> = parts.iter().map(|part| part(&mut generator)).collect();
    json!({
        "$schema": generator.settings().meta_schema,
        "description": description,
        "anyOf": parts,
        "$defs": generator.take_definitions(true),
    })
}
