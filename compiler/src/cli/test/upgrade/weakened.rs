//! Runs a program with recorded answers that are null, or lack members, only where the current tools permit it.

use ptc_compiler::diag::quoted;
use ptc_compiler::serve::cassette::Cassette;
use ptc_runtime::evaluation::Reason;
use ptc_text::join_limited;

use super::{Effect, Replay, Upgrade};
use crate::test::bench::Bench;
use crate::test::checks::{Weakness, weaken};
use crate::test::program_run::ProgramRun;

/// Maximum number of places that are named.
const MAX_PLACES: usize = 3;

/// A place of a tool's answers that is null or missing in a run.
#[derive(PartialEq, Eq)]
pub(super) struct WeakenedPlace {
    tool: (String, String),
    /// Members and items, such as `items[].price`.
    place: String,
    weakness: Weakness,
}

impl Upgrade<'_> {
    /// Makes recorded answers null, or removes members, where only the current tools permit it. Returns the places.
    pub(super) fn weakened(&self, mut cassette: Cassette, weakness: Weakness) -> (Cassette, Vec<WeakenedPlace>) {
        let mut places = Vec::new();
        cassette.change_values(|server, name, value| {
            let Some((before, now)) = self.changed(server, name) else { return };
            for place in weaken(before, now, value, weakness) {
                let place = WeakenedPlace { tool: (server.to_owned(), name.to_owned()), place, weakness };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        });
        (cassette, places)
    }
}

/// Runs a program that gives the same with the adapted answers with weakened ones. Returns the first error.
pub(super) fn may_fail(
    weakened: &[(Bench, Vec<WeakenedPlace>)],
    program: &ProgramRun,
    calls: &[((String, String), Vec<String>)],
) -> Option<Effect> {
    weakened.iter().find_map(|(bench, places)| {
        let of_program = || places.iter().filter(|place| calls.iter().any(|(tool, _)| *tool == place.tool));
        let weakness = of_program().map(|place| place.weakness).next()?;
        let is = Replay::of(bench, program);
        let answer = is.answer.ok()?;
        // A program that asks for something else because of these answers has no recorded answers to that.
        let failure = answer.value().err().filter(|failure| failure.reason != Reason::Fail && !is.is_unrecorded)?;
        let named = of_program().map(|at| format!("{} of {}", quoted(&at.place), quoted(&at.tool.1)));
        let condition = format!("where {} is {}", join_limited(named, ", ", MAX_PLACES), weakness.adjective());
        Some(Effect::MayFail(format!("{condition}: {failure}"), failure.span))
    })
}
