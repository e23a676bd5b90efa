ptc_macros::catalog!("configs/petstore.json", structs);

fn main() {}
