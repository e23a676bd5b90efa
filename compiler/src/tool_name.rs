//! Rules for the names of tools, which programs write after `:tool` and clients show to people.

/// Maximum length of a name in characters, as MCP recommends.
pub const MAX_LEN: usize = 128;

/// Returns why a text is not a plain tool name, or `None` if it is one. MCP only recommends these rules, so names of upstreams
/// may break them.
pub fn fault(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("it is empty")
    } else if name.chars().count() > MAX_LEN {
        Some("it is longer than 128 characters")
    } else if !name.chars().all(is_plain) {
        Some("it has characters other than letters of ASCII, digits, `-`, `_` and `.`")
    } else {
        None
    }
}

/// Whether a plain name may contain the character.
pub fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Returns a name without case and separators. Two names with equal results are easily confused.
pub fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_are_accepted_and_others_refused() {
        for name in ["read_file", "get-orders.v2", "A", &"x".repeat(128)] {
            assert_eq!(fault(name), None, "{name}");
        }
        for name in ["", "a b", "a/b", "größe", "*", &"x".repeat(129)] {
            assert!(fault(name).is_some(), "{name}");
        }
    }

    #[test]
    fn confusable_names_fold_to_the_same_text() {
        assert!(["read-file", "READ_FILE", "read.file"].iter().all(|name| folded(name) == folded("readFile")));
        assert_ne!(folded("größe"), folded("grosse"));
    }
}
