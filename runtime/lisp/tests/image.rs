//! Encodes and decodes the state of a session after each of its programs, and checks that the session continues unchanged.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use ptc_lisp::image::{DecodeError, DecodeLimits};
use ptc_lisp::{Bindings, Cancel, Program, Run, Value, image, print};

/// Sessions, with one program per line.
const SESSIONS: &[&str] = &[
    // Data of every kind, including values that differ only in their bits.
    r#"(def all [nil true false 1 -9223372036854775808 1.5 -0.0 ##NaN ##Inf "žluťoučký" "" :kw 'sym #'inc #"a+(?=b)" \x])
       all
       [(map type all) (re-seq (nth all 14) "aab") (/ 1.0 (nth all 6)) (= (nth all 7) (nth all 7))]"#,
    "(def big (* 9223372036854775807 9223372036854775807))
     (- big)
     [(- big *1) {big :k} #{big}]",
    r#"(def days [(LocalDate/parse "2024-02-29") (LocalDateTime/parse "2024-02-29T10:00:00.000000001") (OffsetDateTime/parse "2024-02-29T10:00:00.5+05:30")])
       (def amounts [(Instant/ofEpochMilli -1) (Duration/ofSeconds -5) (Period/parse "P1Y2M3D")])
       (def units [DayOfWeek/MONDAY Month/MAY ChronoUnit/DAYS])
       (map #(map str %) [days amounts units])"#,
    // Functions refer to each other by name, and a new definition is visible to existing functions.
    "(defn twice [n] (* 2 n)) (defn four [n] (twice (twice n)))
     (four 3)
     (defn twice [n] (* 10 n))
     (four 3)",
    // A name that was a builtin when a function was made stays the builtin in that function.
    "(defn up [n] (inc n))
     (defn inc [n] (- n 100))
     (defn later [n] (inc n))
     [(up 1) (later 1)]",
    // Captured values, functions that captured functions, groups, arities, own names, docs.
    r#"(defn adder "Adds." [n] (fn plus ([] n) ([m] (+ n m)) ([m & more] (apply + n m more))))
       (def five (adder 5)) (def fs [five (adder 6) five])
       (letfn [(even [n] (if (zero? n) :even (odd (dec n)))) (odd [n] (if (zero? n) :odd (even (dec n))))] (def parity even) odd)
       [(five) (five 1) (five 1 2 3) (map #(% 1) fs) (parity 7) (*1 7) (identical? (first fs) (last fs))]
       (def compose (let [f five, g (fn down [n] (if (pos? n) (down (dec n)) n))] (fn [x] [(f x) (g x)])))
       (compose 3)
       (doc adder)"#,
    // Composed functions.
    "(def p (partial map inc)) (def c (comp str (fnil inc 0))) (def j (juxt (complement nil?) (constantly 7)))
     [(p [1 2]) (c nil) (j 1) ((every-pred pos? even?) 4)]
     (def e (some-fn :a :b)) (def down (comparator >))
     [(e {:b 3}) (sort down [1 3 2])]",
    // The order among functions.
    "(def f1 (fn [] 1)) (def f2 (partial + 2)) (def f3 (let [x 3] (fn [] x))) (def order (into #{} [f3 f1 f2]))
     (map #(%) order)
     (def keyed {(fn [] 1) :a, (let [y 2] (fn [] y)) :b})
     (map #((key %)) keyed)",
    // Names without a value in a later program, macros that make functions, threading and destructuring.
    "(def helper 1) (defn uses [{:keys [a] :or {a helper}} [b & c]] (->> c (map #(+ a b %)) (filter odd?) vec))
     (uses {} [1 2 3 4])
     (defonce helper 2)
     (uses {:a 0} (range 10))",
    "(require '[clojure.string :as text]) (defn loud [s] (text/upper-case s))
     (loud \"abc\")
     (defn deep [n] (reduce (fn [acc _] [acc]) [] (range n))) (def nested (deep 5000))
     (count (str nested))",
];

/// Runs a program and returns its printed value, the bindings and the results.
fn step(source: &str, bindings: &Bindings, results: &[Value]) -> (String, Bindings, Vec<Value>) {
    let program = match Program::compile_with(source, bindings) {
        Ok(program) => program,
        Err(fault) => return (format!("{}: {}", fault.kind.name(), fault.message), bindings.clone(), results.to_vec()),
    };
    let outcome = Run::new(&program).bindings(bindings.clone()).history(results.to_vec()).execute_on_thread();
    let mut results = results.to_vec();
    let text = match outcome.result {
        Ok(value) => {
            let text = print::readable(&value);
            results.insert(0, value);
            results.truncate(3);
            text
        }
        Err(fault) => format!("{}: {}", fault.kind.name(), fault.message),
    };
    (text, outcome.bindings, results)
}

fn carried(bindings: &Bindings, results: &[Value]) -> (Bindings, Vec<Value>) {
    let bytes = image::encode(bindings, results).expect("all of it can be stored");
    let (there, later) = image::decode(&bytes).expect("an image of this version");
    assert_eq!(bindings.bytes(), there.bytes(), "{bindings:?}");
    assert_eq!(results.iter().map(Value::heap_bytes).sum::<usize>(), later.iter().map(Value::heap_bytes).sum::<usize>());
    assert_eq!(image::encode(&there, &later).as_deref(), Ok(&*bytes), "an image of an image is the same");
    (there, later)
}

#[test]
fn session_continues_after_encode_and_decode() {
    for session in SESSIONS {
        let (mut here, mut there) = ((Bindings::default(), Vec::new()), (Bindings::default(), Vec::new()));
        for source in session.lines().map(str::trim) {
            let (expected, bindings, results) = step(source, &here.0, &here.1);
            assert!(results != here.1 && !expected.starts_with(char::is_alphabetic), "{source} gives {expected}");
            here = (bindings, results);
            let (found, bindings, results) = step(source, &there.0, &there.1);
            assert_eq!(found, expected, "{source}");
            there = carried(&bindings, &results);
        }
    }
}

#[test]
fn fault_in_decoded_function_shows_its_source() {
    let (_, bindings, results) = step("(def x 1)\n(defn bad [n]\n  (/ n nil))", &Bindings::default(), &[]);
    let (bindings, _) = carried(&bindings, &results);
    let program = Program::compile_with("(bad 1)", &bindings).expect("a program");
    let fault = Run::new(&program).bindings(bindings).execute_on_thread().result.expect_err("it divides by nil");
    assert!(fault.render("(bad 1)").contains("3 |   (/ n nil))"), "{}", fault.render("(bad 1)"));
}

#[test]
fn forgotten_name_is_unbound_after_decoding() {
    let (_, mut bindings, results) = step("(def x 1) (defn f [] x)", &Bindings::default(), &[]);
    bindings.forget("x");
    let (_, bindings, results) = step("(defn g [] (f))", &bindings, &results);
    let (bindings, results) = carried(&bindings, &results);
    assert!(step("(g)", &bindings, &results).0.starts_with("unbound_var"));
    let (_, bindings, results) = step("(def x 2)", &bindings, &results);
    assert_eq!(step("(g)", &bindings, &results).0, "2");
}

#[test]
fn cleared_names_keep_their_slots_while_a_result_refers_to_them() {
    let (_, mut bindings, results) = step("(def a 1) (def b 2) (fn [] b)", &Bindings::default(), &[]);
    bindings.clear(&results);
    assert!(bindings.is_empty());
    let (_, bindings, results) = step("(def c 3)", &bindings, &results);
    let (bindings, results) = carried(&bindings, &results);
    assert!(step("(*2)", &bindings, &results).0.starts_with("unbound_var"), "no other definition replaces b");
    let mut without = bindings.clone();
    without.clear(&[]);
    assert_eq!(without.bytes(), Bindings::default().bytes());
}

#[test]
fn compact_frees_memory_of_forgotten_names() {
    let (_, mut bindings, _) = step("(def kept 1)", &Bindings::default(), &[]);
    let before = bindings.bytes();
    for round in 0..1_000 {
        let name = format!("{}{round}", "n".repeat(100));
        bindings = step(&format!("(def {name} {round}) (defn f-{round} [] {name})"), &bindings, &[]).1;
        for name in [name, format!("f-{round}")] {
            assert!(bindings.forget(&name).is_some());
        }
        bindings.compact(&[]);
        assert_eq!(bindings.bytes(), before, "round {round}");
    }
    assert_eq!(step("kept", &bindings, &[]).0, "1");
}

#[test]
fn compact_keeps_only_slots_that_functions_refer_to() {
    let long = "n".repeat(10_000);
    let (_, bindings, _) = step(&format!("(def {long} 1) (def a 2)"), &Bindings::default(), &[]);
    let (_, bindings, _) = step("(def b 3) (defn f [] [a b]) (def c (fn [] b))", &bindings, &[]);
    let (_, mut bindings, _) = step("(def d 4) (def e 5)", &bindings, &[]);
    for name in [&*long, "b", "d"] {
        bindings.forget(name);
    }
    bindings.compact(&[]);
    assert!(bindings.bytes() < 5_000, "{} bytes: the long name is not referenced", bindings.bytes());
    let (bindings, _) = carried(&bindings, &[]);
    let fault = step("(f)", &bindings, &[]).0;
    assert!(fault.starts_with("unbound_var: 'b'"), "{fault}");
    assert!(step(&long, &bindings, &[]).0.starts_with("unbound_var"));
    let (_, bindings, _) = step(&format!("(def z 9) (def b 10) (def {long} 7)"), &bindings, &[]);
    let (bindings, _) = carried(&bindings, &[]);
    assert_eq!(step(&format!("[(f) e z {long}]"), &bindings, &[]).0, "[[2 10] 5 9 7]");
}

#[test]
fn shared_values_are_encoded_once() {
    let doubling = "(def x (reduce (fn [acc _] [acc acc]) [\"leaf\"] (range 60)))";
    let (_, bindings, _) = step(doubling, &Bindings::default(), &[]);
    let bytes = image::encode(&bindings, &[]).expect("data");
    assert!(bytes.len() < 1000, "{} bytes", bytes.len());
    assert_eq!(image::decode(&bytes).expect("data").0.bytes(), bindings.bytes());
}

#[test]
fn infinite_sequences_and_transducers_are_refused_by_name() {
    for (source, name, what) in [
        ("(def ok 1) (def xs (range)) nil", "`xs`", "an infinite sequence"),
        ("(def ok 1) (def f (let [xs (iterate inc 0)] (fn [] (first xs)))) nil", "`f`", "an infinite sequence"),
        ("(comp (map inc) (filter odd?))", "*1", "a transducer"),
    ] {
        let (text, bindings, results) = step(source, &Bindings::default(), &[]);
        let refused = image::encode(&bindings, &results).expect_err("something cannot be stored");
        assert_eq!((&*refused.name, refused.what), (name, what), "{source} gave {text}");
    }
}

#[test]
fn damaged_image_is_refused_or_decoded_without_panic() {
    let source =
        "(def x [1 \"two\" {:three 3.0}]) (defn f [n] (let [m n] (fn [] (+ m (count x))))) (def g (f 2)) (def p (partial g))";
    let (_, bindings, results) = step(source, &Bindings::default(), &[]);
    let bytes = image::encode(&bindings, &results).expect("it can be stored");
    for end in 0..bytes.len() {
        assert!(image::decode(&bytes[..end]).is_err(), "cut at {end}");
    }
    assert!(image::decode(&[&bytes[..], b"x"].concat()).is_err());
    for at in 0..bytes.len() {
        for flip in [0x01, 0x10, 0x80, 0xFF] {
            let mut wrong = bytes.clone();
            wrong[at] ^= flip;
            // A corrupted image that can still be decoded contains other valid data.
            if let Ok((bindings, results)) = image::decode(&wrong) {
                let _ = format!("{bindings:?} {results:?}");
            }
        }
    }
}

/// A gauge that shows a megabyte more at each reading.
fn growing() -> i64 {
    static BYTES: AtomicI64 = AtomicI64::new(0);
    BYTES.fetch_add(1 << 20, Ordering::Relaxed)
}

#[test]
fn decoding_ends_at_the_limits_of_memory_and_time() {
    let (_, bindings, results) = step("(def xs (vec (range 5000))) (defn f [n] n)", &Bindings::default(), &[]);
    let bytes = image::encode(&bindings, &results).expect("it can be stored");
    let decode = |limits: &DecodeLimits| image::decode_within(&bytes, limits).map(|(bindings, _)| bindings.len());
    let later = Instant::now() + Duration::from_mins(1);
    let enough = DecodeLimits { memory: Some((1 << 40, growing)), until: Some(later), ..DecodeLimits::default() };
    assert_eq!(decode(&enough), Ok(2));
    assert_eq!(decode(&DecodeLimits { memory: Some((5, growing)), ..enough.clone() }), Err(DecodeError::OutOfMemory(5)));
    assert_eq!(decode(&DecodeLimits { until: Some(Instant::now()), ..enough.clone() }), Err(DecodeError::OutOfTime));
    let cancelled = DecodeLimits { cancel: Cancel::default(), ..enough };
    cancelled.cancel.cancel();
    assert_eq!(decode(&cancelled), Err(DecodeError::OutOfTime));
}

#[test]
fn image_restricted_to_data_contains_no_function() {
    let data_only = DecodeLimits { data_only: true, ..DecodeLimits::default() };
    let decode = |program: &str| {
        let (.., results) = step(program, &Bindings::default(), &[]);
        let bytes = image::encode(&Bindings::default(), &results).expect("it can be stored");
        image::decode_within(&bytes, &data_only).map(|(_, values)| print::readable(&values[0]))
    };
    assert_eq!(decode("{:a [1 \"b\" #{2.5} inc]}"), Ok("{:a [1 \"b\" #{2.5} #fn[inc]]}".to_owned()));
    assert_eq!(decode("{:a (fn [n] n)}"), Err(DecodeError::Invalid("it has functions")));
}
