//! Finds the id of a response that is too large to keep.

use super::wire;

/// Maximum bytes that are kept of a name or an id. A longer id is not one of ours.
const MAX_KEPT: usize = 32;

/// Finds the top-level `id` at any position in a JSON object that is too large to keep.
#[derive(Default)]
pub(crate) struct IdScanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The last string at depth 1, as far as it can be `id`. Its escapes are kept, so that no other name becomes `id` without them.
    key: Vec<u8>,
    /// Whether the scanner is in the value after `"id":`.
    in_id: bool,
    /// This value, without white space around it. It is longer than [`MAX_KEPT`] if a part of it was not kept.
    value: Vec<u8>,
    found: Option<u64>,
}

impl IdScanner {
    /// Scans further bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            let ends = byte == b'"' && !self.escaped;
            if self.in_id || !ends {
                self.keep(byte);
            }
            self.escaped = byte == b'\\' && !self.escaped;
            self.in_string = !ends;
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.in_id {
                    self.keep(byte);
                } else if self.depth == 1 {
                    self.key.clear();
                }
            }
            b'{' | b'[' => {
                if self.in_id {
                    self.keep(byte);
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.in_id = self.key == b"id",
            b',' if self.depth == 1 => self.end_value(),
            _ if self.in_id && !byte.is_ascii_whitespace() => self.keep(byte),
            _ => {}
        }
    }

    /// Keeps a byte of a name or an id.
    fn keep(&mut self, byte: u8) {
        let kept = if self.in_id { &mut self.value } else { &mut self.key };
        if self.depth == 1 && kept.len() <= MAX_KEPT {
            kept.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.depth == 1 && self.in_id {
            let value = std::str::from_utf8(&self.value).ok().filter(|value| value.len() <= MAX_KEPT);
            self.found = value.and_then(wire::parse_id);
            self.value.clear();
            self.in_id = false;
        }
    }

    /// Returns the id, if there is one.
    pub(crate) fn id(mut self) -> Option<u64> {
        self.end_value();
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::wire::{Frame, ServerMessage};

    #[test]
    fn scanner_finds_the_id_that_the_parser_finds() {
        for (frame, id) in [
            (r#"{"id":7,"result":{"id":8}}"#, Some(7)),
            (r#"{"result":[{"id":8}],"id" : "7" }"#, Some(7)),
            (r#"{"result":"\"id\":8","id":7}"#, Some(7)),
            (r#"{"result":0,"id":1.5}"#, None),
            (r#"{"result":0,"id":1e2}"#, None),
            (r#"{"result":0,"id":-3}"#, None),
            (r#"{"result":0,"id":{"a":5}}"#, None),
            (r#"{"result":0,"id":[5]}"#, None),
            (r#"{"result":0,"id":"a5"}"#, None),
            (r#"{"result":0,"id":"\u0035"}"#, None),
            (r#"{"result":0,"\nid":5}"#, None),
            (r#"{"result":0,"id":18446744073709551616}"#, None),
            (r#"{"result":"id"}"#, None),
        ] {
            let mut scanner = IdScanner::default();
            scanner.feed(frame.as_bytes());
            assert_eq!(scanner.id(), id, "{frame}");
            let message = Frame::parse(frame.as_bytes()).unwrap().remove(0).classify();
            let parsed = if let ServerMessage::Response(id, _) = message { Some(id) } else { None };
            assert_eq!(parsed, id, "{frame}");
        }
    }
}
