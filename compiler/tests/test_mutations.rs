//! Counts how many mistakes in programs `test`, `test --faults` and `test --properties` find. `cargo test -p ptc-compiler --test all
//! mutations -- --ignored --nocapture` prints the report.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where anything is wrong")]

use std::collections::{BTreeMap, BTreeSet};

use ptc_lisp::form::{Form, FormKind};
use ptc_lisp::reader;
use serde_json::{Value, json};

use crate::cassette::Folder;

/// A correct program with an assertion that holds with the cassette.
struct Sound {
    source: &'static str,
    /// An assertion about `VALUE`. Those of the first programs are as loose as many tests are.
    assertion: &'static str,
    /// The output schema, with which it is a stored program.
    output_schema: Option<&'static str>,
}

const PROGRAMS: [Sound; 10] = [
    Sound {
        source: r#"(loop [cursor nil total 0]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [orders (:items (:value page))
            total  (+ total (reduce + 0 (map :total (filter (fn [order] (pos? (:total order))) orders))))
            next   (:next_cursor (:value page))]
        (if next (recur next total) total))
      (fail (:reason page)))))"#,
        assertion: r"(pos? VALUE)",
        output_schema: None,
    },
    Sound {
        source: r#"(loop [cursor nil rows []]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [rows (into rows (:items (:value page)))
            next (:next_cursor (:value page))]
        (if next
          (recur next rows)
          (mapv (fn [row] {:id (:id row) :note (clojure.string/upper-case (or (:note row) "none"))}) rows)))
      (fail (:message page)))))"#,
        assertion: r"(= 3 (count VALUE))",
        output_schema: None,
    },
    Sound {
        source: r#"(loop [cursor nil rows []]
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
        assertion: r#"(= "Ann" (:best VALUE))"#,
        output_schema: None,
    },
    Sound {
        source: r#"(loop [cursor nil found 0]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [orders (filter (fn [order] (= "Ann" (:customer order))) (:items (:value page)))
            found  (+ found (count (remove (fn [order] (nil? (:note order))) orders)))
            next   (:next_cursor (:value page))]
        (if next (recur next found) found))
      (fail (:reason page)))))"#,
        assertion: r"(= 2 VALUE)",
        output_schema: None,
    },
    Sound {
        source: r#"(loop [cursor nil rows []]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [rows (into rows (:items (:value page)))
            next (:next_cursor (:value page))]
        (if next (recur next rows) (let [customers (tool/call {:server "shop" :tool "list-customers"})]
          (if (:ok customers)
            (let [city-of (zipmap (map :id (:value customers)) (map :city (:value customers)))]
              (->> rows
                   (filter (fn [row] (pos? (:total row))))
                   (group-by (fn [row] (or (city-of (:customer_id row)) "unknown")))
                   (map (fn [[city rows]] [city (reduce + 0 (map :total rows))]))
                   (into {})))
            (fail (:message customers))))))
      (fail (:message page)))))"#,
        assertion: r#"(= {"Bern" 17 "unknown" 5} VALUE)"#,
        output_schema: Some(r#"{"type":"object","additionalProperties":{"type":"integer","minimum":1}}"#),
    },
    Sound {
        source: r#"(let [customers (tool/call {:server "shop" :tool "list-customers"})]
  (if (:ok customers)
    (->> (:value customers)
         (filter :vip)
         (map (fn [customer] {:name (:name customer) :city (or (:city customer) "unknown")}))
         (sort-by :name)
         vec)
    (fail (:message customers))))"#,
        assertion: r#"(= [{:name "Ann" :city "Bern"}] VALUE)"#,
        output_schema: Some(
            r#"{"type":"array","items":{"type":"object","required":["name","city"],"properties":{"name":{"type":"string"},"city":{"type":"string"}}}}"#,
        ),
    },
    Sound {
        source: r#"(loop [cursor nil rows []]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [rows (into rows (:items (:value page)))
            next (:next_cursor (:value page))]
        (if next (recur next rows) (->> rows
             (filter (fn [row] (>= (:total row) 6)))
             (sort-by (fn [row] (- (:total row))))
             (take 2)
             (mapv (fn [row] {:id (:id row) :note (:note row)})))))
      (fail (:message page)))))"#,
        assertion: r"(= 2 (count VALUE))",
        output_schema: Some(
            r#"{"type":"array","maxItems":2,"items":{"type":"object","properties":{"id":{"type":"integer"},"note":{"type":["string","null"]}},"additionalProperties":false}}"#,
        ),
    },
    Sound {
        source: r#"(let [customers (tool/call {:server "shop" :tool "list-customers"})]
  (if (:ok customers)
    (let [emails (keep :email (:value customers))
          domain (fn [email] (or (second (clojure.string/split email #"@")) "none"))]
      {:customers (count (:value customers)) :emails (count emails) :domains (frequencies (map domain emails))})
    (fail (:message customers))))"#,
        assertion: r"(= 2 (:customers VALUE))",
        output_schema: Some(
            r#"{"type":"object","required":["customers","emails","domains"],"properties":{"customers":{"type":"integer"},"emails":{"type":"integer"},"domains":{"type":"object","additionalProperties":{"type":"integer"}}}}"#,
        ),
    },
    Sound {
        source: r#"(loop [cursor nil rows []]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [rows (into rows (:items (:value page)))
            next (:next_cursor (:value page))]
        (if next (recur next rows) (let [sums (reduce (fn [sums row] (update sums (:customer row) (fnil + 0) (:total row))) {} rows)
                  large (filter (fn [[_ sum]] (> sum 10)) sums)]
              {:large (vec (sort (map first large))) :sum (reduce + 0 (map second large))})))
      (fail (:message page)))))"#,
        assertion: r#"(= {:large ["Ann"] :sum 17} VALUE)"#,
        output_schema: Some(
            r#"{"type":"object","required":["large","sum"],"properties":{"large":{"type":"array","items":{"type":"string"}},"sum":{"type":"integer","minimum":0}}}"#,
        ),
    },
    Sound {
        source: r#"(loop [cursor nil rows []]
  (let [page (tool/call {:server "shop" :tool "list-orders" :args (if cursor {:cursor cursor} {})})]
    (if (:ok page)
      (let [rows (into rows (:items (:value page)))
            next (:next_cursor (:value page))]
        (if next (recur next rows) (let [notes (remove clojure.string/blank? (keep :note rows))]
              (if (empty? notes)
                "no notes"
                (clojure.string/join "; " (map clojure.string/trim notes))))))
      (fail (:message page)))))"#,
        assertion: r#"(clojure.string/includes? VALUE "by hand")"#,
        output_schema: Some(r#"{"type":"string","minLength":1}"#),
    },
];

/// A kind of mistake, with the texts that replace a form.
type Mistake = (&'static str, fn(&str, &Form<'_>, &BTreeSet<String>) -> Vec<String>);

const MISTAKES: [Mistake; 8] = [
    ("swapped key", swapped_key),
    ("dropped filter", dropped_filter),
    ("unchecked :ok", unchecked),
    ("wrong end of pages", wrong_end),
    ("dropped default", dropped_default),
    ("swapped branches", swapped_branches),
    ("other number", other_number),
    ("other comparison", other_comparison),
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

fn other_comparison(source: &str, form: &Form<'_>, _: &BTreeSet<String>) -> Vec<String> {
    const OTHERS: [(&str, &str); 5] = [("<", ">"), (">", ">="), (">=", "<"), ("=", "not="), ("pos?", "neg?")];
    OTHERS
        .iter()
        .filter_map(|(name, other)| {
            let [operator, ..] = call(form, &[name])? else { return None };
            let rest = source.get(operator.span.end as usize..form.span.end as usize)?;
            Some(format!("({other}{rest}"))
        })
        .collect()
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

/// The files of a shop with two operations: their document, the lock file, the config without programs, and the cassette.
struct Shop {
    document: String,
    lock: String,
    config: Value,
    cassette: String,
}

/// Returns a shop with paged orders and a list of customers. The cassette has two pages.
fn shop_with_customers() -> Shop {
    let folder = Folder(tempfile::tempdir().unwrap());
    let object =
        |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties });
    let order = object(
        &["id", "customer", "customer_id", "total"],
        json!({
            "id": { "type": "integer" }, "customer": { "type": "string" }, "customer_id": { "type": "integer" },
            "total": { "type": "integer" }, "note": { "type": ["string", "null"] },
        }),
    );
    let page = object(
        &["items"],
        json!({
            "items": { "type": "array", "items": order }, "next_cursor": { "type": ["string", "null"] },
        }),
    );
    let customer = object(
        &["id", "name"],
        json!({
            "id": { "type": "integer" }, "name": { "type": "string" }, "city": { "type": ["string", "null"] },
            "email": { "type": "string" }, "vip": { "type": "boolean" },
        }),
    );
    let get = |id: &str, parameters: Value, schema: Value| {
        let answer = json!({ "200": { "description": "ok", "content": { "application/json": { "schema": schema } } } });
        json!({ "get": { "operationId": id, "parameters": parameters, "responses": answer } })
    };
    let cursor = json!([{ "name": "cursor", "in": "query", "schema": { "type": "string" } }]);
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "Shop", "version": "1" },
        "paths": {
            "/orders": get("listOrders", cursor, page),
            "/customers": get("listCustomers", json!([]), json!({ "type": "array", "items": customer })),
        },
    });
    let entry = json!({
        "transport": "openapi", "base_url": "http://127.0.0.1:9", "schema_file": "shop.json",
        "include_operations": ["listOrders", "listCustomers"], "allow_insecure_http": true,
    });
    let config = json!({ "upstreams": { "shop": entry } });
    folder.write("shop.json", &document.to_string());
    folder.write("upstreams.json", &config.to_string());
    folder.run(&["update", "upstreams.json"], false).success();
    let lock = folder.read("upstreams.lock.json");
    let locked: Value = serde_json::from_str(&lock).unwrap();
    let digest = |tool: &str| locked.pointer(&format!("/upstreams/shop/tools/{tool}/digest")).unwrap().clone();
    let order = |id: u32, customer: &str, customer_id: u32, total: u32| json!({ "id": id, "customer": customer, "customer_id": customer_id, "total": total, "note": "by hand" });
    let reply = |value: Value| json!([{ "status": 200, "headers": {}, "value": value }]);
    let page = |items: Value, next: Value| reply(json!({ "items": items, "next_cursor": next }));
    let customers = json!([
        { "id": 1, "name": "Ann", "city": "Bern", "email": "ann@example.com", "vip": true },
        { "id": 2, "name": "Ben", "city": null, "vip": false },
    ]);
    let cassette = json!({ "cassette": 1, "tools": {
        "shop/list-customers": { "definition": digest("list-customers"), "requests": [{ "args": {}, "replies": reply(customers) }] },
        "shop/list-orders": { "definition": digest("list-orders"), "requests": [
            { "args": {}, "replies": page(json!([order(1, "Ann", 1, 10), order(2, "Ben", 2, 5)]), json!("two")) },
            { "args": { "cursor": "two" }, "replies": page(json!([order(3, "Ann", 1, 7)]), Value::Null) },
        ] },
    } });
    Shop { document: document.to_string(), lock, config, cassette: cassette.to_string() }
}

impl Shop {
    /// Writes a folder with a config of its own, the program and its test.
    fn write(&self, folder: &Folder, name: &str, program: &str, sound: &Sound) {
        let mut config = self.config.clone();
        let mut run = "p.clj";
        if let Some(schema) = sound.output_schema {
            let schema: Value = serde_json::from_str(schema).unwrap();
            config["programs"] = json!({ "report": { "file": "p.clj", "description": "A report.", "output_schema": schema } });
            run = "report";
        }
        let value = format!("(run-program \"{run}\")");
        let test =
            format!("(ns p-test {{:cassette \"c.json\"}})\n(deftest value (is {}))", sound.assertion.replace("VALUE", &value));
        for (file, text) in [
            ("shop.json", &*self.document),
            ("upstreams.lock.json", &self.lock),
            ("upstreams.json", &config.to_string()),
            ("c.json", &self.cassette),
            ("p.clj", program),
            ("p_test.clj", &test),
        ] {
            folder.write(&format!("{name}/{file}"), text);
        }
    }
}

/// Returns the folders in which `test` with these options finds something.
fn found_in(folder: &Folder, options: &[&str]) -> BTreeSet<String> {
    let finished = folder.run(&[&["test", "--format", "json"], options].concat(), false);
    assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
    let lines = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = lines.filter(|line| {
        let verdict = line.get("verdict").and_then(Value::as_str);
        matches!(verdict, Some("failed" | "error"))
    });
    found
        .filter_map(|line| {
            let file = line.get("test_file").or_else(|| line.get("file"))?.as_str()?.to_owned();
            Some(file.split_once('/')?.0.to_owned())
        })
        .collect()
}

#[test]
#[ignore = "slow: some thousand runs of programs with other answers"]
fn mutations_of_programs_are_found() {
    const STAGES: [&[&str]; 4] = [
        &[],
        &["--faults", "--allow-failed-calls"],
        &["--properties", "--runs", "50"],
        &["--faults", "--allow-failed-calls", "--properties", "--runs", "50"],
    ];
    let shop = shop_with_customers();
    let sound = Folder(tempfile::tempdir().unwrap());
    let mut all = Vec::new();
    for (at, program) in PROGRAMS.iter().enumerate() {
        shop.write(&sound, &format!("p{at}"), program.source, program);
        all.extend(mutants(program.source).into_iter().map(|(kind, mutant)| (kind, mutant, at)));
    }
    for options in STAGES {
        assert_eq!(found_in(&sound, options), BTreeSet::new(), "{options:?}");
    }
    // A fixed selection, spread over all programs and kinds.
    let selected: Vec<_> = (0..MAX_MUTANTS).filter_map(|at| all.get(at * all.len() / MAX_MUTANTS)).collect();
    assert!(all.len() >= MAX_MUTANTS, "{} mistakes", all.len());
    let folder = Folder(tempfile::tempdir().unwrap());
    for (at, (_, mutant, program)) in selected.iter().enumerate() {
        shop.write(&folder, &format!("m{at}"), mutant, &PROGRAMS[*program]);
    }
    let found = STAGES.map(|options| found_in(&folder, options));
    let mut table: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for (at, (kind, mutant, program)) in selected.iter().enumerate() {
        let [by_test, by_faults, by_properties, is_found] = found.each_ref().map(|found| found.contains(&format!("m{at}")));
        for row in [*kind, "all"] {
            let row = table.entry(row).or_default();
            // `test` is a part of the others, so that they count what they add to it.
            let counts = [true, by_test, !by_test && by_faults, !by_test && by_properties, is_found];
            row.iter_mut().zip(counts).for_each(|(count, is_counted)| *count += usize::from(is_counted));
        }
        if !is_found {
            println!("not found: {kind} in program {program}\n{}\n", difference(PROGRAMS[*program].source, mutant));
        }
    }
    println!("| mistake | programs | by test | also by --faults | also by --properties | found |\n|---|---|---|---|---|---|");
    for (kind, [mutants, by_test, by_faults, by_properties, found]) in &table {
        println!("| {kind} | {mutants} | {by_test} | {by_faults} | {by_properties} | {found} |");
    }
    let [mutants, by_test, by_faults, by_properties, found] = table["all"];
    assert_eq!(mutants, MAX_MUTANTS);
    assert!(by_faults > 0 && by_properties > 0 && found > by_test, "the checks find what the tests do not");
    assert!(found * 10 >= mutants * 9, "{found} of {mutants}");
    // The guide says so.
    assert!((13..16).contains(&(by_test * 20 / mutants)), "{by_test} of {mutants}");
}

/// Returns the lines of a mutant that differ from the program.
fn difference(program: &str, mutant: &str) -> String {
    let known: BTreeSet<&str> = program.lines().collect();
    mutant.lines().filter(|line| !known.contains(line)).collect::<Vec<_>>().join("\n")
}
