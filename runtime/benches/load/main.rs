//! An open-loop load benchmark with many concurrent callers: requests are sent at a fixed rate, independent of answers, and
//! latency is measured from the planned moment. Generator and mock upstreams run in this process and share the processors with
//! the server.
//!
//! ```sh
//! cargo bench --bench load                     # run1 to run6, run1 and run2 also against the peers
//! cargo bench --bench load -- run1 run4        # some of them
//! cargo bench --bench load -- soak             # ten minutes; fails if memory or descriptors grow or an answer is missing
//! ```
//!
//! - `connection`: one HTTP/1.1 connection of the generator.
//! - `deployment`: the server under test, which runs as a role of this binary.
//! - `generator`: streams of requests, either open loop or sent again when they end.
//! - `mcp`: sessions, requests as bytes, and classification of answers.
//! - `mock`: the upstream that programs and peers call.
//! - `options`: the command line.
//! - `record`: outcomes and latencies.
//! - `report`: prints the records.
//! - `rmcp_server`: the peer that is built with the official Rust SDK, which runs as a role of this binary.
//! - `runs`: run 1 to run 6.
//! - `server`: processes under test, the server and its peers.
//! - `soak`: mixed load while an upstream is killed and restarted.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a benchmark panics on its own errors")]

mod connection;
mod deployment;
mod generator;
mod mcp;
mod mock;
mod options;
mod record;
mod report;
mod rmcp_server;
mod runs;
mod server;
mod soak;

use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use options::Options;

/// Environment variable that gives a child process its role.
const ROLE: &str = "PTC_LOAD_ROLE";

fn main() -> ExitCode {
    match std::env::var(ROLE).as_deref() {
        Ok("serve") => return ptc_runtime::main(deployment::deployment()),
        Ok("rmcp") => return rmcp_server::main(),
        _ => {}
    }
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            println!("{message}");
            return ExitCode::from(2);
        }
    };
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let succeeded = local.block_on(&runtime, async {
        if options.soak { soak::soak(&options).await } else { runs::all(&options).await || !options.assert }
    });
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Raises the limit on descriptors. Thousands of connections need a descriptor each, in this process and in the servers, which
/// inherit the limit.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    if limit.maximum.is_some_and(|most| most < 10_000) {
        println!("warning: the hard limit of open files is {:?}; runs with thousands of connections need 10,000", limit.maximum);
    }
}
