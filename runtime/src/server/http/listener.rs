//! The sockets and connections of the HTTP server, and their shutdown.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::auth::Peer;
use super::route::{Source, Surface};
use super::unix_socket::UnixSocket;
use super::write_timeout::WriteTimeoutStream;
use super::{HttpState, route};
use crate::log::{self, Field, Level};
use crate::schedule::descriptors;
use crate::schedule::session_number;

/// Maximum number of connections, if the limit of descriptors permits. An idle connection takes a few kilobytes.
const MAX_CONNECTIONS: u64 = 8192;
/// Length of the accept queue, if the system permits.
const BACKLOG: u32 = 4096;
/// Maximum number of connections of the admin listener.
const MAX_ADMIN_CONNECTIONS: u32 = 32;
/// Size of a connection's read buffer in bytes, and therefore the maximum size of a request's head.
const READ_AHEAD: usize = 32 * 1024;
/// Timeout for the first byte of a new connection.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay before the next attempt to accept, if the system has no descriptor for another connection.
pub const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);
/// Minimum interval between log lines about refused connections, which contain their number since the last line.
const REFUSALS_LOGGED_EVERY: Duration = Duration::from_secs(5);
/// Time limit for connections to close after the last call has ended or was cancelled.
const CONNECTION_CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A bound listener.
pub struct Listener {
    socket: Socket,
    admin: Option<TcpListener>,
    connections: Arc<Semaphore>,
    max_connections: u32,
    admin_connections: Arc<Semaphore>,
    by_address: Arc<AddressShares>,
    refusals: Refusals,
    context: Context,
    /// Notifies connections that they must end.
    end: watch::Sender<bool>,
}

/// The socket on which the listener accepts.
enum Socket {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

/// State that every connection needs.
#[derive(Clone)]
struct Context {
    state: Arc<HttpState>,
    #[cfg(feature = "https-server")]
    tls: Option<Arc<super::tls::Tls>>,
}

impl Listener {
    /// Binds the sockets. Nothing is served yet. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns a sentence that names the flag whose address or path cannot be bound, or the certificate that cannot be read.
    pub fn bind(state: Arc<HttpState>) -> Result<Listener, String> {
        let settings = &state.settings;
        let socket = match &settings.unix_socket {
            Some(path) => {
                Socket::Unix(UnixSocket::bind(path).map_err(|fault| format!("--http-unix-socket {}: {fault}", path.display()))?)
            }
            None => Socket::Tcp(
                listen(settings.host, settings.port)
                    .map_err(|fault| format!("--http-host {} --http-port {}: {fault}", settings.host, settings.port))?,
            ),
        };
        let admin = match settings.admin_port {
            Some(port) => Some(
                listen(settings.host, port).map_err(|fault| format!("--http-admin-port {port} on {}: {fault}", settings.host))?,
            ),
            None => None,
        };
        #[cfg(feature = "https-server")]
        let tls = super::tls::Tls::new(settings)?.map(Arc::new);
        let max_connections = descriptors::connections_that_fit(MAX_CONNECTIONS) as u32;
        Ok(Listener {
            socket,
            admin,
            connections: Arc::new(Semaphore::new(max_connections as usize)),
            max_connections,
            admin_connections: Arc::new(Semaphore::new(MAX_ADMIN_CONNECTIONS as usize)),
            // A reverse proxy has a single address, so that half of all connections are permitted for one.
            by_address: Arc::new(AddressShares { most: (max_connections / 2).max(1), open: Mutex::default() }),
            refusals: Refusals::default(),
            context: Context {
                state,
                #[cfg(feature = "https-server")]
                tls,
            },
            end: watch::Sender::new(false),
        })
    }

    /// Returns the URL of the listener without a path. For a Unix socket it is `unix:PATH`.
    ///
    /// # Errors
    ///
    /// Fails if the system does not return the address.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(match &self.socket {
            Socket::Tcp(socket) => format!("{}://{}", self.scheme(), socket.local_addr()?),
            Socket::Unix(socket) => format!("unix:{}", socket.path().display()),
        })
    }

    /// Returns the URL of the admin listener, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if the system does not return the address.
    pub fn admin_url(&self) -> std::io::Result<Option<String>> {
        let admin = self.admin.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok(admin.map(|address| format!("{}://{address}", self.scheme())))
    }

    fn scheme(&self) -> &'static str {
        if self.context.state.settings.tls_cert.is_some() { "https" } else { "http" }
    }

    /// Reads the certificates again, and logs the result.
    pub fn reload(&self) {
        #[cfg(feature = "https-server")]
        match self.context.tls.as_ref().map(|tls| tls.reload()) {
            None => {}
            Some(Ok(())) => log::line(Level::Info, "certificates loaded", &[]),
            Some(Err(why)) => {
                let fields = [("reason", why.as_str()), ("hint", "the earlier certificates stay in use")];
                log::line(Level::Error, "certificates not loaded", &fields);
            }
        }
    }

    /// Serves forever.
    pub async fn serve(&self) -> Infallible {
        let admin = async {
            match &self.admin {
                Some(socket) => self.serve_admin(socket).await,
                None => std::future::pending().await,
            }
        };
        match &self.socket {
            Socket::Tcp(socket) => tokio::select! { never = self.serve_tcp(socket) => never, never = admin => never },
            Socket::Unix(socket) => {
                tokio::select! { never = self.serve_unix(socket.listener()) => never, never = admin => never }
            }
        }
    }

    async fn serve_tcp(&self, socket: &TcpListener) -> Infallible {
        loop {
            // At the maximum number of connections, accepting stops and further ones stay in the system's queue.
            let Ok(permit) = Arc::clone(&self.connections).acquire_owned().await else { return std::future::pending().await };
            let Some((stream, peer)) = self.accepted(accept(socket).await).await else { continue };
            let Some(share) = self.by_address.enter(peer.ip()) else {
                self.refusals.note("as many connections of one address as may be", Some(peer.ip()));
                continue;
            };
            let (context, end) = (self.context.clone(), self.end.subscribe());
            tokio::spawn(async move {
                if is_readable_soon(stream.readable()).await {
                    context.serve_connection(stream, peer.ip(), Surface::Clients, end).await;
                }
                drop((permit, share));
            });
        }
    }

    async fn serve_unix(&self, socket: &UnixListener) -> Infallible {
        loop {
            let Ok(permit) = Arc::clone(&self.connections).acquire_owned().await else { return std::future::pending().await };
            let Some((stream, _)) = self.accepted(socket.accept().await).await else { continue };
            let (context, end) = (self.context.clone(), self.end.subscribe());
            tokio::spawn(async move {
                if is_readable_soon(stream.readable()).await {
                    context.serve_connection(stream, Ipv4Addr::LOCALHOST.into(), Surface::Clients, end).await;
                }
                drop(permit);
            });
        }
    }

    async fn serve_admin(&self, socket: &TcpListener) -> Infallible {
        loop {
            let permit: OwnedSemaphorePermit = match Arc::clone(&self.admin_connections).acquire_owned().await {
                Ok(permit) => permit,
                Err(_) => return std::future::pending().await,
            };
            let Some((stream, peer)) = self.accepted(accept(socket).await).await else { continue };
            let (context, end) = (self.context.clone(), self.end.subscribe());
            tokio::spawn(async move {
                if is_readable_soon(stream.readable()).await {
                    context.serve_connection(stream, peer.ip(), Surface::Admin, end).await;
                }
                drop(permit);
            });
        }
    }

    /// Returns an accepted connection. After a failure, logs it and waits, since a descriptor may become free.
    async fn accepted<T>(&self, accepted: std::io::Result<T>) -> Option<T> {
        match accepted {
            Ok(accepted) => Some(accepted),
            Err(fault) => {
                self.refusals.note(&fault.to_string(), None);
                tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
                None
            }
        }
    }

    /// Waits up to `grace` until the calls in flight have ended, and then cancels the others. Meanwhile new calls are refused,
    /// and `/ready` reports that.
    pub async fn drain(&self, grace: Duration) {
        let state = &self.context.state;
        state.drain();
        let idle = async {
            while !state.is_idle() {
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
        state.cancel_all();
        let _ = self.end.send(true);
        // Every connection releases its permit when it ends.
        let _ = tokio::time::timeout(CONNECTION_CLOSE_TIMEOUT, self.connections.acquire_many(self.max_connections)).await;
    }
}

/// Creates a listening socket. Tokio's own constructor limits the accept queue to 1,024 connections, and clients beyond that
/// would retry only after a second.
fn listen(host: IpAddr, port: u16) -> std::io::Result<TcpListener> {
    let socket = if host.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind((host, port).into())?;
    socket.listen(BACKLOG)
}

/// Whether a new connection becomes readable within [`FIRST_BYTE_TIMEOUT`]. A silent connection would hold a descriptor.
async fn is_readable_soon(readable: impl Future<Output = std::io::Result<()>>) -> bool {
    matches!(tokio::time::timeout(FIRST_BYTE_TIMEOUT, readable).await, Ok(Ok(())))
}

/// Limits the number of connections per address, so that one cannot use all of them.
struct AddressShares {
    most: u32,
    open: Mutex<HashMap<IpAddr, u32>>,
}

/// A connection counted in its address's share until it is dropped.
struct AddressShare {
    shares: Arc<AddressShares>,
    address: IpAddr,
}

impl AddressShares {
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<AddressShare> {
        let address = network_of(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(address).or_insert(0);
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(AddressShare { shares: Arc::clone(self), address })
    }
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        let mut open = self.shares.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// Returns the address, or the /64 network of an IPv6 address, since one customer usually has a whole network. A dual-stack
/// listener receives IPv4 addresses in IPv6 form, which would all be in one network. They are converted back.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Counts refused connections and logs them at intervals, so that a flood of connections does not cause a flood of log lines.
#[derive(Default)]
struct Refusals(Mutex<(Option<Instant>, u64)>);

impl Refusals {
    fn note(&self, reason: &str, peer: Option<IpAddr>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 += 1;
        if state.0.is_some_and(|logged| logged.elapsed() < REFUSALS_LOGGED_EVERY) {
            return;
        }
        let count = std::mem::take(&mut state.1);
        state.0 = Some(Instant::now());
        let source = peer.map(|peer| peer.to_string());
        let mut fields = vec![("reason", Field::Text(reason)), ("count", Field::Number(count))];
        fields.extend(source.as_deref().map(|source| ("source", Field::Text(source))));
        log::record(Level::Warn, "connection not accepted", &fields);
    }
}

/// Accepts the next connection. Nagle's algorithm is disabled, since an answer is written at once.
async fn accept(socket: &TcpListener) -> std::io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = socket.accept().await?;
    // This fails if the client has already disconnected, which the next read reports.
    let _ = stream.set_nodelay(true);
    Ok((stream, peer))
}

impl Context {
    /// Serves the requests of one connection, with TLS if it is configured.
    async fn serve_connection<S>(self, stream: S, address: IpAddr, surface: Surface, end: watch::Receiver<bool>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        #[cfg(feature = "https-server")]
        if let Some(tls) = &self.tls {
            let within = self.state.settings.request_timeout;
            if let Ok(Ok(stream)) = tokio::time::timeout(within, tls.acceptor(surface).accept(stream)).await {
                let peer = Peer { address, certificate: super::tls::identity(stream.get_ref().1) };
                connection(self.state, stream, peer, surface, end).await;
            }
            return;
        }
        connection(self.state, stream, Peer::at(address), surface, end).await;
    }
}

/// Serves a connection of a client on this machine over a stream that need not be a socket, for the fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) async fn serve_stream<S: AsyncRead + AsyncWrite + Unpin>(state: Arc<HttpState>, stream: S) {
    let end = watch::Sender::new(false);
    connection(state, stream, Peer::at(Ipv4Addr::LOCALHOST.into()), Surface::Clients, end.subscribe()).await;
}

async fn connection<S>(state: Arc<HttpState>, stream: S, peer: Peer, surface: Surface, end: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let source = Source { peer, connection: session_number(), surface };
    serve_connection(stream, state.settings.request_timeout, end, |request| {
        let (state, source) = (Arc::clone(&state), source.clone());
        async move { route::respond(&state, source, request).await }
    })
    .await;
}

/// Serves the requests of one connection until it ends or `end` is set.
pub async fn serve_connection<S, R>(
    stream: S,
    request_timeout: Duration,
    mut end: watch::Receiver<bool>,
    respond: impl Fn(Request<Incoming>) -> R,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    R: Future<Output = Response<Full<Bytes>>>,
{
    let mut builder = http1::Builder::new();
    // The timeout for a head equals that for a body and for each part of an answer, so that very slow clients are disconnected.
    builder.timer(TokioTimer::new()).header_read_timeout(request_timeout).max_buf_size(READ_AHEAD);
    let answer = service_fn(|request| {
        let answer = respond(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let serving = builder.serve_connection(TokioIo::new(WriteTimeoutStream::new(stream, request_timeout)), answer);
    let mut serving = pin!(serving);
    // Errors of a connection affect only its client and are not logged.
    tokio::select! {
        _ = &mut serving => return,
        _ = end.wait_for(|end| *end) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_address_has_a_separate_share() {
        let shares = Arc::new(AddressShares { most: 1, open: Mutex::default() });
        let enter = |address: &str| shares.enter(address.parse().expect("an address"));
        let (one, six) = (enter("10.0.0.1"), enter("2001:db8::1"));
        assert!(one.is_some() && six.is_some());
        assert!(enter("10.0.0.1").is_none() && enter("10.0.0.2").is_some());
        assert!(enter("2001:db8::2").is_none(), "the same /64 network");
        assert!(enter("2001:db8:0:1::2").is_some());
        assert!(enter("::ffff:10.0.0.1").is_none() && enter("::ffff:10.0.0.3").is_some(), "IPv4 on a listener for both families");
        drop(one);
        assert!(enter("10.0.0.1").is_some());
    }

    #[tokio::test]
    async fn accepted_connections_disable_nagles_algorithm() {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(TcpStream::connect(address), accept(&socket));
        let (client, (stream, _)) = (client.expect("it listens"), accepted.expect("a connection"));
        assert!(!client.nodelay().expect("an option"), "what the system does unasked");
        assert!(stream.nodelay().expect("an option"));
    }
}
