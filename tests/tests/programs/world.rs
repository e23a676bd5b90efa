//! Starts the upstreams of the corpora, and an engine over them.

use std::fmt;

use ptc_compiler::serve::Source;
use ptc_runtime::embed::{Answer, Engine, Request};
use ptc_tests::mock::{mcp, openapi};
use tokio::runtime::Runtime;

use super::corpus::{self, Program};

/// An engine over upstreams that run until the process ends.
pub(crate) struct World {
    engine: Engine,
    runtime: Runtime,
}

/// The answer of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The preview of its value.
    pub(crate) value: String,
    pub(crate) prints: Vec<String>,
    /// The message and the hint, without the quoted line of the program.
    pub(crate) failure: Option<String>,
    pub(crate) note: Option<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { value, failure, note, .. } = self;
        match failure {
            Some(failure) => write!(f, "failed: {failure}"),
            None => write!(f, "{}, note: {note:?}", value.chars().take(160).collect::<String>()),
        }
    }
}

impl World {
    pub(crate) fn start() -> World {
        let folder = corpus::folder().join("upstreams");
        let shop = mcp::Server::read(&folder.join("shop.json")).serve_http();
        let wiki = mcp::Server::read(&folder.join("wiki.json")).serve_http();
        let tickets = openapi::serve(&folder.join("tickets.openapi.json"));
        let text = std::fs::read_to_string(folder.join("upstreams.json")).expect("the config");
        let text = text
            .replace("MOCK_UPSTREAM", env!("CARGO_BIN_EXE_mock-upstream"))
            .replace("FOLDER", &folder.to_string_lossy())
            .replace("SHOP_PORT", &shop.to_string())
            .replace("WIKI_PORT", &wiki.to_string())
            .replace("TICKETS_PORT", &tickets.to_string());
        let own = tempfile::tempdir().expect("a folder");
        let config = own.path().join("upstreams.json");
        std::fs::write(&config, text).expect("written");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let engine = runtime.block_on(async {
            let served = Source::file(&config).open().await.unwrap_or_else(|error| panic!("{error}"));
            served.engine().build().unwrap_or_else(|error| panic!("{error}"))
        });
        World { engine, runtime }
    }

    /// Returns the names of all tools as `upstream/tool`.
    pub(crate) fn tools(&self) -> Vec<String> {
        let listed = self.run(
            r#"(doseq [s (tool/servers) line (dir (:name s) {:limit 100})] (println (first (clojure.string/split line #" "))))"#,
        );
        assert_eq!(listed.failure, None);
        listed.prints
    }

    /// Runs a program, and returns its value as JSON or the message of its failure.
    pub(crate) fn json(&self, program: &str, context: &serde_json::Value) -> Result<serde_json::Value, String> {
        let request = Request::new(program).context(context).expect("a context").output_schema("{}");
        let answer = self.runtime.block_on(self.engine.run_async(request));
        answer.value().map_err(ToString::to_string)?;
        let text = answer.validated().expect("the value matches any schema");
        Ok(serde_json::from_str(text).expect("JSON"))
    }

    /// Runs programs one after the other, each with the definitions of those before it. Returns the outcome of the last one.
    pub(crate) fn session(&self, programs: &[&str]) -> Outcome {
        let mut last = self.runtime.block_on(self.engine.run_async(Request::new("nil")));
        for program in programs {
            last = self.runtime.block_on(self.engine.run_async(Request::new(*program).after(&last)));
        }
        Self::outcome(&last)
    }

    pub(crate) fn run(&self, program: &str) -> Outcome {
        Self::outcome(&self.runtime.block_on(self.engine.run_async(Request::new(program))))
    }

    fn outcome(answer: &Answer) -> Outcome {
        let evaluation = &answer.evaluation;
        let failure = evaluation.outcome.as_ref().err().map(|failure| {
            let hint = failure.feedback.split_once("hint: ").map_or("", |(_, hint)| hint);
            format!("{failure} {hint}")
        });
        let value = evaluation.outcome.as_ref().map(|value| value.text.clone()).unwrap_or_default();
        let note = (!evaluation.notes.is_empty()).then(|| evaluation.notes.join("\n"));
        Outcome { value, prints: answer.prints().to_vec(), failure, note }
    }
}

/// Prints the answer of a program if `PTC_PROGRAMS` is `print`.
pub(crate) fn report(program: &Program, outcome: &Outcome) {
    if std::env::var("PTC_PROGRAMS").is_ok_and(|wish| wish == "print") {
        println!("{}\n  {outcome}\n{}", program.place, outcome.prints.join("\n"));
    }
}
