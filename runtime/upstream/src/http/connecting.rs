//! The stage of a call while its connection is made, so that a timeout names it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::stage::{self, Progress, Stage};

/// Wraps the connector of a client. While a connection is made, the call is in [`Stage::Connecting`].
#[derive(Clone)]
pub(super) struct ConnectingLayer;

impl<S> Layer<S> for ConnectingLayer {
    type Service = ConnectingService<S>;

    fn layer(&self, connector: S) -> ConnectingService<S> {
        ConnectingService(connector)
    }
}

#[derive(Clone)]
pub(super) struct ConnectingService<S>(S);

impl<S, R> Service<R> for ConnectingService<S>
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
        let connecting = stage::current().map(Connecting::begin);
        let attempt = self.0.call(target);
        Box::pin(async move {
            let _connecting = connecting;
            attempt.await
        })
    }
}

/// An attempt to connect. It is dropped when it ends, and when another connection becomes free first.
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
