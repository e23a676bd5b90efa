//! The measured programs with their inputs, which are generated and identical in every run.

mod inputs;

use std::fmt::Write as _;
use std::time::Duration;

use inputs::words;
pub(crate) use inputs::{objects, records};
use ptc_lisp::{Limits, Program, Run, Value, json};

/// A program with its expected printed value. The expectation is `None` if only the time matters.
pub(crate) struct Bench {
    /// A letter and a short description.
    pub(crate) name: &'static str,
    /// The text of the program.
    pub(crate) source: String,
    input: Input,
    expected: Option<&'static str>,
}

/// The input of a run.
enum Input {
    Value(Value),
    /// Decoding is part of the measured run, as in a server.
    Json(String),
}

impl Bench {
    /// Reads, analyses, evaluates and drops the program, like one run of a server.
    pub(crate) fn run(&self) -> Value {
        run(&self.source, self.context())
    }

    fn context(&self) -> Value {
        match &self.input {
            Input::Value(value) => value.clone(),
            Input::Json(text) => {
                let data = json::decode(text.as_bytes()).expect("the input is JSON");
                Value::map([(Value::keyword("data"), data)])
            }
        }
    }

    /// Runs the program and panics if its value differs from the expected one.
    pub(crate) fn check(&self) {
        let value = ptc_lisp::print::readable(&self.run());
        assert!(self.expected.is_none_or(|expected| expected == value), "{} gave {value}", self.name);
    }
}

/// Returns eight programs, from a sum to a large map.
pub(crate) fn programs() -> Vec<Bench> {
    let plain = |name, source: &str, expected| Bench {
        name,
        source: source.to_owned(),
        input: Input::Value(Value::Nil),
        expected: Some(expected),
    };
    vec![
        plain("a_add", "(+ 1 2)", "3"),
        plain("b_pipeline", "(reduce + (map (fn [x] (* x x)) (filter even? (range 1000))))", "166167000"),
        plain("c_loop", "(loop [i 0 s 0] (if (< i 1000000) (recur (inc i) (+ s i)) s))", "499999500000"),
        Bench {
            name: "d_json_maps",
            source: "(->> data/data
                       (group-by (fn [r] (get r \"cat\")))
                       (map (fn [[cat rs]] [cat (reduce + (map (fn [r] (get r \"amount\")) rs))]))
                       (sort-by second >) (take 3) vec)"
                .to_owned(),
            input: Input::Json(objects()),
            expected: Some("[[\"9\" 5004000] [\"8\" 5003000] [\"7\" 5002000]]"),
        },
        plain("e_fib", "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 25)", "75025"),
        Bench {
            name: "f_words",
            source: "(->> (clojure.string/split data/text #\"\\s+\") (map clojure.string/lower-case)
                       frequencies (sort-by val >) (take 10) vec count)"
                .to_owned(),
            input: Input::Value(Value::map([(Value::keyword("text"), Value::from(words()))])),
            expected: Some("10"),
        },
        plain(
            "g_large_map",
            "(let [m (reduce (fn [m i] (assoc m i (* i 2))) {} (range 100000))]
               (reduce (fn [s i] (+ s (get m i))) 0 (range 100000)))",
            "9999900000",
        ),
        Bench { name: "h_large_program", source: large_program(), input: Input::Value(Value::Nil), expected: None },
    ]
}

/// Returns 50 KB of small functions that are each called once.
pub(crate) fn large_program() -> String {
    let mut text = String::new();
    for i in 0..92 {
        let _ = write!(
            text,
            r#"(defn step-{i} [m x]
  (let [a (get m "k1" 0)
        b (if (> a 10) (* a 2) (+ a x {i}))
        row {{"id" {i} "name" "item-{i}" "tags" ["red" "green" "blue"] "amount" (+ a b)}}
        meta-data {{"source" "generated" "pos" {{"x" x "y" [a b x] "z" {{"deep" true}}}}}}
        tag-count (count (get row "tags"))
        total (+ (get row "amount") (* tag-count (- b (quot a 3))))
        label (str "row-" (get row "name") ":" total ":" (count meta-data))]
    (assoc m "k1" (mod total 1000) "last" label "meta" meta-data)))
"#
        );
    }
    text.push_str("(def m0 {\"k1\" 1})\n(get (-> m0\n");
    for i in 0..92 {
        let _ = writeln!(text, "  (step-{i} {})", i % 7);
    }
    text + ") \"last\")\n"
}

fn limits() -> Limits {
    Limits::default().wall_clock(Duration::from_mins(1)).memory_bytes(1 << 30)
}

/// Runs a program on the main thread, whose native stack is 8 MB on most systems.
fn run(source: &str, context: Value) -> Value {
    let program = Program::compile(source).expect("the program compiles");
    Run::new(&program).limits(limits()).context(context).stack_bytes(4 << 20).execute().result.expect("the program runs")
}
