//! `start`: MCP on standard input and output, until the input ends or a signal comes.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ptc_catalog::Deployment;
use tokio::sync::Notify;

use super::host::{Ended, Host};
use super::unusable;
use crate::log::{self, Level};
use crate::server::outbox::Outbox;
use crate::server::{Server, stdio};
use crate::settings::Settings;

/// How long answers on their way out are waited for at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves.
pub(super) fn run(deployment: &'static Deployment, settings: Settings) -> ExitCode {
    let mut host = match Host::new(deployment, &settings) {
        Ok(host) => host,
        Err(why) => return unusable(deployment, &why.sentences()),
    };
    let (input, output) = match (stdio::input(), stdio::output()) {
        (Ok(input), Ok(output)) => (input, output),
        (Err(fault), _) | (_, Err(fault)) => return unusable(deployment, &[format!("standard input or output: {fault}")]),
    };
    let end = Arc::new(Notify::new());
    let broken = Arc::clone(&end);
    let outbox = Arc::new(Outbox::new(output, move || broken.notify_one()));
    let evaluator = host.evaluator(deployment, &settings);
    let pool = Host::pool(settings.max_concurrent_calls);
    let max_frame_bytes = settings.max_frame_bytes;
    let server = Arc::new(Server::new(deployment, settings, evaluator, host.redactor(), pool, Arc::clone(&outbox)));
    let reader = {
        let (server, end) = (Arc::clone(&server), Arc::clone(&end));
        std::thread::Builder::new().name("client".into()).spawn(move || {
            if let Err(fault) = stdio::serve(&server, input, max_frame_bytes) {
                log::line(Level::Error, "standard input failed", &[("reason", &fault.to_string())]);
            }
            end.notify_one();
        })
    };
    if let Err(fault) = reader {
        return unusable(deployment, &[format!("cannot start: {fault}")]);
    }
    log::line(Level::Info, "serving", &[("deployment", deployment.name), ("catalog", deployment.catalog.digest)]);
    let ended = host.until(end.notified());
    // The reading thread may sit in a read that never returns; the process ends with this one.
    server.cancel_all();
    outbox.settle(LAST_ANSWERS);
    host.shut_down();
    let reason = match ended {
        Ended::Done(()) => "end of input",
        Ended::Signal(name) => name,
    };
    log::line(Level::Info, "ended", &[("reason", reason)]);
    ExitCode::SUCCESS
}
