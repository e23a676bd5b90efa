//! Scans strings without an escape, eight bytes at a time (SWAR).

/// Returns the length of the run at the start of `bytes` that may occur unescaped in a JSON string, and whether it is all ASCII.
/// The run ends at a quote, a backslash, a control character or the end.
#[inline]
pub(super) fn run(bytes: &[u8]) -> (usize, bool) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    /// Sets the high bit of every zero byte. Bytes above a zero byte may be marked wrongly.
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGH
    }
    let mut len = 0;
    let mut beyond = 0;
    while let Some(chunk) = bytes.get(len..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let ends = control | zeros(word ^ (ONES * 0x22)) | zeros(word ^ (ONES * 0x5C));
        if ends != 0 {
            // The lowest mark is correct, since wrong marks occur only above a correct one.
            let before = ends.trailing_zeros() - 7;
            let kept = if before == 0 { 0 } else { word << (64 - before) };
            return (len + before as usize / 8, (beyond | kept) & HIGH == 0);
        }
        beyond |= word;
        len += 8;
    }
    for &byte in bytes.get(len..).unwrap_or_default() {
        if matches!(byte, b'"' | b'\\' | 0..=0x1F) {
            break;
        }
        beyond |= u64::from(byte);
        len += 1;
    }
    (len, beyond & HIGH == 0)
}

#[cfg(test)]
mod tests {
    use super::run;

    /// Reference implementation of [`run`], byte by byte.
    fn slow(bytes: &[u8]) -> (usize, bool) {
        let run: Vec<u8> = bytes.iter().copied().take_while(|b| !matches!(b, b'"' | b'\\' | 0..=0x1F)).collect();
        (run.len(), run.is_ascii())
    }

    #[test]
    fn plain_prefix_equals_bytewise_reference() {
        for end in 0..=255_u8 {
            for len in 0..20 {
                for wide in 0..=len {
                    let mut bytes = vec![b'a'; len];
                    if let Some(byte) = bytes.get_mut(wide) {
                        *byte = 0xC3;
                    }
                    bytes.extend([end, b'!', end.wrapping_add(1), b'"', 0x7F, 0x80]);
                    assert_eq!(run(&bytes), slow(&bytes), "{bytes:?}");
                }
            }
        }
    }
}
