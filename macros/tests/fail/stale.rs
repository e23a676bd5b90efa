ptc_macros::catalog!("tests/configs/unlocked.json");

fn main() {}
