//! The addresses of all upstreams over HTTP.

use std::sync::Arc;

use ptc_catalog::Upstream;
use ptc_compiler::json::Json;
use ptc_runtime::upstream::intercept::InterceptedCall;

use super::answers::Answers;
use super::links;
use super::mcp::McpMock;
use super::operation::{self, NotFound};
use super::reply::{problem, reply};
use crate::http_server::{HttpReply, HttpRequest};
use crate::mcp_server;

/// An upstream that is served.
pub(super) enum Served {
    /// An MCP server.
    Mcp(Box<McpMock>),
    /// An OpenAPI service.
    Api(&'static Upstream),
}

impl Served {
    fn name(&self) -> &'static str {
        match self {
            Served::Mcp(mock) => mock.upstream_name(),
            Served::Api(upstream) => upstream.name,
        }
    }

    /// Returns the path that a config has in `url` or `base_url`.
    fn path(&self) -> String {
        match self {
            Served::Mcp(mock) => format!("/{}/mcp", mock.upstream_name()),
            Served::Api(upstream) => format!("/{}", upstream.name),
        }
    }
}

/// All upstreams with their answers.
pub(super) struct Routes {
    served: Vec<Served>,
    answers: Arc<Answers>,
}

impl Routes {
    pub(super) fn new(served: Vec<Served>, answers: Arc<Answers>) -> Routes {
        Routes { served, answers }
    }

    /// Returns a line for each upstream: its name, and its URL in a config.
    pub(super) fn addresses(&self, origin: &str) -> String {
        let lines = self.served.iter().map(|served| format!("{} {origin}{}", served.name(), served.path()));
        lines.collect::<Vec<String>>().join("\n") + "\n"
    }

    /// Answers a request. `None` leaves it without an answer.
    pub(super) fn answer(&self, request: &HttpRequest) -> Option<HttpReply> {
        let path = request.url.split('?').next().unwrap_or_default();
        let (name, rest) = path.strip_prefix('/').unwrap_or_default().split_once('/').unwrap_or_default();
        match self.served.iter().find(|served| served.name() == name) {
            Some(Served::Mcp(mock)) if rest == "mcp" => mcp_server::over_http(&**mock, request),
            Some(Served::Api(upstream)) => self.operation(upstream, &format!("/{rest}"), request),
            _ => {
                let paths: Vec<String> = self.served.iter().map(Served::path).collect();
                Some(problem(
                    404,
                    "not found",
                    &format!("nothing is served at {path}; the upstreams are at {}", paths.join(", ")),
                ))
            }
        }
    }

    fn operation(&self, upstream: &'static Upstream, path: &str, request: &HttpRequest) -> Option<HttpReply> {
        let matched = match operation::find(upstream, request.method.as_str(), path) {
            Ok(matched) => matched,
            Err(NotFound::Path) => {
                return Some(problem(404, "not found", &format!("no operation of {} has the path {path}", upstream.name)));
            }
            Err(NotFound::Method) => {
                let detail = format!("the path {path} has no operation with the method {}", request.method);
                return Some(problem(405, "method not allowed", &detail));
            }
        };
        let arguments = operation::arguments(&matched, request);
        let accept = request.headers.get("accept").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let call = |arguments: &Json, accept: Option<String>| InterceptedCall {
            upstream,
            tool: matched.tool,
            arguments: arguments.canonical().into_bytes(),
            accept,
            without_bytes: false,
        };
        // Whether a program named the media type, or gave an argument that has a default value, is not visible in a request.
        let given = operation::without_defaults(matched.operation, &arguments);
        let calls = [call(&given, None), call(&arguments, None), call(&given, accept.clone()), call(&arguments, accept)];
        match self.answers.answer(&calls) {
            Ok(outcome) => reply(matched.operation, links::rebase_links(upstream, matched.tool, outcome)),
            Err(why) => Some(problem(501, "no answer", &why)),
        }
    }
}
