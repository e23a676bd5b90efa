//! A simple HTTP server, for the services of `demo` and `mock`.

use std::io::Read;
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use ptc_runtime::server::http::guard::{Forbidden, check_host_and_origin};
use ptc_runtime::settings::HttpSettings;
use tiny_http::{Header, Method, Request, Response, Server};

/// Maximum bytes of a request's body.
const MAX_BODY: u64 = 4 * 1024 * 1024;
/// Threads that answer requests.
const THREADS: usize = 4;
/// Maximum number of requests that one thread leaves without an answer.
const MAX_UNANSWERED: usize = 256;

/// A request to one of the services.
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// A reply.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpReply {
    /// Makes a reply without a body.
    pub(crate) fn empty(status: u16) -> HttpReply {
        HttpReply { status, ..HttpReply::default() }
    }

    /// Makes a reply with a body.
    pub(crate) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> HttpReply {
        HttpReply { status, headers: Vec::new(), body: body.into() }.with("content-type", content_type)
    }

    /// Makes a reply with JSON text.
    pub(crate) fn json(status: u16, body: impl Into<Vec<u8>>) -> HttpReply {
        HttpReply::new(status, "application/json", body)
    }

    /// Returns the reply with a further header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> HttpReply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Answers requests. `None` leaves a request without an answer.
pub(crate) type Handler = dyn Fn(&HttpRequest) -> Option<HttpReply> + Send + Sync;

/// Binds an address.
///
/// # Errors
///
/// Says why the address cannot be bound.
pub(crate) fn bind(address: &str) -> Result<Server, String> {
    Server::http(address).map_err(|error| error.to_string())
}

/// Serves on threads of their own until the process ends.
pub(crate) fn serve(server: Server, handler: Arc<Handler>) -> Vec<JoinHandle<()>> {
    let settings = match server.server_addr().to_ip() {
        Some(address) => HttpSettings { host: address.ip(), ..HttpSettings::default() },
        None => HttpSettings::default(),
    };
    let shared = Arc::new((server, settings, handler));
    let thread = |_| {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || {
            let (server, settings, handler) = &*shared;
            // The library answers a request that is dropped.
            let mut unanswered = Vec::new();
            for mut request in server.incoming_requests() {
                match reply(&mut request, settings, &**handler) {
                    // Ignore the error of a client that has disconnected.
                    Some(reply) => drop(request.respond(reply)),
                    None if unanswered.len() < MAX_UNANSWERED => unanswered.push(request),
                    None => {}
                }
            }
        })
    };
    (0..THREADS).map(thread).collect()
}

/// Returns the reply to a request.
fn reply(request: &mut Request, settings: &HttpSettings, handler: &Handler) -> Option<Response<std::io::Cursor<Vec<u8>>>> {
    let mut headers = HeaderMap::new();
    for header in request.headers() {
        let name = HeaderName::from_bytes(header.field.as_str().as_str().as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(header.value.as_str())) {
            headers.append(name, value);
        }
    }
    let mut body = Vec::new();
    let is_read = request.as_reader().take(MAX_BODY + 1).read_to_end(&mut body).is_ok();
    let reply = if let Err(why) = check_host_and_origin(settings, None, &headers) {
        let what = match why {
            Forbidden::Host => "it is not addressed as localhost, 127.0.0.1 or [::1]",
            Forbidden::Origin => "pages of other origins may not call it",
        };
        HttpReply::new(403, "text/plain", format!("forbidden: this server serves this machine, and {what}\n"))
    } else if !is_read || body.len() as u64 > MAX_BODY {
        HttpReply::new(413, "text/plain", format!("the body may have {MAX_BODY} bytes\n"))
    } else {
        handler(&HttpRequest { method: request.method().clone(), url: request.url().to_owned(), headers, body })?
    };
    let mut response = Response::from_data(reply.body).with_status_code(reply.status);
    for (name, value) in &reply.headers {
        if let Ok(header) = Header::from_bytes(name.as_bytes(), value.as_bytes()) {
            response.add_header(header);
        }
    }
    Some(response)
}
