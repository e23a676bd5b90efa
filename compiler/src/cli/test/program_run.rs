//! Runs the programs under test.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ptc_compiler::json::Json;
use ptc_compiler::source::Sources;
use ptc_lisp::Span;
use ptc_lisp::print::readable;
use ptc_runtime::embed::{Answer, Engine, Request, ToolFailure};
use ptc_runtime::evaluation::Failure as ProgramFailure;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::bench::{Bench, OWNER};
use super::edn::Edn;
use super::expand::RUN;
use super::injection::Injection;
use super::running::Running;

/// The arguments of the host tool that runs a program.
#[derive(Deserialize)]
pub(super) struct RunArguments {
    pub(super) test: u64,
    program: String,
    args: String,
    /// Whether a failure is a result of the tool.
    caught: bool,
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProgramRun {
    /// The file or the name of the program, as the test gives it.
    pub(super) name: String,
    /// The file. `None` for a stored program.
    pub(super) path: Option<PathBuf>,
    /// The arguments as canonical JSON.
    pub(super) args: String,
    /// The JSON Schema of its value that a case declares, as canonical JSON.
    pub(super) output_schema: Option<String>,
}

impl ProgramRun {
    /// Returns the program for reports, with its arguments if it has some.
    pub(super) fn described(&self) -> String {
        if self.args == "{}" { self.name.clone() } else { format!("{} {}", self.name, self.args) }
    }

    fn request(&self, running: &Running) -> Result<Request, String> {
        let request = match &self.path {
            None => Request::stored(&*self.name),
            Some(path) => Request::new(&*running.source(path.clone())?),
        };
        Ok(request.context_json(&*self.args))
    }
}

impl Bench {
    /// Returns a program that a file names.
    pub(super) fn program(&self, file: &Path, name: &str, args: String) -> ProgramRun {
        program(self.programs(), file, name, args)
    }

    /// Runs a program with the answers of an injection. Its value must have the declared shape.
    ///
    /// # Errors
    ///
    /// The text of the program cannot be read.
    pub(super) fn replay(&self, run: &ProgramRun, injection: Arc<Injection>) -> Result<Answer, String> {
        self.run_on(self.checked(), run, injection, run.output_schema.clone())
    }

    /// Runs a program with the limits of a server, and with a JSON Schema that the value must match.
    ///
    /// # Errors
    ///
    /// The text of the program cannot be read.
    pub(super) fn run_as_server(
        &self,
        run: &ProgramRun,
        injection: Arc<Injection>,
        schema: Option<String>,
    ) -> Result<Answer, String> {
        self.run_on(self.programs(), run, injection, schema)
    }

    fn run_on(
        &self,
        engine: &Engine,
        run: &ProgramRun,
        injection: Arc<Injection>,
        schema: Option<String>,
    ) -> Result<Answer, String> {
        let mut request = run.request(self.running())?;
        if let Some(schema) = schema {
            request = request.output_schema(schema);
        }
        let id = self.running().begin_run(self.player(), Some(injection));
        let answer = engine.run(request.on_behalf_of(OWNER, id).cancel(self.running().cancel()));
        self.running().end_run(id);
        Ok(answer)
    }

    /// Returns line and column of a form of a program, both from 1.
    pub(super) fn position(&self, run: &ProgramRun, span: Span) -> (usize, usize) {
        let mut sources = Sources::default();
        let file = sources.add("program", self.source(run));
        sources.position(file, span.start)
    }

    /// Returns the text of a program. Empty if it cannot be read.
    pub(super) fn source(&self, run: &ProgramRun) -> String {
        if let Some(path) = &run.path {
            return self.running().source(path.clone()).map(|text| text.to_string()).unwrap_or_default();
        }
        let stored = self.programs().programs().iter().find(|known| known.name == run.name);
        stored.map(|known| known.source.to_owned()).unwrap_or_default()
    }
}

/// Returns a program that a file names: a stored one, or a file beside it.
fn program(programs: &Engine, file: &Path, name: &str, args: String) -> ProgramRun {
    let is_stored = programs.programs().iter().any(|known| known.name == name);
    let path = (!is_stored).then(|| file.with_file_name(name));
    ProgramRun { name: name.to_owned(), path, args, output_schema: None }
}

/// Runs a program. Returns `{"ok": true, "value": …}` with a tagged value, or `{"ok": false, "message": …}`.
pub(super) async fn run_program(
    running: &Arc<Running>,
    programs: &Engine,
    run: RunArguments,
) -> Result<Box<RawValue>, ToolFailure> {
    let args = Edn::parse(&run.args).ok_or_else(|| ToolFailure::new("the arguments of a program are data, without functions"))?;
    let program = program(programs, &running.test_file(run.test), &run.program, args.to_json().canonical());
    // A test depends on its program also if that cannot be read, so that `--watch` waits for it.
    running.add_program(run.test, program.clone());
    let reader = Arc::clone(running);
    // A file that is slow to read does not keep other tests waiting.
    let request = tokio::task::spawn_blocking(move || program.request(&reader)).await;
    let request = request.map_err(|error| ToolFailure::new(error.to_string()))?.map_err(ToolFailure::new)?;
    let answer = programs.run_async(request.on_behalf_of(OWNER, run.test)).await;
    // A cassette without the answer must not pass for a program that fails.
    if let Some(message) = running.refusal(run.test).filter(|_| run.caught) {
        return Err(ToolFailure::new(format!("the program {}: {message}", run.program)));
    }
    let outcome = match (tagged(&answer), run.caught) {
        (Ok(value), _) => Json::object().with("ok", Json::Bool(true)).with("value", value),
        (Err(message), true) => Json::object().with("ok", Json::Bool(false)).with("message", Json::String(message)),
        (Err(message), false) => return Err(ToolFailure::new(format!("the program {}: {message}", run.program))),
    };
    Ok(RawValue::from_string(outcome.canonical())?)
}

/// Returns the value of a program, or why there is none.
fn tagged(answer: &Answer) -> Result<Json, String> {
    let value = readable(answer.value().map_err(sentence)?);
    let value =
        Edn::parse(&value).ok_or_else(|| "its value contains something that is not data, such as a function".to_owned())?;
    Ok(value.tagged())
}

/// Describes the failure of a test or a program. The lines of a test are those of its file, but not the columns and the excerpt, since
/// its forms are expanded.
pub(super) fn sentence(failure: &ProgramFailure) -> String {
    let own = format!("tool/{RUN}: ");
    let message = failure.message.replace(&own, "");
    // The hint about tools is not meant for those of the tests.
    let is_own = message != failure.message;
    let is_shown = |line: &&str| match line.trim_start() {
        line if line.starts_with("hint: ") => !is_own,
        line => line.starts_with("at line ") || line.starts_with("in ") && !line.starts_with("in ptc-test-"),
    };
    let mut text = format!("{}: {message}", failure.reason.name());
    for line in failure.feedback.lines().filter(is_shown) {
        text.push('\n');
        text.push_str(line.split_once(", column ").map_or(line, |(line, _)| line));
    }
    text
}
