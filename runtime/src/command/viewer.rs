//! `ptc-compile viewer` shows a folder of traces in a browser.

use std::path::Path;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::{unusable, written};
use crate::schedule::ScheduleLimits;
use crate::viewer::standalone::StandaloneViewer;

/// Serves until a signal arrives. Prints the URL on standard output.
pub(super) fn run(program: &str, folder: &Path, port: u16) -> ExitCode {
    let served = || -> Result<ExitCode, String> {
        let cannot = |fault: std::io::Error| format!("cannot start: {fault}");
        std::fs::read_dir(folder).map_err(|fault| format!("{}: {fault}", folder.display()))?;
        let runtime = ScheduleLimits::detect().tokio_runtime().map_err(cannot)?;
        runtime.block_on(async {
            let viewer = StandaloneViewer::bind(folder, port).await.map_err(|fault| format!("--port {port}: {fault}"))?;
            let on = |kind| signal(kind).map_err(cannot);
            let (mut interrupt, mut terminate) = (on(SignalKind::interrupt())?, on(SignalKind::terminate())?);
            let code = written(&format!("{}\n", viewer.url().map_err(cannot)?));
            tokio::select! {
                never = viewer.serve() => match never {},
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            Ok(code)
        })
    };
    served().unwrap_or_else(|why| unusable(program, &[why]))
}
