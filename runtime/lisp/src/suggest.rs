//! Edit distance for "did you mean" hints: one bounded comparison for all code that suggests names.
//!
//! The distance (Damerau-Levenshtein) costs the product of the lengths, and a program chooses both the name and many of the
//! candidates. Long names are therefore not compared, and at most 2,000 candidates are compared with one name.

/// Maximum characters of a name that is compared. Longer ones are rather texts.
const MAX_LENGTH: usize = 60;
/// Maximum candidates that one name is compared with. Candidates whose length differs too much do not count.
const MAX_COMPARISONS: u32 = 2_000;

/// An unknown name, which is compared with existing names.
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
    /// Prepares a name. `None` if it is too long to compare.
    pub fn new(name: &'n str) -> Option<Wanted<'n>> {
        // A character has at most four bytes, so that the characters of very long texts need not be counted.
        let length = if name.len() <= 4 * MAX_LENGTH { name.chars().count() } else { usize::MAX };
        // One edit per three characters, so that short names do not match everything.
        let max_distance = (length / 3).clamp(1, 3);
        (length <= MAX_LENGTH).then_some(Wanted { name, length, max_distance, comparisons: 0 })
    }

    /// Number of characters.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Maximum edits of a similar name.
    pub fn max_distance(&self) -> usize {
        self.max_distance
    }

    /// The edits from the name to a candidate. `None` if there are too many edits, or if too many candidates were compared.
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
