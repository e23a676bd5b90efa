//! What a request may say beside the tool and its arguments: `:accept`, `:body` and `:idempotency_key`, for operations of OpenAPI
//! upstreams.

use ptc_catalog::{Tool, Transport, Upstream};
use ptc_lisp::Value;

use crate::argument::shown;

/// The media type of the answer.
pub const ACCEPT: &str = "accept";
/// `false` leaves the bytes of a binary answer out.
pub const BODY: &str = "body";
/// The idempotency key of a write, for upstreams with `idempotency_header`.
pub const IDEMPOTENCY_KEY: &str = "idempotency_key";
/// All options.
pub const OPTIONS: [&str; 3] = [ACCEPT, BODY, IDEMPOTENCY_KEY];

/// Returns why a tool cannot be called with an option, whatever its value.
pub fn option_refusal(upstream: &Upstream, tool: &Tool, option: &str) -> Option<String> {
    let has_key = || matches!(&upstream.transport, Transport::OpenApi(spec) if spec.idempotency_header.is_some());
    let why = if tool.operation.is_none() {
        "is not an operation of an OpenAPI upstream, which alone has this option"
    } else if option != IDEMPOTENCY_KEY {
        return None;
    } else if !tool.effect().is_write() {
        "only reads, so that it has no idempotency key"
    } else if !has_key() {
        "has no idempotency key, because the entry of its upstream has no `idempotency_header`"
    } else {
        return None;
    };
    Some(format!("tool/call got :{option}, and '{}.{}' {why}", upstream.name, tool.name))
}

/// Returns why an option cannot have a value. `nil` leaves the option out.
pub fn option_fault(upstream: &Upstream, tool: &Tool, option: &str, value: &Value) -> Option<String> {
    if let Some(refusal) = option_refusal(upstream, tool, option) {
        return Some(refusal);
    }
    let (expected, is_fit) = match option {
        ACCEPT => ("a media type (string)", value.as_str().is_some()),
        IDEMPOTENCY_KEY => ("a string of printable ASCII characters", value.as_str().is_some_and(is_field_value)),
        _ => ("true or false", value.as_bool().is_some()),
    };
    (!is_fit && !value.is_nil()).then(|| format!("tool/call requires :{option} to be {expected}, got {}", shown(value)))
}

/// Whether a header can carry a text unchanged.
fn is_field_value(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}
