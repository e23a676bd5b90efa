//! The stamp of a prebuilt runtime: version, digest of its sources, and platform, as one line among the bytes of the executable.

/// The beginning of a stamp. The rest of the line has the three parts, with a space between them.
const PREFIX: &str = "\nptc-prebuilt-runtime ";

/// Length of [`write()`]'s result: stamps of different versions and platforms have the same type.
pub const BYTES: usize = 256;

/// What a prebuilt runtime says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The version of the runtime, such as `0.1.0`.
    pub version: String,
    /// SHA-256 of the runtime's sources, as `sha256:` and hexadecimal digits.
    pub digest: String,
    /// The platform as a target triple, such as `x86_64-unknown-linux-gnu`.
    pub target: String,
}

impl Stamp {
    /// Finds the stamp among the bytes of an executable. Returns `None` if the file is not a prebuilt runtime.
    pub fn find(executable: &[u8]) -> Option<Stamp> {
        let mut places = memchr::memmem::find_iter(executable, PREFIX);
        places.find_map(|at| Stamp::read(executable.get(at + PREFIX.len()..)?))
    }

    /// Returns the suffix of executables on the platform.
    pub fn exe_suffix(&self) -> &'static str {
        if self.target.contains("windows") { ".exe" } else { "" }
    }

    fn read(rest: &[u8]) -> Option<Stamp> {
        let line = rest.get(..BYTES.min(rest.len()))?.split(|byte| *byte == b'\n').next()?;
        let mut words = std::str::from_utf8(line).ok()?.split(' ').map(str::to_owned);
        let stamp = Stamp { version: words.next()?, digest: words.next()?, target: words.next()? };
        let is_digest = stamp.digest.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64);
        (is_digest && !stamp.target.is_empty() && words.next().is_none()).then_some(stamp)
    }
}

/// Returns the stamp of a runtime, for a `#[used]` static of its program.
///
/// # Panics
///
/// Panics, when it is evaluated by the compiler, if the parts are longer than [`BYTES`] together.
pub const fn write(version: &str, digest: &str, target: &str) -> [u8; BYTES] {
    let mut stamp = [b'\n'; BYTES];
    let at = copy(&mut stamp, 0, PREFIX);
    let at = copy(&mut stamp, at, version);
    let at = copy(&mut stamp, at, " ");
    let at = copy(&mut stamp, at, digest);
    let at = copy(&mut stamp, at, " ");
    let at = copy(&mut stamp, at, target);
    assert!(at < BYTES, "the line has an end");
    stamp
}

#[expect(clippy::indexing_slicing, reason = "it runs in the compiler, which reports an index that is too large")]
const fn copy(to: &mut [u8; BYTES], at: usize, text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut next = 0;
    while next < bytes.len() {
        to[at + next] = bytes[next];
        next += 1;
    }
    at + bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn stamp_is_found_among_other_bytes() {
        static WRITTEN: [u8; BYTES] = write("0.1.0", DIGEST, "x86_64-unknown-linux-gnu");
        let stamp = Stamp { version: "0.1.0".into(), digest: DIGEST.into(), target: "x86_64-unknown-linux-gnu".into() };
        for before in [&b""[..], b"\x7fELF", PREFIX.as_bytes(), b"\nptc-prebuilt-runtime one two three\n"] {
            let executable = [before, &WRITTEN, b"\xff\x00"].concat();
            assert_eq!(Stamp::find(&executable), Some(stamp.clone()));
        }
        assert_eq!(Stamp::find(b"\x7fELF, and no stamp"), None);
        assert_eq!(Stamp::find(&WRITTEN[..60]), None);
    }
}
