//! Helpers that the tests across crates share: paths, child processes that do not outlive a test, and a client on a pipe.
//!
//! The tests themselves are under `tests/`. [`deployment`] builds pinned binaries with the real `ptc-compile`, [`mcp`] talks to
//! them as a client would, and [`peers`] switches tests on that need third-party programs.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, clippy::missing_panics_doc, reason = "a test that cannot go on says so and stops")]

pub mod deployment;
pub mod mcp;
pub mod mock;
pub mod peers;
pub mod process;
