//! Serves standard input and output.

use std::io::{BufRead, Write};

use ptc_runtime::protocol::revision;

use super::McpService;
use super::dispatch::{Response, answer};

/// Serves until the end of the input, or until a reply is a failure of the transport.
///
/// # Errors
///
/// If the input cannot be read, or the output cannot be written.
pub(crate) fn serve(service: &dyn McpService) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().split(b'\n') {
        match answer(service, &line?, |method, params| revision::era(params, method == "server/discover")) {
            Response::Line { line, .. } => {
                out.write_all(&line)?;
                out.flush()?;
            }
            Response::Failed { .. } => break,
            Response::Accepted | Response::Nothing => {}
        }
    }
    Ok(())
}
