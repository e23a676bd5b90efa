ptc_macros::catalog!("configs/not_pinned.json");

fn main() {}
