//! Finds the id of a response that is too large to keep.

/// Finds the top-level `id` at any position in a JSON object that is too large to keep.
#[derive(Default)]
pub(crate) struct IdScanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The last string at depth 1, as far as it can be `id`.
    key: Vec<u8>,
    /// Whether the scanner is in the value after `"id":`.
    in_id: bool,
    digits: Vec<u8>,
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
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ if self.depth == 1 => {
                    let kept = if self.in_id { &mut self.digits } else { &mut self.key };
                    if kept.len() < 20 {
                        kept.push(byte);
                    }
                }
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && !self.in_id {
                    self.key.clear();
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.in_id = self.key == b"id",
            b',' if self.depth == 1 => self.end_value(),
            b'0'..=b'9' if self.in_id && self.depth == 1 && self.digits.len() < 20 => self.digits.push(byte),
            _ => {}
        }
    }

    fn end_value(&mut self) {
        if self.depth == 1 && self.in_id {
            self.found = std::str::from_utf8(&self.digits).ok().and_then(|digits| digits.parse().ok());
            self.digits.clear();
            self.in_id = false;
        }
    }

    /// Returns the id, if there is one.
    pub(crate) fn id(mut self) -> Option<u64> {
        self.end_value();
        self.found
    }
}
