//! Programs that try to take everything: each must end by one of its limits, and the process must live.
#![expect(unsafe_code, reason = "a counting allocator, as a host installs one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use ptc_lisp::{Cancel, Error, ErrorKind, Limits, Outcome, Program, Run, Value};

struct Counting;

thread_local! {
    static NET: Cell<i64> = const { Cell::new(0) };
}

fn count(delta: i64) {
    // The counter is gone while a thread ends.
    let _ = NET.try_with(|net| net.set(net.get() + delta));
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's contract is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's contract is that of the system allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn gauge() -> i64 {
    NET.with(Cell::get)
}

fn limits() -> Limits {
    Limits { wall_clock: Duration::from_millis(1500), memory_bytes: 32 << 20, ..Limits::default() }
}

fn run(source: &str, limits: Limits) -> Result<Outcome, Error> {
    let program = Program::compile(source)?;
    Ok(Run::new(&program).limits(limits).gauge(gauge).execute_on_thread())
}

fn kind(source: &str) -> ErrorKind {
    let result = run(source, limits()).and_then(|outcome| outcome.result);
    match result {
        Ok(value) => panic!("{source}\n gave {:?}", value.kind()),
        Err(error) => error.kind,
    }
}

use ErrorKind::{DepthExceeded, InvalidForm, MemoryExceeded, ParseError, Timeout};

/// Programs, and the limits that may end them; on a slow machine the clock is one of them everywhere.
const PROGRAMS: &[(&str, &[ErrorKind])] = &[
    ("(defn f [n] (+ 1 (f n))) (f 1)", &[DepthExceeded]),
    ("((fn f [n] (+ 1 (f n))) 1)", &[DepthExceeded]),
    ("(letfn [(f [n] (inc (g n))) (g [n] (inc (f n)))] (f 1))", &[DepthExceeded]),
    ("(defn f [x] (map f [x])) (f 1)", &[DepthExceeded]),
    ("(defn f [x] (sort-by f [x x])) (f 1)", &[DepthExceeded]),
    ("(defn f [x] (reduce (fn [a b] (f b)) [x x])) (f 1)", &[DepthExceeded]),
    ("(defn f [x] (apply f [x])) (f 1)", &[DepthExceeded]),
    ("(defn f [x] (for [y [x]] (f y))) (f 1)", &[DepthExceeded]),
    ("(defn f [x] (prewalk f [x])) (f 1)", &[DepthExceeded, MemoryExceeded]),
    (
        "(defn f [x] (let [[a {:keys [b] :or {b (f x)}}] [x {}]] (if (and a (or false b)) (case b 1 (f b) (cond (f a) 1)) b))) (f 1)",
        &[DepthExceeded],
    ),
    ("(let [f (reduce (fn [f _] (comp f inc)) inc (range 100000))] (f 1))", &[DepthExceeded]),
    ("(let [f (reduce (fn [f _] (fn [x] (f x))) inc (range 100000))] (f 1))", &[DepthExceeded]),
    ("(loop [] (recur))", &[]),
    ("(loop [x 1] (recur (inc x)))", &[]),
    ("(defn f [] (recur)) (f)", &[]),
    ("(loop [i 0] (doseq [x (range 1000)] x) (recur i))", &[]),
    ("(loop [s \"ab\"] (recur (str s s)))", &[MemoryExceeded]),
    ("(loop [v [1]] (recur (into v v)))", &[MemoryExceeded]),
    ("(loop [v [1]] (recur (concat v v)))", &[MemoryExceeded]),
    ("(loop [v []] (recur (conj v [1 2 3])))", &[MemoryExceeded]),
    ("(loop [m {} i 0] (recur (assoc m i (str i)) (inc i)))", &[MemoryExceeded]),
    ("(loop [s #{} i 0] (recur (conj s i) (inc i)))", &[MemoryExceeded]),
    ("(loop [v []] (recur [v v]))", &[MemoryExceeded]),
    ("(loop [v {}] (recur {:a v}))", &[MemoryExceeded]),
    ("(loop [f inc] (recur (fn [x] (f x))))", &[MemoryExceeded]),
    ("(range 1000000000000)", &[MemoryExceeded]),
    ("(count (range 1000000000000))", &[MemoryExceeded]),
    ("(reduce + (range 1000000000000))", &[MemoryExceeded]),
    ("(vec (repeat 1000000000 1))", &[MemoryExceeded, ErrorKind::UnboundVar]),
    ("(for [x (range 100000) y (range 100000)] [x y])", &[MemoryExceeded]),
    ("(combinations (range 60) 30)", &[MemoryExceeded]),
    ("(str/join \",\" (map (fn [_] (str/join (range 10000))) (range 100000)))", &[MemoryExceeded]),
    ("(loop [n 2] (recur (* n n)))", &[MemoryExceeded, ErrorKind::ArithmeticError]),
    ("(reduce * (range 1 10000000))", &[MemoryExceeded, ErrorKind::ArithmeticError]),
    ("(reduce (fn [n _] (* n 123456789)) 1 (range 1000000))", &[MemoryExceeded, ErrorKind::ArithmeticError]),
    ("(bit-shift-left 1 100000000000)", &[MemoryExceeded, ErrorKind::ArithmeticError, ErrorKind::TypeError]),
    ("(format \"%1000000000d\" 1)", &[MemoryExceeded, ErrorKind::RuntimeError, ErrorKind::TypeError]),
    ("(str/replace (apply str (range 20000)) #\"[0-9]\" (apply str (range 20000)))", &[MemoryExceeded]),
    ("(sort (fn [a b] (loop [] (recur))) [1 2 3])", &[]),
    ("(sort-by (fn [x] (loop [] (recur))) [1 2 3])", &[]),
    ("(pmap (fn [x] (loop [] (recur))) (range 20))", &[]),
    ("(pmap (fn [x] (loop [v [1]] (recur (into v v)))) (range 20))", &[MemoryExceeded]),
    ("(defn f [n] (pmap (fn [x] (f x)) (range 3))) (f 1)", &[DepthExceeded, MemoryExceeded]),
    ("(defn f [n] (pcalls #(f 1) #(f 2))) (f 1)", &[DepthExceeded, MemoryExceeded]),
    ("(do (doseq [x (range 10000000)] (println \"some text that is kept\")) (loop [] (recur)))", &[MemoryExceeded]),
    ("(tree-seq (fn [x] true) (fn [x] [x x]) 1)", &[MemoryExceeded]),
    ("(loop [x 0.5] (recur (sqrt x)))", &[]),
    ("(frequencies (range 100000000000))", &[MemoryExceeded]),
    ("(partition 2 1 (range 10000000000))", &[MemoryExceeded]),
    ("(zipmap (range 10000000000) (range 10000000000))", &[MemoryExceeded]),
    ("(into {} (map (fn [x] [x x]) (range 10000000)))", &[MemoryExceeded]),
];

#[test]
fn every_limit_holds() {
    for (source, kinds) in PROGRAMS {
        let kind = kind(source);
        assert!(kind == Timeout || kinds.contains(&kind), "{source}\n ended by {kind}, expected one of {kinds:?}");
    }
}

/// Programs that may give a value or end by a limit; what counts is that they end.
const COSTLY: &[&str] = &[
    "(re-find #\"(a+)+$\" (str (apply str (map (fn [_] \"a\") (range 50000))) \"!\"))",
    "(re-find #\"(a|aa)+(?=!)\" (apply str (map (fn [_] \"a\") (range 5000))))",
    "(re-find #\"^(a+)+\\1b$\" (apply str (map (fn [_] \"a\") (range 5000))))",
    "(re-seq #\"(.*)*\" (apply str (range 5000)))",
    "(re-pattern (apply str (map (fn [_] \"(\") (range 100000))))",
    "(re-pattern \"((a{1000}){1000}){1000}\")",
    "(distinct (map str (range 200000)))",
];

#[test]
fn costly_programs_end() {
    for source in COSTLY {
        match run(source, limits()).map(|outcome| outcome.result) {
            Ok(Ok(_)) => {}
            Ok(Err(error)) | Err(error) => assert_ne!(error.kind, ErrorKind::InternalError, "{source}\n ended by {error}"),
        }
    }
}

#[test]
fn no_text_overflows_the_reader_or_the_analyzer() {
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
fn what_is_nested_within_bounds_works() {
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
fn deep_values_are_built_compared_printed_and_dropped() {
    let source = "(defn deep [n] (loop [v [] i 0] (if (< i n) (recur [v i] (inc i)) v)))
                  (let [a (deep 30000) b (deep 30000)] [(= a b) (count (pr-str a)) (count #{a b}) (hash-map a 1)])";
    let outcome = run(source, Limits { wall_clock: Duration::from_secs(20), ..limits() }).unwrap();
    let value = outcome.result.unwrap();
    assert_eq!(value.items().and_then(|mut items| items.next().cloned()), Some(Value::bool(true)));
    assert!(outcome.peak_bytes > 0);
}

#[test]
fn memory_is_given_back() {
    // Fifty times the limit in all, but little of it at once.
    let source = "(loop [i 0] (if (< i 400) (do (count (range 200000)) (recur (inc i))) i))";
    let outcome = run(source, Limits { wall_clock: Duration::from_secs(60), ..limits() }).unwrap();
    assert_eq!(outcome.result.unwrap(), Value::int(400));
}

#[test]
fn steps_turns_and_prints_are_counted() {
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
fn another_thread_can_stop_a_run() {
    let cancel = Cancel::default();
    let program = Program::compile("(pmap (fn [x] (loop [] (recur))) (range 4))").unwrap();
    let outcome = std::thread::scope(|scope| {
        let stop = cancel.clone();
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            stop.cancel();
        });
        let limits = Limits { wall_clock: Duration::from_secs(600), ..Limits::default() };
        Run::new(&program).limits(limits).cancel(cancel).execute_on_thread()
    });
    assert_eq!(outcome.result.unwrap_err().kind, ErrorKind::Cancelled);
}
