//! Derives the exposed names of operations.

/// Converts `camelCase`, `snake_case` and every other separator of words into `kebab-case`. `listTraces`, `list_traces` and
/// `List traces` all become `list-traces`; `getHTTPStatus` becomes `get-http-status`.
pub(crate) fn kebab(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (at, c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            separate(&mut out);
            continue;
        }
        let before = at.checked_sub(1).and_then(|i| chars.get(i)).copied();
        let after = chars.get(at + 1).copied();
        let word_starts = c.is_uppercase()
            && before.is_some_and(|b| {
                b.is_lowercase() || b.is_numeric() || (b.is_uppercase() && after.is_some_and(char::is_lowercase))
            });
        if word_starts {
            separate(&mut out);
        }
        out.extend(c.to_lowercase());
    }
    out.truncate(out.trim_end_matches('-').len());
    out
}

fn separate(out: &mut String) {
    if !out.is_empty() && !out.ends_with('-') {
        out.push('-');
    }
}

/// Returns the name of an operation without an id: `get-items-by-id` for `GET /items/{id}`.
pub(crate) fn of_path(method: &str, path: &str) -> String {
    let words = path.split('/').filter(|s| !s.is_empty()).map(|segment| {
        // `{b}.{c}` begins and ends like one variable but contains two.
        match segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')).filter(|s| !s.contains('{')) {
            Some(variable) => format!("by-{}", kebab(variable)),
            None => kebab(segment),
        }
    });
    std::iter::once(method.to_ascii_lowercase()).chain(words).filter(|w| !w.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::{kebab, of_path};

    #[test]
    fn names_are_kebab_case() {
        for (given, expected) in [
            ("listTraces", "list-traces"),
            ("list_traces", "list-traces"),
            ("ListTraces", "list-traces"),
            ("getHTTPStatus", "get-http-status"),
            ("repos/get-all", "repos-get-all"),
            ("getV2Items", "get-v2-items"),
            ("__x__", "x"),
            ("Pets.list", "pets-list"),
            ("$$", ""),
        ] {
            assert_eq!(kebab(given), expected, "{given}");
        }
    }

    #[test]
    fn names_from_paths_contain_the_path_variables() {
        assert_eq!(of_path("get", "/items/{itemId}"), "get-items-by-item-id");
        assert_eq!(of_path("get", "/"), "get");
        assert_eq!(of_path("get", "/a/{b}.{c}"), "get-a-b-c");
    }
}
