//! The optional parts of the runtime that `run` and `repl` have, and that builds use to contact upstreams.

use ptc_runtime::Parts;

/// All parts of this program.
pub(crate) static PARTS: Parts = Parts {
    viewer: Some(&ptc_viewer::VIEWER),
    access_tokens: Some(&ptc_resource_server::ACCESS_TOKENS),
    oauth_client: Some(&ptc_oauth_client::OAUTH_CLIENT),
    exporter: Some(&ptc_otlp::OTLP),
    policy: Some(&ptc_policy::POLICY),
    recorder: Some(&ptc_cassette::RECORDER),
    ..Parts::NONE
};
