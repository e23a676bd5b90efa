//! Which stored programs call a tool.

use ptc_text::join_limited;

use super::cause::Change;
use super::{changes_of_tools, operation_of};
use crate::config::model::Config;
use crate::diag::quoted;
use crate::lock::Lock;

/// Maximum number of programs that are named.
const MAX_NAMES: usize = 10;

/// A stored program, with the tools that it may call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name of the program.
    pub program: String,
    /// The upstream and the tool of each call. A name that is computed when the program runs is `None`.
    pub calls: Vec<(Option<String>, Option<String>)>,
}

/// How certain it is that a program calls a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    /// A computed name may be that of the tool.
    Possible,
    /// A call names the tool.
    Named,
}

impl Caller {
    /// Returns whether the program calls a tool of an upstream. Programs name the operation of an OpenAPI document by its exposed
    /// name or its `operationId`, of which a changed operation has two.
    fn certainty(&self, upstream: &str, tool: &str, operations: &[String]) -> Option<Certainty> {
        let of_call = |(server, name): &(Option<String>, Option<String>)| {
            let is_same_server = server.as_deref().is_none_or(|server| server == upstream);
            let is_same_tool =
                name.as_deref().is_none_or(|name| name == tool || operations.iter().any(|operation| name == operation));
            let certainty = if server.is_some() && name.is_some() { Certainty::Named } else { Certainty::Possible };
            (is_same_server && is_same_tool).then_some(certainty)
        };
        self.calls.iter().filter_map(of_call).max()
    }
}

/// The stored programs that call tools, with those whose calls are computed apart.
#[derive(Debug, Default)]
pub struct Callers<'a> {
    named: Vec<&'a str>,
    possible: Vec<&'a str>,
}

impl<'a> Callers<'a> {
    /// Returns the programs that call a tool. `operations`: the names of its operation in the document, the former one too.
    pub(super) fn of(callers: &'a [Caller], upstream: &str, tool: &str, operations: &[String]) -> Self {
        let mut found = Callers::default();
        for caller in callers {
            match caller.certainty(upstream, tool, operations) {
                Some(Certainty::Named) => found.named.push(&caller.program),
                Some(Certainty::Possible) => found.possible.push(&caller.program),
                None => {}
            }
        }
        found
    }

    /// Returns the programs that call a tool of these locks.
    pub(super) fn of_tool(callers: &'a [Caller], old: &Lock, new: &Lock, upstream: &str, tool: &str) -> Self {
        // Programs may call a renamed operation by both names.
        let locked = [new, old].into_iter().filter_map(|lock| lock.upstreams.get(upstream)?.tools.get(tool));
        let operations: Vec<String> = locked.filter_map(operation_of).collect();
        Callers::of(callers, upstream, tool, &operations)
    }

    /// Returns the programs that call a tool with a change between two locks for which `is_wanted` holds. Tools of an upstream that is new
    /// did not change.
    pub fn of_changes(callers: &'a [Caller], config: &Config, locks: [&Lock; 2], is_wanted: fn(&Change) -> bool) -> Self {
        let mut found = Callers::default();
        let [old, new] = locks;
        for name in config.upstreams.keys() {
            if let Some(before) = old.upstreams.get(name) {
                for (tool, changes) in changes_of_tools(name, Some(before), new.upstreams.get(name)) {
                    if changes.iter().any(is_wanted) {
                        found.add(Callers::of_tool(callers, old, new, name, &tool));
                    }
                }
            }
        }
        found
    }

    /// Whether a program may call one of the tools.
    pub fn contain(&self, program: &str) -> bool {
        self.named.iter().chain(&self.possible).any(|name| *name == program)
    }

    /// Adds the callers of another tool.
    fn add(&mut self, other: Callers<'a>) {
        self.named.extend(other.named);
        self.named.sort_unstable();
        self.named.dedup();
        self.possible.extend(other.possible);
        self.possible.sort_unstable();
        self.possible.dedup();
        self.possible.retain(|program| !self.named.contains(program));
    }

    /// Names the programs: `a`, `b`, possibly `c`. Empty if there are none.
    pub(super) fn names(&self) -> String {
        let certain = self.named.iter().map(|program| quoted(program));
        let possible = self.possible.iter().map(|program| format!("possibly {}", quoted(program)));
        join_limited(certain.chain(possible), ", ", MAX_NAMES)
    }
}

#[cfg(test)]
mod tests {
    use super::{Caller, Callers};

    fn caller(program: &str, server: Option<&str>, tool: Option<&str>) -> Caller {
        Caller { program: program.to_owned(), calls: vec![(server.map(str::to_owned), tool.map(str::to_owned))] }
    }

    #[test]
    fn callers_are_programs_that_name_the_tool_or_compute_names() {
        let all = [
            caller("by_name", Some("shop"), Some("list-orders")),
            caller("by_operation", Some("shop"), Some("listOrders")),
            caller("other_tool", Some("shop"), Some("list-items")),
            caller("other_upstream", Some("docs"), Some("list-orders")),
            caller("any_tool", Some("shop"), None),
            caller("any_upstream", None, Some("list-orders")),
            caller("any_tool_elsewhere", Some("docs"), None),
            caller("any", None, None),
        ];
        let names = |operations: &[&str]| {
            let operations: Vec<String> = operations.iter().map(|name| (*name).to_owned()).collect();
            Callers::of(&all, "shop", "list-orders", &operations).names()
        };
        let possible = "possibly `any_tool`, possibly `any_upstream`, possibly `any`";
        assert_eq!(names(&["allOrders", "listOrders"]), format!("`by_name`, `by_operation`, {possible}"));
        assert_eq!(names(&[]), format!("`by_name`, {possible}"));
    }

    #[test]
    fn program_that_certainly_calls_one_tool_is_not_named_as_possible_caller() {
        let (computed, named) = ([caller("a", Some("shop"), None)], [caller("a", Some("shop"), Some("list"))]);
        let mut found = Callers::of(&computed, "shop", "show", &[]);
        found.add(Callers::of(&named, "shop", "list", &[]));
        assert_eq!(found.names(), "`a`");
    }
}
