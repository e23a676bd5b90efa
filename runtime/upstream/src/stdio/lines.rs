//! Reads newline-delimited frames with a size limit.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use crate::mcp::id_scanner::IdScanner;

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end.
    Whole(Vec<u8>),
    /// A line over the limit, which was read to its end and discarded.
    TooLong {
        /// The number in its top-level `id`, if there is one.
        id: Option<u64>,
        /// Its length in bytes.
        bytes: u64,
    },
    /// The end of the input.
    End,
}

/// Returns the next line, of at most `max` bytes.
pub(super) async fn next(source: &mut (impl AsyncBufRead + Unpin), max: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut skipped: Option<IdScanner> = None;
    let mut bytes = 0;
    loop {
        let chunk = source.fill_buf().await?;
        if chunk.is_empty() {
            // A last line without a line end is a truncated frame.
            return Ok(Line::End);
        }
        let (part, used, ended) = match memchr(b'\n', chunk) {
            Some(at) => (chunk.get(..at).unwrap_or_default(), at + 1, true),
            None => (chunk, chunk.len(), false),
        };
        if skipped.is_none() && line.len() + part.len() > max {
            let mut scanner = IdScanner::default();
            scanner.feed(&line);
            line = Vec::new();
            skipped = Some(scanner);
        }
        match &mut skipped {
            Some(scanner) => scanner.feed(part),
            None => line.extend_from_slice(part),
        }
        bytes += part.len() as u64;
        source.consume(used);
        if ended {
            return Ok(match skipped {
                Some(scanner) => Line::TooLong { id: scanner.id(), bytes },
                None => Line::Whole(line),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, max: usize) -> Vec<Line> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut source = tokio::io::BufReader::with_capacity(7, text.as_bytes());
            let mut found = Vec::new();
            loop {
                match next(&mut source, max).await.unwrap() {
                    Line::End => return found,
                    line => found.push(line),
                }
            }
        })
    }

    #[test]
    fn lines_above_the_cap_are_skipped_and_their_id_is_found() {
        let big = "x".repeat(100);
        let cases = [
            (format!(r#"{{"id":12,"result":"{big}"}}"#), Some(12)),
            (format!(r#"{{"result":{{"id":3,"t":"{big}\"id\":4"}},"jsonrpc":"2.0", "id" : 56 }}"#), Some(56)),
            (format!(r#"{{"result":["{big}"],"id":"78"}}"#), Some(78)),
            (format!(r#"{{"result":["{big}"]}}"#), None),
            (big.clone(), None),
        ];
        for (line, id) in cases {
            let found = lines(&format!("{line}\nshort\n"), 50);
            let bytes = line.len() as u64;
            assert_eq!(found, [Line::TooLong { id, bytes }, Line::Whole(b"short".to_vec())], "{line}");
        }
        assert_eq!(lines("12345\n123456\ncut", 5), [Line::Whole(b"12345".to_vec()), Line::TooLong { id: None, bytes: 6 }]);
    }
}
