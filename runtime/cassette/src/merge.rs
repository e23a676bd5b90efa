//! The sequence of answers to one request, merged from the runs of several programs.

use crate::Reply;

/// Extends the answers that earlier programs got by those of another one. Every program replays the sequence from its beginning.
/// Returns false if no sequence has both as its beginning.
pub(crate) fn extend(known: &mut Vec<Reply>, seen: Vec<Reply>) -> bool {
    let is_same = known.iter().zip(&seen).all(|(known, seen)| known.is_like(seen));
    if is_same && seen.len() > known.len() {
        *known = seen;
    }
    is_same
}

/// Removes repetitions at the end, since the last answer is repeated when it is replayed.
pub(crate) fn without_repetitions(replies: &mut Vec<Reply>) {
    while let [.., before, last] = replies.as_slice() {
        if !before.is_like(last) {
            break;
        }
        replies.pop();
    }
}

/// Whether a program gets the same answers if two requests become one, in whatever order it sends them.
pub(crate) fn are_interchangeable(one: &[Reply], other: &[Reply]) -> bool {
    let Some(first) = one.first() else { return other.is_empty() };
    one.iter().chain(other).all(|reply| reply.is_like(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Content;
    use ptc_json::Json;

    fn replies(values: &[&str]) -> Vec<Reply> {
        let reply = |value: &&str| Reply {
            content: Content::Value(Json::string(*value)),
            status: None,
            headers: None,
            body: None,
            latency_ms: None,
        };
        values.iter().map(reply).collect()
    }

    #[test]
    fn sequences_are_merged_if_one_continues_the_other() {
        for (known, seen, expected) in [
            (&["a"][..], &["a", "b"][..], Some(&["a", "b"][..])),
            (&["a", "b"], &["a"], Some(&["a", "b"])),
            (&["a", "b"], &["a", "b"], Some(&["a", "b"])),
            (&[], &["a"], Some(&["a"])),
            (&["a"], &["b"], None),
            (&["a", "b"], &["a", "c"], None),
        ] {
            let mut merged = replies(known);
            let is_merged = extend(&mut merged, replies(seen));
            assert_eq!(is_merged.then_some(merged), expected.map(replies), "{known:?} {seen:?}");
        }
    }

    #[test]
    fn sequences_are_interchangeable_if_all_answers_are_equal() {
        for (one, other, expected) in [
            (&["a"][..], &["a"][..], true),
            (&["a"], &["b"], false),
            (&["a", "b"], &["a", "b"], false),
            (&["a"], &["a", "b"], false),
        ] {
            assert_eq!(are_interchangeable(&replies(one), &replies(other)), expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn only_repetitions_at_the_end_are_removed() {
        for (given, expected) in [(&["a", "a", "b", "b"][..], &["a", "a", "b"][..]), (&["a", "a"], &["a"]), (&["a"], &["a"])] {
            let mut found = replies(given);
            without_repetitions(&mut found);
            assert_eq!(found, replies(expected));
        }
    }
}
