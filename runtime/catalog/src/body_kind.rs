//! How a body is read, by its media type.

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
    pub fn of(media_type: &str) -> BodyKind {
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

/// Returns a media type in lower case without its parameters.
pub fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
