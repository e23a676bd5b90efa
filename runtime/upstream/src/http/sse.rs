//! An incremental parser of server-sent events, with a size limit.

use std::borrow::Cow;
use std::time::Duration;

use memchr::{memchr, memchr2};

use crate::mcp::id_scanner::IdScanner;

/// Maximum length of an event's id.
const MAX_ID: usize = 1024;

/// The field with the payload of an event.
const DATA: &[u8] = b"data";

/// Bytes before the payload in a line of data: `data: `. Lines of other fields may be as long as one of data.
const DATA_PREFIX: usize = DATA.len() + 2;

/// Returns the data of every event of a whole stream. The last one need not end with an empty line.
pub(crate) fn data(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut events = Events::default();
    let mut fed = |bytes| events.feed(bytes, usize::MAX).unwrap_or_default();
    let mut all = fed(stream);
    all.extend(fed(b"\n\n"));
    all
}

/// What a stream consists of, for the fuzz targets.
#[cfg(feature = "fuzzing")]
#[derive(Debug, PartialEq, Eq)]
pub struct StreamContents {
    /// The data of every event, the last one of which need not be complete.
    pub events: Vec<Vec<u8>>,
    /// The event id after which the stream can be resumed.
    pub last_id: Option<Vec<u8>>,
    /// The delay before the stream is resumed.
    pub retry: Option<Duration>,
    /// The data of the first `endpoint` event.
    pub endpoint: Option<Vec<u8>>,
    /// The ids in the events that were skipped.
    pub skipped: Vec<Option<u64>>,
    /// The largest number of bytes that were kept of an incomplete event.
    pub held: u64,
}

/// Parses a stream that arrives in these chunks. `None` if an event has more than `max` bytes, unless such events are skipped.
#[cfg(feature = "fuzzing")]
pub(crate) fn contents<'c>(chunks: impl IntoIterator<Item = &'c [u8]>, max: usize, skips: bool) -> Option<StreamContents> {
    let mut parser = if skips { Events::skipping() } else { Events::default() };
    let (mut events, mut held) = (Vec::new(), 0);
    for chunk in chunks {
        events.extend(parser.feed(chunk, max).ok()?);
        held = held.max(parser.held());
    }
    events.extend(parser.finish());
    Some(StreamContents {
        events,
        last_id: parser.last_id().map(<[u8]>::to_vec),
        retry: parser.retry(),
        endpoint: parser.endpoint().map(<[u8]>::to_vec),
        skipped: parser.take_skipped().into_iter().map(|skipped| skipped.id).collect(),
        held,
    })
}

/// Splits a stream into the `data` of its events. Comments and unknown fields are ignored.
#[derive(Default)]
pub(super) struct Events {
    /// Bytes after the last complete line.
    partial: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// Whether the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
    started: bool,
    /// The id of the incomplete event, and that of the last complete one.
    id: Option<Vec<u8>>,
    last_id: Option<Vec<u8>>,
    retry: Option<Duration>,
    /// The type of the incomplete event, and the data of the first `endpoint` event.
    kind: Kind,
    endpoint: Option<Vec<u8>>,
    /// The events that were skipped, if events that are too large are skipped, which is not an error then.
    skipped: Option<Vec<Skipped>>,
    skipping: Option<Skipping>,
}

/// The type of an event.
#[derive(Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Message,
    Endpoint,
}

/// An event that is being skipped.
#[derive(Default)]
struct Skipping {
    scanner: IdScanner,
    bytes: u64,
    /// The name of the incomplete line's field, as far as it can be `data`.
    name: Vec<u8>,
    position: Position,
}

/// The position in a line that is being skipped.
#[derive(Default, PartialEq, Eq)]
enum Position {
    #[default]
    Name,
    /// After the colon of a data field, where a space does not count.
    DataStart,
    Data,
    /// In the value of another field.
    Other,
}

impl Skipping {
    /// Reads a part of a line. The scanner reads the data alone, as it does of an event that is kept.
    fn feed(&mut self, mut part: &[u8]) {
        self.bytes += part.len() as u64;
        if self.position == Position::Name {
            let end = memchr(b':', part);
            let name = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            // One byte more than `data` has shows that it is another name.
            let room = (DATA.len() + 1).saturating_sub(self.name.len());
            self.name.extend(name.iter().take(room));
            let Some(end) = end else { return };
            self.position = if self.name == DATA { Position::DataStart } else { Position::Other };
            part = part.get(end + 1..).unwrap_or_default();
        }
        if self.position == Position::DataStart && !part.is_empty() {
            part = part.strip_prefix(b" ").unwrap_or(part);
            self.position = Position::Data;
        }
        if self.position == Position::Data {
            self.scanner.feed(part);
        }
    }

    fn end_line(&mut self) {
        self.name.clear();
        self.position = Position::Name;
    }
}

/// A skipped event: the id of its message, if it has one, and its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) id: Option<u64>,
    pub(super) bytes: u64,
}

/// An event or a line exceeds the size limit. Contains the bytes received of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge(pub(super) u64);

impl Events {
    /// Creates a parser that skips events that are too large.
    pub(super) fn skipping() -> Events {
        Events { skipped: Some(Vec::new()), ..Events::default() }
    }

    /// Returns the events that were skipped since the last time.
    pub(super) fn take_skipped(&mut self) -> Vec<Skipped> {
        self.skipped.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Parses more bytes. Returns the data of every event that they complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], max: usize) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes.first() == Some(&b'\n') {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                match &mut self.skipping {
                    Some(skipping) => {
                        skipping.feed(bytes);
                        // The line is not empty, so that it does not end the event.
                        self.partial = vec![0];
                    }
                    None => self.partial.extend_from_slice(bytes),
                }
                break;
            };
            let (part, rest) = bytes.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            if self.skipping.is_some() {
                self.skip_line(part);
                continue;
            }
            let line: Cow<'_, [u8]> = if self.partial.is_empty() {
                part.into()
            } else {
                self.partial.extend_from_slice(part);
                std::mem::take(&mut self.partial).into()
            };
            if self.is_too_long(&line, max) {
                self.started = true;
                self.overflow(line.len() + self.data.len())?;
            } else {
                self.line(&line, &mut events);
                if self.data.len() > max {
                    self.overflow(self.data.len())?;
                }
            }
        }
        if self.skipping.is_none() && self.is_too_large(max) {
            self.overflow(self.partial.len() + self.data.len())?;
        }
        Ok(events)
    }

    /// Whether the incomplete event has more than `max` bytes, or an incomplete line that is too long. Only a line of data adds to
    /// the event, so that it does not depend on the chunks whether an event is too large.
    fn is_too_large(&self, max: usize) -> bool {
        match field(self.without_mark(&self.partial)) {
            (DATA, Some(value)) => self.data.len() + usize::from(self.has_data) + value.len() > max,
            _ => self.is_too_long(&self.partial, max),
        }
    }

    /// Whether a line that is not data is longer than a line of data can be.
    fn is_too_long(&self, line: &[u8], max: usize) -> bool {
        let line = self.without_mark(line);
        line.len() > max.saturating_add(DATA_PREFIX) && field(line).0 != DATA
    }

    /// Returns a line without the byte order mark that a stream may begin with.
    fn without_mark<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        line.strip_prefix(b"\xef\xbb\xbf").filter(|_| !self.started).unwrap_or(line)
    }

    /// Begins to skip the incomplete event, of which `seen` bytes were received.
    fn overflow(&mut self, seen: usize) -> Result<(), TooLarge> {
        if self.skipped.is_none() {
            return Err(TooLarge(seen as u64));
        }
        let mut skipping = Skipping::default();
        let data = std::mem::take(&mut self.data);
        skipping.scanner.feed(&data);
        skipping.bytes = data.len() as u64;
        skipping.feed(self.without_mark(&self.partial));
        self.started = true;
        self.partial.truncate(1);
        self.partial.shrink_to_fit();
        self.skipping = Some(skipping);
        Ok(())
    }

    /// Skips the end of a line. An empty line ends the event.
    fn skip_line(&mut self, part: &[u8]) {
        if let Some(skipping) = &mut self.skipping {
            skipping.feed(part);
            skipping.end_line();
        }
        if std::mem::take(&mut self.partial).is_empty()
            && part.is_empty()
            && let Some(Skipping { scanner, bytes, .. }) = self.skipping.take()
        {
            self.skipped.get_or_insert_default().push(Skipped { id: scanner.id(), bytes });
            (self.has_data, self.kind, self.id) = (false, Kind::Message, None);
        }
    }

    /// Returns the number of bytes of the incomplete event.
    pub(super) fn held(&self) -> u64 {
        (self.partial.len() + self.data.len()) as u64
    }

    /// Returns the id of the last complete event with an id, after which a broken stream can be resumed.
    pub(super) fn last_id(&self) -> Option<&[u8]> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Returns the delay before resuming a broken stream that the server requests.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the data of the first `endpoint` event, which is not a message: the URL for requests over HTTP+SSE.
    pub(super) fn endpoint(&self) -> Option<&[u8]> {
        self.endpoint.as_deref()
    }

    /// Prepares for a new stream. Incomplete events will be sent again.
    pub(super) fn restart(&mut self) {
        *self = Events { last_id: self.last_id.take(), retry: self.retry, ..Events::default() };
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<Vec<u8>>) {
        let line = self.without_mark(line);
        self.started = true;
        if line.is_empty() {
            if let Some(id) = self.id.take() {
                self.last_id = Some(id);
            }
            let data = std::mem::take(&mut self.data);
            if std::mem::take(&mut self.kind) == Kind::Endpoint {
                self.has_data = false;
                self.endpoint.get_or_insert(data);
            } else if std::mem::take(&mut self.has_data) && !data.is_empty() {
                events.push(data);
            }
            return;
        }
        let (name, value) = field(line);
        let value = value.unwrap_or_default();
        match name {
            DATA => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.kind = if value == b"endpoint" { Kind::Endpoint } else { Kind::Message },
            b"id" if value.len() <= MAX_ID && !value.contains(&0) => self.id = Some(value.to_vec()),
            b"retry" => {
                let ms = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = ms.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }

    /// Returns the last event of a stream that ended without an empty line.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        if self.skipping.is_some() {
            return None;
        }
        let line = std::mem::take(&mut self.partial);
        let complete = self.last_id.clone();
        let mut events = Vec::new();
        self.line(&line, &mut events);
        self.line(b"", &mut events);
        // An event that may be truncated is not a position at which to resume.
        self.last_id = complete;
        events.pop()
    }
}

/// Splits a line into the name of its field and the value, if there is a colon.
fn field(line: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr(b':', line) {
        None => (line, None),
        Some(colon) => {
            let value = line.get(colon + 1..).unwrap_or_default();
            (line.get(..colon).unwrap_or_default(), Some(value.strip_prefix(b" ").unwrap_or(value)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": hello\r\nevent: message\r\ndata: {\"a\":\r\ndata:1}\r\nid: 5\r\n\r\n:\nretry: 30\nretry: x\n\ndata\n\ndatum: x\ndata: é\n\ndata: cut";

    #[test]
    fn events_are_independent_of_chunk_boundaries() {
        for step in 1..STREAM.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for chunk in STREAM.as_bytes().chunks(step) {
                found.extend(events.feed(chunk, 1000).unwrap());
            }
            found.extend(events.finish());
            let found: Vec<_> = found.into_iter().map(|e| String::from_utf8(e).unwrap()).collect();
            assert_eq!(found, ["{\"a\":\n1}", "é", "cut"], "{step}");
            assert_eq!((events.last_id(), events.retry()), (Some(&b"5"[..]), Some(Duration::from_millis(30))), "{step}");
        }
    }

    #[test]
    fn large_event_is_refused() {
        let mut events = Events::default();
        assert_eq!(events.feed(b"data: 12345678\n\n", 8), Ok(vec![b"12345678".to_vec()]));
        assert_eq!(events.feed(b"data: 123456789\n", 8), Err(TooLarge(9)));
        assert_eq!(Events::default().feed(b"data: 12345678901234567890", 8), Err(TooLarge(26)));
    }

    #[test]
    fn id_of_a_skipped_large_event_is_found_at_any_chunk_boundary() {
        let large = "x".repeat(50);
        let stream = format!(
            "data: {{\"result\":{{\"id\":3,\"text\":\"{large}\"}},\r\ndata: \"id\": 7}}\r\n\r\ndata: small\n\ndata: {large}\ndata: {large}\n\nevent: \
             endpoint\ndata: {large}\n\ndata: end\n\n"
        );
        for step in 1..stream.len() {
            let mut events = Events::skipping();
            let found: Vec<_> = stream.as_bytes().chunks(step).flat_map(|chunk| events.feed(chunk, 20).unwrap()).collect();
            assert_eq!(found, [b"small".to_vec(), b"end".to_vec()], "{step}");
            let ids: Vec<_> = events.take_skipped().into_iter().map(|skipped| (skipped.id, skipped.bytes >= 50)).collect();
            assert_eq!(ids, [(Some(7), true), (None, true), (None, true)], "{step}");
            assert_eq!(events.endpoint(), None, "{step}");
        }
    }

    #[test]
    fn event_size_limit_is_independent_of_chunk_boundaries() {
        let comment = format!(": {}", "x".repeat(50));
        let cases = [
            // A line that is too long is refused whole, too.
            (format!("data: 1\n{comment}\n\ndata: 2\n\n"), 20, &["2"][..], vec![None]),
            // The field after data of the maximum size does not count.
            ("data: 12345678\nevent: message\nid: 1\n\n".to_owned(), 8, &["12345678"], vec![]),
            ("\u{feff}data: 12345678\n\n".to_owned(), 8, &["12345678"], vec![]),
            // The names of fields are not part of the message.
            ("data: {\"id\"\ndata: :\ndata: 7}\n\n".to_owned(), 5, &[], vec![Some(7)]),
        ];
        for (stream, max, expected, ids) in cases {
            for step in 1..=stream.len() {
                let mut events = Events::skipping();
                let found: Vec<_> = stream.as_bytes().chunks(step).flat_map(|chunk| events.feed(chunk, max).unwrap()).collect();
                assert_eq!(found, expected.iter().map(|event| event.as_bytes().to_vec()).collect::<Vec<_>>(), "{stream} {step}");
                assert_eq!(
                    events.take_skipped().into_iter().map(|skipped| skipped.id).collect::<Vec<_>>(),
                    ids,
                    "{stream} {step}"
                );
                let mut events = Events::default();
                let refused = stream.as_bytes().chunks(step).any(|chunk| events.feed(chunk, max).is_err());
                assert_eq!(refused, !ids.is_empty(), "{stream} {step}");
            }
        }
    }
}
