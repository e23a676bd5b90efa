//! A server without upstreams and with optional parts.

use std::process::ExitCode;

use ptc_catalog::Deployment;
use ptc_runtime::Parts;

static DEPLOYMENT: Deployment = Deployment { name: "plain", compiler: "none", ..Deployment::EMPTY };

static PARTS: Parts = Parts {
    session_stores: Some(&ptc_session_redis::REDIS),
    viewer: Some(&ptc_viewer::VIEWER),
    access_tokens: Some(&ptc_resource_server::ACCESS_TOKENS),
    exporter: Some(&ptc_otlp::OTLP),
    recorder: Some(&ptc_cassette::RECORDER),
    ..Parts::NONE
};

fn main() -> ExitCode {
    ptc_runtime::main_with(&DEPLOYMENT, &PARTS)
}
