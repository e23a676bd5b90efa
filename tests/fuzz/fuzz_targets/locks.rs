//! Reads arbitrary lock files. Each one is read, or refused with an error, and what was read is written and read again as the same.
//!
//! Digests are corrected first, since a changed file would not get past them.
#![no_main]

mod findings;

use libfuzzer_sys::fuzz_target;
use ptc_compiler::diag::{Code, Diagnostics};
use ptc_compiler::json::Json;
use ptc_compiler::lock::{Lock, LockedTool, read, write};
use ptc_compiler::source::{self, Sources, Span};
use ptc_compiler::tree;

/// Maximum number of digests that are corrected.
const MAX_CORRECTIONS: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut text) = source::decode(bytes.to_vec()) else { return };
    for _ in 0..=MAX_CORRECTIONS {
        match parse(&text) {
            Ok(lock) => return check(&lock),
            Err(Some(corrected)) => text = corrected,
            Err(None) => return,
        }
    }
});

/// Reads a lock file. If only a digest is wrong, the error is the text with another digest.
fn parse(text: &str) -> Result<Lock, Option<String>> {
    let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
    let file = sources.add("upstreams.lock.json", text);
    let lock = read::read_with_places(&sources, file, &mut diagnostics);
    findings::check(&sources, file, &diagnostics);
    assert!(lock.is_some() || diagnostics.has_errors(), "nothing is read and no error is reported");
    if let Some((lock, places)) = lock {
        for (name, upstream) in &lock.upstreams {
            assert!(places.upstream(name).is_some());
            assert!(upstream.tools.keys().all(|tool| places.tool(name, tool).is_some()));
        }
        return Ok(lock);
    }
    let wrong = diagnostics.sorted().into_iter().find(|finding| finding.code == Code::LockDigest);
    let Some(label) = wrong.and_then(|finding| finding.primary.as_ref()) else { return Err(None) };
    let digest = wrong.and_then(|finding| finding.message.split("has the digest ").nth(1)).map(str::to_owned);
    let digest = digest.or_else(|| digest_of_tool(&sources, &label.place));
    let text = &sources.get(file).text;
    let (start, end) = (label.place.range.start as usize, label.place.range.end as usize);
    Err(digest.map(|digest| format!("{}\"{digest}\"{}", &text[..start], &text[end..])))
}

/// Returns the digest of the tool whose digest is at a place.
fn digest_of_tool(sources: &Sources, place: &Span) -> Option<String> {
    let root = tree::parse(sources, place.file, &mut Diagnostics::default())?;
    let upstreams = root.get("upstreams")?.members().iter();
    let mut tools = upstreams.filter_map(|upstream| upstream.value.get("tools")).flat_map(tree::Node::members);
    let tool = tools.find(|tool| tool.value.get("digest").is_some_and(|digest| digest.range == place.range))?;
    Some(LockedTool::new(Json::from(tool.value.get("definition")?)).digest)
}

fn check(lock: &Lock) {
    let text = write::write(lock);
    let again = parse(&text).unwrap_or_else(|_| panic!("what was written is not read:\n{text}"));
    assert_eq!(again, *lock);
    assert_eq!(write::write(&again), text);
    assert_eq!(again.catalog_digest(), lock.catalog_digest());
}
