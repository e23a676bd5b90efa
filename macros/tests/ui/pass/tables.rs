mod upstreams {
    ptc_macros::catalog!("configs/petstore.json");
}

fn main() {
    assert_eq!(upstreams::DEPLOYMENT.name, "petstore");
    assert_eq!(upstreams::CATALOG.tool_count(), 1);
}
