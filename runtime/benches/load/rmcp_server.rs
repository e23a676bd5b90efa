//! A server that uses the official Rust SDK, with the same tools as the other peers and written like the SDK's examples: macros,
//! axum, Tokio's multi-threaded runtime. It shares this binary and therefore the allocator of the runtime (mimalloc).

use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, schemars, tool, tool_handler, tool_router};

use crate::server::{BACKLOG, PEER_UPSTREAM};

#[derive(Clone)]
struct Tools {
    client: Client<HttpConnector, Empty<Bytes>>,
    upstream: Uri,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[tool_router]
impl Tools {
    #[tool(description = "Adds two numbers")]
    async fn add(&self, Parameters(Sum { a, b }): Parameters<Sum>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Waits for the upstream")]
    async fn wait(&self) -> Result<String, String> {
        let response = self.client.get(self.upstream.clone()).await.map_err(|error| error.to_string())?;
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

#[tool_handler]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

pub(crate) fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        let tools = Tools { client, upstream: std::env::var(PEER_UPSTREAM).unwrap().parse().unwrap() };
        let sessions = Arc::<LocalSessionManager>::default();
        // The SDK sends JSON answers only without sessions. With sessions it answers with events, and additions took twice as
        // long.
        let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
        let service = StreamableHttpService::new(move || Ok(tools.clone()), sessions, config);
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(BACKLOG).unwrap();
        println!("{{\"event\":\"serving\",\"url\":\"http://{}/mcp\"}}", listener.local_addr().unwrap());
        axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await.unwrap();
    });
    ExitCode::SUCCESS
}
