//! What a request may say beside the tool and its arguments: `:accept` and `:body`, for operations of OpenAPI upstreams.

use ptc_catalog::{Tool, Upstream};
use ptc_lisp::Value;

use crate::argument::shown;

/// The media type of the answer.
pub const ACCEPT: &str = "accept";
/// `false` leaves the bytes of a binary answer out.
pub const BODY: &str = "body";

/// Returns why a tool cannot be called with an option, whatever its value.
pub fn option_refusal(upstream: &Upstream, tool: &Tool, option: &str) -> Option<String> {
    if tool.operation.is_some() {
        return None;
    }
    let (server, tool) = (upstream.name, tool.name);
    Some(format!(
        "tool/call got :{option}, and '{server}.{tool}' is not an operation of an OpenAPI upstream, which alone has this option"
    ))
}

/// Returns why an option cannot have a value. `nil` leaves the option out.
pub fn option_fault(upstream: &Upstream, tool: &Tool, option: &str, value: &Value) -> Option<String> {
    if let Some(refusal) = option_refusal(upstream, tool, option) {
        return Some(refusal);
    }
    let (expected, is_fit) = if option == ACCEPT {
        ("a media type (string)", value.as_str().is_some())
    } else {
        ("true or false", value.as_bool().is_some())
    };
    (!is_fit && !value.is_nil()).then(|| format!("tool/call requires :{option} to be {expected}, got {}", shown(value)))
}
