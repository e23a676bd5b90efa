//! Runs a program with recorded answers.

use std::sync::Arc;

use ptc_compiler::json::Json;
use ptc_runtime::embed::Answer;

use crate::test::bench::Bench;
use crate::test::injection::{AsRecorded, Injection};
use crate::test::program_run::ProgramRun;

/// A run of a program with recorded answers.
pub(super) struct Replay {
    /// The answer, or why the program cannot be run.
    pub(super) answer: Result<Answer, String>,
    /// The upstream and the tool of each answered call, with the names of its arguments.
    pub(super) calls: Vec<((String, String), Vec<String>)>,
    /// Whether it made a call without a recorded answer.
    pub(super) is_unrecorded: bool,
}

impl Replay {
    pub(super) fn of(bench: &Bench, program: &ProgramRun) -> Replay {
        let injection = Arc::new(Injection::new(AsRecorded));
        let answer = bench.replay(program, Arc::clone(&injection));
        let seen = injection.seen();
        let calls = seen.calls.into_iter().map(|call| {
            let args = Json::parse(&call.args).unwrap_or(Json::Null);
            let names = args.members().iter().map(|(name, _)| name.clone()).collect();
            ((call.key.upstream.to_owned(), call.key.tool.to_owned()), names)
        });
        Replay { answer, calls: calls.collect(), is_unrecorded: seen.unanswered.is_some() }
    }
}
