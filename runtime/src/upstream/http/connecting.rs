//! Noticing that a call has to wait for a connection to be made, and no longer than that.

use std::pin::Pin;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::upstream::stage::{self, Progress, Stage};

/// Reports [`Stage::Connecting`] for the call that needs the connection.
#[derive(Clone)]
pub(super) struct ReportConnecting;

/// A connector that reports.
#[derive(Clone)]
pub(super) struct Reporting<S>(S);

impl<S> Layer<S> for ReportConnecting {
    type Service = Reporting<S>;

    fn layer(&self, connector: S) -> Reporting<S> {
        Reporting(connector)
    }
}

impl<S, R> Service<R> for Reporting<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let attempt = self.0.call(target);
        let connecting = stage::current().map(Connecting::begin);
        Box::pin(async move {
            let _connecting = connecting;
            attempt.await
        })
    }
}

/// An attempt to connect. It is over when it is dropped: it came to an end, or another connection became free first.
struct Connecting(Progress);

impl Connecting {
    fn begin(progress: Progress) -> Connecting {
        progress.enter(Stage::Connecting);
        Connecting(progress)
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        if self.0.reached() == Stage::Connecting {
            self.0.enter(Stage::Waiting);
        }
    }
}
