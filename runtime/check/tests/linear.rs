//! Reading, analysis and checks must take time proportional to the size of any program. Measures the processor time of the thread
//! for two sizes of each shape.

use std::time::Instant;

use ptc_catalog::{Arg, Catalog, McpStdio, Tool, Tools, Transport, Type, Types, Upstream};
use ptc_lisp::limits::Cancel;
use ptc_lisp::{Bindings, Deadline, ErrorKind, Program};

const PATH: Arg = Arg { name: "path", required: true, types: Types::from_types(&[Type::String]), label: "string", allowed: "" };
const LIMIT: Arg =
    Arg { name: "limit", required: false, types: Types::from_types(&[Type::Integer]), label: "integer", allowed: "" };

const fn tool(name: &'static str, closed: bool) -> Tool {
    Tool {
        name,
        args: &[LIMIT, PATH],
        closed,
        definition: r#"{"outputSchema":{"additionalProperties":false,"properties":{"text":{}},"type":"object"}}"#,
        ..Tool::EMPTY
    }
}

static CATALOG: Catalog = Catalog {
    digest: "",
    search_index: &[],
    upstreams: &[Upstream {
        name: "files",
        description: "",
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: Tools::table(&[tool("open", false), tool("read", true), tool("write", true)]),
    }],
};

/// Number of parts of a small program. A large one has [`GROWTH`] times as many.
const SMALL: usize = 1_500;
const GROWTH: usize = 4;
/// Maximum ratio of the times. Linear growth gives [`GROWTH`], quadratic growth its square.
const MAX_RATIO: f64 = 9.0;
/// Measurements of a shape before its ratio counts. Other processes on the machine slow a thread down for a while, through caches
/// and the clock of the processor. Quadratic growth is above the ratio every time.
const ATTEMPTS: usize = 5;
/// Minimum processor time of a measurement in seconds.
const MEASURED_SECONDS: f64 = 0.08;

/// The repeated parts of a program and the text around them. `$` is the number of the part, `%` that of the previous part.
struct Shape {
    name: &'static str,
    before: &'static str,
    part: &'static str,
    /// The text between the first and the second run of parts.
    between: &'static str,
    again: &'static str,
    after: &'static str,
}

const fn shape(name: &'static str, before: &'static str, part: &'static str, after: &'static str) -> Shape {
    Shape { name, before, part, between: "", again: "", after }
}

const fn twice(name: &'static str, [before, part, between, again, after]: [&'static str; 5]) -> Shape {
    Shape { name, before, part, between, again, after }
}

const CALL: &str = r#"(tool/call {:server "files" :tool "read" :args {:path "a"}})"#;

const SHAPES: &[Shape] = &[
    shape("locals", "(let [a0 1 ", "a$ (+ a% 1) ", "] a1)"),
    shape("one local hidden again and again", "(let [a 1 ", "a (inc a) ", "] a)"),
    shape("conditions among locals", "(let [a0 1 ", "a$ (if a% (or a0 2) (and a% 3)) ", "] a0)"),
    twice("captures", ["(let [a0 1 ", "a$ 1 ", "] (fn [] (+ 1 ", "a$ ", ")))"]),
    twice("captures of captures", ["(let [a0 1 ", "a$ 1 ", "] (fn [] (fn [] (fn [] [", "a$ ", "]))))"]),
    shape("functions that know each other", "(letfn [(f0 [x] x) ", "(f$ [x] (f% x)) ", "] (f0 1))"),
    twice("functions that share captures", ["(let [a0 1 ", "a$ 1 ", "] (letfn [", "(f$ [x] a$) ", "] 1))"]),
    shape("functions of several arguments", "(do ", "(fn f$ ([] 1) ([a] a) ([a b & c] [a b c])) ", ")"),
    shape("short functions", "(do ", "#(+ % %2 $) ", ")"),
    shape("definitions", "(do (def a0 1) ", "(def a$ (inc a%)) ", ")"),
    shape("tests of case", "(case 1 ", "$ :a ", ":b)"),
    twice("keys with defaults", ["(let [{:keys [", "a$ ", "] :or {", "a$ 1 ", "}} {}] 1)"]),
    shape("items of a pattern", "(let [[", "a$ ", "] []] 1)"),
    shape("steps of as->", "(as-> 1 x ", "(inc x) ", ")"),
    shape("steps of as-> with a pattern", "(as-> [1 2] [x y] ", "[y x] ", ")"),
    shape("steps of doto", "(doto 1 ", "(str $) ", ")"),
    shape("threads", "(do ", "(-> $ inc (+ 1) str) (->> [$] (map inc) first) (some-> $ inc) (cond-> $ true inc) ", ")"),
    shape("loops", "(do ", "(loop [i 0 [x] [1]] (if (< i $) (recur (inc i) [x]) x)) ", ")"),
    shape("comprehensions", "(do ", "(for [x [1 $] :when x :let [y x]] [x y]) (doseq [x [1]] x) ", ")"),
    shape("a vector", "[", "[$ \"a$\" :k$ nil 1.5] ", "]"),
    shape("a map", "{", ":k$ {:a $ \"b\" [1 2]} ", "}"),
    shape("a map of values", "(let [x 1] {", ":k$ x ", "})"),
    shape("a set", "#{", "$ ", "}"),
    shape("quoted", "'(", "(a$ [b {:c $}]) ", ")"),
    shape("strings with escapes", "[", "\"a\\n\\u00e9 $\" \\a ", "]"),
    shape("one long string", "\"", "ab\\n", "\""),
    shape("one long line of comment", "; ", "x$ ", "\n1"),
    shape("discarded forms", "", "#_(a $) ", "1"),
    shape("brackets never closed", "[1 2] ", "[$] ", "("),
    shape("a long unknown name", "(", "abc", " 1)"),
    shape("a long unknown name in a namespace", "(str/", "abc", " 1)"),
    shape("a long unknown tool", "(tool/", "abc", " 1)"),
    shape("a long unknown method", "(.", "abc", " 1)"),
    shape("an unknown name among locals", "(let [a0 1 ", "abcdefghij$ 1 ", "] abcdefghik)"),
    shape("an unknown name among definitions", "(do ", "(def abcdefghij$ 1) ", "abcdefghik)"),
    // Each function calls the previous one twice. Without a limit on followed calls, the last one has 2^n calls.
    shape(
        "functions that take results",
        "(do (defn f0 [r] (:txt (:value r))) ",
        r#"(defn f$ [r] [(f% r) (f% r)]) (f$ (tool/call {:server "files" :tool "read" :args {:path "a"}})) "#,
        ")",
    ),
    shape("calls", "(do ", r#"(tool/call {:server "files" :tool "read" :args {:path "a$" :limit $}}) "#, ")"),
    shape("calls of what is not there", "(do ", r#"(tool/call {:server "files" :tool "reed$" :args {}}) "#, ")"),
    shape(
        "calls with wrong arguments",
        "(do ",
        r#"(tool/call {:server "files" :tool "read" :args {:pth "a" :limit "x"}}) "#,
        ")",
    ),
    shape("unknown arguments", r#"(tool/call {:server "files" :tool "read" :args {:path "" "#, ":limitt$ 1 ", "}})"),
    shape("arguments that may be meant", r#"(tool/call {:server "files" :tool "open" :args {:path "" "#, ":limi$ 1 ", "}})"),
    shape("unknown keys of a call", "(fn [x] (tool/call {", ":servr$ x ", "}))"),
    twice(
        "results that are used",
        ["(let [", "a$ (tool/call {:server \"files\" :tool \"read\" :args {:path \"a\"}}) ", "] [", "(:value a$) ", "])"],
    ),
    shape("results that are misread", "(do ", "(:text (tool/call {:server \"files\" :tool \"read\" :args {:path \"a\"}})) ", ")"),
    shape(
        "parts of parts of a result",
        "(let [r (tool/call {:server \"files\" :tool \"read\" :args {:path \"a\"}}) a0 (:value r) ",
        "a$ (:k$ a%) ",
        "] a0)",
    ),
    twice(
        "results that are captured",
        [
            "(let [",
            "a$ (tool/call {:server \"files\" :tool \"read\" :args {:path \"a\"}}) ",
            "] (letfn [",
            "(f$ [] a$) ",
            "] 1))",
        ],
    ),
];

impl Shape {
    fn program(&self, size: usize) -> String {
        let mut text = self.before.to_owned();
        for (part, end) in [(self.part, self.between), (self.again, self.after)] {
            for at in 1..=size {
                let before = (at - 1).to_string();
                text.push_str(
                    &part.replace('$', &at.to_string()).replace("a%", &format!("a{before}")).replace("f%", &format!("f{before}")),
                );
            }
            text.push_str(end);
        }
        text
    }
}

/// Returns the processor time of this thread in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("nanoseconds") / 1e9
}

/// Does what a server does with a program before it runs.
fn prepare(source: &str, deadline: &Deadline) {
    match Program::compile_until(source, &Bindings::default(), &[], deadline) {
        Ok(program) => {
            let findings = ptc_check::check_until(&program, &CATALOG, deadline).expect("there is time");
            assert!(findings.len() <= 3 * ptc_check::MAX_FINDINGS, "{} findings", findings.len());
            ptc_check::missing_keys(&program, &CATALOG, deadline);
        }
        Err(error) => {
            let _ = ptc_check::add_call_hint(error, source, &CATALOG).render(source);
        }
    }
}

/// Returns the mean processor time of one preparation, repeated until the clock's resolution of milliseconds suffices.
fn seconds(source: &str) -> f64 {
    prepare(source, &Deadline::none());
    let before = cpu_seconds();
    for times in 1.. {
        prepare(source, &Deadline::none());
        let used = cpu_seconds() - before;
        if used > MEASURED_SECONDS {
            return used / f64::from(times);
        }
    }
    f64::NAN
}

fn with_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(work).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn time_before_the_run_grows_with_the_size_of_the_program() {
    with_stack(|| {
        let mut worse = Vec::new();
        for shape in SHAPES {
            let (small, large) = (shape.program(SMALL), shape.program(SMALL * GROWTH));
            let mut measured = (0..ATTEMPTS).map(|_| (seconds(&small), seconds(&large)));
            if measured.all(|(before, after)| after > before * MAX_RATIO) {
                let (before, after) = (seconds(&small), seconds(&large));
                worse.push(format!("{}: {before:.4} s for {} bytes, {after:.4} s for {}", shape.name, small.len(), large.len()));
            }
        }
        assert!(worse.is_empty(), "{}", worse.join("\n"));
    });
}

/// Every shape must compile: nothing after an error would be measured.
#[test]
fn measured_programs_compile() {
    with_stack(|| {
        for shape in SHAPES {
            let compiled = Program::compile(&shape.program(20));
            let is_wrong = shape.name.contains("unknown name")
                || shape.name.starts_with("a long unknown")
                || shape.name.contains("never closed");
            assert_eq!(compiled.is_err(), is_wrong, "{}: {:?}", shape.name, compiled.err());
        }
    });
}

/// A pattern in `loop` is analysed twice. Nested patterns with defaults are therefore analysed 2^n times.
#[test]
fn exponential_patterns_are_refused() {
    with_stack(|| {
        let mut program = "1".to_owned();
        for _ in 0..40 {
            program = format!("(loop [{{:keys [a] :or {{a {program}}}}} {{}}] a)");
        }
        let error = Program::compile(&program).expect_err("it is refused");
        assert_eq!(error.kind, ErrorKind::InvalidForm);
        assert!(error.message.contains("too large once its patterns are taken apart"), "{error:?}");
    });
}

#[test]
fn steps_of_a_comprehension_are_bounded() {
    let steps = |count: usize| format!("(for [{}] 1)", "x [1] ".repeat(count));
    assert!(Program::compile(&steps(400)).is_ok());
    let error = Program::compile(&steps(600)).expect_err("it is refused");
    assert!(error.message.contains("at most 500 parts"), "{error:?}");
}

#[test]
fn check_ends_soon_after_cancellation() {
    with_stack(|| {
        let source = format!("(do {})", format!("(let [r {CALL}] (:value r))").repeat(2_000));
        let cancel = Cancel::default();
        let deadline = Deadline::new(None, &cancel);
        let program = Program::compile_until(&source, &Bindings::default(), &[], &deadline).expect("it compiles");
        let compiled = deadline.steps();
        assert!(ptc_check::check_until(&program, &CATALOG, &deadline).is_ok());
        assert!(deadline.steps() > compiled + 10_000, "the check counts its steps");
        let checked = deadline.steps();
        cancel.cancel();
        let error = ptc_check::check_until(&program, &CATALOG, &deadline).expect_err("it was cancelled");
        assert_eq!(error.kind, ErrorKind::Cancelled);
        assert!(deadline.steps() < checked + 1_000, "{} steps after it was cancelled", deadline.steps() - checked);
        let past = Deadline::new(Some(Instant::now()), &Cancel::default());
        let error = Program::compile_until(&source, &Bindings::default(), &[], &past).expect_err("it is too late");
        assert_eq!((error.kind, past.steps()), (ErrorKind::Timeout, 0));
    });
}

#[test]
fn deadline_ends_reading_and_analysis() {
    with_stack(|| {
        // These take several seconds without optimisation, and the deadline ends them.
        for source in ["[1 2 3] ".repeat(2_000_000), format!("(do {})", "(let [a 1] (if a [a] 2))".repeat(300_000))] {
            let soon = Instant::now() + std::time::Duration::from_millis(100);
            let before = cpu_seconds();
            let deadline = Deadline::new(Some(soon), &Cancel::default());
            let error = Program::compile_until(&source, &Bindings::default(), &[], &deadline).expect_err("it is too late");
            assert_eq!(error.kind, ErrorKind::Timeout);
            let used = cpu_seconds() - before;
            assert!(used < 1.0, "{used} s of processor time");
        }
    });
}
