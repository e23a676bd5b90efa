//! Argument types: what they serialize to is what `:args` of the tool holds.

use serde_json::json;

mod shop {
    ptc_macros::catalog!("tests/configs/shop/upstreams.json", args);
}

use shop::args::shop::{GetOrder, ListOrders, ListOrdersState, Option as Options, Ping, String as Words};

#[test]
fn what_is_given_is_sent_by_its_own_name() {
    let all = ListOrders {
        state: ListOrdersState::InWork,
        ids: Some(vec![json!("a")]),
        page_size: Some(20),
        r#type: Some("web".to_owned()),
    };
    let sent = json!({ "state": "in-work", "ids": ["a"], "page[size]": 20, "type": "web" });
    assert_eq!(serde_json::to_value(&all).expect("it is JSON"), sent);
    assert_eq!(serde_json::from_value::<ListOrders>(sent).expect("it is read back"), all);
}

#[test]
fn what_is_not_given_is_not_sent() {
    let few = ListOrders { state: ListOrdersState::Open, ids: None, page_size: None, r#type: None };
    assert_eq!(serde_json::to_value(few).expect("it is JSON"), json!({ "state": "open" }));
    assert_eq!(serde_json::to_value(Ping::default()).expect("it is JSON"), json!({}));
}

#[test]
fn an_argument_that_must_be_given_is_given_as_null() {
    let words = Words { r#gen: None, option: None };
    let sent = json!({ "gen": null });
    assert_eq!(serde_json::to_value(&words).expect("it is JSON"), sent);
    assert_eq!(serde_json::from_value::<Words>(sent).expect("it is read back"), words);
}

#[test]
fn names_of_the_standard_library_are_names_of_tools_too() {
    let sent = serde_json::to_value(Options { vec: Some(true) }).expect("it is JSON");
    assert_eq!(sent, json!({ "vec": true }));
}

#[test]
fn types_name_their_tools() {
    let (server, tool) = (GetOrder::SERVER, GetOrder::TOOL);
    let found = shop::CATALOG.upstream(server).and_then(|upstream| upstream.tool(tool)).expect("the tool is in the catalog");
    assert_eq!(found.args.first().map(|arg| arg.name), Some("id"));
    assert_eq!(serde_json::to_value(GetOrder { id: 7 }).expect("it is JSON"), json!({ "id": 7 }));
}
