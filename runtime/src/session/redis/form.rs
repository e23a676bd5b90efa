//! The stored form of a session's state.

use ptc_lisp::image;

use super::scripts::Reply;
use crate::session::state::Log;
use crate::session::{Fault, SessionState};
use ptc_engine::evaluation::CalledTools;

/// A session's state: bindings and results as an image, histories as JSON.
pub(super) struct Stored {
    image: Vec<u8>,
    prints: String,
    calls: String,
}

impl Stored {
    /// Encodes a state. Returns an error if it contains a value that cannot be stored.
    pub(super) fn of(kept: &SessionState) -> Result<Stored, Fault> {
        let image = image::encode(&kept.bindings, &kept.results).map_err(|refused| {
            let advice = "give a function that makes it, or the items that are needed; nothing of this evaluation was kept";
            Fault::NotStorable(format!("{refused} with the other replicas' sessions: {advice}"))
        })?;
        Ok(Stored { image, prints: entries(&kept.prints), calls: entries(&kept.upstream_calls) })
    }

    /// Returns the size in bytes.
    pub(super) fn len(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    pub(super) fn parts(&self) -> [&[u8]; 3] {
        [&self.image, self.prints.as_bytes(), self.calls.as_bytes()]
    }
}

fn entries(log: &Log) -> String {
    serde_json::to_string(&log.iter().collect::<Vec<_>>()).unwrap_or_default()
}

/// Decodes a state from the next three parts of a reply. They are empty for a session that never stored a state.
pub(super) fn read(reply: &mut Reply) -> Result<SessionState, Fault> {
    let bytes = reply.bytes()?;
    let (bindings, results) = match bytes.as_slice() {
        [] => Default::default(),
        bytes => image::decode(bytes).map_err(|why| {
            Fault::Unavailable(format!(
                "the session was stored by another version of this server ({why}); lisp_session_start opens another"
            ))
        })?,
    };
    let mut log = || -> Result<Log, Fault> {
        let text = reply.text()?;
        let entries = if text.is_empty() { Ok(Vec::new()) } else { serde_json::from_str(&text) };
        entries.map(Log::from_entries).map_err(|_| super::scripts::unexpected())
    };
    let (prints, upstream_calls) = (log()?, log()?);
    let called = CalledTools::of_records(upstream_calls.iter());
    Ok(SessionState { bindings, results, prints, upstream_calls, called })
}
