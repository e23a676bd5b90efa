//! Tests the counters of forms and branches, and that programs with counters behave as without.

use std::time::Duration;

use ptc_lisp::coverage::{BranchCoverage, Collector, Counter, Coverage};
use ptc_lisp::{Bindings, Limits, Outcome, Program, Run, Span, Value, builtins, print, special_forms};

/// Returns everything that a run shows, apart from times and memory.
fn observed(outcome: &Outcome, source: &str) -> String {
    let result = match &outcome.result {
        Ok(value) => print::readable(value),
        Err(error) => format!("{}\n{:?}\n{:?}", error.render(source), error.span, error.trace),
    };
    let Outcome { prints, progress, failed_calls, missing_keys, missing_context_keys, mixed_comparison, steps, returned, .. } =
        outcome;
    // The steps of parallel calls depend on when a failed one ends the others.
    let steps = if source.contains("pmap") || source.contains("pcalls") { 0 } else { *steps };
    format!(
        "{result}\n{prints:?} {progress:?} {:?} {missing_keys:?} {missing_context_keys:?} {mixed_comparison:?} {returned} {steps} steps",
        failed_calls.unchecked()
    )
}

/// Runs a program with and without counters, and returns what differs. `None` if it cannot be compiled.
fn difference(source: &str, run: impl Fn(&Program) -> Outcome) -> Option<Result<(), String>> {
    let program = Program::compile(source).ok()?;
    let (measured, _) = Coverage::instrument(&program)?;
    let (plain, measured) = (observed(&run(&program), source), observed(&run(&measured), source));
    Some(if plain == measured { Ok(()) } else { Err(format!("{source}\n{plain}\n{measured}\n")) })
}

/// Whether two runs of a program may differ.
fn is_random(source: &str) -> bool {
    let parts =
        ["rand", "shuffle", "now", "Instant", "Date", "currentTime", "nanoTime", "uuid", "#fn", "gensym", "pcalls", "race"];
    parts.iter().any(|part| source.contains(part))
}

#[test]
fn programs_of_the_corpus_behave_as_without_counters() {
    let (mut count, mut wrong) = (0, Vec::new());
    let mut add = |found: Option<Result<(), String>>| {
        count += usize::from(found.is_some());
        wrong.extend(found.and_then(Result::err));
    };
    // Counters take native stack and time, so that cases about these limits are left out.
    let standard = Limits::default().wall_clock(Duration::from_secs(20)).memory_bytes(100 << 20);
    crate::cases::each_case(|case| {
        let is_about_limits = format!("{:?}", case.limits) != format!("{standard:?}");
        if !is_about_limits && !is_random(case.source) {
            add(difference(case.source, |program| crate::cases::outcome(program, &standard)));
        }
    });
    let examples = special_forms::all().flat_map(|row| row.notes.examples());
    let examples = examples.chain(builtins::all().flat_map(|row| row.notes.examples())).map(|(program, _)| program.to_owned());
    for program in examples.chain(crate::differential::programs()).filter(|program| !is_random(program)) {
        add(difference(&program, |program| Run::new(program).limits(standard.clone()).execute()));
    }
    assert!(wrong.is_empty(), "{} of {count} programs differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 6000, "only {count} programs were compared");
}

#[test]
fn random_programs_behave_as_without_counters() {
    crate::properties::each(1500, 500, |u, seed| {
        let source = crate::generate::program(u).unwrap_or_default();
        if !is_random(&source) {
            let limits = Limits::default().wall_clock(Duration::from_secs(20)).steps(Some(100_000));
            let found = difference(&source, |program| Run::new(program).limits(limits.clone()).execute_on_thread());
            assert_eq!(found.unwrap_or(Ok(())), Ok(()), "seed {seed}");
        }
    });
}

/// The counts of a program.
struct Counts<'s> {
    forms: Vec<(&'s str, u64)>,
    branches: Vec<(&'s str, Vec<u64>)>,
    functions: Vec<(String, u64)>,
}

/// Runs a program, and returns its counts.
fn counts(source: &str) -> Counts<'_> {
    let program = Program::compile(source).unwrap_or_else(|error| panic!("{}", error.render(source)));
    let (measured, coverage) = Coverage::instrument(&program).expect("a program without earlier definitions");
    let _ = Run::new(&measured).execute_on_thread();
    let text = |span: Span| &source[span.start as usize..span.end as usize];
    let arms = |branch: &BranchCoverage| branch.arms.iter().map(Counter::count).collect();
    Counts {
        forms: coverage.forms.iter().map(|form| (text(form.span), form.counter.count())).collect(),
        branches: coverage.branches.iter().map(|branch| (text(branch.span), arms(branch))).collect(),
        functions: coverage.functions.iter().map(|function| (function.name.to_string(), function.counter.count())).collect(),
    }
}

/// Returns the forms of a program that were not evaluated.
fn missed(source: &str) -> Vec<&str> {
    counts(source).forms.into_iter().filter(|(_, count)| *count == 0).map(|(form, _)| form).collect()
}

fn branches(source: &str) -> Vec<Vec<u64>> {
    counts(source).branches.into_iter().map(|(_, arms)| arms).collect()
}

#[test]
fn evaluations_of_forms_are_counted() {
    let source = "(defn f [x] (if (pos? x) (inc x) :none)) (map #(f %) [1 2 -3])";
    let Counts { forms, branches, functions } = counts(source);
    assert_eq!(
        forms,
        [
            ("(defn f [x] (if (pos? x) (inc x) :none))", 1),
            ("(if (pos? x) (inc x) :none)", 3),
            ("(pos? x)", 3),
            ("(inc x)", 2),
            (":none", 1),
            ("(map #(f %) [1 2 -3])", 1),
            ("#(f %)", 1),
            ("(f %)", 3),
        ]
    );
    assert_eq!(branches, [("(if (pos? x) (inc x) :none)", vec![2, 1])]);
    assert_eq!(functions, [("f".to_owned(), 3)]);
}

#[test]
fn forms_that_are_not_evaluated_are_found() {
    for (source, expected) in [
        ("(if true :a :b)", &[":b"] as &[&str]),
        ("(when false (println 1) 2)", &["(println 1)"]),
        ("(fn [x] x)", &["x"]),
        ("(defn f ([] (f 1)) ([x] (str x)))", &["(f 1)", "(str x)"]),
        ("(let [f #(+ % 1)] 2)", &["(+ % 1)"]),
        ("(or 1 (inc 2) 3)", &["(inc 2)", "3"]),
        ("(and nil 1)", &["1"]),
        ("(for [x [] :when (odd? x)] [x 1])", &["(odd? x)", "[x 1]"]),
        ("(-> 1 inc (+ 2) (cond-> false (* 3) true dec))", &["(* 3)"]),
        ("(cond-> 1 false inc true dec)", &["inc"]),
        ("(some-> {:a nil} :a inc (+ 1))", &["inc", "(+ 1)"]),
        ("(let [{:keys [a] :or {a (inc 1)}} {:a 1}] a)", &["(inc 1)"]),
        ("(cond (< 2 1) :less (= 2 2) [1 (inc 1)] :else {:a (inc 2)})", &[":less", "{:a (inc 2)}", "(inc 2)"]),
        ("(case 2 1 :one 2 :two (fail 1))", &[":one", "(fail 1)"]),
        ("(condp = 2 1 :one 2 :two)", &[":one"]),
        ("(loop [i 0] (if (< i 3) (recur (inc i)) (str i)))", &[]),
        ("(do (fail 1) (inc 1))", &["(inc 1)"]),
        ("(letfn [(f [] (g)) (g [] 1)] 2)", &["(g)", "1"]),
        ("(dotimes [i 0] (println i))", &["(println i)"]),
        ("(doseq [x [1]] (println x))", &[]),
        ("(comment (inc 1)) '(a (b)) (ns x)", &[]),
        ("(if-let [x nil] (inc x) (dec 1))", &["(inc x)"]),
        ("(when-first [x []] (inc x))", &["(inc x)"]),
    ] {
        assert_eq!(missed(source), expected, "{source}");
    }
}

#[test]
fn arms_of_branches_are_counted() {
    let cases: &[(&str, &[&[u64]])] = &[
        ("(if nil 1)", &[&[0, 1]]),
        ("(if-not nil 1 2)", &[&[0, 1]]),
        ("(map #(when (odd? %) %) [1 2 3])", &[&[2, 1]]),
        ("(if-let [x 1] x 2)", &[&[1, 0]]),
        ("(map #(cond (= % 1) :a (= % 2) :b) [1 2 2 3])", &[&[1, 2, 1]]),
        ("(map #(cond (= % 1) :a :else :b) [1 2 2])", &[&[1, 2]]),
        ("(map #(case % 1 :a (2 3) :b) [2 3])", &[&[0, 2, 0]]),
        ("(condp = 2 1 :one 2 :two :none)", &[&[0, 1, 0]]),
        ("(some-> {:a nil} :a inc)", &[&[0, 1], &[1, 0]]),
        ("(cond-> 1 true inc false dec)", &[&[1, 0], &[0, 1]]),
        ("(if 1 (if nil 2 3) 4)", &[&[1, 0], &[0, 1]]),
        ("(dotimes [i 3] i)", &[]),
        ("(and 1 (or 2 3))", &[]),
    ];
    for (source, expected) in cases {
        assert_eq!(branches(source), *expected, "{source}");
    }
}

#[test]
fn counts_of_parallel_runs_are_added_up() {
    let program = Program::compile("(pmap (fn [x] (inc x)) (range 1000))").unwrap();
    let collector = Collector::default();
    let measured = collector.instrument(&program).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Run::new(&measured).execute_on_thread().result.unwrap());
        }
    });
    // The same text is the same program.
    let again = Program::compile(program.source()).unwrap();
    Run::new(&collector.instrument(&again).unwrap()).execute_on_thread().result.unwrap();
    let coverage = collector.coverage(&program).unwrap();
    let counts: Vec<u64> = coverage.forms.iter().map(|form| form.counter.count()).collect();
    assert_eq!(counts, [5, 5, 5000, 5]);
}

#[test]
fn program_with_earlier_definitions_is_not_instrumented() {
    let first = Program::compile("(def a 1)").unwrap();
    let bindings = Run::new(&first).execute_on_thread().bindings;
    let second = Program::compile_with("(inc a)", &bindings).unwrap();
    assert!(Coverage::instrument(&second).is_none());
    assert!(Coverage::instrument(&Program::compile_with("(inc 1)", &Bindings::default()).unwrap()).is_some());
}

#[test]
fn programs_of_hosts_keep_their_tools() {
    let program = Program::compile_for("(if data/x (tool/search {:q 1}) 2)", &Bindings::default(), &["search"]).unwrap();
    let (measured, _) = Coverage::instrument(&program).unwrap();
    assert_eq!(Run::new(&measured).context(Value::map([])).execute_on_thread().result.unwrap(), Value::int(2));
}
