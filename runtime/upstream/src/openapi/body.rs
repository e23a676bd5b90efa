//! The request body of an operation, encoded from its arguments.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ptc_catalog::{OpenApi, Operation, Param, Place, RequestKind, Style};
use ptc_check::argument::shown;
use ptc_lisp::Value;
use reqwest::header::HeaderValue;

use super::{Arguments, address, charset};
use crate::arguments::{self, Bounds, Unsendable, counted};

const JSON: &str = "application/json";

/// A body with its `Content-Type`.
#[derive(Debug, Clone)]
pub(crate) struct RequestBody {
    pub(super) bytes: Bytes,
    pub(super) content_type: HeaderValue,
}

/// Encodes the body of a call. `None` if no member is given and the operation does not require a body.
///
/// # Errors
///
/// Says which argument cannot be sent, or that the body is larger than `max_request_bytes` of the upstream.
pub(super) fn encode(
    spec: &OpenApi,
    operation: &Operation,
    args: &Arguments<'_>,
    bounds: &Bounds,
) -> Result<Option<RequestBody>, Unsendable> {
    let media_type = operation.body.media_type;
    let params: Vec<Param<'_>> = operation.params.iter().filter(|param| param.place == Place::Body).collect();
    let given: Vec<(Param<'_>, &Value)> = params.iter().filter_map(|param| Some((*param, args.get_or_nil(param.arg)?))).collect();
    if media_type.is_empty() || given.is_empty() && !operation.body.required {
        return Ok(None);
    }
    let max = usize::try_from(spec.max_request_bytes).unwrap_or(usize::MAX);
    let too_large = || too_large(max);
    let whole = given.iter().find(|(param, _)| param.name.is_empty());
    let text = match (RequestKind::from_media_type(media_type), whole) {
        (RequestKind::Form, None) => address::form(&given, max, bounds)?,
        (RequestKind::Form, Some((param, value))) => address::form(&members(param, value)?, max, bounds)?,
        (RequestKind::Multipart, whole) => {
            let members = match whole {
                Some((param, value)) => members(param, value)?,
                None => given,
            };
            let boundary = boundary()?;
            let bytes = multipart(&members, &boundary, max, bounds)?.ok_or_else(too_large)?;
            return finish(bytes, &format!("multipart/form-data; boundary={boundary}"), bounds).map(Some);
        }
        (kind, Some((param, value))) if kind.is_string() => {
            let Some(text) = value.as_str() else {
                return Err(Unsendable::Invalid(format!(
                    "'{}' is sent as {media_type} and must be a string, got {}",
                    param.arg,
                    shown(value)
                )));
            };
            let bytes = if kind == RequestKind::Text { encoded(param, media_type, text)? } else { decoded(param, text)? };
            if bytes.len() > max {
                return Err(too_large());
            }
            return finish(bytes, media_type, bounds).map(Some);
        }
        (_, whole) => {
            let members = || Value::map(given.iter().map(|(param, value)| (Value::string(param.name), (*value).clone())));
            json(&whole.map_or_else(members, |(_, value)| (*value).clone()), max, bounds)?
        }
    };
    if text.len() > max {
        return Err(too_large());
    }
    finish(text.into_bytes(), media_type, bounds).map(Some)
}

fn finish(bytes: Vec<u8>, content_type: &str, bounds: &Bounds) -> Result<RequestBody, Unsendable> {
    let reservation = bounds.reserve(bytes.len()).map_err(Unsendable::Fault)?;
    let content_type = HeaderValue::from_str(content_type)
        .map_err(|_| Unsendable::Invalid(format!("'{content_type}' is not a valid media type")))?;
    Ok(RequestBody { bytes: counted(bytes, reservation), content_type })
}

fn too_large(max: usize) -> Unsendable {
    Unsendable::Invalid(format!(
        "the body of the request is larger than {max} bytes (max_request_bytes of the upstream); send less with one call"
    ))
}

fn json(value: &Value, max: usize, bounds: &Bounds) -> Result<String, Unsendable> {
    let bytes = arguments::measure(value, max, bounds).map_err(|why| match why {
        Unsendable::TooLarge => too_large(max),
        other => other,
    })?;
    let mut text = String::with_capacity(bytes);
    arguments::encode(&mut text, value, bytes, bounds)?;
    Ok(text)
}

/// Returns the members of a form that is one argument, each in the style `form`.
fn members<'v>(param: &Param<'v>, value: &'v Value) -> Result<Vec<(Param<'v>, &'v Value)>, Unsendable> {
    let entries = value.entries().ok_or_else(|| {
        Unsendable::Invalid(format!("'{}' is sent as a form and must be a map, got {}", param.arg, shown(value)))
    })?;
    entries
        .map(|(key, value)| {
            let name = key.as_name().ok_or_else(|| {
                Unsendable::Invalid(format!(
                    "a member of '{}' must be named by a keyword or string, got {}",
                    param.arg,
                    shown(key)
                ))
            })?;
            // An object is JSON in a form by default, as in the OpenAPI Specification, "Encoding Object".
            let style = if value.entries().is_some() { Style::Json } else { Style::Form };
            Ok((Param { name, style, ..*param }, value))
        })
        .collect()
}

fn decoded(param: &Param<'_>, text: &str) -> Result<Vec<u8>, Unsendable> {
    STANDARD.decode(text).map_err(|why| Unsendable::Invalid(format!("'{}' must be base64: {why}", param.arg)))
}

/// Encodes a text in the charset of its media type.
fn encoded(param: &Param<'_>, media_type: &str, text: &str) -> Result<Vec<u8>, Unsendable> {
    charset::encoded(media_type, text).ok_or_else(|| {
        let why = "the charset is unknown, or lacks a character of the text";
        Unsendable::Invalid(format!("'{}' cannot be sent as {media_type}: {why}", param.arg))
    })
}

/// Returns a boundary that no content can be expected to contain.
fn boundary() -> Result<String, Unsendable> {
    Ok(format!("ptc-{}", super::random_uuid()?))
}

/// Encodes a multipart form (RFC 7578). `None` if it is larger than `max` bytes.
fn multipart(
    members: &[(Param<'_>, &Value)],
    boundary: &str,
    max: usize,
    bounds: &Bounds,
) -> Result<Option<Vec<u8>>, Unsendable> {
    let mut out = Vec::new();
    for (param, value) in members {
        let items: Vec<&Value> = match value.items().filter(|_| param.explode && param.style != Style::Json) {
            Some(items) => items.collect(),
            None => vec![*value],
        };
        for item in items.into_iter().filter(|item| !item.is_nil()) {
            let (usual_type, content) = match (param.style, item.as_name()) {
                (Style::Base64, Some(text)) => ("application/octet-stream", decoded(param, text)?),
                (Style::Base64, None) => {
                    return Err(Unsendable::Invalid(format!("'{}' must be base64, got {}", param.arg, shown(item))));
                }
                (Style::Json, _) => (JSON, json(item, max, bounds)?.into_bytes()),
                (_, Some(text)) => ("", encoded(param, param.media_type, text)?),
                (_, None) if item.entries().is_some() || item.items().is_some() => (JSON, json(item, max, bounds)?.into_bytes()),
                (_, None) => ("", json(item, max, bounds)?.into_bytes()),
            };
            // Names are escaped as browsers do (WHATWG HTML, "multipart/form-data encoding algorithm").
            let name = param.name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
            out.extend_from_slice(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"").as_bytes());
            if param.style == Style::Base64 {
                out.extend_from_slice(format!("; filename=\"{name}\"").as_bytes());
            }
            // A map or a list is JSON, also where the document declares another type.
            let is_other = usual_type == JSON && RequestKind::from_media_type(param.media_type) != RequestKind::Json;
            let media_type = if param.media_type.is_empty() || is_other { usual_type } else { param.media_type };
            if !media_type.is_empty() {
                out.extend_from_slice(format!("\r\nContent-Type: {media_type}").as_bytes());
            }
            out.extend_from_slice(b"\r\n\r\n");
            out.extend_from_slice(&content);
            out.extend_from_slice(b"\r\n");
            if out.len() > max {
                return Ok(None);
            }
        }
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(Some(out))
}
