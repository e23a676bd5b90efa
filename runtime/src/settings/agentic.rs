//! What an operator sets for `lisp_task`.

use std::path::PathBuf;
use std::time::Duration;

/// The planner: its model, its turns, its caps.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the documented switches")]
pub struct AgenticSettings {
    /// Whether `lisp_task` is offered.
    pub on: bool,
    /// An alias, `provider:model`, or the name of a model at `base_url`.
    pub model: String,
    /// An OpenAI-compatible endpoint, up to and without `/chat/completions`; `None` leaves it to the model's provider.
    pub base_url: Option<String>,
    /// The credential binding that holds the key; `None` leaves it to the model's provider.
    pub credential: Option<String>,
    /// Wall clock of one `lisp_task`.
    pub task_timeout: Duration,
    /// Wall clock of one question to the planner, repetitions included.
    pub planner_timeout: Duration,
    /// Tokens of one answer of the planner.
    pub max_output_tokens: u32,
    /// Bytes of an answer of `lisp_task`.
    pub max_result_bytes: usize,
    /// Whether an answer shows the last program.
    pub include_program: bool,
    /// Whether traces hold what the planner was asked and what it said.
    pub trace_prompts: bool,
    /// Programs that the planner may write; `None` leaves it to the config file, then to 1.
    pub max_turns: Option<u32>,
    /// Programs beyond that after an error; `None` leaves it to the config file, then to 0.
    pub retry_turns: Option<u32>,
    /// Whether tasks may run where not all tools are known to change nothing.
    pub allow_writes: bool,
    /// The config file.
    pub subagent_config: Option<PathBuf>,
    /// Bytes of the capability summary.
    pub summary_max_bytes: usize,
    /// A capability summary of the operator's; `None` generates one.
    pub summary: Option<PathBuf>,
}

impl AgenticSettings {
    /// What is wrong about settings that are each right.
    pub fn contradictions(&self) -> Vec<String> {
        let alone = self.allow_writes && !self.on;
        alone.then(|| "--agentic-allow-writes needs --agentic".to_owned()).into_iter().collect()
    }
}

/// A word: what names models and bindings.
pub(super) fn word(text: &str) -> Option<String> {
    let printable = !text.is_empty() && text.len() <= 200 && !text.contains(|c: char| c.is_control() || c.is_whitespace());
    printable.then(|| text.to_owned())
}
