ptc_macros::catalog!("tests/configs/nowhere.json");

fn main() {}
