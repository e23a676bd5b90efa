//! Near names, for suggestions.

/// The candidate that `name` was most likely meant to be; `None` where none is near. The first of equally near ones counts.
pub fn near_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '.', ' '], "_");
    let name = plain(name);
    // One edit in three characters, so that short names do not match everything.
    let most = (name.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other = plain(candidate);
            // Comparing costs the product of the lengths, and programs may hold names of any length.
            let comparable = other.chars().count().abs_diff(name.chars().count()) <= most;
            comparable.then(|| (strsim::damerau_levenshtein(&name, &other), candidate))
        })
        .filter(|(distance, _)| *distance <= most)
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
            ("list_dir", None),
            (&"read_file".repeat(10_000), None),
            ("x", None),
        ] {
            assert_eq!(near_name(name, names), meant, "{name}");
        }
    }
}
