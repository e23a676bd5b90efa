//! The changes of a tool, and which of them can be the cause of what a program does.

use std::collections::BTreeSet;

use crate::diag::{Code, Severity};

/// A change of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The kind of the change.
    pub code: Code,
    /// The change as part of a sentence whose subject is the tool.
    pub what: String,
    calls: Calls,
}

/// The calls that a change can affect.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Calls {
    All,
    /// Those that pass an argument. The place may be inside of it, such as `filter.state`.
    Passing(String),
    /// Those that do not pass an argument.
    Lacking(String),
    /// Those that pass an argument other than these.
    PassingOthers(BTreeSet<String>),
}

impl Change {
    /// Whether the change is more than another description or another observed shape.
    pub fn is_of_contract(&self) -> bool {
        !matches!(self.code, Code::DescriptionChanged | Code::ObservedChanged)
    }

    /// A change that can affect all calls.
    pub(super) fn new(code: Code, what: impl Into<String>) -> Change {
        Change { code, what: what.into(), calls: Calls::All }
    }

    /// Limits the change to calls that pass an argument. `place` is its name or a place inside of it.
    pub(super) fn passing(self, place: &str) -> Change {
        Change { calls: Calls::Passing(place.to_owned()), ..self }
    }

    /// Limits the change to calls that do not pass an argument.
    pub(super) fn lacking(self, argument: &str) -> Change {
        Change { calls: Calls::Lacking(argument.to_owned()), ..self }
    }

    /// Limits the change to calls that pass an argument that is not among `declared`.
    pub(super) fn passing_others<'n>(self, declared: impl Iterator<Item = &'n str>) -> Change {
        Change { calls: Calls::PassingOthers(declared.map(str::to_owned).collect()), ..self }
    }

    /// Whether the change can affect a call with these arguments.
    fn concerns(&self, passed: &BTreeSet<String>) -> bool {
        match &self.calls {
            Calls::All => true,
            Calls::Passing(place) => passed.iter().any(|name| is_inside(place, name)),
            Calls::Lacking(argument) => !passed.iter().any(|name| is_same(argument, name)),
            Calls::PassingOthers(declared) => passed.iter().any(|name| !declared.iter().any(|known| is_same(known, name))),
        }
    }

    /// Returns the argument that the change is about, or the place inside of it.
    pub fn argument(&self) -> Option<&str> {
        match &self.calls {
            Calls::Passing(place) | Calls::Lacking(place) => Some(place),
            Calls::All | Calls::PassingOthers(_) => None,
        }
    }
}

/// Whether a program means an argument by a name: it may write `-` for `_`.
fn is_same(argument: &str, written: &str) -> bool {
    argument == written || argument == written.replace('-', "_")
}

/// Whether a place, such as `filter.state`, is an argument or inside of it.
fn is_inside(place: &str, written: &str) -> bool {
    let end = [".", "["].into_iter().filter_map(|mark| place.find(mark)).min();
    is_same(place, written) || end.is_some_and(|end| place.get(..end).is_some_and(|outer| is_same(outer, written)))
}

/// How a changed tool breaks a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It refuses a call: the tool does not exist any more, or does not take the arguments.
    Refusal,
    /// It answers something else.
    Answer,
}

impl Cause {
    fn has(self, code: Code) -> bool {
        match self {
            Cause::Refusal => matches!(code, Code::ToolRemoved | Code::InputBreaking | Code::InputChanged),
            Cause::Answer => matches!(code, Code::ToolRemoved | Code::OutputChanged | Code::RequestChanged),
        }
    }

    /// Returns the changes of a tool that can be the cause. `passed` are the names of the arguments of the call, `None` if they are
    /// not known.
    pub fn changes<'c>(self, changes: &'c [Change], passed: Option<&BTreeSet<String>>) -> Vec<&'c Change> {
        let can_be = |change: &&Change| {
            self.has(change.code)
                && change.code.severity() != Severity::Note
                && passed.is_none_or(|passed| change.concerns(passed))
        };
        changes.iter().filter(can_be).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Cause, Change};
    use crate::diag::Code;

    #[test]
    fn causes_are_the_changes_that_can_affect_the_call() {
        let breaking = |what: &str| Change::new(Code::InputBreaking, what);
        let changes = [
            breaking("no longer takes `page`").passing("page"),
            breaking("no longer takes `page_size`").passing("page_size"),
            breaking("refuses \"b\" for `filter.state`").passing("filter.state"),
            breaking("now requires `filter-by`").lacking("filter-by"),
            breaking("needs the new argument `id`").lacking("id"),
            breaking("refuses arguments that it does not name")
                .passing_others(["page_size", "filter", "filter-by", "id"].into_iter()),
            breaking("now has `minProperties` 1 for its arguments"),
            Change::new(Code::InputWidened, "takes the new argument `sort`"),
            Change::new(Code::OutputChanged, "answers [], which was {}"),
            Change::new(Code::RequestChanged, "sends `page` differently").passing("page"),
            Change::new(Code::DescriptionChanged, "has another description"),
        ];
        let of = |cause: Cause, passed: &[&str]| {
            let passed: BTreeSet<String> = passed.iter().map(|name| (*name).to_owned()).collect();
            let found = cause.changes(&changes, Some(&passed)).into_iter();
            let at = |change: &Change| changes.iter().position(|other| other == change);
            found.filter_map(at).collect::<Vec<_>>()
        };
        assert_eq!(of(Cause::Refusal, &["page-size", "id", "filter-by"]), [1, 6]);
        assert_eq!(of(Cause::Refusal, &["filter", "filter-by"]), [2, 4, 6]);
        assert_eq!(of(Cause::Refusal, &["id", "filter-by", "other"]), [5, 6]);
        assert_eq!(of(Cause::Answer, &[]), [8]);
        assert_eq!(of(Cause::Answer, &["page"]), [8, 9]);
        // Nothing is left out for a call whose arguments are not known.
        assert_eq!(Cause::Refusal.changes(&changes, None).len(), 7);
    }
}
