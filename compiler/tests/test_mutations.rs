//! Counts how many mistakes in programs `test`, `test --faults` and `test --properties` find. `cargo test -p ptc-compiler --test all
//! mutations -- --ignored --nocapture` prints the report.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where anything is wrong")]

use std::collections::{BTreeMap, BTreeSet};

use ptc_lisp::form::{Form, FormKind};
use ptc_lisp::reader;
use serde_json::{Value, json};

use crate::cassette::Folder;
use crate::test_checks::shop;

/// Correct programs, each with an assertion that holds with the cassette. The assertions are as loose as many tests are.
const PROGRAMS: [(&str, &str); 4] = [
    (
        r#"(loop [cursor nil total 0]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [orders (:items (:value page))
            total  (+ total (reduce + 0 (map :total (filter (fn [order] (pos? (:total order))) orders))))
            next   (:next_cursor (:value page))]
        (if next (recur next total) total))
      (fail (:reason page)))))"#,
        "(pos? VALUE)",
    ),
    (
        r#"(loop [cursor nil rows []]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [rows (into rows (:items (:value page)))
            next (:next_cursor (:value page))]
        (if next
          (recur next rows)
          (mapv (fn [row] {:id (:id row) :note (clojure.string/upper-case (or (:note row) "none"))}) rows)))
      (fail (:message page)))))"#,
        "(= 3 (count VALUE))",
    ),
    (
        r#"(loop [cursor nil rows []]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [rows (into rows (:items (:value page)))
            next (:next_cursor (:value page))]
        (if next
          (recur next rows)
          (if (empty? rows)
            (fail "no orders")
            {:mean (/ (reduce + 0 (map :total rows)) (count rows))
             :best (:customer (apply max-key :total rows))})))
      (fail (:reason page)))))"#,
        "(= \"Ann\" (:best VALUE))",
    ),
    (
        r#"(loop [cursor nil found 0]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [orders (filter (fn [order] (= "Ann" (:customer order))) (:items (:value page)))
            found  (+ found (count (remove (fn [order] (nil? (:note order))) orders)))
            next   (:next_cursor (:value page))]
        (if next (recur next found) found))
      (fail (:reason page)))))"#,
        "(= 2 VALUE)",
    ),
];

/// A kind of mistake, with the texts that replace a form.
type Mistake = (&'static str, fn(&str, &Form<'_>, &BTreeSet<String>) -> Vec<String>);

const MISTAKES: [Mistake; 7] = [
    ("swapped key", swapped_key),
    ("dropped filter", dropped_filter),
    ("unchecked :ok", unchecked),
    ("wrong end of pages", wrong_end),
    ("dropped default", dropped_default),
    ("swapped branches", swapped_branches),
    ("other number", other_number),
];

/// Maximum number of mistakes.
const MAX_MUTANTS: usize = 200;

fn slice<'s>(source: &'s str, form: &Form<'_>) -> &'s str {
    source.get(form.span.start as usize..form.span.end as usize).unwrap()
}

fn call<'f, 's>(form: &'f Form<'s>, names: &[&str]) -> Option<&'f [Form<'s>]> {
    let FormKind::List(items) = &form.kind else { return None };
    let name = items.first()?.symbol()?;
    names.contains(&name).then_some(items.as_slice())
}

fn swapped_key(_: &str, form: &Form<'_>, keys: &BTreeSet<String>) -> Vec<String> {
    let Some(name) = form.keyword() else { return Vec::new() };
    keys.iter().filter(|key| *key != name).take(1).map(|key| format!(":{key}")).collect()
}

fn dropped_filter(source: &str, form: &Form<'_>, _: &BTreeSet<String>) -> Vec<String> {
    let items = call(form, &["filter", "remove", "keep"]);
    items.and_then(<[Form<'_>]>::last).map(|list| slice(source, list).to_owned()).into_iter().collect()
}

fn unchecked(source: &str, form: &Form<'_>, _: &BTreeSet<String>) -> Vec<String> {
    match call(form, &["if"]) {
        Some([_, test, then, _]) if slice(source, test).starts_with("(:ok") => vec![slice(source, then).to_owned()],
        _ => Vec::new(),
    }
}

fn wrong_end(source: &str, form: &Form<'_>, _: &BTreeSet<String>) -> Vec<String> {
    match call(form, &["if"]) {
        Some([_, test, then, otherwise]) if slice(source, then).starts_with("(recur") => vec![
            slice(source, otherwise).to_owned(),
            format!("(if (not {}) {} {})", slice(source, test), slice(source, then), slice(source, otherwise)),
        ],
        Some([_, test, _, otherwise]) if slice(source, test).contains(":next_cursor") => {
            vec![slice(source, otherwise).to_owned()]
        }
        _ => Vec::new(),
    }
}

fn dropped_default(source: &str, form: &Form<'_>, _: &BTreeSet<String>) -> Vec<String> {
    match call(form, &["or"]) {
        Some([_, value, _]) => vec![slice(source, value).to_owned()],
        _ => Vec::new(),
    }
}

fn swapped_branches(source: &str, form: &Form<'_>, _: &BTreeSet<String>) -> Vec<String> {
    match call(form, &["if"]) {
        Some([_, test, then, otherwise]) => {
            vec![format!("(if {} {} {})", slice(source, test), slice(source, otherwise), slice(source, then))]
        }
        _ => Vec::new(),
    }
}

fn other_number(_: &str, form: &Form<'_>, _: &BTreeSet<String>) -> Vec<String> {
    match form.kind {
        FormKind::Int(number) => vec![(number + 1).to_string()],
        _ => Vec::new(),
    }
}

/// Calls a function for a form and all forms in it.
fn visit<'s>(form: &Form<'s>, each: &mut dyn FnMut(&Form<'s>)) {
    each(form);
    match &form.kind {
        FormKind::List(items)
        | FormKind::Vector(items)
        | FormKind::Map(items)
        | FormKind::Set(items)
        | FormKind::ShortFn(items) => {
            for item in items {
                visit(item, each);
            }
        }
        _ => {}
    }
}

/// Returns the programs with one mistake each, and its kind.
fn mutants(source: &str) -> Vec<(&'static str, String)> {
    let forms = reader::read(source).unwrap();
    let mut keys = BTreeSet::new();
    let all = |each: &mut dyn FnMut(&Form<'_>)| forms.iter().for_each(|form| visit(form, each));
    all(&mut |form| keys.extend(form.keyword().map(str::to_owned)));
    let mut found = Vec::new();
    all(&mut |form| {
        for (kind, mutate) in MISTAKES {
            for text in mutate(source, form, &keys) {
                let (start, end) = (form.span.start as usize, form.span.end as usize);
                found.push((kind, format!("{}{text}{}", source.get(..start).unwrap(), source.get(end..).unwrap())));
            }
        }
    });
    found
}

/// Returns a shop whose cassette has two pages.
fn two_pages() -> Folder {
    let folder = shop();
    let mut cassette: Value = serde_json::from_str(&folder.read("c.json")).unwrap();
    let order =
        |id: u32, customer: &str, total: u32| json!({ "id": id, "customer": customer, "total": total, "note": "by hand" });
    let page =
        |items: Value, next: Value| json!({ "status": 200, "headers": {}, "value": { "items": items, "next_cursor": next } });
    cassette["tools"]["shop/list-orders"]["requests"] = json!([
        { "args": {}, "replies": [page(json!([order(1, "Ann", 10), order(2, "Ben", 5)]), json!("two"))] },
        { "args": { "cursor": "two" }, "replies": [page(json!([order(3, "Ann", 7)]), Value::Null)] },
    ]);
    folder.write("c.json", &cassette.to_string());
    folder
}

#[test]
#[ignore = "slow: some hundred runs of the compiler"]
fn mutations_of_programs_are_found() {
    const STAGES: [(&str, &[&str]); 3] =
        [("test", &[]), ("--faults", &["--faults", "--allow-failed-calls"]), ("--properties", &["--properties", "--runs", "50"])];
    let folder = two_pages();
    let is_found = |program: &str, assertion: &str, options: &[&str]| {
        folder.write("p.clj", program);
        let assertion = assertion.replace("VALUE", "(run-program \"p.clj\")");
        folder.write("p_test.clj", &format!("(ns p-test {{:cassette \"c.json\"}})\n(deftest value (is {assertion}))"));
        let finished = folder.run(&[&["test"], options].concat(), false);
        assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
        finished.code == Some(1)
    };
    let mut all = Vec::new();
    for (program, assertion) in PROGRAMS {
        for (_, options) in STAGES {
            assert!(!is_found(program, assertion, options), "{program} {options:?}");
        }
        all.extend(mutants(program).into_iter().map(|(kind, mutant)| (kind, mutant, assertion)));
    }
    // A fixed selection, spread over all programs and kinds.
    let step = all.len().div_ceil(MAX_MUTANTS).max(1);
    let selected: Vec<_> = all.iter().step_by(step).collect();
    let mut table: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for (kind, mutant, assertion) in &selected {
        let found = STAGES.map(|(_, options)| is_found(mutant, assertion, options));
        let [by_test, by_faults, by_properties] = found;
        for row in [*kind, "all"] {
            let row = table.entry(row).or_default();
            // `test` is a part of the other two, so that they count what they add to it.
            let counts = [true, by_test, !by_test && by_faults, !by_test && by_properties, by_test || by_faults || by_properties];
            row.iter_mut().zip(counts).for_each(|(count, is_counted)| *count += usize::from(is_counted));
        }
    }
    println!("| mistake | programs | by test | also by --faults | also by --properties | found |\n|---|---|---|---|---|---|");
    for (kind, [mutants, by_test, by_faults, by_properties, found]) in &table {
        println!("| {kind} | {mutants} | {by_test} | {by_faults} | {by_properties} | {found} |");
    }
    let [mutants, by_test, by_faults, by_properties, found] = table["all"];
    assert!((50..=MAX_MUTANTS).contains(&mutants), "{mutants}");
    assert!(by_faults > 0 && by_properties > 0 && found > by_test, "the checks find what the tests do not");
    assert!(found * 10 >= mutants * 6, "{found} of {mutants}");
}
