//! Reads a cassette.

use std::collections::BTreeMap;

use ptc_runtime::upstream::Reason;

use crate::{Cassette, Content, Error, RecordedTool, Reply, Request, VERSION};
use ptc_json::Json;

impl Cassette {
    /// Whether a text is a cassette of any version, or begins like one: a cassette can be cut off, or have conflict markers.
    pub fn is_begun_by(text: &str) -> bool {
        let begins = || text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with("\"cassette\""));
        begins() || Json::read(text).is_ok_and(|json| json.get("cassette").is_some())
    }

    /// Reads a cassette. `name` is the file in error messages.
    ///
    /// # Errors
    ///
    /// The text is not a cassette.
    pub fn read(name: &str, text: &str) -> Result<Cassette, Error> {
        let root = Json::read(text).map_err(|ptc_json::Error { place, message }| {
            let place = place.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
            Error::NotJson(format!("{name}{place}: {message}"))
        })?;
        match root.get("cassette") {
            Some(Json::Number(version)) if version == VERSION => {}
            Some(version) => return Err(Error::of_version(version)),
            None => return Err(form("cassette", "a cassette that `ptc-compile record` wrote, with its version")),
        }
        only("the file", &root, &["cassette", "tools"], "an object with `cassette` and `tools` only")?;
        let tools = root.get("tools").filter(|tools| matches!(tools, Json::Object(_)));
        let tools = tools.ok_or_else(|| form("tools", "an object with the recorded tools"))?;
        let tools = tools.members().iter().map(|(name, tool)| {
            let (server, tool_name) = name.split_once('/').ok_or_else(|| form(name, "a name of the form `upstream/tool`"))?;
            Ok(((server.to_owned(), tool_name.to_owned()), recorded_tool(name, tool)?))
        });
        Ok(Cassette { tools: tools.collect::<Result<_, Error>>()? })
    }
}

fn form(at: &str, expected: &'static str) -> Error {
    Error::Form { at: at.to_owned(), expected }
}

/// Refuses members that a cassette does not have: cassettes are edited by hand, and a misspelt member would be lost.
fn only(at: &str, json: &Json, names: &[&str], expected: &'static str) -> Result<(), Error> {
    match json {
        Json::Object(members) if members.iter().all(|(name, _)| names.contains(&&**name)) => Ok(()),
        _ => Err(form(at, expected)),
    }
}

fn recorded_tool(name: &str, json: &Json) -> Result<RecordedTool, Error> {
    only(name, json, &["definition", "requests"], "an object with `definition` and `requests`")?;
    let definition = json.get("definition").and_then(Json::as_str);
    let definition = definition.ok_or_else(|| form(name, "`definition`, the digest of the tool"))?.to_owned();
    let Some(Json::Array(items)) = json.get("requests") else { return Err(form(name, "`requests`, an array")) };
    let mut requests = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        let at = format!("{name}, request {}", at + 1);
        only(&at, item, &["args", "accept", "body", "replies"], "an object with `args`, `replies`, `accept` and `body` only")?;
        let args = item.get("args").ok_or_else(|| form(&at, "`args`, the arguments"))?;
        let accept = match item.get("accept") {
            None => None,
            Some(Json::String(accept)) => Some(accept.clone()),
            Some(_) => return Err(form(&at, "`accept`, a string")),
        };
        let without_bytes = match item.get("body") {
            None => false,
            Some(Json::Bool(has_bytes)) => !has_bytes,
            Some(_) => return Err(form(&at, "`body`, true or false")),
        };
        let args = match args {
            Json::String(raw) => raw.clone(),
            args => args.canonical(),
        };
        let request = Request { args, accept, without_bytes };
        let replies = item.get("replies").map(Json::elements).filter(|replies| !replies.is_empty());
        let replies = replies.ok_or_else(|| form(&at, "`replies`, an array with at least one reply"))?;
        let replies = replies.iter().map(|json| reply(&at, json)).collect::<Result<_, Error>>()?;
        if requests.insert(request, replies).is_some() {
            return Err(form(&at, "other arguments than those of an earlier request"));
        }
    }
    Ok(RecordedTool { definition, requests })
}

/// Members of a reply, of which it has one at most.
const CONTENTS: [&str; 5] = ["value", "json", "text", "plain_text", "fault"];

fn reply(at: &str, json: &Json) -> Result<Reply, Error> {
    let others = ["status", "headers", "message", "body", "latency_ms"];
    let names = [&CONTENTS[..], &others].concat();
    only(
        at,
        json,
        &names,
        "a reply with `value`, `json`, `text`, `plain_text` or `fault`, and `status`, `headers`, `message`, `body`, `latency_ms`",
    )?;
    if json.get("message").is_some() && json.get("fault").is_none() {
        return Err(form(at, "`message` only beside `fault`"));
    }
    if CONTENTS.iter().filter(|name| json.get(name).is_some()).count() > 1 {
        return Err(form(at, "a reply with one of `value`, `json`, `text`, `plain_text` and `fault`"));
    }
    let text = |key: &str| match json.get(key) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(Json::Array(lines)) => {
            let lines: Option<Vec<&str>> = lines.iter().map(Json::as_str).collect();
            lines.map(|lines| Some(lines.join("\n"))).ok_or_else(|| form(at, "lines that are strings"))
        }
        Some(_) => Err(form(at, "a text that is a string, or an array of its lines")),
    };
    let content = if let Some(value) = json.get("value") {
        Content::Value(value.clone())
    } else if let Some(text) = text("json")? {
        Content::RawJson(text)
    } else if let Some(text) = text("text")? {
        Content::Text(text)
    } else if let Some(text) = text("plain_text")? {
        Content::Plain(text)
    } else if let Some(reason) = text("fault")? {
        let reason = Reason::ALL.into_iter().find(|known| known.name() == reason);
        let reason = reason.ok_or_else(|| form(at, "a reason of failed calls, such as `timeout` or `tool_error`, as `fault`"))?;
        Content::Fault { reason, message: text("message")?.unwrap_or_default() }
    } else {
        Content::None
    };
    let status = match json.get("status") {
        None => None,
        Some(Json::Number(status)) => Some(status.parse().map_err(|_| form(at, "`status`, an HTTP status"))?),
        Some(_) => return Err(form(at, "`status`, an HTTP status")),
    };
    let header = |(name, value): &(String, Json)| {
        let value = value.as_str().ok_or_else(|| form(at, "headers that are strings"))?;
        Ok((name.clone(), value.to_owned()))
    };
    if json.get("headers").is_some_and(|headers| !matches!(headers, Json::Object(_))) {
        return Err(form(at, "`headers`, an object"));
    }
    let headers = json.get("headers").map(|headers| headers.members().iter().map(header).collect::<Result<_, Error>>());
    let latency_ms = match json.get("latency_ms") {
        None => None,
        Some(Json::Number(latency)) => Some(latency.parse().map_err(|_| form(at, "`latency_ms`, an integer"))?),
        Some(_) => return Err(form(at, "`latency_ms`, an integer")),
    };
    Ok(Reply { content, status, headers: headers.transpose()?, body: json.get("body").cloned(), latency_ms })
}
