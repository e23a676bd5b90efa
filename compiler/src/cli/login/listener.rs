//! Receives the answer of an authorization server from the browser, at a port of this machine (RFC 8252, section 7.3).

use std::sync::Arc;
use std::time::{Duration, Instant};

use ptc_oauth_client::login::{AuthorizationRequest, LoginClient};
use ptc_oauth_client::redirect::PATH;
use ptc_oauth_client::store::Login as Tokens;
use ptc_runtime::upstream::{Reason, UpstreamError};
use tiny_http::{Header, Method, Request, Response, Server};

use super::{Login, time_limit};
use crate::console::Console;
use crate::{Failure, children};

/// How long one wait for a request takes, after which the time limit is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Logs in with a browser. The port is free, is bound to loopback only, and closed after the answer.
pub(super) async fn log_in(
    client: &LoginClient,
    args: &Login,
    name: &str,
    console: &Console,
) -> Result<Result<Tokens, UpstreamError>, Failure> {
    let server = Server::http("127.0.0.1:0").map_err(|why| Failure::new(format!("cannot listen for the browser: {why}")))?;
    let Some(address) = server.server_addr().to_ip() else { return Err(Failure::new("cannot listen for the browser")) };
    let request = match client.authorization(format!("http://{address}{PATH}")).await {
        Ok(request) => Arc::new(request),
        Err(why) => return Ok(Err(why)),
    };
    if let Some(server) = request.server() {
        console.message(&format!("{name}: {server}\n"));
    }
    let is_opened = !args.no_browser && children::open_browser(request.url.as_str());
    let what = if is_opened { "the browser shows" } else { "open" };
    console.message(&format!("{name}: {what} {}\n", request.url));
    let (asked, deadline) = (Arc::clone(&request), Instant::now() + time_limit(args));
    let waiting = tokio::task::spawn_blocking(move || wait(&server, &asked, deadline)).await;
    match waiting.unwrap_or_else(|why| Err(why.to_string())) {
        Ok(code) => Ok(client.exchange(&request, &code).await),
        Err(why) => Ok(Err(UpstreamError::new(Reason::AuthFailed, why))),
    }
}

/// Waits for the answer that belongs to the request, and returns its code. Other requests are answered, and change nothing.
fn wait(server: &Server, request: &AuthorizationRequest, deadline: Instant) -> Result<String, String> {
    while Instant::now() < deadline {
        let Ok(Some(received)) = server.recv_timeout(POLL_INTERVAL) else { continue };
        if *received.method() != Method::Get {
            answer(received, 405, "only GET is permitted");
            continue;
        }
        match request.code(received.url()) {
            Ok(code) => {
                answer(received, 200, "You are logged in. You can close this page.");
                return Ok(code);
            }
            Err(why) if why.is_foreign() => answer(received, 404, "This page does not belong to a login."),
            Err(why) => {
                answer(received, 400, "The login failed. The terminal shows why.");
                return Err(why.to_string());
            }
        }
    }
    Err("the browser brought no answer in time (--timeout-s)".to_owned())
}

/// Answers with a text that contains nothing of the request.
fn answer(request: Request, status: u16, text: &str) {
    let mut response = Response::from_string(text).with_status_code(status);
    for (name, value) in
        [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer")]
    {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    // The browser may have closed the connection.
    let _ = request.respond(response);
}
