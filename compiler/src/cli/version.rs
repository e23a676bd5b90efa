//! Runs `version` and `--version`, which name this compiler and the runtime of its binaries.

use schemars::JsonSchema;
use serde::Serialize;

use crate::source::COMPILER_DIGEST;

/// The output of `ptc-compile version --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CompilerVersion {
    /// `ptc-compile`
    name: &'static str,
    version: &'static str,
    /// SHA-256 of the compiler's sources.
    compiler_digest: String,
    /// SHA-256 of the sources of the runtime that is linked into binaries.
    runtime_digest: &'static str,
}

/// Returns one line for people, or one JSON object.
pub(crate) fn render(json: bool) -> String {
    let version = ptc_compiler::VERSION;
    if !json {
        return format!("ptc-compile {version}\n");
    }
    let version = CompilerVersion {
        name: "ptc-compile",
        version,
        compiler_digest: format!("sha256:{COMPILER_DIGEST}"),
        runtime_digest: ptc_runtime::DIGEST,
    };
    format!("{}\n", serde_json::json!(version))
}
