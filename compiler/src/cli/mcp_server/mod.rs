//! A simple MCP server, for the services of `demo` and `mock`. It has tools only, and no sessions.
//!
//! | module | purpose |
//! |---|---|
//! | `dispatch` | answers one message, of either era |
//! | `stdio` | serves standard input and output |
//! | `post` | answers requests of Streamable HTTP, without streams |
//!
//! The messages are read and written by the code of the runtime's own server.

mod dispatch;
mod post;
mod stdio;

use ptc_runtime::protocol::reply::ErrorBody;
use ptc_runtime::protocol::revision::Era;
use serde_json::value::RawValue;

pub(crate) use post::answer as over_http;
pub(crate) use stdio::serve as over_stdio;

/// The tools of a server.
pub(crate) trait McpService: Send + Sync {
    /// Returns the name, version and instructions of the server.
    fn info(&self) -> ServerInfo<'_>;

    /// Returns the eras that it supports.
    fn eras(&self) -> &[Era];

    /// Returns the definitions of the tools: the text of a JSON array.
    fn tools(&self) -> String;

    /// Calls a tool. `arguments` is the text of a JSON object.
    fn call(&self, tool: &str, arguments: &str) -> ToolReply;
}

/// The name, version and instructions of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerInfo<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    pub(crate) instructions: Option<&'a str>,
}

/// The reply to a call.
#[derive(Debug)]
pub(crate) enum ToolReply {
    /// The tool's answer, or its failure.
    Result {
        /// The text, if there is one.
        text: Option<String>,
        /// JSON text of the structured content.
        structured: Option<Box<RawValue>>,
        /// Whether the result is the failure of the tool (`isError`).
        is_error: bool,
    },
    /// An error of the protocol.
    Error(ErrorBody),
    /// A failure of the transport: over HTTP a reply with this status, and otherwise the end of the connection.
    Failed {
        /// The HTTP status.
        status: u16,
        /// The message.
        message: String,
    },
    /// Nothing is sent.
    Nothing,
}

impl ToolReply {
    /// Makes an answer with text alone.
    pub(crate) fn text(text: impl Into<String>) -> ToolReply {
        ToolReply::Result { text: Some(text.into()), structured: None, is_error: false }
    }

    /// Makes the failure of a tool.
    pub(crate) fn failure(message: impl Into<String>) -> ToolReply {
        ToolReply::Result { text: Some(message.into()), structured: None, is_error: true }
    }

    /// Makes an answer with a JSON text, as structured content and as text. Text that is not JSON is sent as text alone.
    pub(crate) fn structured(json: String) -> ToolReply {
        let structured = RawValue::from_string(json.clone()).ok();
        ToolReply::Result { text: Some(json), structured, is_error: false }
    }

    /// Makes the error for a tool that does not exist.
    pub(crate) fn unknown_tool(name: &str) -> ToolReply {
        ToolReply::Error(ErrorBody::invalid_params(&format!("the server has no tool {name:?}")))
    }
}
