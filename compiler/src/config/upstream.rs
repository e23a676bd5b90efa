//! Reads one entry of `upstreams`. Its transport decides which keys are valid.

use std::collections::BTreeMap;

use super::credentials::Bindings;
use super::fields::{Fields, Subject};
use super::model::{Spanned, ToolOverride, Transport, Upstream};
use super::reader::ConfigReader;
use super::table::Table;
use super::{http, keys, names, openapi, stdio};
use crate::diag::{Code, quoted, suggest};
use crate::json::Json;
use crate::source::Span;
use crate::tree::{Member, Node};

/// Reads an entry. Returns `None` if its errors leave nothing usable.
pub(super) fn read(reader: &mut ConfigReader<'_>, member: &Member, bindings: &Bindings) -> Option<Upstream> {
    let place = reader.key_place(member);
    let subject = Subject { name: format!("upstream {}", quoted(&member.key)), place: place.clone() };
    let fields = Fields::read_variant(reader, &subject, &keys::UPSTREAM, &member.value, unknown_transport)?;
    let transport = match fields.tag() {
        "mcp_stdio" => Transport::McpStdio(stdio::read(reader, &fields, bindings)?),
        "mcp_http" | "mcp_sse" => Transport::McpHttp(http::read(reader, &subject.name, &fields, bindings)?),
        _ => Transport::OpenApi(openapi::read(reader, &subject, &fields, bindings)?),
    };
    for code in fields.notes("silence") {
        // A note about the lock file points at the key.
        let place = Span { file: reader.file, range: member.key_range.start..member.value.range.end };
        reader.silence(code, place);
    }
    let is_mcp = fields.tag() != "openapi";
    if is_mcp {
        names::check_tools(reader, fields.nodes("include_tools"));
    }
    let tool_overrides = if is_mcp { tool_overrides(reader, &fields) } else { BTreeMap::new() };
    Some(Upstream {
        place,
        call_timeout_ms: fields.optional_number("call_timeout_ms"),
        description: fields.text("description").map(|text| one_line(&text)).filter(|text| !text.is_empty()),
        include_tools: if is_mcp { fields.spanned_texts(reader, "include_tools") } else { None },
        trust_annotations: is_mcp && fields.flag("trust_annotations"),
        tool_overrides,
        accept_definitions: fields.spanned_texts(reader, "accept_definitions").unwrap_or_default(),
        transport,
    })
}

fn tool_overrides(reader: &mut ConfigReader<'_>, fields: &Fields<'_>) -> BTreeMap<String, ToolOverride> {
    let mut overrides = BTreeMap::new();
    for member in fields.members("tool_overrides") {
        let subject = Subject { name: format!("the override of {}", quoted(&member.key)), place: reader.key_place(member) };
        let Some(entry) = Fields::read(reader, &subject, &keys::TOOL_OVERRIDE, &[], &member.value) else { continue };
        let overriding = ToolOverride {
            place: subject.place,
            description: entry.text("description"),
            effects: entry.effects(),
            paging: entry.node("paging").map(|node| Spanned { value: Json::from(node), place: node.place(reader.file) }),
            call_timeout_ms: entry.optional_number("call_timeout_ms"),
            example: entry.node("example").map(|node| Spanned { value: Json::from(node), place: node.place(reader.file) }),
        };
        overrides.insert(member.key.to_string(), overriding);
    }
    overrides
}

/// Names that other tools use for the transports, with the names used here.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("streamable-http", "mcp_http"),
    ("https", "mcp_http"),
    ("sse", "mcp_sse"),
    ("local", "mcp_stdio"),
    ("command", "mcp_stdio"),
    ("process", "mcp_stdio"),
    ("swagger", "openapi"),
    ("rest", "openapi"),
    ("open_api", "openapi"),
];

fn unknown_transport(reader: &mut ConfigReader<'_>, node: &Node, wrong: &str) -> Option<&'static Table> {
    if let "stdio" | "http" = wrong {
        let name = format!("mcp_{wrong}");
        let message = format!("the transport `{wrong}` is now called `{name}`");
        reader.fault(Code::OldTransport, node, message, "a name of earlier versions", &format!("write \"{name}\""));
        return keys::UPSTREAM.case(&name);
    }
    let meant = suggest::meant(wrong, keys::UPSTREAM.tags(), OTHER_NAMES);
    let hint = match meant {
        Some(name) => format!("did you mean `{name}`?"),
        None => "transports are `mcp_stdio`, `mcp_http`, `mcp_sse` and `openapi`".to_owned(),
    };
    reader.fault(Code::UnknownTransport, node, format!("unknown transport {}", quoted(wrong)), "", &hint);
    meant.and_then(|tag| keys::UPSTREAM.case(tag))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
