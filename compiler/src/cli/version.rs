//! Runs `version` and `--version`, which name this compiler and the runtime of its binaries.

use serde_json::json;

use crate::source::COMPILER_DIGEST;

/// Returns one line for people, or one JSON object.
pub(crate) fn render(json: bool) -> String {
    let version = ptc_compiler::VERSION;
    if !json {
        return format!("ptc-compile {version}\n");
    }
    let object = json!({
        "name": "ptc-compile",
        "version": version,
        "compiler_digest": format!("sha256:{COMPILER_DIGEST}"),
        "runtime_digest": ptc_runtime::DIGEST,
    });
    format!("{object}\n")
}
