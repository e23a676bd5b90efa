//! Tests that argument types serialize to the form of `:args` of the tool.

use serde_json::json;

mod shop {
    ptc_macros::catalog!("tests/configs/shop/upstreams.json", args);
}

use shop::args::shop::{
    GetOrder, ListOrders, ListOrdersPlaced, ListOrdersSort, ListOrdersState, Option as Options, Ping, String as Words,
};

/// Returns `ListOrders` with only its required argument.
fn of_state(state: ListOrdersState) -> ListOrders {
    ListOrders { state, ids: None, labels: None, page_size: None, placed: None, sort: None, r#type: None }
}

#[test]
fn given_arguments_are_serialized_with_names_of_the_schema() {
    let all = ListOrders {
        ids: Some(vec!["a".to_owned()]),
        labels: Some([("colour".to_owned(), json!("red"))].into_iter().collect()),
        page_size: Some(20),
        placed: Some(ListOrdersPlaced { since: "2026-01-01".to_owned(), until: None }),
        sort: Some(vec![ListOrdersSort::Price, ListOrdersSort::Date]),
        r#type: Some("web".to_owned()),
        ..of_state(ListOrdersState::InWork)
    };
    let sent = json!({
        "state": "in-work",
        "ids": ["a"],
        "labels": { "colour": "red" },
        "page[size]": 20,
        "placed": { "since": "2026-01-01" },
        "sort": ["price", "date"],
        "type": "web",
    });
    assert_eq!(serde_json::to_value(&all).expect("it is JSON"), sent);
    assert_eq!(serde_json::from_value::<ListOrders>(sent).expect("it is read back"), all);
}

#[test]
fn optional_arguments_without_value_are_not_serialized() {
    let few = of_state(ListOrdersState::Open);
    assert_eq!(serde_json::to_value(few).expect("it is JSON"), json!({ "state": "open" }));
    assert_eq!(serde_json::to_value(Ping::default()).expect("it is JSON"), json!({}));
}

#[test]
fn required_nullable_argument_serializes_as_null() {
    let words = Words { r#gen: None, option: None };
    let sent = json!({ "gen": null });
    assert_eq!(serde_json::to_value(&words).expect("it is JSON"), sent);
    assert_eq!(serde_json::from_value::<Words>(sent).expect("it is read back"), words);
}

#[test]
fn tool_named_like_a_standard_type_compiles() {
    let sent = serde_json::to_value(Options { vec: Some(true) }).expect("it is JSON");
    assert_eq!(sent, json!({ "vec": true }));
}

#[test]
fn argument_types_have_constants_for_server_and_tool() {
    let (server, tool) = (GetOrder::SERVER, GetOrder::TOOL);
    let found = shop::CATALOG.upstream(server).and_then(|upstream| upstream.tool(tool)).expect("the tool is in the catalog");
    assert_eq!(found.args.first().map(|arg| arg.name), Some("id"));
    assert_eq!(serde_json::to_value(GetOrder { id: 7 }).expect("it is JSON"), json!({ "id": 7 }));
}
