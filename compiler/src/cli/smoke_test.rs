//! Smoke test: evaluates a program in the new binary.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{Failure, children};

/// The result of the program.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EvalResult {
    /// Its value as clients receive it, or its error.
    pub(crate) text: String,
    /// Whether it has a value.
    pub(crate) ok: bool,
    /// Number of upstream calls.
    pub(crate) calls: usize,
    /// Size of the calls' results in bytes.
    #[serde(rename = "payload_bytes")]
    pub(crate) payload: u64,
}

/// Evaluates `program` in `binary`. Relative paths of the config start from its folder.
pub(crate) fn eval(binary: &Path, folder: &Path, program: &str) -> Result<EvalResult, Failure> {
    // A path without a slash would be searched in `PATH`.
    let binary =
        std::path::absolute(binary).map_err(|error| Failure::new(format!("cannot use `{}`: {error}", binary.display())))?;
    let mut command = children::server(&binary);
    if let Some(path) = path_with_this_program() {
        command.env("PATH", path);
    }
    let output = command
        .args(["eval", "--json", "--config-dir"])
        .arg(std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()))
        // The first connection may have to build an upstream (`cargo run`, `npx`). The handshake timeouts of the config bound
        // that time, not the program timeout of a server.
        .args(["--program-timeout-ms", "120000"])
        .arg("--")
        .arg(program)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("cannot start the new binary `{}`: {error}", binary.display())))?;
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(|_| {
        Failure::new("the new binary did not evaluate the program").hint(format!("ask it: {} eval …", binary.display()))
    })?;
    let calls = answer.get("upstream_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let payload = calls.iter().filter_map(|call| call.get("result_bytes")?.as_u64()).sum();
    let result = answer.get("result").and_then(Value::as_str);
    let error = ["error", "feedback", "message"].iter().find_map(|key| answer.get(key)?.as_str());
    let ok = result.is_some() && output.status.success();
    let text = if ok { result } else { error.or(result) };
    Ok(EvalResult { text: text.unwrap_or_default().to_owned(), ok, calls: calls.len(), payload })
}

/// Returns `PATH` with the folder of this program at the end, so that `ptc-compile demo` is found also where `ptc-compile` is not
/// installed. Returns `None` if the folder is unknown, or its name has a separator of `PATH`.
fn path_with_this_program() -> Option<OsString> {
    let this = std::env::current_exe().ok()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::env::split_paths(&path).chain([this.parent()?.to_owned()])).ok()
}
