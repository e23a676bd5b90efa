//! Cross-origin resource sharing: lets pages of the allowed origins read replies and send the headers of MCP (Fetch Standard,
//! "CORS protocol"). Credentials of the browser, such as cookies, are not shared; a page sends its token in a header.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use hyper::{HeaderMap, Method, StatusCode};

use super::reply::Reply;

/// Methods of the endpoint. A client tries `GET` to find out whether there is an event stream, and must see the reply 405.
const METHODS: &str = "GET, POST, DELETE";
/// Headers that clients of either era send, and those of W3C Trace Context.
const HEADERS: &str = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, \
                       Mcp-Name, traceparent, tracestate";
/// Headers of replies that clients need. A page could otherwise not open a session, or find the authorization server.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Request-Id";
/// Seconds for which a browser may remember the answer to a preflight, the maximum of Chromium.
const MAX_AGE: &str = "7200";

/// Returns the answer to a preflight, which a browser sends without the token. Its origin has been checked.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Reply> {
    let is_preflight = *method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    is_preflight.then(|| {
        let reply = Reply::empty(StatusCode::NO_CONTENT).with(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        reply.with(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS).with(ACCESS_CONTROL_MAX_AGE, MAX_AGE)
    })
}

/// Lets pages of an allowed origin read a reply.
pub(super) fn share(reply: Reply, origin: &str) -> Reply {
    reply.with(ACCESS_CONTROL_ALLOW_ORIGIN, origin).with(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED).with(VARY, "Origin")
}
