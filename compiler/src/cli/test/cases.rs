//! Reads files with cases, and runs them: programs with their arguments, and the value and the calls that are expected.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ptc_compiler::diag::Diagnostics;
use ptc_compiler::diag::render::{self, Style};
use ptc_compiler::json::Json;
use ptc_compiler::source::Sources;
use ptc_compiler::tree::{self, Syntax};
use ptc_lisp::json;
use ptc_runtime::embed::Answer;
use ptc_runtime::evaluation::Reason;
use ptc_runtime::schema::Schema;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::bench::{Bench, Inputs};
use super::edn::Edn;
use super::expected_calls::{self, ExpectedCall};
use super::file::{FileError, nearest_config};
use super::injection::{AsRecorded, Injection, SeenCall};
use super::outcome::{FailedAssertion, TestOutcome};
use super::program_run::sentence;

/// Maximum bytes of a value as JSON.
const MAX_VALUE_BYTES: usize = 16 * 1024 * 1024;

/// A case of a `*_cases.json` file, which is a list of them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Case")]
pub(crate) struct Case {
    /// The name, which is unique in the file.
    pub(super) name: String,
    /// The file of the program, relative to that of the case, or the name of a stored program.
    program: String,
    /// The arguments of the program, which reads them as `data/NAME`.
    #[serde(default)]
    arguments: serde_json::Map<String, Value>,
    /// The cassette with the answers, relative to the file of the case. Without one, every call fails.
    cassette: Option<PathBuf>,
    /// The config, relative to the file of the case. Without one, the nearest `upstreams.json` in the folder or above it.
    config: Option<PathBuf>,
    /// The expected value as JSON. Keywords are strings, and sets are arrays.
    #[serde(default, deserialize_with = "present")]
    expected: Option<Value>,
    /// A JSON Schema (2020-12) that the value must match with the answers of the cassette.
    expected_schema: Option<Value>,
    /// A JSON Schema (2020-12) that the value must match with all answers, also with those of `--faults` and `--properties`. It is used in
    /// place of that of a stored program.
    output_schema: Option<Value>,
    /// A text that the message of the failure must contain. The program must fail.
    expected_failure: Option<String>,
    /// All expected calls. Without this member, any calls are accepted.
    calls: Option<Vec<ExpectedCall>>,
    /// Whether the calls must start in the order of `calls`. Calls of `pmap` and `pcalls` have no order.
    #[serde(default)]
    calls_in_order: bool,
}

/// Distinguishes the value null from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A file with cases.
pub(super) struct CaseFile {
    /// The path as given.
    path: String,
    /// The name of the file without its end, as the namespace of the cases.
    stem: String,
    /// The cases with their lines.
    pub(super) cases: Vec<(usize, Case)>,
    /// The cases that cannot be run. The other cases of the file can be.
    pub(super) wrong: Vec<WrongCase>,
}

/// A case that cannot be run.
pub(super) struct WrongCase {
    /// The name of the case. `None` if the case has none.
    name: Option<String>,
    pub(super) error: FileError,
}

impl CaseFile {
    /// Reads a file.
    pub(super) fn read(path: &Path, text: &str) -> Result<CaseFile, FileError> {
        let name = path.display().to_string();
        let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
        let file = sources.add(&*name, text);
        let node = tree::parse_as(&sources, file, Syntax::STRICT, &mut diagnostics);
        let Some(node) = node.filter(|_| !diagnostics.has_errors()) else {
            return Err(FileError { line: 1, message: render::full(&sources, &diagnostics, Style::Plain).trim_end().to_owned() });
        };
        let items = node.elements();
        let items =
            items.ok_or_else(|| FileError { line: 1, message: format!("expected a list of cases, found {}", node.kind()) })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut read = CaseFile { path: name, stem, cases: Vec::new(), wrong: Vec::new() };
        for item in items {
            let (line, _) = sources.position(file, item.range.start);
            let json = Json::from(item);
            match read.case(&json) {
                Ok(case) => read.cases.push((line, case)),
                Err(message) => {
                    let name = json.get("name").and_then(Json::as_str).map(str::to_owned);
                    read.wrong.push(WrongCase { name, error: FileError { line, message } });
                }
            }
        }
        Ok(read)
    }

    /// Reads a case that follows the cases so far. Returns a sentence if the case cannot be run.
    fn case(&self, json: &Json) -> Result<Case, String> {
        let case: Case = serde_json::from_str(&json.canonical()).map_err(|error| {
            // The position in the canonical text is not that in the file.
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
            format!("not a case: {message}")
        })?;
        let kinds = [case.expected.is_some(), case.expected_schema.is_some(), case.expected_failure.is_some()];
        if kinds.into_iter().filter(|kind| *kind).count() > 1 {
            return Err("a case has one of `expected`, `expected_schema` and `expected_failure`".to_owned());
        }
        if case.calls_in_order && case.calls.is_none() {
            return Err("`calls_in_order` needs `calls`".to_owned());
        }
        if self.cases.iter().any(|(_, known)| known.name == case.name) {
            return Err(format!("there are two cases named {}", case.name));
        }
        Ok(case)
    }

    /// Returns the results of the cases that cannot be run and whose full names are selected. A case without a name is always selected.
    pub(super) fn wrong_outcomes(&self, is_selected: impl Fn(&str) -> bool) -> Vec<TestOutcome> {
        let outcome = |WrongCase { name, error }: &WrongCase| {
            let name = name.as_ref().map(|name| format!("{}/{name}", self.stem)).unwrap_or_default();
            TestOutcome { name, ..TestOutcome::of_file(&self.path, error.line, error.message.clone()) }
        };
        self.wrong.iter().map(outcome).filter(|outcome| outcome.name.is_empty() || is_selected(&outcome.name)).collect()
    }

    /// Returns the name of a case with that of its file.
    pub(super) fn full_name(&self, case: &Case) -> String {
        format!("{}/{}", self.stem, case.name)
    }

    /// Returns the config and the cassette of a case.
    pub(super) fn inputs(&self, case: &Case) -> Inputs {
        let beside = |path: &PathBuf| Path::new(&self.path).with_file_name(path);
        let config = case.config.as_ref().map(beside).or_else(|| nearest_config(Path::new(&self.path)));
        Inputs { path: self.path.clone(), config, cassette: case.cassette.as_ref().map(beside) }
    }

    /// Runs a case.
    pub(super) fn run(&self, line: usize, case: &Case, bench: &Bench) -> TestOutcome {
        let started = Instant::now();
        let arguments = Json::from(&Value::Object(case.arguments.clone())).canonical();
        let mut program = bench.program(Path::new(&self.path), &case.program, arguments);
        program.output_schema = case.output_schema.as_ref().map(|schema| Json::from(schema).canonical());
        let mut outcome = TestOutcome { file: self.path.clone(), name: self.full_name(case), line, ..TestOutcome::default() };
        let (_, schema) = case.schema_of_run();
        let injection = Arc::new(Injection::new(AsRecorded));
        match bench.run_as_server(&program, Arc::clone(&injection), schema.map(ToString::to_string)) {
            Err(message) => outcome.error = Some(message),
            Ok(answer) => {
                let seen = injection.seen();
                outcome.calls = seen.calls.iter().map(|call| format!("{}: {}", call.key, result(call))).collect();
                outcome.error = seen.unanswered.map(|call| format!("the cassette has no answer to {call}"));
                if outcome.error.is_none() {
                    case.judge(&answer, &seen.calls, line, &mut outcome);
                }
            }
        }
        outcome.programs.push(program);
        outcome.duration = started.elapsed();
        outcome
    }
}

fn result(call: &SeenCall) -> &'static str {
    call.outcome.as_ref().map_or_else(|fault| fault.reason.name(), |_| "ok")
}

impl Case {
    /// Returns the schema with which the program is run, and the name of its member.
    fn schema_of_run(&self) -> (&'static str, Option<&Value>) {
        match &self.output_schema {
            Some(schema) => ("output_schema", Some(schema)),
            None => ("expected_schema", self.expected_schema.as_ref()),
        }
    }

    /// Validates a value of the declared shape against `expected_schema`. Returns the first mismatch.
    ///
    /// # Errors
    ///
    /// The schema cannot be used.
    fn mismatch_with_expected(&self, answer: &Answer) -> Result<Option<String>, String> {
        let (Some(expected), Some(_)) = (&self.expected_schema, &self.output_schema) else { return Ok(None) };
        let unusable = |why: String| format!("`expected_schema` cannot be used: {why}");
        let decoded = |text: &str| json::decode(text.as_bytes()).map_err(|fault| unusable(fault.to_string()));
        let schema = Schema::compile(&decoded(&expected.to_string())?).map_err(|refused| unusable(refused.to_string()))?;
        let Some(validated) = answer.validated() else { return Ok(None) };
        match schema.validate(&decoded(validated)?, &|| false) {
            Ok(report) => Ok(report.mismatches.first().map(ToString::to_string)),
            Err(_) => Err(unusable("the value takes too long to check, or nests too deep".to_owned())),
        }
    }

    fn judge(&self, answer: &Answer, calls: &[SeenCall], line: usize, outcome: &mut TestOutcome) {
        let failed = |form: &str, expected: String, actual: String| {
            let form = form.to_owned();
            FailedAssertion { line, form, context: Vec::new(), message: None, expected, actual, differences: Vec::new() }
        };
        let has_more = self.output_schema.is_some() && (self.expected.is_some() || self.expected_schema.is_some());
        outcome.assertions += 1 + usize::from(has_more) + usize::from(self.calls.is_some());
        match (answer.value(), &self.expected_failure) {
            (Ok(value), Some(expected)) => {
                outcome.failures.push(failed("expected_failure", expected.clone(), ptc_lisp::print::readable(value)));
            }
            (Err(failure), Some(expected)) => {
                let message = failure.to_string();
                if !message.contains(&**expected) {
                    outcome.failures.push(failed("expected_failure", expected.clone(), message));
                }
            }
            (Err(failure), None) if failure.reason == Reason::ValidationError => {
                let (name, schema) = self.schema_of_run();
                let schema = schema.map(ToString::to_string).unwrap_or_default();
                outcome.failures.push(failed(name, schema, failure.message.clone()));
            }
            (Err(failure), None) => outcome.error = Some(sentence(failure)),
            (Ok(_), None) if self.expected_schema.is_some() => match self.mismatch_with_expected(answer) {
                Ok(None) => {}
                Ok(Some(mismatch)) => {
                    let schema = self.expected_schema.as_ref().map(ToString::to_string).unwrap_or_default();
                    outcome.failures.push(failed("expected_schema", schema, mismatch));
                }
                Err(message) => outcome.error = Some(message),
            },
            (Ok(value), None) => match (json::encode(value, MAX_VALUE_BYTES), &self.expected) {
                (_, None) => {}
                (Ok(actual), Some(expected)) => {
                    let (expected, actual) = (Json::from(expected), Json::parse(&actual).unwrap_or(Json::Null));
                    if expected.canonical() != actual.canonical() {
                        let [expected, actual] = [expected, actual].map(|json| Edn::from(&json).text());
                        outcome.failures.push(failed("expected", expected, actual).compared());
                    }
                }
                (Err(_), Some(expected)) => {
                    outcome.failures.push(failed("expected", expected.to_string(), ptc_lisp::print::readable(value)));
                }
            },
        }
        if let Some(expected) = &self.calls {
            let differing = if self.calls_in_order { expected_calls::in_order } else { expected_calls::in_any_order };
            if let Some((expected, actual)) = differing(expected, calls) {
                outcome.failures.push(failed("calls", expected, actual));
            }
        }
    }
}
