//! The client of an upstream that is a child process: starts it when a call needs it, and ends it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ptc_catalog::{Era, McpStdio, Upstream};
use ptc_secrets::Secrets;
use tokio::sync::Mutex as Turn;

use super::connection::Child;
use super::{Connected, Grace};
use crate::children::{self, Admission, ChildLease, ChildLifecycle};
use crate::drift::{self, Checked};
use crate::fault::UpstreamError;
use crate::health::{self, Health};
use crate::lifecycle::{Joined, Lifecycle};
use crate::settings::UpstreamSettings;
use crate::stage::{self, Stage};
use crate::time_limit::TimeLimit;

/// The client of a child. Clones share it.
#[derive(Clone)]
pub(crate) struct StdioClient {
    lifecycle: Arc<ChildLifecycle>,
    /// Held while a call waits for the right to start the child, so that one call of the upstream waits for it at a time.
    turn: Arc<Turn<()>>,
    /// The era of the last child. The next child is not probed again, since some children do not answer a probe.
    spoken: Arc<Mutex<Option<Era>>>,
}

impl Checked<Connected> {
    /// Returns the child of the connection.
    pub(crate) fn child(&self) -> &Child {
        &self.connection.child
    }
}

impl StdioClient {
    pub(crate) fn new() -> StdioClient {
        StdioClient { lifecycle: Lifecycle::new(), turn: Arc::default(), spoken: Arc::default() }
    }

    pub(crate) fn lifecycle(&self) -> &Arc<ChildLifecycle> {
        &self.lifecycle
    }

    /// Returns the child. If there is none, it is started. The time until it may start is deducted from `limit`, and its start is
    /// not. `known` is the upstream in the current catalog.
    pub(crate) async fn child(
        &self,
        spec: &'static McpStdio,
        known: &'static Upstream,
        health: &Arc<Health>,
        secrets: &Arc<Secrets>,
        settings: &UpstreamSettings,
        limit: &mut TimeLimit,
    ) -> Result<ChildLease, UpstreamError> {
        let lifecycle = &self.lifecycle;
        let joined = loop {
            if let Some(present) = lifecycle.present()? {
                break present;
            }
            let (began, deadline) = (Instant::now(), limit.deadline());
            stage::enter(Stage::ChildPermit);
            let admitted = stage::until(deadline, async {
                let turn = self.turn.lock().await;
                // Another call may have started it meanwhile.
                let is_present = lifecycle.present()?.is_some();
                Ok::<_, UpstreamError>((turn, if is_present { None } else { Some(settings.children.admit().await) }))
            });
            let admitted = admitted.await;
            limit.spent += began.elapsed();
            let Some(admitted) = admitted else { return Err(limit.no_permit(known.name, settings.children.max())) };
            if let (_turn, Some(admission)) = admitted? {
                break self.start(spec, admission, known, health, secrets, settings)?;
            }
        };
        // If this is cancelled, it is dropped after the reference to the connection or to the attempt.
        let released = settings.children.released();
        Ok(lifecycle.lease(joined.connection().await?, released))
    }

    /// Begins to start the child.
    fn start(
        &self,
        spec: &'static McpStdio,
        admission: Admission,
        known: &'static Upstream,
        health: &Arc<Health>,
        secrets: &Arc<Secrets>,
        settings: &UpstreamSettings,
    ) -> Result<Joined<Checked<Connected>>, UpstreamError> {
        let connect = || {
            let (secrets, settings, spoken) = (Arc::clone(secrets), settings.clone(), Arc::clone(&self.spoken));
            let (health, owner) = (Arc::clone(health), Arc::clone(&self.lifecycle));
            health::recorded(Arc::clone(&health), async move {
                let permit = admission.ready(Some(&owner)).await;
                let last = || spoken.lock().unwrap_or_else(PoisonError::into_inner);
                let era = last().or(spec.era);
                let _starting = settings.start_limits.process().await;
                // The handshake and the list of tools share a deadline, since both are needed to connect.
                let deadline = Instant::now() + Duration::from_millis(spec.handshake_timeout_ms);
                let connection = super::connect(&health, known.name, spec, era, &secrets, &settings, &permit).await?;
                health.started();
                *last() = Some(connection.negotiated.era);
                let drift = drift::detect(
                    connection.channel(),
                    &connection.negotiated,
                    known,
                    &health,
                    spec.listing,
                    settings.on_drift,
                    deadline,
                )
                .await?;
                settings.children.add(&owner);
                if let Some(timeout) = spec.idle_timeout_ms {
                    let gone = Box::pin(connection.child.gone());
                    tokio::spawn(children::end_when_idle(Arc::downgrade(&owner), gone, Duration::from_millis(timeout)));
                }
                Ok(Checked { connection, drift })
            })
        };
        self.lifecycle.join(connect, settings.children.released())
    }

    /// Ends the child, and one that is being ended. No further one is started.
    pub(crate) async fn shutdown(&self, grace: Duration) {
        let connections = [self.lifecycle.close(), self.lifecycle.take_retired()];
        connections.iter().flatten().for_each(|checked| checked.child().end(Grace::shutdown(grace)));
        for checked in connections.iter().flatten() {
            checked.child().gone().await;
        }
    }
}
