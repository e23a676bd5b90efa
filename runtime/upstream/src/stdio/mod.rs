//! MCP over the standard input and output of a child process.
//!
//! - [`process`]: starts the child in its own process group, and ends the group.
//! - [`sandbox`]: confines the child.
//! - [`lines`]: reads its output line by line with a size limit.
//! - [`kept_stderr`]: keeps the beginning and the end of its standard error for messages.
//! - [`client`]: starts the child when a call needs it.
//! - [`connection`]: requests and answers over the pipes, matched by id.

pub(crate) mod client;
pub(crate) mod connection;
mod kept_stderr;
mod lines;
pub(crate) mod process;
mod sandbox;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_catalog::{Era, McpStdio};

use super::children::ChildPermit;
use super::fault::UpstreamError;
use super::health::Health;
use super::mcp::{Negotiated, handshake};
use super::settings::UpstreamSettings;
use super::stage;
use connection::{Child, Connection};
pub(crate) use process::Grace;
use ptc_secrets::Secrets;

/// Returns the lines of an output that arrives in chunks of this size, for the fuzz targets. The error of a line longer than `max`
/// bytes is its id and its length.
#[cfg(feature = "fuzzing")]
pub(crate) fn split_lines(output: &[u8], chunk: usize, max: usize) -> Vec<Result<Vec<u8>, (Option<u64>, u64)>> {
    let mut source = tokio::io::BufReader::with_capacity(chunk.max(1), output);
    let mut found = Vec::new();
    ptc_schedule::fibers::block_on(async {
        loop {
            match lines::next(&mut source, max).await {
                Ok(lines::Line::Whole(line)) => found.push(Ok(line)),
                Ok(lines::Line::TooLong { id, bytes }) => found.push(Err((id, bytes))),
                Ok(lines::Line::End) | Err(_) => return,
            }
        }
    });
    found
}

/// Starts the child and negotiates era and revision. `era` is the expected era.
pub(crate) async fn connect(
    health: &Arc<Health>,
    name: &'static str,
    spec: &'static McpStdio,
    era: Option<Era>,
    secrets: &Secrets,
    settings: &UpstreamSettings,
    permit: &Arc<ChildPermit>,
) -> Result<Connected, UpstreamError> {
    let timeout = Duration::from_millis(spec.handshake_timeout_ms);
    let deadline = Instant::now() + timeout;
    let cap = settings.response_cap(spec.max_response_bytes);
    let start = || Child::start(health, name, spec, secrets, settings, cap, Arc::clone(permit));
    let attempt = async {
        let child = start().await?;
        let negotiated = match handshake::negotiate(&*child.connection, era, deadline).await {
            Err(refused) if refused.lost_to_probe && era != Some(Era::Handshake) => {
                child.end(Grace::NONE);
                child.gone().await;
                let child = start().await?;
                let negotiated = handshake::negotiate(&*child.connection, Some(Era::Handshake), deadline).await;
                return Ok::<_, UpstreamError>(Connected { negotiated: negotiated.map_err(|r| r.fault)?, child });
            }
            other => other.map_err(|refused| refused.fault)?,
        };
        Ok(Connected { child, negotiated })
    };
    let late = || {
        UpstreamError::timeout(format!(
            "'{name}' did not finish starting and its handshake within {} ms (handshake_timeout_ms): the time ran out while {}",
            timeout.as_millis(),
            stage::reached().described()
        ))
    };
    match stage::until(deadline, attempt).await {
        Some(Ok(connected)) => {
            connected.child.connection.handshake_done();
            Ok(connected)
        }
        Some(Err(fault)) if fault.reason != super::fault::Reason::Timeout => Err(fault),
        Some(Err(_)) | None => Err(late()),
    }
}

/// A child with negotiated era and revision.
pub(crate) struct Connected {
    pub(crate) child: Child,
    pub(crate) negotiated: Negotiated,
}

impl Connected {
    pub(crate) fn channel(&self) -> &Connection {
        &self.child.connection
    }
}

impl super::lifecycle::Live for Connected {
    fn failure(&self) -> Option<UpstreamError> {
        self.child.connection.failure()
    }
}
