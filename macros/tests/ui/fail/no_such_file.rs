ptc_macros::catalog!("configs/upstream.json");

fn main() {}
