//! Connections: to the server or through a proxy, with TLS where the address asks for it. A call that waits for one says so, and every
//! connection knows whether anything has been heard on it.

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

/// Without a word from the other side it is probed after so long, so often, before the connection is given up.
const PROBE: Duration = Duration::from_secs(15);
const PROBES: u32 = 3;

type BoxError = Box<dyn Error + Send + Sync>;

/// Makes connections for one client.
#[derive(Clone)]
pub(super) struct Connector {
    /// To the server, or to its proxy.
    direct: HttpsConnector<HttpConnector>,
    through: Option<Proxy>,
    timeout: Duration,
}

/// A proxy, and the TLS of what is behind it.
#[derive(Clone)]
struct Proxy {
    uri: Uri,
    tls: Arc<ClientConfig>,
}

/// No connection was made in time.
#[derive(Debug)]
pub(super) struct TookTooLong;

impl fmt::Display for TookTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no connection was made in time")
    }
}

impl Error for TookTooLong {}

impl Connector {
    /// A connector that takes at most `timeout` for a connection, with its TLS.
    pub(super) fn new(mut tls: ClientConfig, proxy: Option<Uri>, timeout: Duration) -> Connector {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // Shared by the addresses of a name, so that one that does not answer leaves time for the next.
        tcp.set_connect_timeout(Some(timeout));
        tcp.set_keepalive(Some(PROBE));
        tcp.set_keepalive_interval(Some(PROBE));
        tcp.set_keepalive_retries(Some(PROBES));
        // Else the calls on a connection that went dead would all run out of time, for minutes.
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(PROBE * 2));
        // A proxy is spoken to in HTTP/1.1.
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

/// Whether a byte came since the last message was begun on a connection, which holds one message at a time unless it is HTTP/2.
#[derive(Clone)]
pub(super) struct Heard(Arc<AtomicBool>);

impl Heard {
    pub(super) fn anything(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What carries bytes.
trait Carrier: AsyncRead + AsyncWrite + Connection + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Connection + Send + Unpin> Carrier for T {}

/// A connection.
pub(super) struct Line {
    // One type for all, so that what stands on it is compiled once.
    carrier: Box<dyn Carrier>,
    to_proxy: bool,
    heard: Heard,
    /// Whether part of a message may still wait to be written: what comes then answers that message.
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
