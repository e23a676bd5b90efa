//! Log lines on standard error, one JSON object each, or in the [sinks](add_sink) of an embedding program.
//!
//! Standard output is reserved for the protocol. All logged texts are redacted, and payloads (programs, contexts, results) are
//! logged at `debug` only. Panics are logged in the same way. They replace the standard hook, which would print their messages
//! unredacted.

mod sink;

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ptc_secrets::Redactor;
use ptc_text::panic_message;
use ptc_text::truncate_utf8;
pub use sink::{SinkGuard, add_sink};

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
    /// Returns the name in log lines, such as `warn`.
    pub fn name(self) -> &'static str {
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
    write(&LogLine::new(now_ms(), Level::Warn, event, &fields, &[]));
}

/// Writes a line with an event and fields of all types.
pub fn record(level: Level, event: &str, fields: &[(&str, Field<'_>)]) {
    if !enabled(level) {
        return;
    }
    let sinks = sink::all();
    let redactors: Vec<&Redactor> = REDACTOR.get().into_iter().chain(sinks.iter().map(|sink| &sink.redactor)).collect();
    let line = LogLine::new(now_ms(), level, event, fields, &redactors);
    if sinks.is_empty() {
        write(&line);
    }
    for sink in &sinks {
        sink.call(&line);
    }
}

/// A redacted line. Its `Display` output is the JSON object that is written to standard error.
#[derive(Debug, Clone)]
pub struct LogLine<'a> {
    time_ms: u64,
    level: Level,
    event: &'a str,
    fields: Vec<(&'a str, LogValue<'a>)>,
}

/// The redacted value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogValue<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A number.
    Number(u64),
}

impl<'a> LogLine<'a> {
    fn new(time_ms: u64, level: Level, event: &'a str, fields: &[(&'a str, Field<'a>)], redactors: &[&Redactor]) -> LogLine<'a> {
        let value = |field: &Field<'a>| match *field {
            Field::Text(text) => LogValue::Text(redacted(text, redactors)),
            Field::Payload(text) => {
                let text = redacted(text, redactors);
                LogValue::Text(match truncate_utf8(&text, MAX_PAYLOAD_BYTES) {
                    (_, false) => text,
                    (head, true) => format!("{head}… and {} more bytes", text.len() - head.len()).into(),
                })
            }
            Field::Number(number) => LogValue::Number(number),
        };
        LogLine { time_ms, level, event, fields: fields.iter().map(|(name, field)| (*name, value(field))).collect() }
    }

    /// Returns the time in milliseconds since the Unix epoch.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// Returns the severity.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns the event, such as `upstream unavailable`.
    pub fn event(&self) -> &str {
        self.event
    }

    /// Returns the fields in order.
    pub fn fields(&self) -> &[(&'a str, LogValue<'a>)] {
        &self.fields
    }

    /// Returns the text of a field. `None` if there is no such field, or if it is a number.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| *own == name).and_then(|(_, value)| match value {
            LogValue::Text(text) => Some(&**text),
            LogValue::Number(_) => None,
        })
    }
}

impl fmt::Display for LogLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = |text: &str| serde_json::to_string(text).map_err(|_| fmt::Error);
        write!(f, "{{\"time_ms\":{},\"level\":{},\"event\":{}", self.time_ms, json(self.level.name())?, json(self.event)?)?;
        for (name, value) in &self.fields {
            match value {
                LogValue::Text(text) => write!(f, ",{}:{}", json(name)?, json(text)?)?,
                LogValue::Number(number) => write!(f, ",{}:{number}", json(name)?)?,
            }
        }
        f.write_str("}")
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

fn write(line: &LogLine<'_>) {
    // `eprintln!` would panic if standard error is closed or a full non-blocking pipe. Losing a line is less harmful.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

fn redacted<'t>(text: &'t str, redactors: &[&Redactor]) -> Cow<'t, str> {
    redactors.iter().fold(text.into(), |text, redactor| match text {
        Cow::Borrowed(text) => redactor.redact_str(text),
        Cow::Owned(text) => redactor.redact_string(text).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_payload_is_truncated() {
        let long = "x".repeat(MAX_PAYLOAD_BYTES + 10);
        let fields = [("program", Field::Payload(&long)), ("id", Field::Payload("1"))];
        let text = LogLine::new(5, Level::Debug, "call", &fields, &[]).to_string();
        assert!(text.ends_with("x… and 10 more bytes\",\"id\":\"1\"}"), "{}", text.len());
        assert!(text.len() < MAX_PAYLOAD_BYTES + 200, "{}", text.len());
    }

    #[test]
    fn log_line_is_one_json_object() {
        let fields = [("reason", Field::Text("bad \"quote\"\n")), ("status", Field::Number(400))];
        let line = LogLine::new(5, Level::Warn, "frame refused", &fields, &[]);
        assert_eq!((line.event(), line.text("reason"), line.text("status")), ("frame refused", Some("bad \"quote\"\n"), None));
        assert_eq!(
            line.to_string(),
            r#"{"time_ms":5,"level":"warn","event":"frame refused","reason":"bad \"quote\"\n","status":400}"#
        );
    }
}
