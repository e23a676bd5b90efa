//! What the tests across crates share: where things are, child processes that do not outlive a test, a client on a pipe.
//!
//! The tests themselves are under `tests/`: [`deployment`] builds pinned binaries with the real `ptc-compile`, [`mcp`]
//! speaks to them as a client would, [`peers`] is the switch of the ring that needs third-party programs.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, clippy::missing_panics_doc, reason = "a test that cannot go on says so and stops")]

pub mod deployment;
pub mod mcp;
pub mod mock;
pub mod peers;
pub mod process;
