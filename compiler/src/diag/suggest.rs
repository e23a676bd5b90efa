//! "Did you mean": finds the known name that is closest to a wrong one.

/// Returns the closest candidate, or `None` if none is near.
///
/// The optimal string alignment distance may be at most a third of the name's length, between 1 and 3. It ignores case, `-`, `_`
/// and spaces. The alphabetically first of equally close candidates wins.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain: String = folded(wrong).collect();
    let letters = Letters::of(wrong);
    let allowed = (letters.count / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != wrong)
        // The distance is expensive: a document has thousands of names, and as many may be wrong.
        .filter(|candidate| letters.least_distance(&Letters::of(candidate)) <= allowed)
        .filter_map(|candidate| {
            let distance = strsim::osa_distance(&plain, &folded(candidate).collect::<String>());
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, candidate)| (*distance, *candidate))
        .map(|(_, candidate)| candidate)
}

/// Returns the name that the user most likely meant. `others` holds pairs of the name in another tool and our name for the same
/// thing.
pub fn meant<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>, others: &[(&str, &'a str)]) -> Option<&'a str> {
    let ours = |name: &str| others.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    ours(wrong).or_else(|| nearest(wrong, names)).or_else(|| ours(nearest(wrong, others.iter().map(|(theirs, _)| *theirs))?))
}

/// Returns "did you mean `x`?" if a candidate is near, and otherwise the known names if they are few.
pub fn hint<'a>(wrong: &str, what: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(name) = nearest(wrong, candidates.clone()) {
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

fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| !is_between(*c)).flat_map(char::to_lowercase)
}

fn is_between(c: char) -> bool {
    matches!(c, '-' | '_' | ' ')
}

/// The number of letters in a name, and a bit for each kind of letter.
struct Letters {
    count: usize,
    kinds: u64,
}

impl Letters {
    fn of(name: &str) -> Letters {
        let none = Letters { count: 0, kinds: 0 };
        let and = |all: Letters, c: u32| Letters { count: all.count + 1, kinds: all.kinds | 1 << (c % 64) };
        if name.is_ascii() {
            let letters = name.bytes().filter(|b| !is_between(char::from(*b)));
            return letters.fold(none, |all, b| and(all, b.to_ascii_lowercase().into()));
        }
        folded(name).fold(none, |all, c| and(all, c.into()))
    }

    /// Returns a lower bound of the distance: an inserted or deleted letter changes at most one kind, a replaced one two.
    fn least_distance(&self, other: &Letters) -> usize {
        let kinds = (self.kinds ^ other.kinds).count_ones() as usize;
        self.count.abs_diff(other.count).max(kinds.div_ceil(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let keys = ["command", "args", "env", "cd", "handshake_timeout_ms"];
        for (wrong, meant) in [
            ("comand", Some("command")),
            ("Command", Some("command")),
            ("handshakeTimeoutMs", Some("handshake_timeout_ms")),
            ("arg", Some("args")),
            ("envs", Some("env")),
            ("working_directory", None),
            ("x", None),
            ("commit", None),
        ] {
            assert_eq!(nearest(wrong, keys), meant, "{wrong}");
        }
    }

    #[test]
    fn few_names_are_listed_where_none_is_near() {
        assert_eq!(hint("zzz", "binding", ["a-token", "b-token"]).as_deref(), Some("known bindings: `a-token`, `b-token`"));
        assert_eq!(hint("zzz", "binding", []), None);
    }
}
