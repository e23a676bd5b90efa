//! The viewer without a server: `ptc-compile viewer`.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::door::{self, Viewer};
use crate::server::http::auth::Authenticator;
use crate::server::http::listener::{OUT_OF_DESCRIPTORS, serve_connection};
use crate::server::http::reply::Reply;
use crate::settings::HttpSettings;
use crate::settings::http::AuthToken;

/// Connections at a time: a browser opens six. Further ones wait in the system's queue.
const MAX_CONNECTIONS: usize = 64;

/// Time to send a whole request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// A bound viewer.
pub struct Alone {
    socket: TcpListener,
    desk: Arc<Desk>,
    token: String,
}

struct Desk {
    viewer: Arc<Viewer>,
    settings: HttpSettings,
    authenticator: Authenticator,
}

impl Alone {
    /// Binds on loopback; port 0 takes a free one. Has to be called inside a Tokio runtime.
    ///
    /// Other users of the machine reach loopback as well, and may not read what they could not read in the folder: there is a
    /// token.
    pub async fn bind(folder: &Path, port: u16) -> io::Result<Alone> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let token = crate::random::text::<24>()?;
        let settings = HttpSettings {
            on: true,
            auth_token: AuthToken::of(&token),
            // Nobody guesses 192 random bits.
            auth_rate_limit: false,
            request_timeout: REQUEST_TIMEOUT,
            ..HttpSettings::default()
        };
        let authenticator = Authenticator::new(&settings);
        Ok(Alone { socket, desk: Arc::new(Desk { viewer: Viewer::new(folder), settings, authenticator }), token })
    }

    /// What to open in a browser. The token is behind `#`, which browsers send nowhere.
    pub fn url(&self) -> io::Result<String> {
        Ok(format!("http://{}{}/#token={}", self.socket.local_addr()?, door::PATH, self.token))
    }

    /// Serves for ever.
    pub async fn serve(&self) -> Infallible {
        let end = watch::Sender::new(false);
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { return std::future::pending().await };
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    let (desk, end) = (Arc::clone(&self.desk), end.subscribe());
                    tokio::spawn(async move {
                        connection(desk, stream, peer, end).await;
                        drop(permit);
                    });
                }
                Err(_) => tokio::time::sleep(OUT_OF_DESCRIPTORS).await,
            }
        }
    }
}

async fn connection(desk: Arc<Desk>, stream: tokio::net::TcpStream, peer: SocketAddr, end: watch::Receiver<bool>) {
    serve_connection(stream, desk.settings.request_timeout, end, |request| {
        let desk = Arc::clone(&desk);
        async move {
            let (head, _) = request.into_parts();
            if !door::owns(head.uri.path()) {
                return Reply::text(StatusCode::NOT_FOUND, "not found").into_response();
            }
            desk.viewer.respond(&desk.settings, &desk.authenticator, peer.ip(), &head).await.0.into_response()
        }
    })
    .await;
}
