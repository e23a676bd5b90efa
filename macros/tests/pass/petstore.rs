mod upstreams {
    ptc_macros::catalog!("tests/configs/petstore.json");
}

fn main() {
    let petstore = upstreams::CATALOG.upstream("petstore").expect("the upstream is there");
    let tool = petstore.tool("listPets").expect("an operation goes by its id too");
    assert_eq!(tool.name, "list-pets");
    assert_eq!(upstreams::DEPLOYMENT.name, "petstore");
}
