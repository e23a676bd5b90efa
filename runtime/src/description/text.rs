//! The description of `lisp_eval` for a model: what the tool does and how to write a program.

use crate::settings::Settings;

/// The lines about the language. This is a macro, since `concat!` does not accept constants.
macro_rules! language {
    () => {
        "- clojure.core, str/, set/, walk/, Math/, regex as in Clojure; json/ and csv/ parse-string, generate-string; of java.time \
         LocalDate, Instant, (Local|Offset|Zoned)DateTime, Duration, Period, ChronoUnit, DateTimeFormatter, with fixed offsets. \
         No I/O, macros, atoms, try, lazy-seq.\n\
         - Write several forms, defn too. Integers are unbounded, (/ 6 3) is 2.0, (seq \"ab\") gives strings, :k and \"k\" are one key.\n\
         - (println x) shows a line beside the value, also several docs; (fail \"why\") ends with an error."
    };
}

/// The lines about the language, for every description of a tool that takes programs.
pub(crate) const LANGUAGE: &str = language!();

/// The description of `lisp_eval` without upstreams and without application tools. The server appends its limits.
/// [`Capability::McpNoTools`](crate::ptc_runner_compat::Capability::McpNoTools) returns it to embedding programs unchanged.
pub const MCP_NO_TOOLS: &str = concat!(
    "Runs a PTC-Lisp program and answers with its last value. PTC-Lisp is a small, eager Clojure without side effects or tools. \
     Use it when an answer must be exact: counting, sums, dates, filtering, grouping, sorting, reshaping.\n\n\
     (->> data/orders (filter #(= (:status %) \"paid\")) (map :total) (reduce +)) with context {\"orders\": [...]}\n\n",
    language!(),
    "\n- Each call starts afresh."
);

/// Returns the description without upstreams: [`MCP_NO_TOOLS`] and the limits of this server.
pub fn plain(settings: &Settings) -> String {
    format!(
        "{MCP_NO_TOOLS} Limits: {} s, {} MB.{}",
        settings.program_timeout.as_secs_f64(),
        settings.program_memory_limit_bytes / (1024 * 1024),
        cut(settings),
    )
}

/// Returns the description with upstreams, which recommends one program instead of many tool calls.
pub fn with_upstreams(settings: &Settings) -> String {
    format!(
        "Runs a PTC-Lisp program that may call the upstream tools below, and answers with its last value only. PTC-Lisp is a small, \
         eager Clojure. Let one program fetch, join, filter and reduce; end it in the few values that you need.\n\n\
         (map :name (tool/value {{:server \"s\" :tool \"t\" :args {{:id 1}}}}))\n\n\
         - tool/value gives JSON data or text, tool/all the items of all pages; a failed call ends the program. To handle failures: \
         tool/call gives {{:ok true :value v :value_kind k}}, k :json, :text or :none, or {{:ok false :reason r :message m}}. (pmap \
         tool/value [...]) calls in parallel; at most {} calls a program.\n\
         - Find tools by (apropos \"words\") or (dir \"server\"); (doc \"server/tool\") shows arguments and result. Look before the \
         first call of a tool.\n\
         {LANGUAGE}\n\
         - Each call starts afresh, with {} s and {} MB.{}",
        settings.max_upstream_calls_per_program,
        settings.program_timeout.as_secs_f64(),
        settings.program_memory_limit_bytes / (1024 * 1024),
        cut(settings),
    )
}

fn cut(settings: &Settings) -> String {
    format!(" A result beyond {} KiB is cut.", settings.response_profile.budget().preview_bytes / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts about `tool/value` and `tool/all`, and the facts that programs need to know.
    const PARTS: [&str; 4] = [
        "tool/value gives JSON data or text, tool/all the items of all pages; a failed call ends the program.",
        " :value_kind k}, k :json, :text or :none",
        ", (/ 6 3) is 2.0",
        ", also several docs",
    ];

    #[test]
    fn two_functions_and_facts_take_at_most_220_bytes() {
        let text = with_upstreams(&Settings::defaults(true));
        for part in PARTS {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        let bytes: usize = PARTS.iter().map(|part| part.len()).sum();
        assert!(bytes <= 220, "{bytes} bytes");
    }
}
