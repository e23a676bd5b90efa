//! Checks the finished path of a request.
//!
//! A parameter is percent-encoded, so that it cannot end its segment. It can still change the meaning of a segment: clients and
//! servers remove `.` and `..`, and a parameter that is only part of a segment (`{a}{b}`, `.{x}`, `{x}?acl`) may complete them.
//! Many servers decode a path before they split it, and treat `..%2Fx` as `../x`. The path is therefore checked as a whole, and
//! in its decoded form.

use std::ops::Range;

use percent_encoding::percent_decode_str;
use ptc_check::argument::shown;
use ptc_lisp::Value;
use ptc_lisp::print::excerpt;
use url::Url;

/// An argument in the path.
pub(super) struct Placed<'v> {
    pub(super) name: &'v str,
    pub(super) value: &'v Value,
    /// Its range in the address.
    pub(super) bytes: Range<usize>,
}

/// Parses the address, and checks that its path does not leave the part before its first argument. The first `base` bytes are the
/// base URL.
pub(super) fn checked(address: &str, base: usize, placed: &[Placed<'_>]) -> Result<Url, String> {
    let parsed = |text: &str| Url::parse(text).map_err(|why| format!("the address of the operation is not a URL: {why}"));
    let part = |range: Range<usize>| address.get(range).unwrap_or_default();
    let end = part(base..address.len()).find(['?', '#']).map_or(address.len(), |at| base + at);
    let mut start = base;
    for segment in part(base..end).split(['/', '\\']) {
        let range = start..start + segment.len();
        if has_dot_segment(segment) {
            return Err(leaves(segment, &range, placed));
        }
        start = range.end + 1;
    }
    // The part up to the last segment without an argument.
    let fixed = placed.first().map_or(end, |first| first.bytes.start.min(end));
    let own = part(base..fixed).rfind('/').map_or(base, |at| base + at + 1);
    let (url, prefix) = (parsed(address)?, parsed(part(0..own))?);
    let written = part(own..end).split('/');
    let is_same = |rest: &str| {
        let mut read = rest.split('/');
        let decoded = |segment: &str| percent_decode_str(segment).collect::<Vec<u8>>();
        written.clone().all(|segment| read.next().is_some_and(|read| decoded(read) == decoded(segment))) && read.next().is_none()
    };
    if url.origin() == prefix.origin() && url.path().strip_prefix(prefix.path()).is_some_and(is_same) {
        return Ok(url);
    }
    Err(format!("the path '{}' would be read as '{}'", excerpt(part(base..end)), excerpt(url.path())))
}

/// Whether a segment contains a dot segment (`.` or `..`, RFC 3986 section 3.3) after percent-decoding. An encoded slash or
/// backslash separates segments too. Some servers remove parameters (`;v=1`) before they resolve dot segments, so they do not
/// count.
fn has_dot_segment(segment: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(segment).collect();
    let name = |part: &[u8]| part.split(|byte| *byte == b';').next().is_some_and(|name| matches!(name, b"." | b".."));
    decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(name)
}

fn leaves(segment: &str, range: &Range<usize>, placed: &[Placed<'_>]) -> String {
    let segment = excerpt(segment);
    let parts: Vec<&Placed<'_>> =
        placed.iter().filter(|arg| arg.bytes.start < range.end && range.start < arg.bytes.end).collect();
    match parts.as_slice() {
        [whole] if whole.bytes == *range => {
            format!("'{}' is part of the path and cannot be {}", whole.name, shown(whole.value))
        }
        [] => format!("the path of the operation has the segment '{segment}', which leads out of it"),
        parts => {
            let names: Vec<String> = parts.iter().map(|part| format!("'{}'", part.name)).collect();
            format!("{} would make the segment '{segment}' of the path, which leads out of the operation", names.join(" and "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(template_path: &str, base: &str) -> Result<String, String> {
        checked(&format!("{base}{template_path}"), base.len(), &[]).map(String::from)
    }

    #[test]
    fn dot_segments_are_refused_in_every_spelling() {
        for path in ["/a/..", "/a/./b", "/a/%2e%2E/b", "/a/.%2e", "/a/%2e", "/a\\..\\b", "/a\\b", "/..?x", "/a/..#x", "/a/\tb"] {
            assert!(read(path, "https://h/v1").is_err(), "{path}");
        }
        // A server that decodes before it splits would see `..` here.
        for path in
            ["/a/..%2Fb", "/a/b%2f..", "/a/b%2F%2e%2e%2Fc", "/a/..%5Cb", "/a/b%5c.", "/a/.%2F", "/a/..;v=1", "/a/..%3Bx/b"]
        {
            assert!(read(path, "https://h/v1").is_err(), "{path}");
        }
    }

    #[test]
    fn paths_without_dot_segments_are_sent_unchanged() {
        for (path, sent) in [
            ("/a/...", "/a/..."),
            ("/a/.b", "/a/.b"),
            ("/a/b..", "/a/b.."),
            ("/a/b%2Fc", "/a/b%2Fc"),
            ("/a/b;v=..", "/a/b;v=.."),
            ("/a/..b%2Fc..", "/a/..b%2Fc.."),
            ("/a/%252e%252e", "/a/%252e%252e"),
            ("/größe/{x}", "/gr%C3%B6%C3%9Fe/%7Bx%7D"),
            ("/a//b/", "/a//b/"),
            ("/a?x=../..", "/a?x=../.."),
        ] {
            assert_eq!(read(path, "https://h/v1"), Ok(format!("https://h/v1{sent}")), "{path}");
        }
        // The config's own path is the operator's responsibility.
        assert_eq!(read("/a", "https://h/v1/../v2"), Ok("https://h/v2/a".to_owned()));
    }
}
