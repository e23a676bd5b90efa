//! MCP over HTTP: real sockets, real processes.

mod life;
mod requests;
pub(crate) mod site;

use crate::Test;

/// The tests of this folder.
pub(crate) fn tests() -> Vec<Test> {
    [life::TESTS, requests::TESTS].concat()
}
