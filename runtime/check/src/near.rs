//! Near names, for suggestions.

use ptc_lisp::suggest::Wanted;

/// The candidate that `name` was most likely meant to be; `None` where none is near. Case, `-`, `_`, `.` and spaces count for
/// little; a third of the characters may be wrong, three at most; a beginning of at least three stands for the whole. The
/// nearest wins, then the first. [`Wanted`] bounds the cost.
pub fn near_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Before the name is copied: it may have megabytes.
    Wanted::new(name)?;
    let plain = |text: &str| text.to_lowercase().replace(['-', '.', ' '], "_");
    let name = plain(name);
    let mut wanted = Wanted::new(&name)?;
    let (length, max_distance) = (wanted.length(), wanted.max_distance());
    let mut distance = |candidate: &str| {
        let candidate = plain(candidate);
        let by_letters = wanted.distance(&candidate);
        if by_letters.is_none() && length >= 3 && candidate.starts_with(&name) {
            // After all that differ by letters, the shortest first.
            return Some(max_distance + candidate.len() - name.len());
        }
        by_letters
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
    fn beginning_that_lacks_a_letter_is_nearer_than_another_word() {
        assert_eq!(near_name("list_customer", ["get_customer", "list_customers"]), Some("list_customers"));
    }

    #[test]
    fn near_and_far() {
        let names = ["list_directory", "read_file", "read-text-file"];
        for (name, meant) in [
            ("read_fil", Some("read_file")),
            ("Read-File", Some("read_file")),
            ("read_text_file", Some("read-text-file")),
            ("list_dir", Some("list_directory")),
            ("read_file", Some("read_file")),
            ("read", Some("read_file")),
            ("list_pets", None),
            (&"read_file".repeat(10_000), None),
            ("x", None),
        ] {
            assert_eq!(near_name(name, names), meant, "{name}");
        }
    }
}
