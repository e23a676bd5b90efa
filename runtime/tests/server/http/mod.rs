//! MCP over HTTP with real sockets and processes.

mod access;
mod browsers;
#[cfg(feature = "https-server")]
mod certificates;
pub(crate) mod cgroup;
mod children;
pub(crate) mod hostile;
mod life;
mod limits;
mod memory;
mod oauth;
mod owners;
mod policy;
mod queue;
mod requests;
#[cfg(feature = "https-server")]
mod secure;
#[cfg(feature = "agentic")]
pub(crate) mod separation;
mod shares;
pub(crate) mod site;
mod unread;
mod upstreams;

use crate::Test;

/// Returns the tests of this folder.
pub(crate) fn tests() -> Vec<Test> {
    #[cfg(feature = "https-server")]
    let secure = &[secure::TESTS, certificates::TESTS].concat();
    #[cfg(not(feature = "https-server"))]
    let secure = &Vec::new();
    [
        access::TESTS,
        browsers::TESTS,
        cgroup::TESTS,
        children::TESTS,
        hostile::TESTS,
        life::TESTS,
        limits::TESTS,
        memory::TESTS,
        oauth::TESTS,
        owners::TESTS,
        policy::TESTS,
        #[cfg(feature = "agentic")]
        separation::TESTS,
        queue::TESTS,
        requests::TESTS,
        secure,
        shares::TESTS,
        unread::TESTS,
        upstreams::TESTS,
    ]
    .concat()
}
