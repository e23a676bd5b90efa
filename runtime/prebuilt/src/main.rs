//! The prebuilt runtime: the program that `ptc-compile --link prebuilt` copies, and to which it adds the catalog of a deployment.
//!
//! It has every optional part, because it is compiled before the deployment is known. Without a catalog it says so and ends.

mod verify;

use std::process::ExitCode;

use ptc_image::{Image, ImageError, stamp};
use ptc_runtime::{Linker, Parts};

/// Identifies this file for a compiler that does not start it.
#[used]
static STAMP: [u8; stamp::BYTES] = stamp::write(env!("CARGO_PKG_VERSION"), ptc_runtime::DIGEST, env!("PTC_TARGET"));

/// Every optional part.
static PARTS: Parts = Parts {
    session_stores: Some(&ptc_session_redis::REDIS),
    viewer: Some(&ptc_viewer::VIEWER),
    access_tokens: Some(&ptc_resource_server::ACCESS_TOKENS),
    oauth_client: Some(&ptc_oauth_client::OAUTH_CLIENT),
    exporter: Some(&ptc_otlp::OTLP),
    recorder: Some(&ptc_cassette::RECORDER),
    policy: Some(&ptc_policy::POLICY),
};

fn main() -> ExitCode {
    let bytes = match libsui::find_section(ptc_image::SECTION) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return refused("this is a runtime without a catalog, to which `ptc-compile --link prebuilt` adds one"),
        Err(error) => return refused(&format!("cannot read the catalog of this binary: {error}")),
    };
    let image = match Image::read(bytes, ptc_runtime::DIGEST, end) {
        Ok(image) => image,
        Err(error) => return refused(&hint(error)),
    };
    let deployment = image.deployment;
    let verification = match verify::begin(bytes, image) {
        Ok(verification) => verification,
        Err(error) => return refused(&hint(error)),
    };
    let code = ptc_runtime::main_linked_by(deployment, &PARTS, Linker::Prebuilt);
    verification.finish();
    code
}

/// Ends the process because its catalog is damaged.
fn end(error: ImageError) -> ! {
    refused(&hint(error));
    std::process::exit(2)
}

fn hint(error: ImageError) -> String {
    format!("{error}; build this binary again")
}

#[expect(clippy::print_stderr, reason = "without a deployment there is no log")]
fn refused(problem: &str) -> ExitCode {
    eprintln!("error: {problem}");
    ExitCode::from(2)
}
