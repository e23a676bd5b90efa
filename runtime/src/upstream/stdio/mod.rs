//! MCP over the standard input and output of a child process.
//!
//! - [`process`]: starting the child in a process group of its own, and ending the group.
//! - [`lines`]: reading its output line by line under a cap.
//! - [`connection`]: requests and answers by id over the one pipe.

pub(crate) mod connection;
mod lines;
pub(crate) mod process;

use std::time::{Duration, Instant};

use ptc_catalog::{Era, McpStdio};

use super::fault::UpstreamError;
use super::mcp::{Negotiated, handshake};
use super::settings::UpstreamSettings;
use super::stage;
use crate::secrets::Secrets;
use connection::{Child, Connection};

/// Starts the child and agrees with it on era and revision; `era` is what it is known to speak.
pub(crate) async fn connect(
    name: &'static str,
    spec: &'static McpStdio,
    era: Option<Era>,
    secrets: &Secrets,
    settings: &UpstreamSettings,
) -> Result<Connected, UpstreamError> {
    let timeout = Duration::from_millis(spec.handshake_timeout_ms);
    let deadline = Instant::now() + timeout;
    let cap = settings.response_cap(spec.max_response_bytes);
    let start = || Child::start(name, spec, secrets, settings, cap);
    let attempt = async {
        let child = start().await?;
        let negotiated = match handshake::negotiate(&*child.connection, era, deadline).await {
            Err(refused) if refused.lost_to_probe && era != Some(Era::Handshake) => {
                drop(child);
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

/// A child with which era and revision are negotiated.
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
