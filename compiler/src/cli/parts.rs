//! The optional parts of the runtime that `run` and `repl` have.

use ptc_runtime::Parts;

/// All parts of this program.
pub(crate) static PARTS: Parts = Parts { viewer: Some(&ptc_viewer::VIEWER), exporter: Some(&ptc_otlp::OTLP), ..Parts::NONE };
