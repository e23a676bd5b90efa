//! "Did you mean": finds the known name that is closest to a wrong one.

pub use ptc_text::closest_match;

/// Returns the name that the user most likely meant. `others` holds pairs of the name in another tool and our name for the same
/// thing.
pub fn meant<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>, others: &[(&str, &'a str)]) -> Option<&'a str> {
    let ours = |name: &str| others.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    ours(wrong)
        .or_else(|| closest_match(wrong, names))
        .or_else(|| ours(closest_match(wrong, others.iter().map(|(theirs, _)| *theirs))?))
}

/// Returns "did you mean `x`?" if a candidate is near, and otherwise the known names if they are few.
pub fn hint<'a>(wrong: &str, what: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(name) = closest_match(wrong, candidates.clone()) {
        return Some(format!("did you mean {}?", super::quoted(name)));
    }
    list(what, candidates)
}

/// Lists the known names in a sentence, if they are few enough to read.
pub fn list<'a>(what: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const MAX_SUGGESTIONS: usize = 20;
    let names: Vec<String> = candidates.into_iter().map(super::quoted).collect();
    match names.as_slice() {
        [] => None,
        [only] => Some(format!("the only {what} is {only}")),
        names if names.len() <= MAX_SUGGESTIONS => Some(format!("known {what}s: {}", names.join(", "))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_names_are_listed_if_none_is_similar() {
        assert_eq!(hint("zzz", "binding", ["a-token", "b-token"]).as_deref(), Some("known bindings: `a-token`, `b-token`"));
        assert_eq!(hint("zzz", "binding", []), None);
    }
}
