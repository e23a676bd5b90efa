//! Limits one by one, and texts that try to overflow the reader. Programs that exhaust resources are in `bombs.clj`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::counting::gauge;
use ptc_lisp::{Cancel, Error, ErrorKind, Limits, Outcome, Program, Run, Value};

fn limits() -> Limits {
    Limits::default().wall_clock(Duration::from_millis(1500)).memory_bytes(32 << 20)
}

fn run(source: &str, limits: Limits) -> Result<Outcome, Error> {
    let program = Program::compile(source)?;
    Ok(Run::new(&program).limits(limits).gauge(gauge).execute_on_thread())
}

use ErrorKind::{DepthExceeded, InvalidForm, ParseError};

#[test]
fn deeply_nested_source_overflows_neither_reader_nor_analyzer() {
    let deep = |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    for text in [
        "(".repeat(65536),
        "[".repeat(65536),
        "#{".repeat(32768),
        "'".repeat(65536),
        "#_".repeat(32768),
        "{:a ".repeat(20000),
        deep("(inc ", ")", 20000),
        deep("[", "]", 20000),
        deep("(-> ", ")", 20000),
        format!("(-> 1 {})", "inc ".repeat(20000)),
        format!("(->> 1 {})", "(+ 1) ".repeat(10000)),
        format!("(some-> 1 {})", "inc ".repeat(20000)),
        format!("(cond {})", "x 1 ".repeat(20000)),
    ] {
        let error = Program::compile(&text).expect_err("a limit");
        let start: String = text.chars().take(12).collect();
        assert!(matches!(error.kind, ParseError | InvalidForm), "{start}… gave {error}");
        assert!(error.position.is_some(), "{start}… has a place");
        assert!(error.render(&text).len() < 2000, "{start}… renders short");
    }
}

#[test]
fn nesting_within_bounds_is_accepted() {
    for depth in [10, 100, 250] {
        let text = format!("{}1{}", "(inc ".repeat(depth), ")".repeat(depth));
        let outcome = run(&text, limits()).unwrap();
        assert_eq!(outcome.result.unwrap(), Value::int(depth as i64 + 1));
        let text = format!("(-> 0 {})", "inc ".repeat(depth));
        assert_eq!(run(&text, limits()).unwrap().result.unwrap(), Value::int(depth as i64));
    }
    let clauses: String = (0..200).map(|n| format!("(= x {n}) {n} ")).collect::<Vec<_>>().concat();
    let text = format!("(let [x 199] (cond {clauses}))");
    assert_eq!(run(&text, limits()).unwrap().result.unwrap(), Value::int(199));
}

#[test]
fn deep_values_are_built_compared_printed_and_dropped_without_overflow() {
    let source = "(defn deep [n] (loop [v [] i 0] (if (< i n) (recur [v i] (inc i)) v)))
                  (let [a (deep 30000) b (deep 30000)] [(= a b) (count (pr-str a)) (count #{a b}) (hash-map a 1)])";
    let outcome = run(source, limits().wall_clock(Duration::from_secs(20))).unwrap();
    let value = outcome.result.unwrap();
    assert_eq!(value.items().and_then(|mut items| items.next().cloned()), Some(Value::bool(true)));
    assert!(outcome.peak_bytes > 0);
}

#[test]
fn freed_memory_does_not_count_toward_limit() {
    // Fifty times the limit in total, but little at any one time.
    let source = "(loop [i 0] (if (< i 400) (do (count (range 200000)) (recur (inc i))) i))";
    let outcome = run(source, limits().wall_clock(Duration::from_mins(1))).unwrap();
    assert_eq!(outcome.result.unwrap(), Value::int(400));
}

#[test]
fn limits_of_steps_loops_prints_and_depth_are_enforced() {
    let with = |change: fn(&mut Limits)| {
        let mut limits = limits();
        change(&mut limits);
        limits
    };
    let endless = "(loop [i 0] (recur (inc i)))";
    let outcome = run(endless, with(|l| l.steps = Some(10_000))).unwrap();
    assert_eq!(outcome.result.unwrap_err().kind, ErrorKind::LoopLimitExceeded);
    let outcome = run(endless, with(|l| l.loop_iterations = Some(100))).unwrap();
    let error = outcome.result.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::LoopLimitExceeded, "a loop took more than 100 turns"));
    let outcome = run("(dotimes [i 1000] (println \"0123456789\"))", with(|l| l.print_bytes = 100)).unwrap();
    assert!(outcome.prints.iter().map(String::len).sum::<usize>() < 200, "{:?}", outcome.prints);
    let outcome = run("(defn f [n] (if (= n 0) 0 (+ 1 (f (dec n))))) (f 50)", with(|l| l.call_depth = 40)).unwrap();
    assert_eq!(outcome.result.unwrap_err().kind, DepthExceeded);
}

#[test]
fn run_is_cancelled_from_another_thread() {
    let cancel = Cancel::default();
    let program = Program::compile("(pmap (fn [x] (loop [] (recur))) (range 4))").unwrap();
    let outcome = std::thread::scope(|scope| {
        let stop = cancel.clone();
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            stop.cancel();
        });
        let limits = Limits::default().wall_clock(Duration::from_mins(10));
        Run::new(&program).limits(limits).cancel(cancel).execute_on_thread()
    });
    assert_eq!(outcome.result.unwrap_err().kind, ErrorKind::Cancelled);
}

#[test]
fn long_builtins_check_limits_while_running() {
    // The gauge is read at every check of the clock and the cancel flag.
    static CHECKS: AtomicUsize = AtomicUsize::new(0);
    let looks = |source: &str| {
        CHECKS.store(0, Ordering::Relaxed);
        let program = Program::compile(source).unwrap();
        let counted = || {
            CHECKS.fetch_add(1, Ordering::Relaxed);
            gauge()
        };
        let limits = Limits::default().wall_clock(Duration::from_mins(10)).memory_bytes(1 << 30);
        Run::new(&program).limits(limits).gauge(counted).execute_on_thread().result.unwrap();
        CHECKS.load(Ordering::Relaxed)
    };
    let items = 400_000;
    let bare = looks(&format!("(count (vec (range {items})))"));
    for work in ["shuffle", "sort", "frequencies", "set", "distinct", "str/join", "pr-str", "json/generate-string"] {
        let looks = looks(&format!("(count ({work} (vec (range {items}))))"));
        assert!(looks >= bare + items / 8192, "{work}: {looks} looks, {bare} without it");
    }
}
