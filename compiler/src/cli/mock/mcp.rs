//! The tools of an MCP upstream.

use std::sync::Arc;

use ptc_catalog::{Tool, Upstream};
use ptc_compiler::json::Json;
use ptc_compiler::lock::LockedUpstream;
use ptc_runtime::protocol::reply::{ErrorBody, INTERNAL_ERROR};
use ptc_runtime::protocol::revision::Era;
use ptc_runtime::upstream::intercept::{CallPayload, InterceptedCall};
use ptc_runtime::upstream::{Reason, UpstreamError};

use super::answers::Answers;
use super::reply;
use crate::mcp_server::{McpService, ServerInfo, ToolReply};

/// An MCP upstream with its definitions of the lock file.
pub(super) struct McpMock {
    upstream: &'static Upstream,
    name: String,
    version: String,
    instructions: Option<String>,
    eras: &'static [Era],
    answers: Arc<Answers>,
}

impl McpMock {
    pub(super) fn new(
        upstream: &'static Upstream,
        locked: Option<&LockedUpstream>,
        eras: &'static [Era],
        answers: Arc<Answers>,
    ) -> McpMock {
        let server = locked.and_then(|locked| locked.server.clone());
        let (name, version) =
            server.map_or_else(|| (upstream.name.to_owned(), String::new()), |server| (server.name, server.version));
        McpMock { upstream, name, version, instructions: locked.and_then(|locked| locked.instructions.clone()), eras, answers }
    }

    /// Returns the name of the upstream in the config.
    pub(super) fn upstream_name(&self) -> &'static str {
        self.upstream.name
    }
}

impl McpService for McpMock {
    fn info(&self) -> ServerInfo<'_> {
        ServerInfo { name: &self.name, version: &self.version, instructions: self.instructions.as_deref() }
    }

    fn eras(&self) -> &[Era] {
        self.eras
    }

    fn tools(&self) -> String {
        let definitions: Vec<&str> = self.upstream.tools.all().iter().map(|tool| tool.definition).collect();
        format!("[{}]", definitions.join(","))
    }

    fn call(&self, tool: &str, arguments: &str) -> ToolReply {
        let Some(tool) = self.upstream.tool(tool) else { return ToolReply::unknown_tool(tool) };
        let arguments = arguments.as_bytes().to_vec();
        let call = InterceptedCall { upstream: self.upstream, tool, arguments, accept: None, without_bytes: false };
        match self.answers.answer(&[call]) {
            Ok(Ok(answer)) => answered(tool, answer.payload),
            Ok(Err(error)) => failed(error),
            Err(why) => ToolReply::Error(ErrorBody::new(INTERNAL_ERROR, why)),
        }
    }
}

/// Returns the reply with an answer. A tool with an output schema answers with structured content.
fn answered(tool: &Tool, payload: CallPayload) -> ToolReply {
    let has_schema = || Json::parse(tool.definition).is_some_and(|definition| definition.get("outputSchema").is_some());
    match payload {
        CallPayload::None => ToolReply::Result { text: None, structured: None, is_error: false },
        CallPayload::Json(json) => {
            let text = String::from_utf8_lossy(&json).into_owned();
            if has_schema() { ToolReply::structured(text) } else { ToolReply::text(text) }
        }
        CallPayload::Text(text) | CallPayload::Plain(text) => ToolReply::text(text),
    }
}

/// Returns the reply from which a client concludes the reason of a failure.
fn failed(error: UpstreamError) -> ToolReply {
    let status = reply::status(&error);
    let message = error.message.into_owned();
    match error.reason {
        Reason::Timeout => ToolReply::Nothing,
        Reason::ToolError => ToolReply::failure(message),
        Reason::UpstreamUnavailable | Reason::AuthFailed | Reason::RateLimited => ToolReply::Failed { status, message },
        _ => ToolReply::Error(ErrorBody::new(INTERNAL_ERROR, message)),
    }
}
