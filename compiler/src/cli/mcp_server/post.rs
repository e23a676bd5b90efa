//! Answers requests of Streamable HTTP.

use ptc_runtime::protocol::reply::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use ptc_runtime::protocol::revision::Era;
use ptc_runtime::server::http::header_validation;
use tiny_http::Method;

use super::McpService;
use super::dispatch::{self, Response};
use crate::http_server::{HttpReply, HttpRequest};

/// Answers a request to the endpoint. `None` leaves it without an answer.
pub(crate) fn answer(service: &dyn McpService, request: &HttpRequest) -> Option<HttpReply> {
    if request.method != Method::Post {
        return Some(HttpReply::empty(405).with("allow", "POST"));
    }
    let response =
        dispatch::answer(service, &request.body, |method, params| header_validation::era(&request.headers, method, params));
    match response {
        Response::Line { line, era, error } => {
            let status = match (era, error) {
                (Era::Handshake, _) | (_, None | Some(INTERNAL_ERROR)) => 200,
                (Era::Stateless, Some(METHOD_NOT_FOUND)) => 404,
                (Era::Stateless, Some(_)) => 400,
            };
            Some(HttpReply::json(status, line))
        }
        Response::Failed { status, message } => Some(HttpReply::new(status, "text/plain", message)),
        Response::Accepted => Some(HttpReply::empty(202)),
        Response::Nothing => None,
    }
}
