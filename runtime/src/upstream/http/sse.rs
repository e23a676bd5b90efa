//! Server-sent events, read as bytes arrive and under a cap.

use memchr::memchr2;

/// Splits a stream into the `data` of its events. Comments and other fields are passed over.
#[derive(Default)]
pub(super) struct Events {
    /// Bytes after the last complete line.
    partial: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    started: bool,
}

/// An event, or a line, is larger than the cap.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

impl Events {
    /// Takes the next bytes, and gives the data of every event that they complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8], max: usize) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes.first() == Some(&b'\n') {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.partial.extend_from_slice(bytes);
                break;
            };
            let (part, rest) = bytes.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            if self.partial.is_empty() {
                self.line(part, &mut events);
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(part);
                self.line(&line, &mut events);
            }
            if self.data.len() > max {
                return Err(TooLarge);
            }
        }
        // `data: ` stands before the payload.
        if self.partial.len() + self.data.len() > max.saturating_add(6) { Err(TooLarge) } else { Ok(events) }
    }

    fn line(&mut self, line: &[u8], events: &mut Vec<Vec<u8>>) {
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if !self.started => rest,
            _ => line,
        };
        self.started = true;
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if std::mem::take(&mut self.has_data) && !data.is_empty() {
                events.push(data);
            }
            return;
        }
        let Some(value) = line.strip_prefix(b"data") else { return };
        let value = match value.split_first() {
            None => &[],
            Some((b':', value)) => value.strip_prefix(b" ").unwrap_or(value),
            // Another field whose name starts with `data`.
            Some(_) => return,
        };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
    }

    /// The event that the stream ended in, where its last empty line is missing.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.partial);
        let mut events = Vec::new();
        self.line(&line, &mut events);
        self.line(b"", &mut events);
        events.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        ": hello\r\nevent: message\r\ndata: {\"a\":\r\ndata:1}\r\nid: 5\r\n\r\n:\n\ndata\n\ndatum: x\ndata: é\n\ndata: cut";

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        for step in 1..STREAM.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for chunk in STREAM.as_bytes().chunks(step) {
                found.extend(events.feed(chunk, 1000).unwrap());
            }
            found.extend(events.finish());
            let found: Vec<_> = found.into_iter().map(|e| String::from_utf8(e).unwrap()).collect();
            assert_eq!(found, ["{\"a\":\n1}", "é", "cut"], "{step}");
        }
    }

    #[test]
    fn a_large_event_is_refused() {
        let mut events = Events::default();
        assert_eq!(events.feed(b"data: 12345678\n\n", 8), Ok(vec![b"12345678".to_vec()]));
        assert_eq!(events.feed(b"data: 123456789\n", 8), Err(TooLarge));
        assert_eq!(Events::default().feed(b"data: 12345678901234567890", 8), Err(TooLarge));
    }
}
