//! How to write a program, for a model.

use crate::settings::Settings;

/// Without upstreams: a calculator for data.
pub fn plain(settings: &Settings) -> String {
    format!(
        "Runs a PTC-Lisp program and answers with its last value. PTC-Lisp is a small, eager, side-effect-free Clojure. Use it \
         whenever the answer must be exact: counting, sums, dates, filtering, grouping, sorting or reshaping data.\n\n\
         (->> data/orders (filter #(= (:status %) \"paid\")) (map :total) (reduce +)) with context {{\"orders\": [...]}}\n\n\
         {LANGUAGE}\n\
         - Each call starts afresh, with {} s and {} MB.{}",
        settings.program_timeout.as_secs_f64(),
        settings.program_memory_limit_bytes / (1024 * 1024),
        cut(settings),
    )
}

/// With upstreams: one program instead of many tool calls.
pub fn with_upstreams(settings: &Settings) -> String {
    format!(
        "Runs a PTC-Lisp program that may call the upstream tools below, and answers with its last value only. PTC-Lisp is a small, \
         eager Clojure. Let one program fetch, join, filter and reduce; end it in the few values that you need.\n\n\
         (let [r (tool/call {{:server \"s\" :tool \"t\" :args {{:id 1}}}})]\n  (if (:ok r) (map :name (:value r)) (fail (:message r))))\n\n\
         - tool/call gives {{:ok true :value v}}, v being JSON data or text, or {{:ok false :reason r :message m}}. (pmap tool/call \
         [...]) calls in parallel; at most {} calls a program.\n\
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

pub(crate) const LANGUAGE: &str = "- clojure.core, clojure.string (str/), clojure.set (set/), walk/, Math/, regex and java.time as in Clojure; \
     json/parse-string, json/generate-string. Not there: I/O, macros, atoms, try, lazy-seq.\n\
     - Keys of JSON objects are strings; (:k m) and (get m \"k\") both find them.\n\
     - (println x) shows a line beside the value; (fail \"why\") ends with an error.";

fn cut(settings: &Settings) -> String {
    format!(" A result beyond {} KiB is cut.", settings.response_profile.budget().preview_bytes / 1024)
}
