//! Sockets, connections, their end.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::outlet::Outlet;
use super::{Site, route};
use crate::log::{self, Level};

/// Connections at a time. Each costs a few kilobytes while nothing is asked.
const MOST_CONNECTIONS: u32 = 8192;
/// Bytes that are read ahead on a connection, and so the longest head of a request.
const READ_AHEAD: usize = 32 * 1024;
/// How long to wait where the system has no descriptor for another connection.
pub(crate) const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);
/// How long connections get to end when the last call has.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A bound listener.
pub struct Listener {
    socket: TcpListener,
    site: Arc<Site>,
    connections: Arc<Semaphore>,
    #[cfg(feature = "https-server")]
    tls: Option<tokio_rustls::TlsAcceptor>,
    /// Says that connections are to end.
    end: watch::Sender<bool>,
}

impl Listener {
    /// Binds; nothing is served yet. Has to be called inside a Tokio runtime.
    pub async fn bind(site: Arc<Site>) -> std::io::Result<Listener> {
        let socket = TcpListener::bind((site.settings.host, site.settings.port)).await?;
        let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS as usize));
        Ok(Listener {
            socket,
            connections,
            #[cfg(feature = "https-server")]
            tls: match (&site.settings.tls_cert, &site.settings.tls_key) {
                (Some(certificates), Some(key)) => Some(super::tls::acceptor(certificates, key)?),
                _ => None,
            },
            site,
            end: watch::Sender::new(false),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves for ever.
    pub async fn serve(&self) -> Infallible {
        loop {
            // Waits with accepting where there are as many connections as may be: the system's queue holds the rest.
            let Ok(place) = Arc::clone(&self.connections).acquire_owned().await else { return std::future::pending().await };
            let (stream, peer) = match accept(&self.socket).await {
                Ok(accepted) => accepted,
                Err(fault) => {
                    log::line(Level::Warn, "connection not accepted", &[("reason", &fault.to_string())]);
                    tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
                    continue;
                }
            };
            let (site, end) = (Arc::clone(&self.site), self.end.subscribe());
            #[cfg(feature = "https-server")]
            if let Some(tls) = self.tls.clone() {
                tokio::spawn(async move {
                    let within = site.settings.request_timeout;
                    if let Ok(Ok(stream)) = tokio::time::timeout(within, tls.accept(stream)).await {
                        connection(site, stream, peer.ip(), end).await;
                    }
                    drop(place);
                });
                continue;
            }
            tokio::spawn(async move {
                connection(site, stream, peer.ip(), end).await;
                drop(place);
            });
        }
    }

    /// Lets calls in flight come to their end, for that long at most, and stops the rest. Meanwhile new ones are refused, and
    /// `/ready` says so.
    pub async fn drain(&self, grace: Duration) {
        self.site.drain();
        let idle = async {
            while self.site.server.running() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = self.serve() => {}
            ended = tokio::time::timeout(grace, idle) => {
                if ended.is_err() {
                    log::line(Level::Warn, "calls were stopped: they did not end within --http-shutdown-grace-ms", &[]);
                }
            }
        }
        self.site.cancel_all();
        let _ = self.end.send(true);
        // Every connection gives its place back.
        let _ = tokio::time::timeout(LAST_ANSWERS, self.connections.acquire_many(MOST_CONNECTIONS)).await;
    }
}

/// The next connection. An answer is written once and waited for: there is nothing to gather.
async fn accept(socket: &TcpListener) -> std::io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = socket.accept().await?;
    // Refused where the client has gone again, which reading will tell.
    let _ = stream.set_nodelay(true);
    Ok((stream, peer))
}

async fn connection<S>(site: Arc<Site>, stream: S, peer: IpAddr, end: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    converse(stream, site.settings.request_timeout, end, |request| {
        let site = Arc::clone(&site);
        async move { route::respond(&site, peer, request).await }
    })
    .await;
}

/// Answers the requests of one connection until it ends, or is told to.
pub(crate) async fn converse<S, R>(
    stream: S,
    request_timeout: Duration,
    mut end: watch::Receiver<bool>,
    respond: impl Fn(Request<Incoming>) -> R,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    R: Future<Output = Response<Full<Bytes>>>,
{
    let mut builder = http1::Builder::new();
    // The same time for a whole head as for a body and for each part of an answer: who sends or takes a byte a second is cut off.
    builder.timer(TokioTimer::new()).header_read_timeout(request_timeout).max_buf_size(READ_AHEAD);
    let answer = service_fn(|request| {
        let answer = respond(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let serving = builder.serve_connection(TokioIo::new(Outlet::new(stream, request_timeout)), answer);
    let mut serving = pin!(serving);
    // What goes wrong on a connection concerns its client alone, who knows already.
    tokio::select! {
        _ = &mut serving => return,
        _ = end.wait_for(|end| *end) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_are_not_held_back() {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), accept(&socket));
        let (client, (stream, _)) = (client.expect("it listens"), accepted.expect("a connection"));
        assert!(!client.nodelay().expect("an option"), "what the system does unasked");
        assert!(stream.nodelay().expect("an option"));
    }
}
