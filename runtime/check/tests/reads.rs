//! Reads of answers through functions that are passed by name, combinations of functions, and loops.

use ptc_catalog::{Catalog, McpStdio, Tool, Tools, Transport, Upstream};
use ptc_check::{all_missing_keys, missing_keys};
use ptc_lisp::{Deadline, Program};

const ORDERS: &str = r#"{"outputSchema":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"id":{},
    "owner":{"type":"object","additionalProperties":false,"properties":{"name":{}}}}}}}"#;

static CATALOG: Catalog = Catalog {
    digest: "",
    search_index: &[],
    upstreams: &[Upstream {
        name: "shop",
        description: "",
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: Tools::table(&[Tool { name: "orders", definition: ORDERS, ..Tool::EMPTY }]),
    }],
};

/// Programs, with the keys that they read and the schema lacks. `ITEMS` is the call.
const CASES: &[(&str, &[&str])] = &[
    // Functions by name.
    ("(defn summary [o] {:t (:total o)}) (map summary ITEMS)", &["total"]),
    ("(defn summary [o] {:t (:id o)}) (map summary ITEMS)", &[]),
    ("(let [summary (fn [o] (:total o))] (mapv summary ITEMS))", &["total"]),
    ("(let [summary (fn [o] (:total o)) all (fn [os] (map summary os))] (all ITEMS))", &["total"]),
    ("(letfn [(total [o] (:total o)) (id [o] (:id o))] (map id ITEMS))", &[]),
    ("(letfn [(total [o] (:total o)) (id [o] (:id o))] (map total ITEMS))", &["total"]),
    ("(defn add [sum o] (+ sum (:total o))) (reduce add 0 ITEMS)", &["total"]),
    ("(defn owner [o] (:owner o)) (map :mail (map owner ITEMS))", &["mail"]),
    ("(defn big? [o] (:total o)) (map :id (filter big? ITEMS))", &["total"]),
    // Not the function of the program, or not with the item.
    ("(defn f [o] (:total o)) (defn f [o] (:id o)) (map f ITEMS)", &[]),
    ("(defn f [o] (:total o)) (let [f (fn [o] (:id o))] (map f ITEMS))", &[]),
    ("(defn f ([o] (:total o)) ([a o] (:id o))) (map f [1] ITEMS)", &[]),
    ("(defn f [& os] (:total os)) (map f ITEMS)", &[]),
    // Combinations.
    ("(map (comp :mail :owner) ITEMS)", &["mail"]),
    ("(map (comp :name :owner) ITEMS)", &[]),
    ("((comp :total first) ITEMS)", &["total"]),
    ("(map (comp :total str :owner) ITEMS)", &[]),
    ("(map (juxt :id :total) ITEMS)", &["total"]),
    ("(sort-by (juxt :total :id) ITEMS)", &["total"]),
    ("(filter (complement :total) ITEMS)", &["total"]),
    // Loops.
    ("(loop [os ITEMS sum 0] (if (seq os) (recur (rest os) (+ sum (:total (first os)))) sum))", &["total"]),
    ("(loop [[o & more] ITEMS sum 0] (if o (recur more (+ sum (:total o))) sum))", &["total"]),
    ("(loop [[o & more] ITEMS sum 0] (if o (recur more (+ sum (:id o))) sum))", &[]),
    // The variable has another place, or an unknown one, in a later round.
    ("(loop [o (first ITEMS)] (if (:owner o) (recur (:owner o)) (:mail o)))", &[]),
    ("(loop [x (first ITEMS)] (if (:total x) x (recur {:total 1})))", &[]),
    ("(loop [a (first ITEMS) b {}] (if (:total a) a (recur b (first ITEMS))))", &[]),
    ("(defn f [o n] (if (pos? n) (recur {:total 1} (dec n)) (:total o))) (f (first ITEMS) 2)", &[]),
    // An inner loop with an outer variable.
    (
        "(loop [os ITEMS] (when (seq os) (loop [n 3] (when (pos? n) (:total (first os)) (recur (dec n)))) (recur (rest os))))",
        &["total"],
    ),
];

#[test]
fn reads_through_functions_and_loops_are_found_only_where_the_place_is_known() {
    for (text, expected) in CASES {
        let text = text.replace("ITEMS", r#"(tool/value {:server "shop" :tool "orders"})"#);
        let program = Program::compile(&text).expect("a program");
        let found = all_missing_keys(&program, &CATALOG, &Deadline::none());
        let mut keys: Vec<&str> =
            found.iter().filter_map(|key| key.finding.message.split("has no '").nth(1)?.split('\'').next()).collect();
        keys.dedup();
        assert_eq!(keys, *expected, "{text}");
    }
}

/// An engine refuses a program for a read that a closed schema excludes, so that its reads must not depend on this feature.
#[test]
fn engines_do_not_follow_functions_as_values() {
    for text in [
        r#"(defn summary [o] {:t (:total o)}) (map summary (tool/value {:server "shop" :tool "orders"}))"#,
        r#"(map (juxt :id :total) (tool/value {:server "shop" :tool "orders"}))"#,
        r#"(loop [os (tool/value {:server "shop" :tool "orders"})] (when (seq os) (:total (first os)) (recur (rest os))))"#,
    ] {
        let program = Program::compile(text).expect("a program");
        assert!(missing_keys(&program, &CATALOG, &Deadline::none()).is_empty(), "{text}");
        assert_eq!(all_missing_keys(&program, &CATALOG, &Deadline::none()).len(), 1, "{text}");
    }
}
