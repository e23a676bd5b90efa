//! How a body is read and written, by its media type.

/// What a program gets of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// The value of JSON text.
    Json,
    /// The text.
    Text,
    /// A list of the values of a stream: JSON on each line, JSON text sequences (RFC 7464), or server-sent events.
    List,
    /// A map with `content_type`, `bytes` and `base64`.
    Bytes,
    /// The media type does not decide: JSON if it parses, otherwise text, otherwise bytes.
    Unknown,
}

impl BodyKind {
    /// Classifies a media type; its parameters are ignored. An empty text and ranges are [`BodyKind::Unknown`].
    pub fn from_media_type(media_type: &str) -> BodyKind {
        let essence = essence(media_type);
        let (group, name) = essence.split_once('/').unwrap_or((&essence, ""));
        match (group, name) {
            ("" | "*", _) | (_, "" | "*") => BodyKind::Unknown,
            (_, "json") => BodyKind::Json,
            ("text", "event-stream")
            | (_, "x-ndjson" | "ndjson" | "jsonl" | "x-jsonl" | "jsonlines" | "x-jsonlines" | "json-seq") => BodyKind::List,
            (_, name) if name.ends_with("+json-seq") => BodyKind::List,
            (_, name) if name.ends_with("+json") => BodyKind::Json,
            (_, name) if name.ends_with("+xml") || name.ends_with("+yaml") => BodyKind::Text,
            ("text", _)
            | (
                "application",
                "xml"
                | "yaml"
                | "x-yaml"
                | "toml"
                | "csv"
                | "javascript"
                | "x-javascript"
                | "graphql"
                | "sql"
                | "x-sh"
                | "x-www-form-urlencoded"
                | "xml-dtd"
                | "x-pem-file"
                | "pem-certificate-chain",
            ) => BodyKind::Text,
            _ => BodyKind::Bytes,
        }
    }
}

/// How the body of a request is written, in the order of preference among several media types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// JSON text.
    Json,
    /// The pairs of a form.
    Form,
    /// The parts of a multipart form.
    Multipart,
    /// A string as it is.
    Text,
    /// The bytes of a string in base64.
    Bytes,
}

impl RequestKind {
    /// Classifies a media type; its parameters are ignored. A range that contains JSON is [`RequestKind::Json`].
    pub fn from_media_type(media_type: &str) -> RequestKind {
        match essence(media_type).as_str() {
            "application/x-www-form-urlencoded" => RequestKind::Form,
            "multipart/form-data" => RequestKind::Multipart,
            "*/*" | "application/*" => RequestKind::Json,
            "text/*" => RequestKind::Text,
            _ => match BodyKind::from_media_type(media_type) {
                BodyKind::Json => RequestKind::Json,
                // A stream of values is sent as the text that the program gives.
                BodyKind::Text | BodyKind::List => RequestKind::Text,
                BodyKind::Bytes | BodyKind::Unknown => RequestKind::Bytes,
            },
        }
    }

    /// Whether the body is one string, which is sent as it is or decoded from base64.
    pub fn is_string(self) -> bool {
        matches!(self, RequestKind::Text | RequestKind::Bytes)
    }
}

/// Returns a media type in lower case without its parameters.
pub fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_decides_how_a_body_is_read_and_written() {
        use RequestKind::{Bytes, Form, Json, Multipart, Text};
        for (media_type, read, written) in [
            ("application/json; charset=utf-8", BodyKind::Json, Json),
            ("application/merge-patch+json", BodyKind::Json, Json),
            ("text/json", BodyKind::Json, Json),
            ("*/*", BodyKind::Unknown, Json),
            ("application/*", BodyKind::Unknown, Json),
            ("application/x-www-form-urlencoded", BodyKind::Text, Form),
            ("Multipart/Form-Data; boundary=x", BodyKind::Bytes, Multipart),
            ("text/plain", BodyKind::Text, Text),
            ("text/*", BodyKind::Unknown, Text),
            ("application/xml", BodyKind::Text, Text),
            ("application/soap+xml", BodyKind::Text, Text),
            ("application/yaml", BodyKind::Text, Text),
            ("application/vnd.api+yaml", BodyKind::Text, Text),
            ("application/graphql", BodyKind::Text, Text),
            ("application/x-ndjson", BodyKind::List, Text),
            ("application/json-seq", BodyKind::List, Text),
            ("text/event-stream", BodyKind::List, Text),
            ("application/octet-stream", BodyKind::Bytes, Bytes),
            ("image/*", BodyKind::Unknown, Bytes),
            ("", BodyKind::Unknown, Bytes),
        ] {
            assert_eq!(
                (BodyKind::from_media_type(media_type), RequestKind::from_media_type(media_type)),
                (read, written),
                "{media_type}"
            );
        }
    }
}
