//! Settings of `lisp_task`.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of the planner: model, turns, limits.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the documented switches")]
pub struct AgenticSettings {
    /// Whether `lisp_task` is offered.
    pub on: bool,
    /// An alias, `provider:model`, or the name of a model at `base_url`.
    pub model: String,
    /// URL of an OpenAI-compatible endpoint, without `/chat/completions`. `None` selects that of the model's provider.
    pub base_url: Option<String>,
    /// The credential binding with the key. `None` selects that of the model's provider.
    pub credential: Option<String>,
    /// Time limit of one `lisp_task`.
    pub task_timeout: Duration,
    /// Time limit of one request to the planner, including retries.
    pub planner_timeout: Duration,
    /// Maximum tokens of one answer of the planner.
    pub max_output_tokens: u32,
    /// Maximum bytes of an answer of `lisp_task`.
    pub max_result_bytes: usize,
    /// Whether an answer contains the last program.
    pub include_program: bool,
    /// Whether traces contain the planner's prompts and answers.
    pub trace_prompts: bool,
    /// Maximum number of programs of the planner. `None` uses the config file's value, or else 1.
    pub max_turns: Option<u32>,
    /// Number of additional programs after an error. `None` uses the config file's value, or else 0.
    pub retry_turns: Option<u32>,
    /// Whether tasks may run although a tool is not known to be read-only.
    pub allow_writes: bool,
    /// Path of the config file.
    pub subagent_config: Option<PathBuf>,
    /// Maximum bytes of the capability summary.
    pub summary_max_bytes: usize,
    /// Path of a capability summary. `None` generates one.
    pub summary: Option<PathBuf>,
}

impl AgenticSettings {
    /// Returns a sentence for each contradiction between settings.
    pub fn contradictions(&self) -> Vec<String> {
        let alone = self.allow_writes && !self.on;
        alone.then(|| "--agentic-allow-writes needs --agentic".to_owned()).into_iter().collect()
    }
}

/// Parses a word without white space, such as the name of a model or a binding.
pub(super) fn word(text: &str) -> Option<String> {
    let printable = !text.is_empty() && text.len() <= 200 && !text.contains(|c: char| c.is_control() || c.is_whitespace());
    printable.then(|| text.to_owned())
}
