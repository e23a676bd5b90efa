mod upstreams {
    ptc_macros::catalog!("configs/shop/upstreams.json", args);
}

fn main() {
    let order = upstreams::args::shop::GetOrder { id: 7 };
    assert_eq!(serde_json::to_string(&order).unwrap(), r#"{"id":7}"#);
}
