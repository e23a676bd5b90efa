//! Pinned binaries, driven through real pipes: one without upstreams, and one whose upstream is a separate process.
//!
//! The server under test is this binary in another role, so that it is never older than its tests. This requires a custom `main`.
//! `libtest-mimic` provides the usual command line for tests.

#![expect(clippy::indexing_slicing, reason = "a test panics if an answer lacks an expected member")]

mod advertised;
#[cfg(feature = "agentic")]
mod agentic;
mod boundary;
mod canary;
mod command;
mod diagnostics;
mod echoing;
#[cfg(feature = "proxy")]
#[path = "../upstreams/forward_proxy.rs"]
#[expect(clippy::unwrap_used, reason = "a failure of the fake is a failure of the test")]
mod forward_proxy;
mod frames;
#[cfg(feature = "http-server")]
mod http;
mod isolation;
mod otlp;
mod outgoing;
mod peer;
mod policy;
mod process;
mod pty;
mod recording;
mod sessions;
mod stored;
mod terminal;
mod tools_list;
mod upstream;
#[path = "../upstreams/web.rs"]
#[cfg_attr(not(feature = "http-server"), expect(dead_code, reason = "these tests use only part of the module"))]
#[expect(clippy::unwrap_used, reason = "a failure of the fake is a failure of the test")]
mod web;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use ptc_catalog::Deployment;
use ptc_image::Image;
use ptc_runtime::{Linker, Parts};

/// A name and a function. A failure panics.
type Test = (&'static str, fn());

static PLAIN: Deployment = Deployment { name: "plain", compiler: "0.1.0+00ff", ..Deployment::EMPTY };

/// Environment variable that gives a child process its role.
const ROLE: &str = "PTC_TEST_ROLE";

/// Environment variable that chooses the linker of the servers under test.
const LINKER: &str = "PTC_TEST_LINKER";

/// The optional parts of the server under test.
static PARTS: Parts = Parts {
    exporter: Some(&ptc_otlp::OTLP),
    #[cfg(feature = "http")]
    oauth_client: Some(&ptc_oauth_client::OAUTH_CLIENT),
    #[cfg(feature = "http-server")]
    viewer: Some(&ptc_viewer::VIEWER),
    #[cfg(feature = "http-server")]
    access_tokens: Some(&ptc_resource_server::ACCESS_TOKENS),
    policy: Some(&ptc_policy::POLICY),
    recorder: Some(&ptc_cassette::RECORDER),
    ..Parts::NONE
};

/// Returns the deployment with this name, whose programs a worker process runs.
fn deployment(name: &str) -> &'static Deployment {
    match name {
        "plain" => &PLAIN,
        "stored" => &stored::DEPLOYMENT,
        "aggregator" => upstream::deployment(),
        "oncall" => upstream::on_call(),
        "crowd" => upstream::crowd(),
        #[cfg(feature = "http-server")]
        "pool" => upstream::pool(),
        #[cfg(feature = "http-server")]
        "hostile" => http::hostile::deployment(),
        "boundary" => boundary::world::deployment(),
        "canary" => canary::deployment(),
        "policy" => policy::deployment(),
        #[cfg(feature = "agentic")]
        "tasks" => agentic::deployment(),
        #[cfg(all(feature = "agentic", feature = "http-server"))]
        "separate" | "separate with a policy" => http::separation::deployment(name != "separate"),
        _ => panic!("no deployment is named {name}"),
    }
}

/// Beginnings of the names of tests that are ignored by default: they are slow, or need control groups.
const IGNORED: &[&str] = &["boundary::", "http::hostile_answers", "http::few_threads_of_a_container"];

/// Runs a server as a pinned binary does. With `PTC_TEST_LINKER=prebuilt` its deployment goes through an image first.
fn serve(deployment: &'static Deployment) -> ExitCode {
    if std::env::var_os(LINKER).is_none_or(|linker| linker != Linker::Prebuilt.name()) {
        return ptc_runtime::main_with(deployment, &PARTS);
    }
    let image = ptc_image::encode(deployment, ptc_runtime::DIGEST).leak();
    let image = Image::read(image, ptc_runtime::DIGEST, |error| panic!("{error}")).expect("an image of this runtime");
    ptc_runtime::main_linked_by(image.deployment, &PARTS, Linker::Prebuilt)
}

fn main() -> ExitCode {
    // A worker has no environment.
    if let [_, worker, name] = std::env::args().collect::<Vec<_>>().as_slice()
        && worker == ptc_isolation::worker::ARGUMENT
    {
        if name == isolation::hostile::DEPLOYMENT.name {
            return isolation::hostile::work();
        }
        return serve(deployment(name));
    }
    match std::env::var(ROLE).as_deref() {
        Ok("plain") => return serve(&PLAIN),
        Ok("stored") => return serve(&stored::DEPLOYMENT),
        Ok("aggregator") => return serve(upstream::deployment()),
        Ok("aggregator without parts") => return ptc_runtime::main(upstream::deployment()),
        Ok("oncall") => return serve(upstream::on_call()),
        Ok("crowd") => return serve(upstream::crowd()),
        #[cfg(feature = "http-server")]
        Ok("pool") => return serve(upstream::pool()),
        #[cfg(feature = "http-server")]
        Ok("hostile") => return serve(http::hostile::deployment()),
        #[cfg(feature = "http-server")]
        Ok("hostile child") => return http::hostile::serve(),
        Ok("upstream") => return upstream::serve(),
        Ok("boundary") => return serve(boundary::world::deployment()),
        Ok("deaf") => return boundary::world::serve_deaf(),
        Ok("echo of arguments") => return boundary::world::serve_echo(),
        Ok("embedded") => return boundary::world::serve_embedded(),
        Ok("canary") => return serve(canary::deployment()),
        Ok("policy") => return serve(policy::deployment()),
        Ok("policy without its part") => return ptc_runtime::main(policy::deployment()),
        Ok("counting") => return policy::serve_counting(),
        Ok("panicking") => {
            process::panic_when_triggered();
            return serve(canary::deployment());
        }
        #[cfg(feature = "agentic")]
        Ok("tasks") => return serve(agentic::deployment()),
        #[cfg(all(feature = "agentic", feature = "http-server"))]
        Ok(role @ ("separate" | "separate with a policy")) => return serve(deployment(role)),
        Ok("echoing") => return canary::serve(),
        Ok("hostile worker") => return serve(&isolation::hostile::DEPLOYMENT),
        Ok("probe") => return isolation::probe(),
        _ => {}
    }
    #[cfg(feature = "http-server")]
    let http = http::tests();
    #[cfg(not(feature = "http-server"))]
    let http: Vec<Test> = Vec::new();
    #[cfg(feature = "agentic")]
    let agentic = agentic::TESTS;
    #[cfg(not(feature = "agentic"))]
    let agentic: &[Test] = &[];
    let tests = [
        &http,
        agentic,
        advertised::TESTS,
        boundary::TESTS,
        canary::TESTS,
        command::TESTS,
        tools_list::TESTS,
        diagnostics::TESTS,
        frames::TESTS,
        isolation::TESTS,
        otlp::TESTS,
        outgoing::TESTS,
        policy::TESTS,
        process::TESTS,
        recording::TESTS,
        sessions::TESTS,
        stored::TESTS,
        terminal::TESTS,
        upstream::TESTS,
    ]
    .concat();
    let arguments = Arguments::from_args();
    let trials = tests.into_iter().map(|(name, run)| {
        let test = move || {
            run();
            Ok(())
        };
        Trial::test(name, test).with_ignored_flag(IGNORED.iter().any(|ignored| name.starts_with(ignored)))
    });
    let trials = trials.collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
