//! Detection of unchecked failed calls at run time.

use std::sync::Arc;

use ptc_lisp::host::{Discovery, Fault, Host, PendingReply, Reply};
use ptc_lisp::{Program, Run, Value, print};

/// A host whose tool `good` returns a map and whose other tools fail.
struct Failing;

impl Host for Failing {
    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        Ok(PendingReply::ready(match request.get("tool").and_then(Value::as_name) {
            Some("good") => Reply::Json(br#"{"items":[1]}"#.to_vec()),
            _ => Reply::Failed { reason: "timeout", message: "no answer".into() },
        }))
    }

    fn discover(&self, _: Discovery<'_>) -> Result<Value, Fault> {
        Ok(Value::nil())
    }

    fn random(&self) -> u64 {
        4
    }
}

/// Programs that call `(bad)` or `(good)`, with the number of failed calls that stay unchecked. The value of each is shown like
/// an answer.
const PROGRAMS: &[(&str, u64)] = &[
    // The status is never read.
    ("(:value (bad))", 1),
    ("(do (bad) 5)", 1),
    ("(run! (fn [_] (bad)) (range 7))", 7),
    (r#"(or (:name (:value (bad))) "?")"#, 1),
    ("(empty? (:items (:value (bad))))", 1),
    ("(if-let [v (:value (bad))] v :none)", 1),
    ("(if (bad) 1 2)", 1),
    ("(nil? (bad))", 1),
    ("(count (bad))", 1),
    ("(let [{:keys [value]} (bad)] (count value))", 1),
    ("(let [{value \"value\"} (bad)] (count value))", 1),
    ("(count (keep :value (pmap (fn [_] (bad)) (range 9))))", 9),
    ("(count (distinct [(bad) (bad)]))", 2),
    ("(contains? (bad) :value)", 1),
    ("(:error (bad))", 1),
    ("(:value (assoc (bad) :id 1))", 1),
    ("(:value (update (bad) :value count))", 1),
    ("(:value (merge {:id 1} (bad)))", 1),
    ("(get-in [(bad)] [0 :value :items])", 1),
    ("(defn value-of [r] (:value r)) (count (map value-of [(bad) (bad)]))", 2),
    ("(def r (bad))", 1),
    ("(loop [i 0 n 0] (if (< i 4) (recur (inc i) (+ n (count (:value (bad))))) n))", 4),
    ("(let [[a b] [(bad) (bad)]] [(:ok a) (:value b)])", 1),
    // The program ends with an error that does not mention the call.
    ("(+ 1 (:value (bad)))", 1),
    // The status is read.
    ("(:ok (bad))", 0),
    ("(get (bad) \"ok\")", 0),
    ("((bad) :reason)", 0),
    ("(let [r (bad)] (if (:ok r) (:value r) :none))", 0),
    ("(let [{:keys [ok value]} (bad)] (if ok value 0))", 0),
    ("(let [{:strs [message value]} (bad)] (or value message))", 0),
    ("(let [rs (pmap (fn [_] (bad)) (range 9))] (count (filter :ok rs)))", 0),
    ("(let [rs (vec (repeatedly 3 bad))] (count (group-by :reason rs)))", 0),
    ("(every? :ok [(bad)])", 0),
    ("(count (select-keys (bad) [:ok :value]))", 0),
    ("(contains? (bad) :message)", 0),
    ("(:ok (assoc (bad) :id 1))", 0),
    ("(:ok (dissoc (assoc (bad) :id 1) :message))", 0),
    ("(:ok (merge {:id 1} (bad)))", 0),
    ("(get-in {:r (bad)} [:r :ok])", 0),
    ("(count (str (bad)))", 0),
    ("(println (bad))", 0),
    ("(count (json/generate-string (bad)))", 0),
    ("(count (keys (bad)))", 0),
    ("(count (map first (bad)))", 0),
    ("(fail (:message (bad)))", 0),
    // The answer shows the status.
    ("(bad)", 0),
    ("{:r [(bad) (bad)]}", 0),
    // The answer shows one result. Of the other only the value is read.
    ("(let [r (bad) s (bad)] {:r r :n (count (:value s))})", 1),
    // Successful calls need no check.
    ("(:items (:value (good)))", 0),
    ("(do (good) 5)", 0),
];

#[test]
fn failed_calls_are_unchecked_until_their_status_is_read() {
    let before = r#"
        (defn bad [] (tool/call {:server "s" :tool "bad"}))
        (defn good [] (tool/call {:server "s" :tool "good"}))"#;
    for (source, expected) in PROGRAMS {
        let program = Program::compile(&format!("{before} {source}")).unwrap_or_else(|fault| panic!("{source}: {fault}"));
        let outcome = Run::new(&program).host(Arc::new(Failing)).execute_on_thread();
        if let Ok(value) = &outcome.result {
            print::preview(value, 1000);
        }
        let unchecked = outcome.failed_calls.unchecked();
        assert_eq!(unchecked.iter().map(|calls| calls.count).sum::<u64>(), *expected, "{source}");
        for calls in unchecked {
            let named = (calls.server.as_str(), calls.tool.as_str(), calls.reason.as_str(), calls.message.as_str());
            assert_eq!(named, ("s", "bad", "timeout", "no answer"), "{source}");
        }
    }
}

#[test]
fn calls_of_many_computed_names_are_counted_together() {
    let source = r#"(run! (fn [i] (tool/call {:server "s" :tool (str "tool-" i)})) (range 300))"#;
    let program = Program::compile(source).expect("it compiles");
    let unchecked = Run::new(&program).host(Arc::new(Failing)).execute_on_thread().failed_calls.unchecked();
    assert_eq!(unchecked.iter().map(|calls| calls.count).sum::<u64>(), 300);
    assert!(unchecked.len() <= 101, "{} groups", unchecked.len());
}
