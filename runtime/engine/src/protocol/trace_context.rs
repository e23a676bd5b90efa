//! W3C Trace Context: the distributed trace to which a request belongs.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::string;

/// A parsed `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent<'a> {
    /// The trace id, 32 lower-case hexadecimal digits.
    pub trace: &'a str,
    /// The id of the caller's span, 16 digits.
    pub span: &'a str,
    /// Whether the caller's part of the trace is sampled.
    pub sampled: bool,
}

impl<'a> TraceParent<'a> {
    /// Parses `version-trace-span-flags` in lower-case hexadecimal digits. Later versions may append more fields.
    pub fn parse(text: &'a str) -> Option<Self> {
        let hex =
            |part: &str, digits| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let some = |part: &str| part.bytes().any(|b| b != b'0');
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let ends = version != "00" || parts.next().is_none();
        let known = hex(version, 2) && version != "ff" && hex(flags, 2) && ends;
        let right = known && hex(trace, 32) && hex(span, 16) && some(trace) && some(span);
        let sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
        right.then_some(TraceParent { trace, span, sampled })
    }
}

/// Returns the `traceparent` in the `_meta` of a request. It applies to one message, a header to a whole HTTP request.
pub fn of_meta(meta: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow)]
        traceparent: Option<&'a RawValue>,
    }
    let meta: Meta<'_> = serde_json::from_str(meta).ok()?;
    string(meta.traceparent?.get()).filter(|text| TraceParent::parse(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn traceparent_is_parsed_as_specified() {
        for (text, sampled) in [
            (format!("00-{TRACE}-00f067aa0ba902b7-01"), Some(true)),
            (format!("00-{TRACE}-00f067aa0ba902b7-02"), Some(false)),
            (format!("01-{TRACE}-00f067aa0ba902b7-03-more"), Some(true)),
            (format!("00-{TRACE}-00f067aa0ba902b7-01-more"), None),
            (format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()), None),
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), None),
            (format!("00-{TRACE}-0000000000000000-01"), None),
            (format!("ff-{TRACE}-00f067aa0ba902b7-01"), None),
            (format!("00-{TRACE}-00f067aa0ba902b7"), None),
            (String::new(), None),
        ] {
            assert_eq!(TraceParent::parse(&text).map(|parent| parent.sampled), sampled, "{text}");
        }
    }

    #[test]
    fn traceparent_is_read_from_metadata_of_a_message() {
        let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
        assert_eq!(of_meta(&format!(r#"{{"progressToken":1,"traceparent":"{parent}"}}"#)).as_deref(), Some(parent.as_str()));
        for meta in [r#"{"traceparent":"x"}"#, r#"{"traceparent":7}"#, "{}", "[]", "null"] {
            assert_eq!(of_meta(meta), None, "{meta}");
        }
    }
}
