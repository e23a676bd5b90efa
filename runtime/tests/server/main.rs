//! A pinned binary without upstreams, driven through real pipes.
//!
//! The server under test is this very binary in another role, so that it is never older than its tests. That takes a `main` of its
//! own: `libtest-mimic` gives the tests their usual command line.

mod command;
mod describe;
mod frames;
mod peer;
mod process;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use ptc_catalog::{Catalog, Deployment};

/// A name and what it runs; a failure panics.
type Test = (&'static str, fn());

static PLAIN: Deployment =
    Deployment { name: "plain", compiler: "none", config_digest: "", credentials: &[], catalog: &Catalog::EMPTY };

/// In the environment of a child: that it is the server.
const ROLE: &str = "PTC_TEST_SERVER";

fn main() -> ExitCode {
    if std::env::var_os(ROLE).is_some() {
        return ptc_runtime::main(&PLAIN);
    }
    let tests = [command::TESTS, describe::TESTS, frames::TESTS, process::TESTS].concat();
    let trials = tests.into_iter().map(|(name, run)| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
