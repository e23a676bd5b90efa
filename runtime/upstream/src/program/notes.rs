//! Notes on budgets and writes of a program.

use ptc_catalog::Catalog;

use super::Writes;
use crate::CallRules;

/// Returns the note on a budget: what it limits, such as `upstream calls`, its size, the number of refusals, and advice.
pub(super) fn budget(what: &str, size: u32, refused: u64, outcome: &str) -> Option<String> {
    let were = if refused == 1 { "1 was" } else { &format!("{refused} were") };
    (refused > 0).then(|| format!("budget of {what}: {size} for each program, {were} refused. {outcome}"))
}

/// Returns the note on a program that failed before its first write and made no call with an unknown effect, if the catalog has
/// operations that write.
pub fn nothing_written(catalog: &Catalog) -> Option<String> {
    let has_writes = catalog.tools().any(|(upstream, tool)| CallRules::new(upstream, tool).is_write);
    has_writes.then(|| "the program failed, and nothing was written".to_owned())
}

/// Returns the notes on the writes of a program: how many were made, and the names of those whose outcome is unknown.
pub(super) fn writes(writes: &Writes) -> Vec<String> {
    let Writes { made, rejected, unknown } = writes;
    let were = |count: usize| if count == 1 { "1 write was".to_owned() } else { format!("{count} writes were") };
    let mut notes = match (made, rejected) {
        (0, 0) => Vec::new(),
        (_, 0) => vec![format!("{} made", were(*made))],
        _ => vec![format!("{} made, and {} rejected by the upstream", were(*made), were(*rejected))],
    };
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in unknown {
        match counts.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    if !counts.is_empty() {
        let named = |(name, count): &(&str, usize)| if *count == 1 { (*name).to_owned() } else { format!("{count} × {name}") };
        let named: Vec<String> = counts.iter().map(named).collect();
        let more = if notes.is_empty() { "" } else { "more " };
        let writes = match unknown.len() {
            1 => format!("1 {more}write was"),
            count => format!("{count} {more}writes were"),
        };
        let advice = "read the data before you repeat a write";
        notes.push(format!("{writes} sent with unknown outcome: {}; {advice}", named.join(", ")));
    }
    notes
}
