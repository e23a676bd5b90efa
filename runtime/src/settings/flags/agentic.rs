//! Settings of `lisp_task`.

use std::time::Duration;

use super::super::agentic::word;
use super::super::flag::{Default, Flag, Group, Kind, base_url};
use super::{DAY_MS, GIB};

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    Flag {
        name: "agentic",
        env: "PTC_RUNNER_MCP_AGENTIC",
        kind: Kind::Switch { set: |s, on| s.agentic.on = on },
        default: Default::Fixed("false"),
        group: Group::Agentic,
        help: "Offer `lisp_task`, whose programs are written by a model that the server calls",
    },
    Flag {
        name: "agentic-model",
        env: "PTC_RUNNER_MCP_AGENTIC_MODEL",
        kind: Kind::Text {
            shape: "<model>",
            expected: "an alias such as gemini-flash-lite, provider:model, or a model at --agentic-base-url",
            set: |s, text| word(text).map(|model| s.agentic.model = model),
        },
        default: Default::Fixed("gemini-flash-lite"),
        group: Group::Agentic,
        help: "The model that writes the programs of `lisp_task`",
    },
    Flag {
        name: "agentic-base-url",
        env: "PTC_RUNNER_MCP_AGENTIC_BASE_URL",
        kind: Kind::Text {
            shape: "<url>",
            expected: "a URL of http or https, without user, query and fragment",
            set: |s, text| base_url(text).map(|url| s.agentic.base_url = Some(url)),
        },
        default: Default::Unset("that of the provider"),
        group: Group::Agentic,
        help: "An OpenAI-compatible endpoint, without /chat/completions",
    },
    Flag {
        name: "agentic-credential",
        env: "PTC_RUNNER_MCP_AGENTIC_CREDENTIAL",
        kind: Kind::Text {
            shape: "<binding>",
            expected: "the name of a credential of the config",
            set: |s, text| word(text).map(|name| s.agentic.credential = Some(name)),
        },
        default: Default::Unset("such as $OPENROUTER_API_KEY; none at --agentic-base-url"),
        group: Group::Agentic,
        help: "The credential with the API key of the model",
    },
    Flag {
        name: "agentic-task-timeout-ms",
        env: "PTC_RUNNER_MCP_AGENTIC_TASK_TIMEOUT_MS",
        kind: Kind::Integer { unit: "ms", min: 1, max: DAY_MS, set: |s, n| s.agentic.task_timeout = Duration::from_millis(n) },
        default: Default::Fixed("45000"),
        group: Group::Agentic,
        help: "Wall clock of one `lisp_task`",
    },
    Flag {
        name: "agentic-planner-timeout-ms",
        env: "PTC_RUNNER_MCP_AGENTIC_PLANNER_TIMEOUT_MS",
        kind: Kind::Integer { unit: "ms", min: 1, max: DAY_MS, set: |s, n| s.agentic.planner_timeout = Duration::from_millis(n) },
        default: Default::Fixed("15000"),
        group: Group::Agentic,
        help: "Wall clock of one question to the model",
    },
    Flag {
        name: "agentic-max-output-tokens",
        env: "PTC_RUNNER_MCP_AGENTIC_MAX_OUTPUT_TOKENS",
        kind: Kind::Integer { unit: "tokens", min: 1, max: 1_000_000, set: |s, n| s.agentic.max_output_tokens = n as u32 },
        default: Default::Fixed("1200"),
        group: Group::Agentic,
        help: "Longest answer of the model",
    },
    Flag {
        name: "agentic-max-result-bytes",
        env: "PTC_RUNNER_MCP_AGENTIC_MAX_RESULT_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 16, max: GIB, set: |s, n| s.agentic.max_result_bytes = n as usize },
        default: Default::Fixed("4096"),
        group: Group::Agentic,
        help: "Longest answer of `lisp_task`",
    },
    Flag {
        name: "agentic-include-program",
        env: "PTC_RUNNER_MCP_AGENTIC_INCLUDE_PROGRAM",
        kind: Kind::Switch { set: |s, on| s.agentic.include_program = on },
        default: Default::Fixed("true"),
        group: Group::Agentic,
        help: "Show the program in the answer of `lisp_task`",
    },
    Flag {
        name: "agentic-trace-prompts",
        env: "PTC_RUNNER_MCP_AGENTIC_TRACE_PROMPTS",
        kind: Kind::Switch { set: |s, on| s.agentic.trace_prompts = on },
        default: Default::Fixed("false"),
        group: Group::Agentic,
        help: "Write what the model was asked, and said, into traces",
    },
    Flag {
        name: "agentic-max-turns",
        env: "PTC_RUNNER_MCP_AGENTIC_MAX_TURNS",
        kind: Kind::Integer { unit: "turns", min: 1, max: 100, set: |s, n| s.agentic.max_turns = Some(n as u32) },
        default: Default::Unset("as the config file says, or 1"),
        group: Group::Agentic,
        help: "Programs that the model may write for one task",
    },
    Flag {
        name: "agentic-retry-turns",
        env: "PTC_RUNNER_MCP_AGENTIC_RETRY_TURNS",
        kind: Kind::Integer { unit: "turns", min: 0, max: 100, set: |s, n| s.agentic.retry_turns = Some(n as u32) },
        default: Default::Unset("as the config file says, or 0"),
        group: Group::Agentic,
        help: "Further programs where the last one went wrong",
    },
    Flag {
        name: "agentic-allow-writes",
        env: "PTC_RUNNER_MCP_AGENTIC_ALLOW_WRITES",
        kind: Kind::Switch { set: |s, on| s.agentic.allow_writes = on },
        default: Default::Fixed("false"),
        group: Group::Agentic,
        help: "Offer `lisp_task` even if some tools may write",
    },
    Flag {
        name: "agentic-subagent-config",
        env: "PTC_RUNNER_MCP_AGENTIC_SUBAGENT_CONFIG",
        kind: Kind::File { set: |s, path| s.agentic.subagent_config = Some(path) },
        default: Default::Unset("none"),
        group: Group::Agentic,
        help: "JSON with max_turns, retry_turns and system_prompt {prefix, suffix}",
    },
    Flag {
        name: "agentic-capability-summary-max-bytes",
        env: "PTC_RUNNER_MCP_AGENTIC_CAPABILITY_SUMMARY_MAX_BYTES",
        kind: Kind::Integer { unit: "bytes", min: 0, max: GIB, set: |s, n| s.agentic.summary_max_bytes = n as usize },
        default: Default::Fixed("800"),
        group: Group::Agentic,
        help: "Longest list of tools in the description of `lisp_task`",
    },
    Flag {
        name: "agentic-capability-summary",
        env: "PTC_RUNNER_MCP_AGENTIC_CAPABILITY_SUMMARY",
        kind: Kind::File { set: |s, path| s.agentic.summary = Some(path) },
        default: Default::Unset("generated from the catalog"),
        group: Group::Agentic,
        help: "File with a text that replaces the list of tools in the description of `lisp_task`",
    },
];
