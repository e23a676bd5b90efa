//! The smallest deployment: no upstreams, so that programs cannot call anything. `cargo run --example plain -- eval '(+ 1 2)'`

use ptc_catalog::Deployment;

static DEPLOYMENT: Deployment = Deployment { name: "plain", compiler: "none", ..Deployment::EMPTY };

fn main() -> std::process::ExitCode {
    ptc_runtime::main(&DEPLOYMENT)
}
