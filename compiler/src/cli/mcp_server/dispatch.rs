//! Answers one message.

use std::fmt::Write;

use ptc_compiler::json::quote;
use ptc_runtime::protocol::message::{self, Arguments, Message, Params};
use ptc_runtime::protocol::reply::{self, ErrorBody, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION};
use ptc_runtime::protocol::revision::{self, Era, SERVER_INFO_KEY, STATELESS};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{McpService, ServerInfo, ToolReply};

/// Milliseconds for which a client of the stateless era may cache the list of tools.
const TTL_MS: u64 = 0;

/// The response to a message.
#[derive(Debug)]
pub(super) enum Response {
    /// A line with the answer.
    Line {
        /// The line with its line end.
        line: Vec<u8>,
        /// The era of the request.
        era: Era,
        /// The code, if the answer is an error.
        error: Option<i32>,
    },
    /// A failure of the transport.
    Failed {
        /// The HTTP status.
        status: u16,
        /// The message.
        message: String,
    },
    /// The message was a notification.
    Accepted,
    /// The request remains without an answer.
    Nothing,
}

/// Answers a message. `era_of` determines the era of a request, for a service that supports the stateless era.
pub(super) fn answer(
    service: &dyn McpService,
    line: &[u8],
    era_of: impl FnOnce(&str, &Params<'_>) -> Result<Era, ErrorBody>,
) -> Response {
    let (id, method, params) = match message::parse(line) {
        Ok(Message::Request { id, method, params }) => (id, method, params),
        Ok(Message::Notification { .. }) => return Response::Accepted,
        Err(refusal) => return error("null", Era::Handshake, &refusal.body()),
    };
    let is_supported = |era: Era| service.eras().contains(&era);
    // A server of the handshake era knows neither the methods nor the envelope of the other one.
    let era = if is_supported(Era::Stateless) { era_of(&method, &params) } else { Ok(Era::Handshake) };
    let era = match era {
        Ok(era) if is_supported(era) => era,
        Ok(_) => return error(id, Era::Stateless, &unsupported(&params)),
        Err(body) => return error(id, Era::Stateless, &body),
    };
    let result = match (&*method, era) {
        ("initialize", Era::Handshake) => initialize(service.info(), revision::negotiate(params.protocol_version)),
        ("ping", Era::Handshake) => "{}".to_owned(),
        ("server/discover", Era::Stateless) => discover(service.info()),
        ("tools/list", Era::Handshake) => format!(r#"{{"tools":{}}}"#, service.tools()),
        ("tools/list", Era::Stateless) => {
            format!(r#"{{"resultType":"complete","tools":{},"ttlMs":{TTL_MS},"cacheScope":"private"}}"#, service.tools())
        }
        ("tools/call", era) => match call(service, &params) {
            ToolReply::Result { text, structured, is_error } => {
                tool_result(text.as_deref(), structured.as_deref(), is_error, era)
            }
            ToolReply::Error(body) => return error(id, era, &body),
            ToolReply::Failed { status, message } => return Response::Failed { status, message },
            ToolReply::Nothing => return Response::Nothing,
        },
        (method, era) => {
            return error(id, era, &ErrorBody::new(METHOD_NOT_FOUND, format!("the server has no method {method:?}")));
        }
    };
    Response::Line { line: reply::result(id, &result), era, error: None }
}

fn error(id: &str, era: Era, body: &ErrorBody) -> Response {
    Response::Line { line: reply::error(id, body), era, error: Some(body.code) }
}

/// Returns the error for a request of the handshake era to a server of the stateless era.
fn unsupported(params: &Params<'_>) -> ErrorBody {
    let requested = params.protocol_version.and_then(message::string);
    ErrorBody {
        code: UNSUPPORTED_PROTOCOL_VERSION,
        message: "unsupported protocol version: this server has no handshake".into(),
        data: Some(json!({ "supported": STATELESS, "requested": requested })),
    }
}

fn call(service: &dyn McpService, params: &Params<'_>) -> ToolReply {
    let Some(name) = params.name.and_then(message::string) else {
        return ToolReply::Error(ErrorBody::invalid_params("`name` must be the name of a tool"));
    };
    match params.arguments.check() {
        Ok(()) => service.call(&name, &object(&params.arguments)),
        Err(why) => ToolReply::Error(ErrorBody::invalid_params(&why)),
    }
}

/// Returns the text of arguments.
fn object(arguments: &Arguments<'_>) -> String {
    let mut text = String::from("{");
    for (at, (name, value)) in arguments.members.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { "," });
        quote(name, &mut text);
        // Writing to a string cannot fail.
        let _ = write!(text, ":{value}");
    }
    text.push('}');
    text
}

fn initialize(info: ServerInfo<'_>, revision: &str) -> String {
    let mut result = json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": info.name, "version": info.version },
    });
    with_instructions(&mut result, info);
    result.to_string()
}

fn discover(info: ServerInfo<'_>) -> String {
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": STATELESS,
        "capabilities": { "tools": {} },
        "ttlMs": TTL_MS,
        "cacheScope": "private",
        "_meta": { SERVER_INFO_KEY: { "name": info.name, "version": info.version } },
    });
    with_instructions(&mut result, info);
    result.to_string()
}

fn with_instructions(result: &mut serde_json::Value, info: ServerInfo<'_>) {
    if let (Some(members), Some(instructions)) = (result.as_object_mut(), info.instructions) {
        members.insert("instructions".to_owned(), instructions.into());
    }
}

fn tool_result(text: Option<&str>, structured: Option<&RawValue>, is_error: bool, era: Era) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct ToolResult<'a> {
        content: Vec<serde_json::Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        structured_content: Option<&'a RawValue>,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        result_type: Option<&'static str>,
    }
    let content = text.map(|text| json!({ "type": "text", "text": text })).into_iter().collect();
    let result_type = (era == Era::Stateless).then_some("complete");
    serde_json::to_string(&ToolResult { content, structured_content: structured, is_error, result_type }).unwrap_or_default()
}
