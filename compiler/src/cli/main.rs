//! `ptc-compile`.
fn main() {}
