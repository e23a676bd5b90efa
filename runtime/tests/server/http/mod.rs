//! MCP over HTTP with real sockets and processes.

mod access;
mod cgroup;
mod life;
mod queue;
mod requests;
#[cfg(feature = "https-server")]
mod secure;
pub(crate) mod site;
mod upstreams;

use crate::Test;

/// Returns the tests of this folder.
pub(crate) fn tests() -> Vec<Test> {
    #[cfg(feature = "https-server")]
    let secure = secure::TESTS;
    #[cfg(not(feature = "https-server"))]
    let secure = &[];
    [access::TESTS, cgroup::TESTS, life::TESTS, queue::TESTS, requests::TESTS, secure, upstreams::TESTS].concat()
}
