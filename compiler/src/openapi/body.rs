//! Reads the request body of an operation: its media type, and its members as arguments.

use ptc_catalog::body_kind::essence;
use ptc_catalog::{BodyKind, RequestKind, Type, Types};

use super::argument::Sent;
use super::candidate::Candidate;
use super::context::Context;
use super::faults::Faults;
use super::reference::{Content, contents};
use super::{response, schema};
use crate::config::model::Override;
use crate::diag::{Code, Diagnostic, quoted_list};
use crate::json::Json;
use crate::json_schema::Schema;
use crate::lower::sample::MAX_OFFERED;
use crate::tree::Node;

/// Maximum number of `$ref`s and `allOf`s around the members of a body. A deeper schema is one argument.
const MAX_DEPTH: u32 = 16;

/// The body that calls of an operation send.
#[derive(Default)]
pub(super) struct Body {
    /// The media type; empty for no body.
    pub(super) media: String,
    /// Whether a call without any member sends an empty body.
    pub(super) required: bool,
    pub(super) args: Vec<Sent>,
    /// Arguments that a call needs once it gives any member of a body that is not required.
    pub(super) needs: Vec<String>,
    /// `$defs` to which the schemas of the arguments refer.
    pub(super) definitions: Option<Json>,
}

/// Ranks the media types of a body, the preferred one first: by kind, `application/json` before other JSON, and plain text before
/// text with a format.
fn preference(media: &str) -> (RequestKind, bool) {
    let kind = RequestKind::from_media_type(media);
    let is_special = match kind {
        RequestKind::Json => essence(media) != "application/json",
        RequestKind::Text => {
            let essence = essence(media);
            BodyKind::from_media_type(media) == BodyKind::List || essence.ends_with("xml") || !essence.starts_with("text/")
        }
        RequestKind::Form | RequestKind::Multipart | RequestKind::Bytes => false,
    };
    (kind, is_special)
}

/// Whether a range such as `image/*` or `*/*` includes a media type.
fn includes(range: &str, media: &str) -> bool {
    let (range, media) = (essence(range), essence(media));
    let Some((kind, format)) = media.split_once('/').filter(|(kind, format)| !kind.is_empty() && !format.is_empty()) else {
        return false;
    };
    !format.contains('*') && (range == "*/*" || range.strip_suffix("/*") == Some(kind))
}

/// Returns the media type that is sent where the document declares the range `media`.
fn of_range(kind: RequestKind, media: &str) -> &str {
    match kind {
        _ if !media.contains('*') => media,
        RequestKind::Text => "text/plain",
        RequestKind::Bytes => "application/octet-stream",
        _ => "application/json",
    }
}

/// Returns the body of an operation. A body that a read declares is left out unless it is required, because servers may ignore
/// it; only the exact name includes such an operation. `QUERY` always has its body.
pub(super) fn read<'a>(
    context: Context<'a, '_>,
    candidate: &Candidate<'a>,
    by_pattern: bool,
    overriding: Option<&Override>,
    faults: &mut Faults,
) -> Body {
    let references = context.references;
    let Some(node) = candidate.operation.get("requestBody") else { return Body::default() };
    let Some(node) = faults.keep(references.resolve(node)) else { return Body::default() };
    let required = node.get("required").and_then(Node::as_bool) == Some(true);
    let contents = contents(node);
    let has_unusual_body = matches!(candidate.method, "GET" | "HEAD" | "OPTIONS");
    if contents.is_empty() || has_unusual_body && !required {
        return Body::default();
    }
    if has_unusual_body && by_pattern {
        let message = format!("a {} that requires a body can be included only by its exact name", candidate.method);
        faults.push(Diagnostic::new(Code::RequestBody, message).at(node.place(references.file), ""));
    }
    let configured = overriding.and_then(|overriding| overriding.content_type.as_ref());
    let content = match configured {
        None => contents.iter().min_by_key(|content| preference(content.media_type)),
        Some(wanted) => {
            let is_it = |content: &&Content<'_>| essence(content.media_type) == essence(&wanted.value);
            let found =
                contents.iter().find(is_it).or_else(|| contents.iter().find(|range| includes(range.media_type, &wanted.value)));
            if found.is_none() {
                let types = quoted_list(contents.iter().map(|content| content.media_type));
                let message = format!("the operation takes no body of the type `{}`", wanted.value);
                let hint = format!("the document declares {types}");
                faults.push(Diagnostic::new(Code::RequestBody, message).at(wanted.place.clone(), "").hint(hint));
            }
            found
        }
    };
    let content = content.and_then(|content| references.resolve_content(*content, faults));
    let Some(content) = content else { return Body::default() };
    let chosen = configured.map(|wanted| wanted.value.as_str()).filter(|_| content.media_type.contains('*'));
    let declared = chosen.unwrap_or(content.media_type);
    let kind = RequestKind::from_media_type(declared);
    let media = of_range(kind, declared.trim());
    if !media.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        let message = "the media type of a request body has characters that a header cannot carry";
        faults.push(Diagnostic::new(Code::RequestBody, message).at(content.value.place(references.file), ""));
        return Body::default();
    }
    let schema = match content.value.get("schema") {
        _ if kind.is_string() => Json::object().with("type", Json::string("string")),
        None => Json::object(),
        Some(node) => schema::argument(references, node, faults),
    };
    let prose = node.get("description").and_then(Node::as_str);
    let by_members = if kind.is_string() { None } else { members(&schema, &content, required, kind) };
    let is_whole = by_members.is_none();
    let mut body = Body { media: media.to_owned(), ..by_members.unwrap_or_else(|| whole(schema, required, kind, prose)) };
    let example = response::stated_example(references, content.value).filter(|_| kind != RequestKind::Bytes).map(Json::from);
    for arg in &mut body.args {
        let of_arg = if is_whole { example.as_ref() } else { example.as_ref().and_then(|example| example.get(&arg.name)) };
        if let Some(example) = of_arg {
            add_example(&mut arg.schema, example.clone());
        }
    }
    body
}

/// Adds an example that a document states beside the schema of an argument. A long one is left out, since no text shows it.
pub(super) fn add_example(schema: &mut Json, example: Json) {
    if schema.get("examples").is_none() && example.canonical().len() <= MAX_OFFERED {
        schema.set("examples", Json::Array(vec![example]));
    }
}

/// Returns a body that is one argument.
fn whole(mut schema: Json, required: bool, kind: RequestKind, prose: Option<&str>) -> Body {
    let definitions = schema.remove("$defs");
    if schema == Json::Bool(true) {
        schema = Json::object();
    }
    if kind == RequestKind::Bytes {
        mark_base64(&mut schema, prose);
    } else if let Some(prose) = prose
        && schema.get("description").is_none()
    {
        schema.set("description", Json::string(prose));
    }
    let style = if matches!(kind, RequestKind::Form | RequestKind::Multipart) { "form" } else { "json" };
    let wire = wire("", style, true).with("arg", Json::string("body"));
    Body { required, args: vec![Sent { name: "body".to_owned(), required, schema, wire }], definitions, ..Body::default() }
}

/// Describes an argument that programs give as base64. `prose` is its description if the schema has none.
fn mark_base64(schema: &mut Json, prose: Option<&str>) {
    // The format describes the bytes that are sent.
    schema.remove("format");
    let prose = schema.get("description").and_then(Json::as_str).or(prose);
    let prose = prose.map_or_else(|| "base64".to_owned(), |prose| format!("{} (base64)", prose.trim_end_matches(['.', ' '])));
    schema.set("description", Json::string(prose));
}

/// Returns a body whose members are arguments. `None` if the schema is not an object of declared members without alternatives.
pub(super) fn members(schema: &Json, content: &Content<'_>, required: bool, kind: RequestKind) -> Option<Body> {
    static ANYTHING: Json = Json::Bool(true);
    let read = Schema::new(schema);
    if !is_plain(&read, schema, MAX_DEPTH) {
        return None;
    }
    let members = read.members(schema);
    let is_line = |name: &str| !name.is_empty() && !name.contains(char::is_control);
    // Some documents require members that they do not declare. Without an argument for them, each request would be refused.
    let required_only = |name: &&&str| !members.closed && members.get(name).is_none();
    let undeclared = members.required.iter().filter(required_only).map(|name| (*name, &ANYTHING));
    let every: Vec<(&str, &Json)> = members.properties.iter().copied().chain(undeclared).collect();
    if every.is_empty() || every.iter().any(|(name, _)| !is_line(name)) {
        return None;
    }
    let args = every.iter().map(|(name, member)| {
        let (style, explode) = style(&read, member, content, name, kind);
        let mut schema = (*member).clone();
        if schema == Json::Bool(true) {
            schema = Json::object();
        }
        if style == "base64" {
            mark_base64(&mut schema, None);
        }
        let mut wire = wire(name, style, explode);
        if let Some(media) = part_type(content, name, kind) {
            wire.set("contentType", Json::string(media));
        }
        Sent { name: (*name).to_owned(), required: required && members.requires(name), schema, wire }
    });
    let args = args.collect();
    let named = every.iter().map(|(name, _)| *name);
    let needs = named.filter(|name| !required && members.requires(name)).map(str::to_owned).collect();
    let definitions = schema.get("$defs").cloned();
    Some(Body { required, args, needs, definitions, ..Body::default() })
}

/// Whether an object schema declares nothing but members: it has no alternatives and no list of values, and it does not declare
/// that it takes further members. The same must hold for the target of its `$ref` and for the parts of its `allOf`.
fn is_plain<'a>(read: &Schema<'a>, node: &'a Json, depth: u32) -> bool {
    let has_more = ["anyOf", "oneOf", "not", "if", "enum", "const"].iter().any(|key| node.get(key).is_some());
    let is_open = node.get("additionalProperties").is_some_and(|more| *more != Json::Bool(false));
    let parts = node.get("allOf").map(Json::elements).unwrap_or_default();
    let mut inner = parts.iter().chain(read.target(node));
    depth > 0 && !has_more && !is_open && inner.all(|part| is_plain(read, part, depth - 1))
}

/// Returns how a member is written, and whether each item of a list is written by itself: as the `encoding` of a form says, as a
/// file, or as JSON.
fn style(read: &Schema<'_>, member: &Json, content: &Content<'_>, name: &str, kind: RequestKind) -> (&'static str, bool) {
    let encoding = content.value.get("encoding").and_then(|encoding| encoding.get(name));
    let text = |key| encoding.and_then(|encoding| encoding.get(key)).and_then(Node::as_str);
    let explode = encoding.and_then(|encoding| encoding.get("explode")).and_then(Node::as_bool);
    let is_object = read.types(member) == Types::from_types(&[Type::Object]);
    let of_content = text("contentType").map(|media| RequestKind::from_media_type(media.split(',').next().unwrap_or_default()));
    match kind {
        // The content type of a member counts only if nothing is said of its style. That of an object is JSON by default.
        RequestKind::Form if text("style").is_none() && explode.is_none() => match of_content {
            Some(RequestKind::Json) => ("json", false),
            None if is_object => ("json", false),
            _ => ("form", true),
        },
        RequestKind::Form => {
            let named = ["form", "spaceDelimited", "pipeDelimited", "deepObject"];
            let style = text("style").and_then(|style| named.into_iter().find(|known| *known == style)).unwrap_or("form");
            (style, explode.unwrap_or(matches!(style, "form" | "deepObject")))
        }
        RequestKind::Multipart if is_file(read, member) || of_content == Some(RequestKind::Bytes) => ("base64", true),
        RequestKind::Multipart if is_object || matches!(of_content, Some(RequestKind::Json)) => ("json", true),
        RequestKind::Multipart => ("form", true),
        _ => ("json", false),
    }
}

/// Returns the media type that the `encoding` of a multipart form gives a part: of several, the first type without `*`. `None` if
/// the value decides it.
fn part_type<'a>(content: &Content<'a>, name: &str, kind: RequestKind) -> Option<&'a str> {
    let encoding = content.value.get("encoding").filter(|_| kind == RequestKind::Multipart)?.get(name)?;
    let mut types = encoding.get("contentType").and_then(Node::as_str)?.split(',').map(str::trim);
    let is_type =
        |media: &&str| !media.is_empty() && media.bytes().all(|byte| byte != b'*' && (byte == b' ' || byte.is_ascii_graphic()));
    let usual = ["application/octet-stream", "application/json", "text/plain"];
    // The value decides on one of these.
    types.find(is_type).filter(|media| !usual.contains(media))
}

/// Whether a member of a multipart form is a file or a list of files.
fn is_file<'a>(read: &Schema<'a>, member: &'a Json) -> bool {
    let is_binary = |node: &'a Json| {
        let text = |key| read.keyword(node, key).and_then(Json::as_str);
        // Content with an encoding is text already.
        let has_media_type =
            text("contentMediaType").is_some_and(|media| RequestKind::from_media_type(media) == RequestKind::Bytes);
        text("format") == Some("binary") || has_media_type && text("contentEncoding").is_none()
    };
    is_binary(member) || read.keyword(member, "items").is_some_and(is_binary)
}

fn wire(name: &str, style: &str, explode: bool) -> Json {
    Json::object()
        .with("name", Json::string(name))
        .with("in", Json::string("body"))
        .with("style", Json::string(style))
        .with("explode", Json::Bool(explode))
}

impl Body {
    /// Renames members to `body_NAME` if a parameter has the same name.
    pub(super) fn tell_apart(&mut self, params: &[Sent]) {
        let mut names: Vec<String> = params.iter().chain(&self.args).map(|sent| sent.name.clone()).collect();
        for arg in self.args.iter_mut().filter(|arg| params.iter().any(|param| param.name == arg.name)) {
            let mut renamed = format!("body_{}", arg.name);
            while names.contains(&renamed) {
                renamed.push('_');
            }
            for need in self.needs.iter_mut().filter(|need| **need == arg.name) {
                need.clone_from(&renamed);
            }
            arg.wire.set("arg", Json::string(&*renamed));
            names.push(renamed.clone());
            arg.name = renamed;
        }
    }
}
