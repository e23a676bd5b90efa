//! Log lines on standard error, one JSON object each.
//!
//! Standard output is reserved for the protocol. All logged texts are redacted, and payloads (programs, contexts, results) are
//! logged at `debug` only. Panics are logged in the same way. They replace the standard hook, which would print their messages
//! unredacted.

use std::borrow::Cow;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use ptc_secrets::Redactor;
use ptc_text::panic_message;
use ptc_text::truncate_utf8;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Every call, with payloads.
    Debug = 0,
    /// Start and end of the server.
    Info = 1,
    /// A problem that an operator should examine.
    Warn = 2,
    /// A failure.
    Error = 3,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

static THRESHOLD: AtomicU8 = AtomicU8::new(Level::Info as u8);
static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Maximum bytes of a payload in a log line.
pub const MAX_PAYLOAD_BYTES: usize = 16 * 1024;

/// Installs a panic hook that logs panics, redacted. Without a redactor their messages are omitted. This is meant for a server's
/// process, since an embedding program has its own hook.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = match REDACTOR.get() {
            Some(_) => panic_message(info.payload()),
            None => "withheld, since it is not known yet what is secret".to_owned(),
        };
        record(Level::Error, "panic", &[("message", Field::Payload(&message)), ("place", Field::Text(&place))]);
    }));
}

/// Sets the minimum level of lines.
pub fn set_level(level: Level) {
    THRESHOLD.store(level as u8, Ordering::Relaxed);
}

/// Sets the redactor of all later lines. Further calls have no effect.
pub fn set_redactor(redactor: Redactor) {
    // A second deployment in one process occurs only in tests, and keeps the first redactor.
    let _ = REDACTOR.set(redactor);
}

/// Whether lines of a level are written.
pub fn enabled(level: Level) -> bool {
    level as u8 >= THRESHOLD.load(Ordering::Relaxed)
}

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub enum Field<'a> {
    /// A text, which is redacted.
    Text(&'a str),
    /// A text of any length, which is redacted and then truncated to [`MAX_PAYLOAD_BYTES`].
    Payload(&'a str),
    /// A number.
    Number(u64),
}

/// Writes a line with an event and text fields.
pub fn line(level: Level, event: &str, fields: &[(&str, &str)]) {
    if enabled(level) {
        let fields: Vec<_> = fields.iter().map(|(name, text)| (*name, Field::Text(text))).collect();
        record(level, event, &fields);
    }
}

/// Writes a warning that contains a credential which this process has just generated. It ignores the level and the redactor,
/// since the operator has no other way to learn the credential.
pub fn generated_credential(event: &str, fields: &[(&str, &str)]) {
    let fields: Vec<_> = fields.iter().map(|(name, text)| (*name, Field::Text(text))).collect();
    write(&render(now_ms(), Level::Warn, event, &fields, None));
}

/// Writes a line with an event and fields of all types.
pub fn record(level: Level, event: &str, fields: &[(&str, Field<'_>)]) {
    if !enabled(level) {
        return;
    }
    write(&render(now_ms(), level, event, fields, REDACTOR.get()));
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

fn write(line: &str) {
    // `eprintln!` would panic if standard error is closed or a full non-blocking pipe. Losing a line is less harmful.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

fn render(time_ms: u64, level: Level, event: &str, fields: &[(&str, Field<'_>)], redactor: Option<&Redactor>) -> String {
    #[derive(Serialize)]
    struct Head<'a> {
        time_ms: u64,
        level: &'a str,
        event: &'a str,
    }
    let mut text = serde_json::to_string(&Head { time_ms, level: level.name(), event }).unwrap_or_default();
    text.pop();
    for (name, value) in fields {
        let value = match value {
            Field::Text(text) => serde_json::to_string(&*redacted(text, redactor)),
            Field::Payload(text) => {
                let text = redacted(text, redactor);
                match truncate_utf8(&text, MAX_PAYLOAD_BYTES) {
                    (_, false) => serde_json::to_string(&*text),
                    (head, true) => serde_json::to_string(&format!("{head}… and {} more bytes", text.len() - head.len())),
                }
            }
            Field::Number(number) => Ok(number.to_string()),
        };
        if let (Ok(name), Ok(value)) = (serde_json::to_string(name), value) {
            text.push(',');
            text.push_str(&name);
            text.push(':');
            text.push_str(&value);
        }
    }
    text.push('}');
    text
}

fn redacted<'t>(text: &'t str, redactor: Option<&Redactor>) -> Cow<'t, str> {
    redactor.map_or(text.into(), |redactor| redactor.redact_str(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_payload_is_truncated() {
        let long = "x".repeat(MAX_PAYLOAD_BYTES + 10);
        let text = render(5, Level::Debug, "call", &[("program", Field::Payload(&long)), ("id", Field::Payload("1"))], None);
        assert!(text.ends_with("x… and 10 more bytes\",\"id\":\"1\"}"), "{}", text.len());
        assert!(text.len() < MAX_PAYLOAD_BYTES + 200, "{}", text.len());
    }

    #[test]
    fn log_line_is_one_json_object() {
        let text = render(
            5,
            Level::Warn,
            "frame refused",
            &[("reason", Field::Text("bad \"quote\"\n")), ("status", Field::Number(400))],
            None,
        );
        assert_eq!(text, r#"{"time_ms":5,"level":"warn","event":"frame refused","reason":"bad \"quote\"\n","status":400}"#);
    }
}
