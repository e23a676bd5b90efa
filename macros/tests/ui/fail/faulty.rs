ptc_macros::catalog!("configs/faulty.json");

fn main() {}
