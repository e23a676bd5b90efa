//! What the tests across crates share. The tests themselves are under `tests/`.

#![forbid(unsafe_code)]
