//! Programs whose asymptotic cost is known from textbooks.

use ptc_lisp::{Limits, Program, Run, Value};

/// A program that repeats one operation.
pub(crate) struct Cost {
    /// Name of the operation.
    pub(crate) name: &'static str,
    /// The program that repeats it.
    pub(crate) source: Source,
}

/// The text of a program, by what its cost is divided by.
pub(crate) enum Source {
    /// Traverses the whole input once. The measured cost is per item.
    Whole(&'static str),
    /// Is repeated [`TIMES`] times, with `i` as the index of the repetition. The measured cost is per repetition.
    Once(&'static str),
}

/// Number of repetitions of an operation that does not traverse its input.
pub(crate) const TIMES: usize = 100;

use Source::{Once, Whole};

/// The cost per item or per repetition of every row must grow at most logarithmically with the size of the input.
///
/// The inputs: `xs` the integers below n in scrambled order, `v` the same in ascending order, `m` a map and `s` a set of them,
/// `words` strings that each occur four times, `text` the words in one string, `accents` a text of n graphemes of which every
/// second has an accent.
pub(crate) const COSTS: &[Cost] = &[
    Cost { name: "reduce assoc", source: Whole("(reduce (fn [m x] (assoc m x x)) {} data/xs)") },
    Cost { name: "reduce update", source: Whole("(reduce (fn [m w] (update m w (fnil inc 0))) {} data/words)") },
    Cost { name: "reduce conj", source: Whole("(reduce conj [] data/xs)") },
    Cost { name: "reduce conj a set", source: Whole("(reduce conj #{} data/xs)") },
    Cost { name: "reduce dissoc", source: Whole("(reduce dissoc data/m data/xs)") },
    Cost { name: "reductions conj", source: Whole("(count (reductions conj [] data/xs))") },
    Cost { name: "reductions assoc", source: Whole("(count (reductions (fn [m x] (assoc m x x)) {} data/xs))") },
    Cost { name: "loop over rest", source: Whole("(loop [xs data/xs t 0] (if (seq xs) (recur (rest xs) (+ t (first xs))) t))") },
    Cost { name: "loop over next", source: Whole("(loop [xs (seq data/xs) t 0] (if xs (recur (next xs) (inc t)) t))") },
    Cost { name: "loop over [x & xs]", source: Whole("(loop [[x & xs] data/xs t 0] (if x (recur xs (inc t)) t))") },
    Cost { name: "loop over subvec", source: Whole("(loop [v data/v] (if (seq v) (recur (subvec v 1)) v))") },
    Cost { name: "loop over pop", source: Whole("(loop [v data/v] (if (seq v) (recur (pop v)) v))") },
    Cost {
        name: "loop with cons",
        source: Whole("(loop [i (count data/v) out []] (if (pos? i) (recur (dec i) (cons i out)) (count out)))"),
    },
    Cost { name: "queue", source: Whole("(reduce (fn [q x] (conj (vec (rest q)) x)) data/v data/xs)") },
    Cost { name: "map filter", source: Whole("(count (filter even? (map inc data/xs)))") },
    Cost { name: "into", source: Whole("(count (into [] data/xs))") },
    Cost { name: "into a map", source: Whole("(count (into {} (map (fn [x] [x x]) data/xs)))") },
    Cost { name: "concat", source: Whole("(count (concat data/xs data/v))") },
    Cost { name: "sort", source: Whole("(first (sort data/xs))") },
    Cost { name: "sort-by", source: Whole("(first (sort-by (fn [x] (- x)) data/xs))") },
    Cost { name: "distinct", source: Whole("(count (distinct data/words))") },
    Cost { name: "group-by", source: Whole("(count (group-by (fn [x] (mod x 7)) data/xs))") },
    Cost { name: "frequencies", source: Whole("(count (frequencies data/words))") },
    Cost { name: "partition", source: Whole("(count (partition 2 data/xs))") },
    Cost { name: "reverse", source: Whole("(first (reverse data/xs))") },
    Cost { name: "str/join", source: Whole("(count (clojure.string/join \",\" data/xs))") },
    Cost { name: "str/split", source: Whole("(count (clojure.string/split data/text #\" \"))") },
    Cost { name: "get from a map", source: Once("(get data/m i)") },
    Cost { name: "get from a vector", source: Once("(get data/v i)") },
    Cost { name: "nth", source: Once("(nth data/v i)") },
    Cost { name: "count", source: Once("(+ (count data/v) (count data/m) (count data/s) (count data/text))") },
    Cost { name: "contains? in a map", source: Once("(contains? data/m i)") },
    Cost { name: "contains? in a set", source: Once("(contains? data/s i)") },
    Cost { name: "first and last", source: Once("(+ (first data/v) (last data/v) (peek data/v))") },
    Cost { name: "conj to what others hold", source: Once("(conj data/v i)") },
    Cost { name: "cons to what others hold", source: Once("(cons i data/v)") },
    Cost { name: "pop of what others hold", source: Once("(pop data/v)") },
    Cost { name: "rest of what others hold", source: Once("(rest data/v)") },
    Cost { name: "subvec of what others hold", source: Once("(subvec data/v 20 90)") },
    Cost { name: "assoc in a vector that others hold", source: Once("(assoc data/v i nil)") },
    Cost { name: "assoc in a map that others hold", source: Once("(assoc data/m i nil)") },
    Cost { name: "dissoc from what others hold", source: Once("(dissoc data/m i)") },
    Cost { name: "conj to a set that others hold", source: Once("(conj data/s (- i))") },
    Cost { name: "update in a map that others hold", source: Once("(update data/m i inc)") },
    Cost { name: "subs", source: Once("(subs data/text i (+ i 5))") },
    Cost {
        name: "positions of a text beyond ASCII",
        source: Whole("(reduce (fn [n i] (if (= \"é\" (nth data/accents i)) (inc n) n)) 0 (range (count data/accents)))"),
    },
    Cost {
        name: "parts of a text beyond ASCII",
        source: Whole(
            "(let [n (count data/accents)] (reduce (fn [t i] (+ t (count (subs data/accents i (min n (+ i 3)))))) 0 (range n)))",
        ),
    },
];

impl Cost {
    /// Compiles the program.
    pub(crate) fn program(&self) -> Program {
        let source = match self.source {
            Whole(source) => source.to_owned(),
            Once(source) => format!("(loop [i 0] (when (< i {TIMES}) {source} (recur (inc i))))"),
        };
        Program::compile(&source).expect("the program compiles")
    }

    /// Returns the number of items or repetitions by which the cost of a run with inputs of `size` is divided.
    pub(crate) fn times(&self, size: usize) -> usize {
        if let Whole(_) = self.source { size } else { TIMES }
    }
}

/// Makes the inputs of `size`, which is at least [`TIMES`].
pub(crate) fn inputs(size: usize) -> Value {
    let in_order = |size: usize| (0..size as i64).map(Value::int);
    // The multiplier is a prime that does not divide any size, so that every number occurs once.
    let out_of_order = (0..size as i64).map(|i| Value::int(i * 7_919 % size as i64));
    let words: Vec<String> = (0..size).map(|i| format!("word{}", i * 7_919 % size.div_ceil(4))).collect();
    let text = words.join(" ");
    let entries: [(&str, Value); 7] = [
        ("accents", Value::from("né".repeat(size / 2))),
        ("xs", Value::vector(out_of_order.collect())),
        ("v", Value::vector(in_order(size).collect())),
        ("m", Value::map(in_order(size).map(|i| (i.clone(), i)))),
        ("s", Value::set(in_order(size))),
        ("words", Value::vector(words.into_iter().map(Value::from).collect())),
        ("text", Value::from(text)),
    ];
    Value::map(entries.map(|(name, value)| (Value::keyword(name), value)))
}

/// Runs a program without a practical time limit and returns its steps.
pub(crate) fn run(program: &Program, inputs: &Value) -> u64 {
    let limits = Limits::default().wall_clock(std::time::Duration::from_mins(10)).memory_bytes(8 << 30);
    let outcome = Run::new(program).limits(limits).context(inputs.clone()).stack_bytes(1 << 20).execute();
    outcome.result.unwrap_or_else(|error| panic!("{}: {error}", program.source()));
    outcome.steps
}
