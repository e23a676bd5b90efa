//! Upstreams that echo their secrets in every part of an answer, programs that show these answers in every way, and a search for
//! the secrets in all output of the process.

use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::web::{Answer, Asked};

/// Tools of an MCP server. Each echoes in another part of an answer.
pub(crate) const TOOLS: [&str; 10] = ["bits", "die", "error", "events", "fail", "header", "json", "refuse", "structured", "text"];

/// Operations of the JSON service. The path of each is its name.
pub(crate) const OPERATIONS: [&str; 4] = ["bits", "fail", "header", "json"];

/// Returns the secrets of an upstream in all spellings.
pub(crate) fn known(secrets: &[String]) -> String {
    let mut text = String::new();
    for secret in secrets {
        let bits = ["", "x", "xy"].map(|before| STANDARD.encode(format!("{before}{secret} and more"))).join(" ");
        let _ = writeln!(text, "{secret} | {} | {bits} | {}", url(secret), json!(secret));
        let _ = writeln!(text, "{}", spellings(secret).join(" | "));
    }
    text
}

/// Returns the spellings of encoders that escape less than possible, more than necessary, or twice.
fn spellings(secret: &str) -> Vec<String> {
    let json = json!(secret).to_string();
    let json = &json[1..json.len() - 1];
    let numbered = numbered(secret);
    let bits = STANDARD.encode(format!("{secret} and more"));
    let far = STANDARD.encode(format!("{}{secret} and more", "x".repeat(50)));
    vec![
        url(secret).replace("%2F", "/").replace("%3F", "?").replace("%2B", "%2b"),
        url(&url(secret)),
        json.replace('/', "\\/"),
        json.replace('+', "\\u002B").replace('&', "\\u0026").replace('=', "\\u003d"),
        json!({ "t": numbered.to_lowercase() }).to_string(),
        numbered,
        secret.replace('&', "&amp;").replace('"', "&quot;").replace('+', "&#43;"),
        url(&bits),
        STANDARD.encode(&bits),
        STANDARD.encode(format!("Authorization: Basic {bits}")),
        STANDARD.encode(url(secret)),
        STANDARD.encode(json!({ "t": secret }).to_string()),
        format!("\n{}\r\n{}", &far[..76], &far[76..]),
    ]
}

/// Escapes every UTF-16 unit as `\uXXXX`.
fn numbered(secret: &str) -> String {
    secret.encode_utf16().fold(String::new(), |mut all, unit| {
        let _ = write!(all, "\\u{unit:04X}");
        all
    })
}

fn url(secret: &str) -> String {
    percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Returns the result of a tool with the secrets in every part that MCP defines.
fn result(name: &str, known: &str) -> Value {
    let text = json!([{"type": "text", "text": known}, {"type": known, known: known}]);
    match name {
        "fail" => json!({"isError": true, "content": text}),
        "json" => json!({"content": [{"type": "text", "text": json!({known: [known]}).to_string()}]}),
        "structured" => json!({"content": text, "structuredContent": {known: {"deep": [known]}}, "_meta": {known: known}}),
        _ => json!({"content": text}),
    }
}

fn handshake(known: &str) -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": known, "version": known}, "instructions": known})
}

fn listing(known: &str) -> Value {
    json!({"tools": TOOLS.map(|name| json!({"name": name, "title": known, "description": known, "inputSchema": {"type": "object"}}))})
}

/// Runs an MCP server on standard input and output that knows `secrets`, at least one.
pub(crate) fn serve(secrets: &[String]) -> ExitCode {
    let known = known(secrets);
    let say = |text: &str| {
        let mut output = std::io::stdout().lock();
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    };
    // Standard error receives the secrets byte by byte, and then in a line that is longer than the log keeps.
    for byte in known.bytes() {
        let _ = std::io::stderr().write_all(&[byte]);
    }
    let _ = writeln!(std::io::stderr(), "{}", known.replace('\n', " ").repeat(60));
    say(&known);
    for line in std::io::stdin().lock().lines() {
        let Ok(Ok(message)) = line.map(|line| serde_json::from_str::<Value>(&line)) else { break };
        let (id, name) = (&message["id"], message["params"]["name"].as_str().unwrap_or_default());
        let result = match message["method"].as_str() {
            Some("initialize") => handshake(&known),
            Some("tools/list") => listing(&known),
            Some("tools/call") if name == "die" => {
                let _ = write!(std::io::stderr(), "{}", known.trim_end().replace('\n', " "));
                std::process::exit(3);
            }
            Some("tools/call") if name == "refuse" => {
                say(&format!("{{\"broken {}\n", known.replace('\n', " ")));
                continue;
            }
            Some("tools/call") if matches!(name, "error" | "events" | "header") => {
                say(&format!(
                    "{}\n",
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": known, "data": {&known: known}}})
                ));
                continue;
            }
            Some("tools/call") => result(name, &known),
            _ if id.is_null() => continue,
            _ => {
                say(&format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": known}})));
                continue;
            }
        };
        say(&format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": known}})));
        let frame = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        if name == "bits" {
            // A byte that is not UTF-8, in a member that the client ignores.
            let hidden = numbered(&secrets[0]);
            let text = format!(r#""result":{{"content":[{{"type":"text","text":"{hidden}"}}]}}}}"#);
            let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"x":""#);
            let _ = std::io::stdout().write_all(&[start.as_bytes(), b"\xff\",", text.as_bytes(), b"\n"].concat());
            continue;
        }
        // The frame is sent in two writes, the first of which ends within a secret.
        let half = frame.find(&secrets[0]).map_or(frame.len() / 2, |at| at + 5);
        say(&frame[..half]);
        std::thread::sleep(Duration::from_millis(5));
        say(&frame[half..]);
        say("\n");
    }
    ExitCode::SUCCESS
}

/// Answers as an MCP server over HTTP, as a JSON service, and as the proxy of that service, with the secrets from the headers, the
/// query and the cookies of the request.
pub(crate) fn web(asked: &Asked) -> Answer {
    web_knowing(asked, &[])
}

/// Like [`web`], with secrets that it has from elsewhere.
pub(crate) fn web_knowing(asked: &Asked, others: &[String]) -> Answer {
    let authorization = asked.header("authorization").unwrap_or_default();
    let proxy_authorization = asked.header("proxy-authorization").unwrap_or_default();
    let password = |header: &str| {
        let pair = String::from_utf8(STANDARD.decode(header.strip_prefix("Basic ")?).ok()?).ok()?;
        pair.split_once(':').map(|(_, password)| password.to_owned())
    };
    // A proxy receives the whole URL.
    let absolute = asked.target.strip_prefix("http://").and_then(|rest| rest.find('/').and_then(|at| rest.get(at..)));
    let (path, query) = absolute.unwrap_or(&asked.target).split_once('?').unwrap_or((absolute.unwrap_or(&asked.target), ""));
    let value = |texts: &str, separator: char, name: &str| {
        let value = texts.split(separator).find_map(|text| text.trim_start().strip_prefix(name)?.strip_prefix('='))?;
        Some(percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned())
    };
    let cookies = asked.header("cookie").unwrap_or_default();
    let secrets: Vec<String> = [
        value(query, '&', "key"),
        value(cookies, ';', "sid"),
        authorization.strip_prefix("Bearer ").map(str::to_owned),
        asked.header("x-key").map(str::to_owned),
        password(authorization),
        password(proxy_authorization),
    ]
    .into_iter()
    .flatten()
    .chain(others.iter().cloned())
    .collect();
    assert!(!secrets.is_empty(), "{asked:?}");
    let known = format!("{authorization} {proxy_authorization} {} {cookies} {}", asked.target, known(&secrets));
    let line = known.replace(['\r', '\n'], " ");
    let plain = |status: u16, kind: &str, body: String| {
        let headers = vec![
            format!("Content-Type: {kind}"),
            format!("X-Echo: {line}"),
            format!("Retry-After: {line}"),
            format!("Location: http://elsewhere.invalid/{}?q={line}", secrets[0]),
        ];
        Answer::Full(status, headers, body.into_bytes())
    };
    let frame = asked.json();
    let (id, name) = (&frame["id"], frame["params"]["name"].as_str().unwrap_or_else(|| path.trim_start_matches('/')));
    let rpc = |result: Value| plain(200, "application/json", json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    let method = frame["method"].as_str();
    match (method, name) {
        (Some("server/discover"), _) => plain(400, "text/plain", known),
        (Some("initialize"), _) => rpc(handshake(&known)),
        (Some("tools/list"), _) => rpc(listing(&known)),
        (Some("tools/call"), "events") => {
            let data = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": known}});
            let result = json!({"jsonrpc": "2.0", "id": id, "result": result("structured", &known)});
            Answer::Stream(vec![(0, format!(": {line}\nid: {line}\nevent: {line}\ndata: {data}\n\ndata: {result}\n\n"))])
        }
        (Some("tools/call"), "error") => plain(
            200,
            "application/json",
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": known, "data": known}}).to_string(),
        ),
        (_, "refuse") => plain(401, "text/plain", known),
        (_, "header") => plain(307, "text/plain", known),
        (_, "die") => plain(500, "text/html", format!("<b>{known}</b>")),
        (_, "bits") => plain(200, "text/plain", known),
        (None, "fail") => {
            plain(422, "application/problem+json", json!({"title": known, "detail": known, "more": {&known: known}}).to_string())
        }
        // A byte order mark comes first, and every character is escaped.
        (None, "json") => {
            let hidden = numbered(&secrets[0]);
            plain(200, "application/json", format!("\u{feff}{{\"k\":\"{hidden}\",\"v\":{}}}", json!(known)))
        }
        (Some("tools/call"), _) => rpc(result(name, &known)),
        _ => Answer::Full(202, vec![], vec![]),
    }
}

/// Returns programs that call the tools of these servers and show the answers in every way.
pub(crate) fn programs(servers: &[(&str, &[&str])]) -> Vec<String> {
    let mut programs: Vec<String> = Vec::new();
    for (server, tools) in servers {
        for tool in *tools {
            let call = format!("(tool/call {{:server \"{server}\" :tool \"{tool}\"}})");
            programs.push(format!("(let [r {call}] (println r) (println (pr-str (:value r))) r)"));
            programs.push(format!("(fail {call})"));
            programs.push(format!("(let [r {call}] (+ 1 (str r)))"));
            programs.push(format!("[(doc \"{server}/{tool}\") (meta \"{server}/{tool}\")]"));
        }
        programs.push(format!("[(dir \"{server}\") (tool/servers) (apropos \"frozen\" {{:limit 50}})]"));
    }
    programs
}

/// Panics if a text contains a canary in any spelling, as it is or after up to four rounds of decoding.
pub(crate) fn assert_clean(canaries: &[&str], what: &str, text: &str) {
    let mut text = text.to_owned();
    for layer in 0..5 {
        for canary in canaries {
            for spelling in irreducible(canary) {
                if let Some(at) = text.find(&spelling) {
                    let from = (0..=at.saturating_sub(200)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                    panic!("{what} holds {spelling} under {layer} layers: …{}", &text[from..at + spelling.len()]);
                }
            }
        }
        text = decoded(&text);
    }
}

/// Returns the spellings that decoding does not reduce to the secret itself.
fn irreducible(secret: &str) -> Vec<String> {
    let quoted = json!(secret).to_string();
    let mut all = vec![secret.to_owned(), secret.replace(' ', "+"), url(secret), quoted[1..quoted.len() - 1].to_owned()];
    for inner in [secret, &url(secret), STANDARD.encode(secret).trim_end_matches('=')] {
        for offset in 0..3 {
            // Only the middle of a base64 text depends on the secret alone. The end of nested base64 depends on the following
            // text.
            let text = STANDARD.encode(format!("{}{inner}", &"xy"[..offset]));
            let (first, past) = ((offset * 8usize).div_ceil(6), (offset + inner.len()) * 8 / 6);
            all.push(text[first..past - 2].to_owned());
        }
    }
    all
}

/// Removes one layer of URL, JSON and HTML escapes, and line breaks.
fn decoded(text: &str) -> String {
    let text: Vec<u8> = percent_encoding::percent_decode(text.as_bytes()).filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let text = String::from_utf8_lossy(&text);
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        let number = part.strip_prefix('u').and_then(|rest| u32::from_str_radix(rest.get(..4)?, 16).ok());
        match (number.and_then(char::from_u32), part.chars().next()) {
            (Some(char), _) => {
                out.push(char);
                out.push_str(&part[5..]);
            }
            (None, Some('n' | 'r')) => out.push_str(&part[1..]),
            (None, Some(_)) => out.push_str(part),
            // Two backslashes encode one.
            (None, None) => {
                out.push('\\');
                out.push_str(parts.next().unwrap_or_default());
            }
        }
    }
    ["&amp;", "&quot;", "&#43;"].iter().zip(["&", "\"", "+"]).fold(out, |text, (from, to)| text.replace(from, to))
}
