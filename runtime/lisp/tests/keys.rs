//! The rule for keys of maps: a key refers to the entry with exactly that key, otherwise to the entry with the same name in the
//! other spelling. A keyword and a string are two spellings of one name. A change keeps the existing key of the entry.

use std::collections::BTreeSet;

use ptc_lisp::{Limits, Program, Run, Value, builtins, host_functions, print};

/// A program for each builtin that takes or makes keys, with its result. Where Clojure has one spelling of each name, the results
/// equal those of Clojure.
const CASES: &[(&str, &str, &str)] = &[
    ("get", r#"[(get {"a" 1} :a) (get {:a 1} "a") (get {:a 1 "a" 2} "a")]"#, "[1 1 2]"),
    ("get-in", r#"(get-in {"a" {:b 1}} [:a "b"])"#, "1"),
    ("find", r#"(find {"a" 1} :a)"#, r#"["a" 1]"#),
    ("contains?", r#"[(contains? {"a" nil} :a) (contains? {"a" nil} :b)]"#, "[true false]"),
    ("assoc", r#"(assoc {"a" 1} :a 2)"#, r#"{"a" 2}"#),
    ("assoc", r#"(assoc {:a 1} "a" 2 :b 3 "b" 4)"#, "{:a 2 :b 4}"),
    ("assoc", r#"(assoc {:a 1 "a" 2} :a 3)"#, r#"{:a 3 "a" 2}"#),
    ("assoc", r#"(assoc {"created_at" 1} :created-at 2)"#, r#"{"created_at" 2}"#),
    ("assoc", r#"(assoc {"a_b" 1} "a-b" 2)"#, r#"{"a-b" 2 "a_b" 1}"#),
    ("assoc", r"(assoc {:a_b 1} :a-b 2)", "{:a-b 2 :a_b 1}"),
    ("assoc-in", r#"(assoc-in {"a" {"b" 1}} [:a :b] 2)"#, r#"{"a" {"b" 2}}"#),
    ("dissoc", r#"(dissoc {"a" 1 "b" 2 :c 3} :a "c")"#, r#"{"b" 2}"#),
    ("dissoc", r#"(dissoc {:a 1 "a" 2} :a)"#, r#"{"a" 2}"#),
    ("dissoc", r#"[(dissoc {"a_b" 1} :a-b) (dissoc {"a_b" 1} "a-b")]"#, r#"[{} {"a_b" 1}]"#),
    ("update", r#"(update {"a" 1} :a inc)"#, r#"{"a" 2}"#),
    ("update", r#"(update {"a_b" 1} "a-b" (fnil inc 0))"#, r#"{"a-b" 1 "a_b" 1}"#),
    ("update-in", r#"(update-in {"a" {:b 1}} [:a "b"] inc)"#, r#"{"a" {:b 2}}"#),
    ("update-vals", r#"(update-vals {"a" 1 :b 2} inc)"#, r#"{:b 3 "a" 2}"#),
    ("update-keys", r#"(update-keys {"a" 1 :b 2} (fn [k] (if (= k "a") :b k)))"#, "{:b 1}"),
    ("update-keys", r#"(update-keys {"a" 1 :b 2} (fn [k] (if (= k :b) :a k)))"#, "{:a 1}"),
    ("merge", r#"(merge {"a" 1} {:a 2} nil {"a" 3 :b 4})"#, r#"{:b 4 "a" 3}"#),
    ("merge", r#"(merge {"a" 1} [:a 2])"#, r#"{"a" 2}"#),
    ("merge-with", r#"(merge-with + {"a" 1} {:a 2} {"a" 3 :b 4})"#, r#"{:b 4 "a" 6}"#),
    ("select-keys", r#"(select-keys {"a" 1} [:a])"#, "{:a 1}"),
    ("select-keys", r#"(select-keys {"a" 1} [:a "a"])"#, "{:a 1}"),
    ("keys", r#"(keys {"a" 1 :b 2})"#, r#"[:b "a"]"#),
    ("vals", r#"(vals {"a" 1 :b 2})"#, "[2 1]"),
    ("zipmap", r#"(zipmap [:a "a" "b"] [1 2 3])"#, r#"{:a 2 "b" 3}"#),
    ("hash-map", r#"(hash-map "a" 1 :a 2)"#, r#"{"a" 2}"#),
    ("array-map", r#"(array-map :a 1 "a" 2)"#, "{:a 2}"),
    ("sorted-map", r#"(sorted-map :a 1 "a" 2)"#, "{:a 2}"),
    ("sorted-map-by", r#"(sorted-map-by compare :a 1 "a" 2)"#, "{:a 2}"),
    ("conj", r#"(conj {"a" 1} [:a 2] {:a 3 :b 4})"#, r#"{:b 4 "a" 3}"#),
    ("into", r#"(into {"a" 1} {:a 2})"#, r#"{"a" 2}"#),
    ("into", r#"(into {} [["a" 1] [:a 2]])"#, r#"{"a" 2}"#),
    ("into", r#"(into {} (map (fn [i] [(if (odd? i) :a "a") i]) (range 60)))"#, r#"{"a" 59}"#),
    ("into", r#"(into {} (map (fn [k] [k 1])) ["a" :a])"#, r#"{"a" 1}"#),
    ("reduce", r#"(reduce (fn [m k] (assoc m k (inc (get m k 0)))) {} ["a" :a :b])"#, r#"{:b 1 "a" 2}"#),
    ("group-by", r#"(group-by :k [{:k "a" :n 1} {:k :a :n 2}])"#, r#"{"a" [{:k "a" :n 1} {:k :a :n 2}]}"#),
    ("group-by", r#"(group-by identity ["a-b" "a_b" :a-b])"#, r#"{"a-b" ["a-b" :a-b] "a_b" ["a_b"]}"#),
    ("frequencies", r#"(frequencies [:a "a" "b" :b :b 1])"#, r#"{1 1 :a 2 "b" 3}"#),
    ("frequencies", r#"(frequencies ["a-b" "a_b" :a-b])"#, r#"{"a-b" 2 "a_b" 1}"#),
    ("replace", r#"(replace {"open" :yes} [:open "open" :shut])"#, "[:yes :yes :shut]"),
    ("map-invert", r#"(clojure.set/map-invert {1 "a" 2 :a})"#, r#"{"a" 2}"#),
    ("rename-keys", r#"(clojure.set/rename-keys {"a" 1 "c" 3} {:a :b})"#, r#"{:b 1 "c" 3}"#),
    ("rename-keys", r#"(clojure.set/rename-keys {"a" 1 "b" 2} {:a :b})"#, r#"{"b" 1}"#),
    ("rename-keys", r#"(clojure.set/rename-keys {:a 1} {:a "a"})"#, r#"{"a" 1}"#),
    ("project", r#"(clojure.set/project [{"a" 1 "b" 2}] [:a "a"])"#, "#{{:a 1}}"),
    ("rename", r#"(clojure.set/rename [{"a" 1}] {:a :b})"#, "#{{:b 1}}"),
    ("index", r#"(clojure.set/index [{"a" 1} {:a 1}] [:a])"#, r#"{{:a 1} #{{:a 1} {"a" 1}}}"#),
    ("join", r#"(clojure.set/join [{:id 1 :n 2}] [{"id" 1 "m" 3}])"#, r#"#{{:id 1 :n 2 "m" 3}}"#),
    ("join", r#"(clojure.set/join [{"a" 1 :n 2}] [{"b" 1 "n" 3}] {:a :b})"#, r#"#{{:n 3 "a" 1 "b" 1}}"#),
    ("prewalk-replace", r#"(clojure.walk/prewalk-replace {:a "b"} {"a" 1 :b 2})"#, "{:b 1}"),
    ("postwalk-replace", r#"(clojure.walk/postwalk-replace {"a" :b} [:a "a"])"#, "[:b :b]"),
    ("keywordize-keys", r#"(clojure.walk/keywordize-keys {"a" 1 :b 2})"#, "{:a 1 :b 2}"),
    ("stringify-keys", r#"(clojure.walk/stringify-keys {"a" 1 :b 2})"#, r#"{"a" 1 "b" 2}"#),
    (".get", r#"(.get {"a" 1} :a)"#, "1"),
    (".containsKey", r#"(.containsKey {"a" 1} :a)"#, "true"),
    ("key", r#"(key (first (seq {"a" 1})))"#, r#""a""#),
    ("val", r#"(val (first (seq {"a" 1})))"#, "1"),
];

/// Names of parameters that are keys, or maps whose keys matter.
const KEYED: &[&str] = &["key", "keys", "kvs", "path", "m", "maps", "smap", "kmap", "rel", "r1"];

/// Builtins with such a parameter that neither look up nor make keys of maps.
const NOT_OF_MAPS: &[&str] = &["subseq", "rsubseq", "entries"];

/// Runs a program and returns its value or the name of its fault.
fn run(source: &str) -> Result<Value, String> {
    let program = Program::compile(source).map_err(|error| error.render(source))?;
    let outcome = Run::new(&program).limits(Limits::default().loop_iterations(Some(1_000))).execute();
    outcome.result.map_err(|error| error.render(source))
}

#[test]
fn keyword_and_string_find_the_same_entry() {
    let wrong: Vec<String> = CASES
        .iter()
        .filter_map(|(_, source, expected)| {
            let shown = run(source).map_or_else(|error| error, |value| print::readable(&value));
            (shown != *expected).then(|| format!("{source}\n expected {expected}\n gave {shown}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_builtin_that_takes_keys_has_a_case() {
    let cases: BTreeSet<&str> = CASES.iter().map(|(name, _, _)| *name).collect();
    for row in builtins::all() {
        let keyed = row.notes.arglists().any(|list| list.split(|c: char| "[]& ".contains(c)).any(|name| KEYED.contains(&name)));
        if keyed && !NOT_OF_MAPS.contains(&row.name) {
            assert!(cases.contains(row.name), "{} takes keys, and no case shows how it treats them", row.full_name());
        }
    }
    for name in cases.iter().chain(NOT_OF_MAPS) {
        assert!(builtins::all().any(|row| row.name == *name), "there is no builtin {name}");
    }
}

/// Finds a map in `value` that has a keyword and a string of one name.
fn both_spellings(value: &Value) -> bool {
    match value {
        Value::Map(map) => {
            map.iter().any(|(key, _)| {
                matches!(key, Value::Keyword(_)) && key.as_name().is_some_and(|name| map.get(&Value::string(name)).is_some())
            }) || map.iter().any(|(key, value)| both_spellings(key) || both_spellings(value))
        }
        Value::Vector(items) => items.iter().any(both_spellings),
        Value::Set(members) => members.iter().any(both_spellings),
        _ => false,
    }
}

#[test]
fn no_builtin_creates_map_with_keyword_and_string_of_same_name() {
    let few = [r#"{"a" 1}"#, "{:a {:b 2}}", ":a", r#""a""#, "(fn [& _] :a)", "[:a]"];
    let many = [
        r#"{"b" {"a" 1}}"#,
        r#"[{"a" :a} {:a "a"}]"#,
        r#"[["a" 1] [:a 2]]"#,
        r#"[:a "a"]"#,
        r#"(fn [& xs] (if (= xs ["b"]) :a (last xs)))"#,
        "1",
    ];
    let all: Vec<&str> = few.iter().chain(&many).copied().collect();
    let (mut given, mut maps) = (0, 0);
    for row in builtins::all() {
        let name = if row.name.starts_with('.') { row.name.to_owned() } else { row.full_name() };
        for count in usize::from(row.min).max(1)..=row.max.map_or(3, usize::from).min(3) {
            let pool = if count < 3 { &all[..] } else { &few[..] };
            for choice in 0..pool.len().pow(count as u32) {
                let args: Vec<&str> = (0..count).map(|at| pool[choice / pool.len().pow(at as u32) % pool.len()]).collect();
                let source = format!("({name} {})", args.join(" "));
                let Ok(value) = run(&source) else { continue };
                given += 1;
                maps += usize::from(matches!(value, Value::Map(_)));
                assert!(!both_spellings(&value), "{source} gives {}", print::readable(&value));
            }
        }
    }
    assert!(given > 5_000 && maps > 500, "only {given} calls gave a value, {maps} of them a map");
    // A literal keeps the keys as written.
    assert!(both_spellings(&run(r#"{:a 1 "a" 2}"#).unwrap()));
    assert!(!both_spellings(&run(r#"(let [k :a] {k 1 "a" 2})"#).unwrap()));
    assert!(host_functions::all().all(|row| !row.notes.arglists().any(|list| list.contains("kvs"))));
}

#[test]
fn large_maps_find_entries_by_keyword_and_string() {
    // A map with more than 24 entries is a tree. A map that is made at once is sorted.
    let source = r#"
        (let [strings (zipmap (map str (range 100)) (range 100))
              keywords (into {} (map (fn [i] [(keyword (str "k" i)) i]) (range 100)))
              texts (into {} (map (fn [i] [(str "k" i) i]) (range 100)))]
          [(count (merge texts keywords))
           (count (dissoc texts :k1 :k99))
           (get (assoc texts :k5 :new) "k5")
           (count (reduce (fn [m k] (assoc m k 1)) texts (keys keywords)))
           (= (merge keywords texts) keywords)
           (count (zipmap (concat (keys texts) (keys keywords)) (range)))])"#;
    assert_eq!(print::readable(&run(source).unwrap()), "[100 98 :new 100 true 100]");
}
