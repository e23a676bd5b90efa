//! Makes connections to a server, directly or through a proxy, with TLS if the URL requires it. Reports the stage of a call that
//! waits for a connection, and records on each connection whether a response has begun.

use std::error::Error;
use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

use crate::upstream::stage::{self, Progress, Stage};

/// Keep-alive probes: a silent connection is probed after `PROBE`, and abandoned after `PROBES` unanswered probes at this
/// interval.
const PROBE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;

type BoxError = Box<dyn Error + Send + Sync>;

/// Makes connections for one client.
#[derive(Clone)]
pub(super) struct Connector {
    /// Connects to the server, or to its proxy.
    direct: HttpsConnector<HttpConnector>,
    through: Option<Proxy>,
    timeout: Duration,
}

/// A proxy, and the TLS configuration for the server behind it.
#[derive(Clone)]
struct Proxy {
    uri: Uri,
    tls: Arc<ClientConfig>,
}

/// The error that no connection was made in time.
#[derive(Debug)]
pub(super) struct TookTooLong;

impl fmt::Display for TookTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no connection was made in time")
    }
}

impl Error for TookTooLong {}

impl Connector {
    /// Creates a connector. `timeout` limits the time to connect, including TLS.
    pub(super) fn new(mut tls: ClientConfig, proxy: Option<Uri>, timeout: Duration) -> Connector {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // The timeout is divided among the addresses of a name, so that an unresponsive one leaves time for the next.
        tcp.set_connect_timeout(Some(timeout));
        tcp.set_keepalive(Some(PROBE));
        tcp.set_keepalive_interval(Some(PROBE));
        tcp.set_keepalive_retries(Some(PROBES));
        // Without this, calls on a dead connection would time out for minutes.
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(PROBE * 2));
        // The connection to a proxy uses HTTP/1.1.
        let to_proxy = proxy.is_some().then(|| tls.clone());
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let tls = Arc::new(tls);
        let direct = HttpsConnector::from((tcp, to_proxy.map_or_else(|| Arc::clone(&tls), Arc::new)));
        Connector { direct, through: proxy.map(|uri| Proxy { uri, tls }), timeout }
    }

    async fn connect(mut self, target: Uri) -> Result<TokioIo<Line>, BoxError> {
        let line = match self.through {
            None => Line::over(self.direct.call(target).await?, false),
            Some(Proxy { uri, tls }) if target.scheme_str() == Some("https") => {
                let tunnel = Tunnel::new(uri, self.direct);
                Line::over(HttpsConnector::from((tunnel, tls)).call(target).await?, false)
            }
            Some(Proxy { uri, .. }) => Line::over(self.direct.call(uri).await?, true),
        };
        Ok(TokioIo::new(line))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Line>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connecting = stage::current().map(Connecting::begin);
        let attempt = tokio::time::timeout(self.timeout, self.clone().connect(target));
        Box::pin(async move {
            let _connecting = connecting;
            attempt.await.unwrap_or_else(|_| Err(TookTooLong.into()))
        })
    }
}

/// Marks an attempt to connect. It is dropped when the attempt ends, or when another connection becomes free first.
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

/// Whether a byte was received since the last message began on a connection. Except with HTTP/2, a connection has one message at
/// a time.
#[derive(Clone)]
pub(super) struct Heard(Arc<AtomicBool>);

impl Heard {
    pub(super) fn anything(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A transport that carries bytes.
trait Carrier: AsyncRead + AsyncWrite + Connection + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Connection + Send + Unpin> Carrier for T {}

/// A connection.
pub(super) struct Line {
    // A single type for all transports, so that generic code over it is compiled once.
    carrier: Box<dyn Carrier>,
    to_proxy: bool,
    heard: Heard,
    /// Whether part of a message may still have to be written. A response that begins in that state belongs to this message.
    writing: bool,
}

impl Line {
    fn over<T>(stream: T, to_proxy: bool) -> Line
    where
        TokioIo<T>: AsyncRead + AsyncWrite + Connection + Send + Unpin + 'static,
    {
        Line { carrier: Box::new(TokioIo::new(stream)), to_proxy, heard: Heard(Arc::default()), writing: false }
    }

    fn write_begins(&mut self) {
        if !std::mem::replace(&mut self.writing, true) {
            self.heard.0.store(false, Ordering::Relaxed);
        }
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        self.carrier.connected().proxy(self.to_proxy).extra(self.heard.clone())
    }
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.carrier).poll_read(context, into);
        if into.filled().len() > before {
            self.heard.0.store(true, Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write_begins();
        Pin::new(&mut self.carrier).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write_begins();
        Pin::new(&mut self.carrier).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.carrier.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.carrier).poll_flush(context);
        if let Poll::Ready(Ok(())) = polled {
            self.writing = false;
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.carrier).poll_shutdown(context)
    }
}
