//! The closest match of a name for "did you mean" hints, for all code that suggests names.
//!
//! The distance (Damerau-Levenshtein) costs the product of the lengths, and a program chooses both the name and many of the
//! candidates. Long names are therefore not compared, and at most 2,000 candidates are compared with one name.

/// Maximum characters of a name that is compared. Longer ones are rather texts.
const MAX_LENGTH: usize = 60;
/// Maximum number of candidates that one name is compared with. Candidates whose length differs too much do not count.
const MAX_COMPARISONS: u32 = 2_000;

/// Returns the candidate that `name` was most likely meant to be, or `None` if none is close.
///
/// Case is ignored, and `-`, `_`, `.` and a space count as the same character. A third of the characters may be wrong, but at
/// least one and at most three. A name of at least three characters also matches the candidates that start with it. The smallest
/// distance wins, then the alphabetical order.
///
/// ```
/// use ptc_text::closest_match;
///
/// assert_eq!(closest_match("List-Order", ["list_orders", "get_order"]), Some("list_orders"));
/// assert_eq!(closest_match("delete", ["list_orders", "get_order"]), None);
/// ```
pub fn closest_match<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // This check comes before the name is copied, since it may have megabytes.
    Comparison::new(name)?;
    let name = normalized(name);
    let mut comparison = Comparison::new(&name)?;
    candidates
        .into_iter()
        .filter_map(|candidate| Some((comparison.rank(&normalized(candidate))?, candidate)))
        .min()
        .map(|(_, candidate)| candidate)
}

fn normalized(text: &str) -> String {
    text.to_lowercase().replace(['-', '.', ' '], "_")
}

/// A normalized name, which is compared with normalized candidates.
#[derive(Debug)]
struct Comparison<'n> {
    name: &'n str,
    length: usize,
    max_distance: usize,
    comparisons: u32,
}

impl<'n> Comparison<'n> {
    /// Prepares a name. Returns `None` if it is too long to compare.
    fn new(name: &'n str) -> Option<Comparison<'n>> {
        // A character has at most four bytes, so that the characters of very long texts need not be counted.
        let length = if name.len() <= 4 * MAX_LENGTH { name.chars().count() } else { usize::MAX };
        // One edit per three characters, so that short names do not match everything.
        let max_distance = (length / 3).clamp(1, 3);
        (length <= MAX_LENGTH).then_some(Comparison { name, length, max_distance, comparisons: 0 })
    }

    /// Returns the order of a candidate among the close ones: first by distance, then those that start with the name, the
    /// shortest first.
    fn rank(&mut self, candidate: &str) -> Option<usize> {
        let by_distance = self.distance(candidate);
        if by_distance.is_none() && self.length >= 3 && candidate.starts_with(self.name) {
            return Some(self.max_distance + candidate.len() - self.name.len());
        }
        by_distance
    }

    /// Returns the number of edits from the name to a candidate. Returns `None` if there are too many edits, or if too many
    /// candidates were compared.
    fn distance(&mut self, candidate: &str) -> Option<usize> {
        let limit = self.length + self.max_distance;
        if candidate.len() > 4 * limit || candidate.chars().count().abs_diff(self.length) > self.max_distance {
            return None;
        }
        if self.comparisons == MAX_COMPARISONS {
            return None;
        }
        self.comparisons += 1;
        Some(strsim::damerau_levenshtein(self.name, candidate)).filter(|distance| *distance <= self.max_distance)
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, MAX_COMPARISONS, closest_match};

    #[test]
    fn comparisons_of_one_name_are_bounded() {
        let mut comparison = Comparison::new("abcdef").expect("a short name");
        let near = (0..100_000).filter(|_| comparison.distance("abcdeg").is_some()).count();
        assert_eq!(near, MAX_COMPARISONS as usize);
    }

    #[test]
    fn candidates_of_another_length_are_not_compared() {
        let mut comparison = Comparison::new("abcdef").expect("a short name");
        assert_eq!(comparison.distance(&"a".repeat(1_000_000)), None);
        assert_eq!(comparison.comparisons, 0);
        assert_eq!(comparison.distance("abcdfe"), Some(1));
    }

    #[test]
    fn prefix_that_lacks_one_letter_ranks_by_distance() {
        assert_eq!(closest_match("list_customer", ["get_customer", "list_customers"]), Some("list_customers"));
    }

    #[test]
    fn close_names_match_and_distant_ones_do_not() {
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
            assert_eq!(closest_match(name, names), meant, "{name}");
        }
    }
}
