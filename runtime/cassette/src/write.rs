//! Writes a cassette.
//!
//! The order of everything is canonical, and a value is on one line if it fits there. A changed record of a list is therefore one
//! changed line.

use std::fmt;

use crate::{Cassette, Content, RecordedTool, Reply, Request, VERSION};
use ptc_json::Json;

/// Maximum characters of a line that holds a whole object or array.
const WIDTH: usize = 200;
/// The depth down to which objects and arrays are on several lines: the requests of a tool.
const OPEN_DEPTH: usize = 4;

impl fmt::Display for Cassette {
    /// Writes the text of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools =
            self.tools.iter().map(|((server, tool), recorded)| (format!("{server}/{tool}"), recorded.to_json())).collect();
        let members = vec![("cassette".to_owned(), Json::Number(VERSION.to_owned())), ("tools".to_owned(), Json::Object(tools))];
        let mut text = String::new();
        write(&Json::Object(members), 0, 0, &mut text);
        text.push('\n');
        f.write_str(&text)
    }
}

impl RecordedTool {
    fn to_json(&self) -> Json {
        let requests = self.requests.iter().map(|(request, replies)| request.to_json(replies)).collect();
        Json::object().with("definition", Json::string(&*self.definition)).with("requests", Json::Array(requests))
    }
}

impl Request {
    fn to_json(&self, replies: &[Reply]) -> Json {
        let mut json = Json::object().with("args", self.value().sorted());
        if let Some(accept) = &self.accept {
            json.set("accept", Json::string(&**accept));
        }
        if self.without_bytes {
            json.set("body", Json::Bool(false));
        }
        json.with("replies", Json::Array(replies.iter().map(Reply::to_json).collect()))
    }
}

impl Reply {
    pub(crate) fn to_json(&self) -> Json {
        let mut json = Json::object();
        if let Some(status) = self.status {
            json.set("status", Json::Number(status.to_string()));
        }
        if let Some(headers) = &self.headers {
            let mut headers = headers.clone();
            headers.sort();
            let headers = headers.into_iter().map(|(name, value)| (name, Json::String(value))).collect();
            json.set("headers", Json::Object(headers));
        }
        match &self.content {
            Content::None => {}
            Content::Value(value) => json.set("value", value.clone().sorted()),
            Content::RawJson(text) => json.set("json", Json::string(&**text)),
            Content::Text(text) => json.set("text", lines(text)),
            Content::Plain(text) => json.set("plain_text", lines(text)),
            Content::Fault { reason, message } => {
                json.set("fault", Json::string(reason.name()));
                json.set("message", lines(message));
            }
        }
        if let Some(body) = &self.body {
            json.set("body", body.clone().sorted());
        }
        if let Some(latency) = self.latency_ms {
            json.set("latency_ms", Json::Number(latency.to_string()));
        }
        json
    }
}

/// Returns a text, or an array of its lines if there are several.
fn lines(text: &str) -> Json {
    if text.contains('\n') { Json::Array(text.split('\n').map(Json::string).collect()) } else { Json::string(text) }
}

/// Writes a value that begins at the column `used` of a line.
fn write(json: &Json, depth: usize, used: usize, out: &mut String) {
    let line = one_line(json);
    let is_leaf = !matches!(json, Json::Array(_) | Json::Object(_)) || line.len() == 2;
    if is_leaf || depth > OPEN_DEPTH && used + line.chars().count() <= WIDTH {
        out.push_str(&line);
        return;
    }
    let inner = 2 * (depth + 1);
    let (open, close) = if matches!(json, Json::Array(_)) { ('[', ']') } else { ('{', '}') };
    out.push(open);
    let begin = |at: usize, out: &mut String| {
        out.push_str(if at == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n(' ', inner));
    };
    for (at, item) in json.elements().iter().enumerate() {
        begin(at, out);
        write(item, depth + 1, inner, out);
    }
    for (at, (key, value)) in json.members().iter().enumerate() {
        begin(at, out);
        let key = format!("{}: ", Json::string(&**key).canonical());
        out.push_str(&key);
        write(value, depth + 1, inner + key.chars().count(), out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', 2 * depth));
    out.push(close);
}

/// Returns a value on one line, with the order of its members.
fn one_line(json: &Json) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match json {
        Json::Array(items) => format!("[{}]", joined(items.iter().map(one_line).collect())),
        Json::Object(members) => {
            let member = |(key, value): &(String, Json)| format!("{}: {}", Json::string(&**key).canonical(), one_line(value));
            format!("{{{}}}", joined(members.iter().map(member).collect()))
        }
        plain => plain.canonical(),
    }
}

#[cfg(test)]
mod tests {
    use crate::Cassette;

    #[test]
    fn change_of_one_record_changes_one_line() {
        let written = |owner: &str| {
            let records: Vec<String> =
                (0..30).map(|id| format!(r#"{{"id": {id}, "owner": "{}"}}"#, if id == 17 { owner } else { "Ada" })).collect();
            let text = format!(
                r#"{{"cassette": 1, "tools": {{"s/list": {{"definition": "d", "requests": [{{"args": {{}}, "replies": [{{"value": [{}]}}]}}]}}}}}}"#,
                records.join(", ")
            );
            Cassette::read("c.json", &text).expect("a cassette").to_string()
        };
        let (before, after) = (written("Grace"), written("Ken"));
        assert_eq!(before.lines().count(), after.lines().count());
        assert_eq!(before.lines().zip(after.lines()).filter(|(one, other)| one != other).count(), 1, "{after}");
    }
}
