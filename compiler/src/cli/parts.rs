//! The optional parts of the runtime that `run` and `repl` have.

use ptc_runtime::Parts;

/// All parts of this program.
pub(crate) static PARTS: Parts = Parts {
    viewer: Some(&ptc_viewer::VIEWER),
    access_tokens: Some(&ptc_resource_server::ACCESS_TOKENS),
    exporter: Some(&ptc_otlp::OTLP),
    policy: Some(&ptc_policy::POLICY),
    ..Parts::NONE
};
