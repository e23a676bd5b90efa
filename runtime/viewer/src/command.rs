//! `ptc-compile viewer` shows a folder of traces in a browser.

use std::path::Path;
use std::process::ExitCode;

use ptc_runtime::command::{unusable, written};
use ptc_runtime::schedule::ScheduleLimits;
use tokio::signal::unix::{SignalKind, signal};

use crate::standalone::StandaloneViewer;

/// Serves until a signal arrives. Prints the URL on standard output. `program` is the command's name on the command line. With port 0
/// the system chooses a free port.
pub fn run(program: &str, folder: &Path, port: u16) -> ExitCode {
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
