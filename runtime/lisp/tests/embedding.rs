//! The interpreter as a library: definitions that outlive a run, journals, cancellation, and the fields of an outcome.

use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::host::{Discovery, Fault, Host, PendingReply, Reply};
use ptc_lisp::{Bindings, Cancel, Error, ErrorKind, Limits, Outcome, Program, Run, Value, print};

/// Limits that are generous enough for slow machines.
fn roomy() -> Limits {
    Limits::default().wall_clock(Duration::from_secs(20))
}

fn compile(source: &str, bindings: &Bindings) -> Result<Program, Error> {
    Program::compile_with(source, bindings)
}

/// Runs one program of a session.
fn step(source: &str, bindings: Bindings) -> (Result<String, Error>, Bindings) {
    let program = match compile(source, &bindings) {
        Ok(program) => program,
        Err(error) => return (Err(error), bindings),
    };
    let outcome = Run::new(&program).limits(roomy()).bindings(bindings).execute_on_thread();
    (outcome.result.map(|value| print::readable(&value)), outcome.bindings)
}

/// Runs the programs of a session in order and returns the printed value or the error kind of each.
fn session(sources: &[&str]) -> Vec<String> {
    let mut bindings = Bindings::default();
    let mut shown = Vec::new();
    for source in sources {
        let (result, after) = step(source, bindings);
        bindings = after;
        shown.push(result.unwrap_or_else(|error| format!("{}: {}", error.kind, error.message)));
    }
    shown
}

#[test]
fn definitions_are_visible_in_later_programs() {
    let shown = session(&[
        "(def total 40) (defn add [x] (+ total x))",
        "(add 2)",
        "(def total 100)",
        "(add 2)",
        "(defn again [n] (if (pos? n) (again (dec n)) (add n))) (map add [1 2])",
        "(again 1000)",
        "(map again [1 2])",
        "(defonce total 7) total",
        "[#'add (#'add 1)]",
        "(def late (fn [] (not-yet)))",
    ]);
    assert_eq!(
        shown,
        [
            "#'add",
            "42",
            "#'total",
            "102",
            "[101 102]",
            "100",
            "[100 100]",
            "100",
            "[#'add 101]",
            "unbound_var: nothing is bound to 'not-yet'"
        ]
    );
}

#[test]
fn failed_program_leaves_bindings_unchanged() {
    let shown = session(&[
        "(def x 1) (defn f [] x)",
        "(def x 2) (def y 3) (/ 1 0)",
        "[x (f)]",
        "y",
        "(def z 5) (return [x z])",
        "[z (f)]",
        "(def w 1) (fail \"no\")",
        "(def other 9) [other z]",
        "w",
    ]);
    assert_eq!(shown[2], "[1 1]");
    assert!(shown[3].starts_with("unbound_var"), "{}", shown[3]);
    assert_eq!(shown[4..6], ["[1 5]", "[5 1]"]);
    assert_eq!(shown[7], "[9 5]");
    assert!(shown[8].starts_with("unbound_var"), "{}", shown[8]);
}

#[test]
fn cloned_bindings_are_independent() {
    let (_, base) = step("(def v [1 2]) (defn f [] v)", Bindings::default());
    let (_, left) = step("(def a 1) (def v (conj v 3))", base.clone());
    let (_, right) = step("(def b 2) (def v (assoc v 0 :changed))", base.clone());
    let shown = |bindings: Bindings| step("(f)", bindings).0.unwrap();
    assert_eq!(
        (shown(left.clone()), shown(right), shown(base.clone())),
        ("[1 2 3]".into(), "[:changed 2]".into(), "[1 2]".into())
    );
    let changes: Vec<&str> = left.changes(&base).map(|(name, _)| name).collect();
    assert_eq!(changes, ["a", "v"]);
    let names: Vec<&str> = left.iter().map(|(name, _)| name).collect();
    assert_eq!((names, left.len(), base.len()), (vec!["a", "f", "v"], 3, 2));
}

#[test]
fn forgotten_name_is_unbound_until_redefined() {
    let (_, mut bindings) = step("(def x 1) (defn f [] x)", Bindings::default());
    assert_eq!(bindings.forget("x"), Some(Value::int(1)));
    assert_eq!(bindings.forget("x"), None);
    assert_eq!(step("x", bindings.clone()).0.unwrap_err().kind, ErrorKind::UnboundVar);
    assert_eq!(step("(f)", bindings.clone()).0.unwrap_err().kind, ErrorKind::UnboundVar);
    let (shown, _) = step("(def x 3) (f)", bindings);
    assert_eq!(shown.unwrap(), "3");
}

#[test]
fn program_refuses_bindings_of_another_session() {
    let (_, mine) = step("(def a 1)", Bindings::default());
    let (_, theirs) = step("(def b 1)", Bindings::default());
    let program = compile("a", &mine).unwrap();
    let outcome = Run::new(&program).bindings(theirs).execute_on_thread();
    assert!(outcome.result.unwrap_err().message.contains("other bindings"));
    // Later bindings of the same session are accepted if the program defines no new names.
    let (_, later) = step("(def a 2)", mine);
    assert_eq!(Run::new(&program).bindings(later).execute_on_thread().result.unwrap(), Value::int(2));
}

#[test]
fn fault_in_function_of_earlier_program_shows_its_source() {
    let (_, bindings) = step("\n\n(defn share [total n]\n  (/ total n))", Bindings::default());
    let (_, bindings) = step("(defn halve [x] (share x 0))", bindings);
    let source = "(map halve [1 2])";
    let (result, _) = step(source, bindings);
    let expected = "\
arithmetic_error: (/ x & ys): division by zero
 at line 4, column 3 of an earlier program
 4 |   (/ total n))
   |   ^^^^^^^^^^^
 in share, called at line 1, column 17 of an earlier program
 in halve, called at line 1, column 1";
    let shown = result.unwrap_err().render(source);
    assert!(shown.starts_with(expected), "{shown}");
}

#[test]
fn bindings_report_their_memory_with_shared_values_counted_once() {
    let bytes = |source: &str| step(source, Bindings::default()).1.bytes();
    let (small, large) = (bytes("(def v [1 2 3])"), bytes("(def v (vec (range 100000)))"));
    assert!(small < 1_000, "{small}");
    assert!((1_600_000..3_200_000).contains(&large), "{large}");
    // Shared values count once, on however many paths they are reachable.
    let doubled = bytes("(def v (reduce (fn [v _] [v v]) (vec (range 100000)) (range 60)))");
    assert!(doubled < large + 10_000, "{doubled} against {large}");
    let captured = bytes("(def f (let [v (vec (range 100000))] (fn [] v)))");
    assert!(captured >= large, "{captured}");
}

#[test]
fn history_of_results_is_readable() {
    let program = Program::compile("[*1 *2 *3]").unwrap();
    let outcome = Run::new(&program).history(vec![Value::int(1), Value::int(2)]).execute_on_thread();
    assert_eq!(print::readable(&outcome.result.unwrap()), "[1 2 nil]");
}

fn with_journal(source: &str, journal: Value) -> Outcome {
    let program = Program::compile(source).unwrap_or_else(|error| panic!("{}", error.render(source)));
    Run::new(&program).limits(roomy()).journal(journal).execute_on_thread()
}

#[test]
fn journaled_task_is_not_repeated() {
    let first = with_journal("(task \"a\" (do (println \"working\") 1)) (task :b {:x 2}) (/ 1 0)", Value::nil());
    assert_eq!(first.prints, ["working"]);
    assert_eq!(first.result.unwrap_err().kind, ErrorKind::ArithmeticError);
    assert_eq!(print::readable(&first.journal), "{\":b\" {:x 2} \"a\" 1}");
    let again = with_journal("[(task \"a\" (do (println \"working\") 2)) (task-reset :b) (task :b 3)]", first.journal);
    assert_eq!((again.prints.len(), print::readable(&again.result.unwrap())), (0, "[1 nil 3]".into()));
    let failed = with_journal("(task \"a\" (fail \"no\"))", Value::nil());
    assert_eq!(print::readable(&failed.journal), "{}");
    let function = with_journal("(task \"f\" {:f (fn [x] x)})", Value::nil());
    assert_eq!(function.result.unwrap_err().kind, ErrorKind::TypeError);
    let without = Program::compile("(task \"a\" 5)").unwrap();
    let without = Run::new(&without).execute_on_thread();
    assert_eq!((without.result.unwrap(), without.journal), (Value::int(5), Value::nil()));
    assert!(Program::compile("(loop [x 1] (task \"a\" (recur 2)))").is_err());
}

#[test]
fn finished_steps_are_journaled_with_summary() {
    let outcome = with_journal("(step-done \"2\" \"two\") (step-done 1 \"x\") (step-done 1 (str \"one\" 1))", Value::nil());
    let pair = |id: &str, summary: &str| (id.to_owned(), summary.to_owned());
    assert_eq!(outcome.progress, [pair("1", "one1"), pair("2", "two")]);
    let failed = with_journal("(step-done 1 \"x\") (/ 1 0)", Value::nil());
    assert!(failed.progress.is_empty());
    let parallel = with_journal("(pmap (fn [i] (step-done i \"x\")) [1 2 3])", Value::nil());
    assert!(parallel.progress.is_empty());
}

/// A host that answers every call with its argument `n`, after a delay.
struct Slow;

impl Host for Slow {
    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        let n = request.get("args").and_then(|args| args.get("n")).and_then(Value::as_int).unwrap_or_default();
        let (answer, ticket) = PendingReply::pair();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            answer.send(Reply::Json(n.to_string().into_bytes()));
        });
        Ok(ticket)
    }

    fn discover(&self, _: Discovery<'_>) -> Result<Value, Fault> {
        Ok(Value::nil())
    }

    fn random(&self) -> u64 {
        0
    }
}

#[test]
fn parallel_tool_calls_count_toward_limit() {
    let source = "(count (pmap (fn [n] (tool/call {:server \"s\" :tool \"t\" :args {:n n}})) (range data/n)))";
    let program = Program::compile(source).unwrap();
    let run = |n: i64| {
        let context = Value::map([(Value::keyword("n"), Value::int(n))]);
        let limits = roomy().tool_calls(Some(12));
        Run::new(&program).limits(limits).host(Arc::new(Slow)).context(context).execute_on_thread().result
    };
    assert_eq!(run(12).unwrap(), Value::int(12));
    let error = run(13).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::ToolError, "the program made more than 12 calls of tools"));
}

#[test]
fn program_runs_on_many_threads_concurrently() {
    let program = Program::compile("(def x data/n) (defn f [n] (if (pos? n) (+ x (f (dec n))) 0)) (f 50)").unwrap();
    std::thread::scope(|scope| {
        for n in 0..4 {
            let program = &program;
            scope.spawn(move || {
                let context = Value::map([(Value::keyword("n"), Value::int(n))]);
                let outcome = Run::new(program).limits(roomy()).context(context).execute_on_thread();
                assert_eq!(outcome.result.unwrap(), Value::int(50 * n));
            });
        }
    });
}

#[test]
fn run_cancelled_before_start_does_not_execute() {
    let cancel = Cancel::default();
    cancel.cancel();
    let program = Program::compile("(println 1)").unwrap();
    let outcome = Run::new(&program).cancel(cancel).execute_on_thread();
    assert_eq!((outcome.result.unwrap_err().kind, outcome.prints.len()), (ErrorKind::Cancelled, 0));
}
