//! Decides which texts of answers a shape may contain.
//!
//! A shape is stored in the lock file and shown to models, so that it must not contain secrets or personal data:
//!
//! - The name of a member is kept if it looks like an identifier ([`is_name`]). An object with another name is a map, of which no
//!   name is kept.
//! - The values of a string are kept only as a small enumeration: the member has the name of a category ([`names_a_category`]),
//!   every value is a short word ([`is_category`]) and occurred at least [`MIN_COUNT`] times, and there are few different values.
//!   By the estimate of Good and Turing, values that occur only once show how likely a new one is, so that without such values a new
//!   one is unlikely.
//! - No other value is kept.

use ptc_secrets::heuristics::scan_token;

/// Minimum number of times that each value of an enumeration occurs.
pub(super) const MIN_COUNT: u64 = 5;

/// Maximum length of a name in characters.
const MAX_NAME: usize = 48;

/// Maximum length of a value of an enumeration in bytes.
const MAX_VALUE: usize = 32;

/// Maximum number of digits in a name. Names with more are likely identifiers of records, or dates.
const MAX_DIGITS: usize = 3;

/// The last words of names whose values are categories, in contrast to names of people, places or things.
const CATEGORIES: [&str; 24] = [
    "action",
    "category",
    "conclusion",
    "encoding",
    "format",
    "kind",
    "level",
    "method",
    "mode",
    "operation",
    "outcome",
    "phase",
    "priority",
    "protocol",
    "result",
    "role",
    "severity",
    "state",
    "status",
    "tier",
    "type",
    "unit",
    "units",
    "visibility",
];

/// Whether the name of a member is likely an identifier of a program, and not data.
pub(super) fn is_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '@'));
    let is_part = |(at, c): (usize, char)| c.is_alphanumeric() || matches!(c, '_' | '-' | '$') || c == '@' && at == 0;
    begins && name.char_indices().all(is_part) && is_short(name)
}

fn is_short(name: &str) -> bool {
    name.chars().count() <= MAX_NAME
        && name.chars().filter(char::is_ascii_digit).count() <= MAX_DIGITS
        && scan_token(name).is_none()
}

/// Whether a string can be a value of an enumeration.
pub(super) fn is_category(text: &str) -> bool {
    text.len() <= MAX_VALUE
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '-'))
        && scan_token(text).is_none()
}

/// Whether the last word of a member's name is that of a category: `status`, `issue_type`, `userRole`.
pub(super) fn names_a_category(name: &str) -> bool {
    ends_with_word(name, &CATEGORIES)
}

/// Whether the last word of a name, in any case, is one of these lower-case words.
pub(super) fn ends_with_word(name: &str, words: &[&str]) -> bool {
    let lower = name.to_ascii_lowercase();
    words.iter().any(|word| {
        let Some(before) = lower.strip_suffix(word) else { return false };
        let Some(last) = name.get(before.len()..) else { return false };
        before.is_empty() || before.ends_with(['_', '-']) || last.starts_with(|c: char| c.is_ascii_uppercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_data() {
        for name in ["id", "pet_id", "userName", "@type", "$ref", "_links", "sha256", "x-rate", "größe"] {
            assert!(is_name(name), "{name}");
        }
        let token = format!("ghp_{}", "aZbYcXdWeVfUgThSiRjQkPlOmNnMoLpKqJrI");
        for data in [
            "",
            "ann@example.com",
            "Ada Lovelace",
            "2026-01-31",
            "user12345",
            "a.txt",
            "/tmp",
            "7",
            "x".repeat(49).as_str(),
            &token,
        ] {
            assert!(!is_name(data), "{data}");
        }
    }

    #[test]
    fn only_names_of_categories_have_enumerations() {
        for name in ["status", "issue_type", "userRole", "TYPE", "log-level"] {
            assert!(names_a_category(name), "{name}");
        }
        for name in ["login", "owner", "estate", "city", "prototype", "state_name", ""] {
            assert!(!names_a_category(name), "{name}");
        }
        assert!(
            is_category("in_progress") && is_category("OPEN") && !is_category("ann7") && !is_category("") && !is_category("a b")
        );
    }
}
