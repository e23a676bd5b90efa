//! Summarises a call as a row of the list, from the lines of its trace. A file may contain anything; unexpected parts are
//! omitted.

use serde_json::{Map, Value, json};

/// Maximum characters of one text in a row.
const MAX_CHARS: usize = 200;
/// Maximum number of upstreams in a row.
const MAX_SERVERS: usize = 20;

/// Returns the row as an object with the members `id`, `ts`, `tool`, `request_id`, `status` (`ok`, `error`, `open` without an
/// end, `unreadable` without a valid line), `reason`, `message`, `preview` (of the program or task, with the policy `full`),
/// `duration_us`, `result_bytes`, `fetched_bytes` and `answer_bytes` (from which the reduction is computed), `calls` (of
/// upstreams), `servers` (`[name, calls, failed]` each). Unknown members are null.
pub fn from_trace(id: &str, lines: &[Map<String, Value>]) -> Value {
    let event = |name: &str| lines.iter().rfind(|line| line.get("event").and_then(Value::as_str) == Some(name));
    let start = event("call.start");
    let (end, status) = match (event("call.success"), event("call.fail")) {
        (Some(end), _) => (Some(end), "ok"),
        (None, Some(end)) => (Some(end), "error"),
        (None, None) => (None, if lines.is_empty() { "unreadable" } else { "open" }),
    };
    let calls = || lines.iter().filter(|line| line.get("span").and_then(Value::as_str) == Some("upstream_call"));
    let said = |subject: &str| start?.get(subject)?.get("text")?.as_str();
    let preview = said("task").or_else(|| said("program"));
    let metrics = |name: &str| end.and_then(|end| end.get("ptc_metrics")?.get(name)?.as_u64());
    let duration = number(end, "duration_us").or_else(|| number(end, "duration_ms").map(|ms| ms.saturating_mul(1000)));
    json!({
        "id": id,
        "ts": text(start.or(end), "ts"),
        "tool": text(start.or(end), "tool").unwrap_or_default(),
        "request_id": text(start.or(end), "request_id"),
        "status": status,
        "reason": text(end, "reason"),
        "message": text(end, "message"),
        "preview": preview.map(one_line),
        "duration_us": duration,
        "result_bytes": number(end, "result_bytes"),
        "fetched_bytes": metrics("upstream_result_bytes"),
        "answer_bytes": metrics("final_result_bytes"),
        "calls": calls().count(),
        "servers": servers(calls()),
    })
}

fn servers<'l>(calls: impl Iterator<Item = &'l Map<String, Value>>) -> Vec<Value> {
    let mut servers: Vec<(String, u64, u64)> = Vec::new();
    for call in calls {
        let name = text(Some(call), "server").unwrap_or_default();
        let failed = u64::from(call.get("status").and_then(Value::as_str) != Some("ok"));
        if let Some((_, calls, failures)) = servers.iter_mut().find(|(known, ..)| *known == name) {
            *calls += 1;
            *failures += failed;
        } else if servers.len() < MAX_SERVERS {
            servers.push((name, 1, failed));
        }
    }
    servers.into_iter().map(|(name, calls, failed)| json!([name, calls, failed])).collect()
}

fn text(line: Option<&Map<String, Value>>, name: &str) -> Option<String> {
    line?.get(name)?.as_str().map(one_line)
}

fn number(line: Option<&Map<String, Value>>, name: &str) -> Option<u64> {
    line?.get(name)?.as_u64()
}

/// Returns the beginning of a text, with each run of white space replaced with one space.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        if chars > 0 {
            line.push(' ');
            chars += 1;
        }
        line.extend(word.chars().take(MAX_CHARS.saturating_sub(chars)));
        chars += word.chars().take(MAX_CHARS).count();
        if chars >= MAX_CHARS {
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(lines: &[Value]) -> Value {
        let lines: Vec<_> = lines.iter().filter_map(Value::as_object).cloned().collect();
        from_trace("1-2-3-t", &lines)
    }

    #[test]
    fn row_shows_the_outcome_of_a_call() {
        let lines = [
            json!({ "event": "call.start", "tool": "lisp_eval", "ts": "2026-01-01T00:00:00Z", "request_id": "7",
                    "program": { "text": "(a\n  b)" } }),
            json!({ "event": "span", "span": "upstream_call", "server": "s", "status": "ok" }),
            json!({ "event": "span", "span": "upstream_call", "server": "s", "status": "error" }),
            json!({ "event": "call.fail", "reason": "fail", "message": "m", "duration_ms": 3,
                    "ptc_metrics": { "upstream_result_bytes": 100, "final_result_bytes": 0 } }),
        ];
        let row = row(&lines);
        assert_eq!((&row["status"], &row["preview"], &row["duration_us"]), (&json!("error"), &json!("(a b)"), &json!(3000)));
        assert_eq!((&row["servers"], &row["calls"], &row["fetched_bytes"]), (&json!([["s", 2, 1]]), &json!(2), &json!(100)));
    }

    #[test]
    fn row_of_an_invalid_trace_file_does_not_panic() {
        assert_eq!(row(&[])["status"], "unreadable");
        let odd =
            json!({ "event": "call.success", "tool": { "a": 1 }, "duration_us": "x", "ptc_metrics": [1], "result_bytes": -1 });
        let row = row(&[json!({ "event": 7, "program": "x" }), odd]);
        assert_eq!((&row["status"], &row["tool"], &row["duration_us"]), (&json!("ok"), &json!(""), &Value::Null));
        assert_eq!((one_line(&"x ".repeat(1000)).chars().count(), one_line(&"é".repeat(1000)).chars().count()), (200, 200));
    }
}
