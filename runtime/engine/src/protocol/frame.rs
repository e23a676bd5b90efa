//! Splits a stream into newline-delimited frames, with a limit on their size that applies before decoding.

use std::io::{ErrorKind, Read};

/// Splits a byte stream into frames.
pub struct Frames<R> {
    input: R,
    /// The buffer is zeroed once. Only `..end` contains bytes of the stream. Zeroing it for each read would cost more than the
    /// read.
    buffer: Vec<u8>,
    /// Start of the unread bytes.
    start: usize,
    /// Offset at which to continue the search for a newline.
    scanned: usize,
    /// End of the unread bytes.
    end: usize,
    max_bytes: usize,
    discarding: bool,
}

/// One frame, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line within the limit.
    Line(&'a [u8]),
    /// A line over the limit, which was skipped.
    Oversized,
}

const CHUNK: usize = 64 * 1024;

impl<R: Read> Frames<R> {
    /// Reads frames from `input`, each with at most `max_bytes` without its newline.
    pub fn new(input: R, max_bytes: usize) -> Self {
        Frames { input, buffer: vec![0; CHUNK], start: 0, scanned: 0, end: 0, max_bytes, discarding: false }
    }

    /// Returns the next frame, or `None` at the end of input. A last line without a newline is a frame.
    ///
    /// # Errors
    ///
    /// Returns the error of the input if it cannot be read. Interrupted reads are repeated.
    pub fn next_frame(&mut self) -> std::io::Result<Option<Frame<'_>>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', self.bytes(self.scanned, self.end)) {
                let (start, end) = (self.start, self.scanned + at);
                self.start = end + 1;
                self.scanned = self.start;
                let oversized = std::mem::take(&mut self.discarding) || end - start > self.max_bytes;
                return Ok(Some(if oversized { Frame::Oversized } else { Frame::Line(self.bytes(start, end)) }));
            }
            self.scanned = self.end;
            if self.discarding || self.end - self.start > self.max_bytes {
                self.discarding = true;
                self.start = self.end;
            }
            if !self.fill()? {
                let (start, end) = (self.start, self.end);
                self.start = end;
                self.scanned = end;
                return Ok(if std::mem::take(&mut self.discarding) {
                    Some(Frame::Oversized)
                } else if start == end {
                    None
                } else {
                    Some(Frame::Line(self.bytes(start, end)))
                });
            }
        }
    }

    fn bytes(&self, start: usize, end: usize) -> &[u8] {
        self.buffer.get(start..end).unwrap_or_default()
    }

    /// Reads more bytes. Returns false at the end of input.
    fn fill(&mut self) -> std::io::Result<bool> {
        self.make_room();
        loop {
            match self.input.read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
                Ok(read) => {
                    self.end += read;
                    return Ok(read > 0);
                }
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.scanned -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == 0 && self.buffer.len() > CHUNK {
            // The memory of one large frame is released early.
            self.buffer = vec![0; CHUNK];
        } else if self.end == self.buffer.len() {
            // Doubling the buffer makes the copying of a large frame linear; the limit bounds it. Memory that the system provides
            // zeroed is not written twice.
            let full = std::mem::take(&mut self.buffer);
            self.buffer = vec![0; self.end * 2];
            self.buffer.get_mut(..self.end).unwrap_or_default().copy_from_slice(&full);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its parts one at a time, like a pipe.
    struct Parts(Vec<Vec<u8>>);

    impl Read for Parts {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let Some(part) = self.0.first_mut() else { return Ok(0) };
            let n = part.len().min(into.len());
            into[..n].copy_from_slice(&part[..n]);
            part.drain(..n);
            if part.is_empty() {
                self.0.remove(0);
            }
            Ok(n)
        }
    }

    fn frames(parts: &[&[u8]], max: usize) -> Vec<String> {
        let mut frames = Frames::new(Parts(parts.iter().map(|p| p.to_vec()).collect()), max);
        let mut all = Vec::new();
        while let Some(frame) = frames.next_frame().expect("the parts give no fault") {
            all.push(match frame {
                Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
                Frame::Oversized => "OVERSIZED".into(),
            });
        }
        all
    }

    #[test]
    fn lines_are_joined_across_reads() {
        assert_eq!(frames(&[b"ab", b"c\nd", b"ef\n\ngh"], 10), ["abc", "def", "", "gh"]);
        assert_eq!(frames(&[], 10), [] as [&str; 0]);
    }

    #[test]
    fn line_limit_is_exact_and_later_lines_are_read() {
        assert_eq!(frames(&[b"12345\n123456\n1\n"], 5), ["12345", "OVERSIZED", "1"]);
        assert_eq!(frames(&[b"1234", b"56", b"7", b"8\nok\n"], 5), ["OVERSIZED", "ok"]);
        assert_eq!(frames(&[b"1234567"], 5), ["OVERSIZED"]);
        let long = vec![b'x'; 3 * CHUNK];
        assert_eq!(frames(&[&long, &long, b"\nok\n"], 2 * CHUNK), ["OVERSIZED", "ok"]);
    }

    #[test]
    fn large_frames_are_complete() {
        let long = vec![b'x'; 5 * CHUNK + 7];
        let got = frames(&[&long, b"\n", &long, b"\nz\n"], 6 * CHUNK);
        assert_eq!(got.iter().map(String::len).collect::<Vec<_>>(), [long.len(), long.len(), 1]);
    }
}
