//! The viewer without a server: `ptc-compile viewer`.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use ptc_runtime::secrets::random;
use ptc_runtime::server::http::Pages as _;
use ptc_runtime::server::http::auth::{Authenticator, Peer};
use ptc_runtime::server::http::listener::{OUT_OF_DESCRIPTORS, serve_connection};
use ptc_runtime::server::http::reply::Reply;
use ptc_runtime::settings::HttpSettings;
use ptc_runtime::settings::http::AuthToken;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::routes::{self, Viewer};

/// Maximum number of connections. A browser opens six; further ones wait in the backlog of the socket.
const MAX_CONNECTIONS: usize = 64;

/// Timeout for receiving a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// A viewer with its own listener.
pub struct StandaloneViewer {
    socket: TcpListener,
    state: Arc<ViewerState>,
    token: String,
}

struct ViewerState {
    viewer: Arc<Viewer>,
    settings: HttpSettings,
    authenticator: Authenticator,
}

impl StandaloneViewer {
    /// Binds a port on loopback. With port 0 the system chooses a free one. Must be called inside a Tokio runtime.
    ///
    /// Other users of the machine can connect to loopback too, but may not be permitted to read the folder. A token is therefore
    /// required.
    ///
    /// # Errors
    ///
    /// Returns an error if the port cannot be bound, or if the operating system provides no random bytes.
    pub async fn bind(folder: &Path, port: u16) -> io::Result<StandaloneViewer> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let token = random::text::<24>()?;
        let settings = HttpSettings {
            on: true,
            auth_token: AuthToken::parse(&token),
            // A token of 192 random bits cannot be guessed, so that no rate limit is needed.
            auth_rate_limit: false,
            request_timeout: REQUEST_TIMEOUT,
            ..HttpSettings::default()
        };
        let authenticator = Authenticator::new(&settings, None).map_err(io::Error::other)?;
        Ok(StandaloneViewer {
            socket,
            state: Arc::new(ViewerState { viewer: Viewer::new(folder), settings, authenticator }),
            token,
        })
    }

    /// Returns the URL for the browser. The token is in the fragment, which browsers do not send.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system does not return the address of the socket.
    pub fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}{}/#token={}", self.socket.local_addr()?, routes::PATH, self.token))
    }

    /// Serves forever.
    pub async fn serve(&self) -> Infallible {
        let end = watch::Sender::new(false);
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return std::future::pending().await };
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    let (state, end) = (Arc::clone(&self.state), end.subscribe());
                    tokio::spawn(async move {
                        connection(state, stream, peer, end).await;
                        drop(permit);
                    });
                }
                Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
            }
        }
    }
}

async fn connection(state: Arc<ViewerState>, stream: tokio::net::TcpStream, peer: SocketAddr, end: watch::Receiver<bool>) {
    let peer = Peer::at(peer.ip());
    serve_connection(stream, state.settings.request_timeout, end, |request| {
        let (state, peer) = (Arc::clone(&state), peer.clone());
        async move {
            let (head, _) = request.into_parts();
            if !state.viewer.handles(head.uri.path()) {
                return Reply::text(StatusCode::NOT_FOUND, "not found").into_response();
            }
            state.viewer.respond(&state.settings, &state.authenticator, &peer, &head).await.0.into_response()
        }
    })
    .await;
}
