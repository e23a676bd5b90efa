//! Paths in answers. All items of a list have the same path.

use std::collections::{HashSet, VecDeque};
use std::fmt::Write;

use ptc_compiler::json::Json;

/// Maximum number of paths of one answer.
const MAX_PATHS: usize = 200;
/// Maximum number of values that are visited to find them.
const MAX_VISITED: usize = 20_000;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The member of an object.
    Member(String),
    /// Every item of a list.
    Items,
}

/// Which of the values at a path are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    All,
    First,
}

/// Returns the paths of all values, those nearest to the root first.
pub(crate) fn paths(json: &Json) -> Vec<Vec<Step>> {
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    let mut queue = VecDeque::from([(Vec::new(), json)]);
    for _ in 0..MAX_VISITED {
        let Some((path, value)) = queue.pop_front() else { break };
        let below = |step: Step| path.iter().cloned().chain([step]).collect::<Vec<_>>();
        for (name, value) in value.members() {
            queue.push_back((below(Step::Member(name.clone())), value));
        }
        for value in value.elements() {
            queue.push_back((below(Step::Items), value));
        }
        if found.len() < MAX_PATHS && known.insert(path.clone()) {
            found.push(path);
        }
    }
    found
}

/// Changes the values at a path. `change` returns whether it changed a value. Returns whether any was changed.
pub(crate) fn edit(json: &mut Json, path: &[Step], extent: Extent, change: &mut dyn FnMut(&mut Json) -> bool) -> bool {
    let Some((step, rest)) = path.split_first() else { return change(json) };
    match (step, json) {
        (Step::Member(name), object) => object.get_mut(name).is_some_and(|value| edit(value, rest, extent, change)),
        (Step::Items, Json::Array(items)) => {
            let mut is_changed = false;
            for item in items {
                is_changed |= edit(item, rest, extent, change);
                if is_changed && extent == Extent::First {
                    break;
                }
            }
            is_changed
        }
        (Step::Items, _) => false,
    }
}

/// Describes a path: `visits[].owner`.
pub(crate) fn described(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        // Writing to a string cannot fail.
        let _ = match step {
            Step::Items => write!(text, "[]"),
            Step::Member(name) => write!(text, "{}{name}", if text.is_empty() { "" } else { "." }),
        };
    }
    if text.is_empty() { "the answer".to_owned() } else { format!("`{text}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_share_their_path_and_can_be_changed_together() {
        let json = Json::parse(r#"{"a":[{"b":1},{"b":2,"c":[]}],"d":null}"#).expect("JSON");
        let found = paths(&json);
        let shown: Vec<String> = found.iter().map(|path| described(path)).collect();
        assert_eq!(shown, ["the answer", "`a`", "`d`", "`a[]`", "`a[].b`", "`a[].c`"]);
        let changed = |extent| {
            let mut json = json.clone();
            let path = [Step::Member("a".into()), Step::Items, Step::Member("b".into())];
            assert!(edit(&mut json, &path, extent, &mut |value| std::mem::replace(value, Json::Null) != Json::Null));
            json.canonical()
        };
        assert_eq!(changed(Extent::All), r#"{"a":[{"b":null},{"b":null,"c":[]}],"d":null}"#);
        assert_eq!(changed(Extent::First), r#"{"a":[{"b":null},{"b":2,"c":[]}],"d":null}"#);
    }
}
