//! Patterns in which `*` matches any characters.

/// Whether a text matches a pattern, in which `*` matches any characters.
pub fn matches_wildcard(pattern: &str, text: &str) -> bool {
    // Each entry is compared with each operation, and most of them differ in the first byte.
    let first = |text: &str| text.as_bytes().first().copied();
    if first(pattern) != Some(b'*') && first(pattern) != first(text) {
        return false;
    }
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or("");
    // Each part is matched at its first occurrence, which leaves the longest rest for the following parts.
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = left.get(at + part.len()..).unwrap_or("");
    }
    left.len() >= tail.len() && left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_characters() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("list*", "listOrders", true),
            ("list*", "getOrders", false),
            ("*Orders", "listOrders", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1c", false),
            ("ab*bc", "abc", false),
            ("/repos/*/issues", "/repos/{owner}/{repo}/issues", true),
            ("exact", "exact", true),
            ("exact", "exactly", false),
        ] {
            assert_eq!(matches_wildcard(pattern, text), expected, "{pattern} {text}");
        }
    }
}
