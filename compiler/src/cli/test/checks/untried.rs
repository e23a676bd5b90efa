//! Collects the faults of each tool that its recorded answers do not permit to try, so that the report can name them.

use std::collections::BTreeMap;

use crate::answers::faults::Fault;
use crate::test::injection::SeenCall;
use crate::test::outcome::UntriedFaults;

/// Whether a fault of a tool was tried, and whether an answer does not permit to try it.
#[derive(Default)]
struct Tried {
    is_tried: bool,
    is_untestable: bool,
}

/// What is known of each tool and fault.
#[derive(Default)]
pub(super) struct Untried {
    /// The faults of each tool in the order of the options.
    tools: BTreeMap<(&'static str, &'static str), Vec<(&'static str, Tried)>>,
}

impl Untried {
    /// Adds what one call shows about a fault.
    pub(super) fn add(&mut self, call: &SeenCall, fault: &'static Fault, is_tried: bool, is_untestable: bool) {
        let faults = self.tools.entry((call.key.upstream, call.key.tool)).or_default();
        match faults.iter_mut().find(|(name, _)| *name == fault.name) {
            Some((_, known)) => {
                known.is_tried |= is_tried;
                known.is_untestable |= is_untestable;
            }
            None => faults.push((fault.name, Tried { is_tried, is_untestable })),
        }
    }

    /// Returns the faults that were not tried and could not be tried, for each tool that has some.
    pub(super) fn faults(self) -> Vec<UntriedFaults> {
        let tools = self.tools.into_iter().map(|((upstream, tool), faults)| {
            let untried = faults.into_iter().filter(|(_, tried)| tried.is_untestable && !tried.is_tried);
            UntriedFaults { upstream, tool, faults: untried.map(|(name, _)| name).collect() }
        });
        tools.filter(|tool| !tool.faults.is_empty()).collect()
    }
}
