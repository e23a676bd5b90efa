//! Tests that the official Rust SDK can connect, list and call over both transports. It is a crate, so it needs no separate
//! installation.

use std::process::Command;

use ptc_tests::deployment::plain;
use ptc_tests::process::{Background, free_port};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};

async fn drive(client: RunningService<RoleClient, ()>) {
    let info = client.peer_info().expect("the server says what it is");
    assert_eq!(info.server_info.as_ref().map(|server| &*server.name), Some("ptc_lisp"));
    let tools = client.list_all_tools().await.expect("a list");
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["lisp_eval"]);
    let arguments = [("program".to_owned(), "(+ 1 2)".into())].into_iter().collect();
    let call = CallToolRequestParams::new("lisp_eval").with_arguments(arguments);
    let result = client.call_tool(call).await.expect("a result");
    let text = result.content.first().and_then(|content| content.as_text()).map(|text| text.text.as_str());
    assert_eq!((text, result.is_error), (Some("user=> 3"), Some(false)));
    client.cancel().await.expect("it ends");
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work);
}

#[test]
fn rmcp_client_works_over_standard_input_and_output() {
    run(async {
        let transport = TokioChildProcess::new(tokio::process::Command::new(plain())).expect("it starts");
        drive(().serve(transport).await.expect("it connects")).await;
    });
}

#[test]
fn rmcp_client_works_over_http() {
    let port = free_port();
    let mut server = Command::new(plain());
    server.args(["--http", "--http-disable-auth", "--http-port", &port.to_string()]);
    let _server = Background::start(&mut server).ready_on(port);
    // The crate's HTTP client has no cryptography provider in this workspace. A second installation returns an error, which is
    // harmless.
    let _ = rustls::crypto::ring::default_provider().install_default();
    run(async {
        let transport = StreamableHttpClientTransport::from_uri(format!("http://127.0.0.1:{port}/mcp"));
        drive(().serve(transport).await.expect("it connects")).await;
    });
}
