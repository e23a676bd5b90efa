//! A simple HTTP server for both services.

use std::io::Read;
use std::thread::JoinHandle;

use tiny_http::{Header, Method, Request, Response, Server};

const MAX_BODY: u64 = 1024 * 1024;

/// A request to one of the services.
pub(super) struct Asked {
    pub(super) method: Method,
    /// Path and query.
    pub(super) url: String,
    pub(super) body: Vec<u8>,
}

/// The status and the JSON body of a response. An empty body has no content type.
pub(super) type Answer = (u16, String);

/// Serves `address` on a separate thread. Returns `None`, with a message on standard error, if the address cannot be bound.
pub(super) fn serve(address: &str, what: &str, answer: fn(&Asked) -> Answer) -> Option<JoinHandle<()>> {
    match Server::http(address) {
        Ok(server) => {
            super::report(&format!("{what} on http://{}", server.server_addr()));
            Some(std::thread::spawn(move || {
                for request in server.incoming_requests() {
                    // Ignore the error of a client that has disconnected.
                    let _ = respond(request, answer);
                }
            }))
        }
        Err(error) => {
            super::report(&format!("{what} not served on {address}: {error}"));
            None
        }
    }
}

fn respond(mut request: Request, answer: fn(&Asked) -> Answer) -> std::io::Result<()> {
    let mut body = Vec::new();
    request.as_reader().take(MAX_BODY).read_to_end(&mut body)?;
    let asked = Asked { method: request.method().clone(), url: request.url().to_owned(), body };
    let (status, text) = answer(&asked);
    let empty = text.is_empty();
    let mut response = Response::from_string(text).with_status_code(status);
    if !empty && let Ok(header) = Header::from_bytes("Content-Type", "application/json") {
        response.add_header(header);
    }
    request.respond(response)
}
