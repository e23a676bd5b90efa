//! Near names, for suggestions.

/// Names longer than this are not compared: the cost is the product of the lengths.
const LONGEST: usize = 100;

/// The candidate that `name` was most likely meant to be; `None` where none is near. Case, `-`, `_`, `.` and spaces count for
/// little; a third of the characters may be wrong, three at most; a beginning of at least three stands for the whole. The
/// nearest wins, then the first.
pub fn near_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '.', ' '], "_");
    // Before the name is copied: it may be as long as a program's memory.
    if name.len() > 4 * LONGEST {
        return None;
    }
    let name = plain(name);
    let length = name.chars().count();
    if length > LONGEST {
        return None;
    }
    // One edit in three characters, so that short names do not match everything.
    let most = (length / 3).clamp(1, 3);
    let distance = |candidate: &str| {
        let candidate = plain(candidate);
        if length >= 3 && candidate.starts_with(&name) {
            // After all that differ by letters, the shortest first.
            return Some(most + candidate.len() - name.len());
        }
        (candidate.chars().count().abs_diff(length) <= most)
            .then(|| strsim::damerau_levenshtein(&name, &candidate))
            .filter(|distance| *distance <= most)
    };
    candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(candidate)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::near_name;

    #[test]
    fn near_and_far() {
        let names = ["list_directory", "read_file", "read-text-file"];
        for (name, meant) in [
            ("read_fil", Some("read_file")),
            ("Read-File", Some("read_file")),
            ("read_text_file", Some("read-text-file")),
            ("list_dir", Some("list_directory")),
            ("read", Some("read_file")),
            ("list_pets", None),
            (&"read_file".repeat(10_000), None),
            ("x", None),
        ] {
            assert_eq!(near_name(name, names), meant, "{name}");
        }
    }
}
