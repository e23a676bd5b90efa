//! Edit distance for "did you mean": one bounded comparison for every place that suggests a name.
//!
//! The distance (Damerau-Levenshtein) costs the product of the lengths, and a program chooses both the name and many of the candidates.
//! So long names are not compared, and neither are more than 2,000 candidates for one name.

/// Characters of a name. A longer one is a text.
const MAX_LENGTH: usize = 60;
/// Candidates that one name is compared with. Those that differ too much in length do not count.
const MAX_COMPARISONS: u32 = 2_000;

/// A name that nothing has, to be compared with the names that exist.
///
/// ```
/// use ptc_lisp::suggest::Wanted;
///
/// let mut wanted = Wanted::new("mpa").expect("a short name");
/// assert_eq!(wanted.distance("map"), Some(1));
/// assert_eq!(wanted.distance("reduce"), None);
/// assert!(Wanted::new(&"x".repeat(1_000)).is_none());
/// ```
#[derive(Debug)]
pub struct Wanted<'n> {
    name: &'n str,
    length: usize,
    max_distance: usize,
    comparisons: u32,
}

impl<'n> Wanted<'n> {
    /// `None` for a name that is too long to compare.
    pub fn new(name: &'n str) -> Option<Wanted<'n>> {
        // A character has at most four bytes: a text of megabytes is not counted.
        let length = if name.len() <= 4 * MAX_LENGTH { name.chars().count() } else { usize::MAX };
        // One edit in three characters, so that short names do not match everything.
        let max_distance = (length / 3).clamp(1, 3);
        (length <= MAX_LENGTH).then_some(Wanted { name, length, max_distance, comparisons: 0 })
    }

    /// Its characters.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Edits that a near name may be away.
    pub fn max_distance(&self) -> usize {
        self.max_distance
    }

    /// The edits from the name to a candidate; `None` where there are too many, or where too many candidates were compared.
    pub fn distance(&mut self, candidate: &str) -> Option<usize> {
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
    use super::*;

    #[test]
    fn comparisons_of_one_name_are_bounded() {
        let mut wanted = Wanted::new("abcdef").expect("a short name");
        let near = (0..100_000).filter(|_| wanted.distance("abcdeg").is_some()).count();
        assert_eq!(near, MAX_COMPARISONS as usize);
    }

    #[test]
    fn candidates_of_another_length_are_not_compared() {
        let mut wanted = Wanted::new("abcdef").expect("a short name");
        assert_eq!(wanted.distance(&"a".repeat(1_000_000)), None);
        assert_eq!(wanted.comparisons, 0);
        assert_eq!(wanted.distance("abcdfe"), Some(1));
    }
}
