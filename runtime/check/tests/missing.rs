//! Keys that a run looked up in vain, with the resulting notes.

use ptc_catalog::{Catalog, McpStdio, Tool, Tools, Transport, Upstream};
use ptc_check::keys_not_found;
use ptc_lisp::Kind;
use ptc_lisp::missing_keys::{LookupTarget, MissingKey};

const fn tool(name: &'static str, definition: &'static str) -> Tool {
    Tool { name, definition, ..Tool::EMPTY }
}

const ORDERS: &str = r##"{"outputSchema":{"type":"object","additionalProperties":false,"required":["orders"],
    "properties":{"orders":{"type":"array","items":{"$ref":"#/$defs/order"}},"by_day":{"type":"object","properties":{"all":{}},"additionalProperties":{"type":"integer"}}},
    "$defs":{"order":{"type":"object","required":["id","total"],"properties":{"id":{},"total":{},"note":{}}}}}}"##;

static CATALOG: Catalog = Catalog {
    digest: "",
    search_index: &[],
    upstreams: &[Upstream {
        name: "shop",
        description: "",
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: Tools::table(&[
            tool("mystery", "{}"),
            tool("orders", ORDERS),
            tool("parts", r#"{"outputSchema":{"allOf":[{"properties":{"id":{}}}]}}"#),
        ]),
    }],
};

fn told(tool: &str, key: &str, target: LookupTarget, is_elsewhere: bool) -> Vec<String> {
    keys_not_found(
        &CATALOG,
        &[("shop", tool)],
        &[MissingKey { key: key.to_owned(), target, count: 2, is_elsewhere, is_expected: false }],
    )
}

fn object(keys: &[&str]) -> LookupTarget {
    LookupTarget::Object { keys: keys.iter().map(|key| (*key).to_owned()).collect(), is_answered: true }
}

#[test]
fn undeclared_key_is_reported_with_the_declared_keys() {
    let closed = told("orders", "order", object(&["orders"]), true);
    assert_eq!(
        closed,
        [
            "what shop/orders gives has no :order at this place (2 look-ups give nil): the keys are by_day, orders; did you mean :orders?"
        ]
    );
    let open = told("orders", "sum", object(&["id", "total"]), false);
    assert_eq!(open, ["what shop/orders gives has no :sum at this place (2 look-ups give nil): the keys are id, note, total"]);
}

#[test]
fn possible_key_is_not_reported() {
    // Look-ups that are not reported: a declared optional key, an undeclared key of an open object that occurs in another one, a
    // key of a map with arbitrary names, a key of a map that the program made.
    for (key, keys, is_elsewhere) in [
        ("note", &["id", "total"][..], false),
        ("coupon", &["id", "total"], true),
        ("monday", &["all", "friday"], false),
        ("size", &["color"], false),
    ] {
        assert_eq!(told("orders", key, object(keys), is_elsewhere), [""; 0], "{key}");
    }
    assert_eq!(told("parts", "name", object(&["id"]), false), [""; 0]);
}

#[test]
fn key_without_a_schema_is_noted_only_if_no_result_has_it() {
    let note = "no object of an answer with these keys has :size (2 look-ups give nil): the keys are id, name";
    assert_eq!(told("mystery", "size", object(&["id", "name"]), false), [note]);
    assert_eq!(told("mystery", "size", object(&["id", "name"]), true), [""; 0]);
    let own = LookupTarget::Object { keys: vec!["id".to_owned(), "name".to_owned()], is_answered: false };
    assert_eq!(told("mystery", "size", own, false), [""; 0]);
}

#[test]
fn expected_absence_of_a_key_is_noted_only_with_a_schema() {
    let told = |tool, keys: &[&str]| {
        let missing =
            MissingKey { key: "sum".to_owned(), target: object(keys), count: 1, is_elsewhere: false, is_expected: true };
        keys_not_found(&CATALOG, &[("shop", tool)], &[missing]).len()
    };
    assert_eq!((told("orders", &["id", "total"]), told("mystery", &["id", "name"])), (1, 0));
}

#[test]
fn keys_of_results_and_of_values_without_keys_are_reported() {
    let result =
        "the result of tool/call has no :data (2 look-ups give nil): it has :ok and :value, or :ok, :reason and :message";
    assert_eq!(told("orders", "data", LookupTarget::Result, false), [result]);
    assert_eq!(told("orders", "message", LookupTarget::Result, false), [""; 0]);
    let body = "the result of a successful tool/call has no :body (2 look-ups give nil): what the tool gives is under :value";
    assert_eq!(told("orders", "body", LookupTarget::Result, false), [body]);
    let text =
        "a string has no key :title (2 look-ups give nil): the value is text: take it apart with clojure.string or a regex";
    assert_eq!(told("orders", "title", LookupTarget::Other(Kind::String), false), [text]);
}

#[test]
fn lookups_during_a_tree_walk_are_not_reported() {
    let at = |kind| MissingKey {
        key: "id".to_owned(),
        target: LookupTarget::Other(kind),
        count: 1,
        is_elsewhere: false,
        is_expected: false,
    };
    let walk = [at(Kind::Vector), at(Kind::String), at(Kind::Int)];
    assert_eq!(keys_not_found(&CATALOG, &[("shop", "orders")], &walk), [""; 0]);
}
