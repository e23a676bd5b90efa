//! The differences between two values.

use super::edn::Edn;

/// Maximum number of differences.
const MAX_DIFFERENCES: usize = 20;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// The path as for `get-in`.
    pub(super) path: String,
    /// The expected value. `None` if there should be none.
    pub(super) expected: Option<String>,
    /// The actual value. `None` if there is none.
    pub(super) actual: Option<String>,
}

/// Returns the first differences between two values in text form. There is none if one of them is not a value, or if they differ
/// as a whole.
pub(super) fn differences(expected: &str, actual: &str) -> Vec<Difference> {
    let (Some(expected), Some(actual)) = (Edn::parse(expected), Edn::parse(actual)) else { return Vec::new() };
    let mut found = Vec::new();
    compare(&mut Vec::new(), Some(&expected), Some(&actual), &mut found);
    found.retain(|difference: &Difference| difference.path != "[]");
    found
}

fn compare(path: &mut Vec<String>, expected: Option<&Edn>, actual: Option<&Edn>, found: &mut Vec<Difference>) {
    if expected == actual || found.len() >= MAX_DIFFERENCES {
        return;
    }
    let mut below = |key: String, expected: Option<&Edn>, actual: Option<&Edn>| {
        path.push(key);
        compare(path, expected, actual, found);
        path.pop();
    };
    match (expected, actual) {
        (Some(Edn::Map(wanted)), Some(Edn::Map(got))) => {
            let value = |entries: &[(Edn, Edn)], key: &Edn| {
                entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
            };
            for (key, wanted) in wanted {
                below(key.text(), Some(wanted), value(got, key).as_ref());
            }
            for (key, got) in got.iter().filter(|(key, _)| value(wanted, key).is_none()) {
                below(key.text(), None, Some(got));
            }
        }
        (Some(Edn::Sequence(wanted)), Some(Edn::Sequence(got))) => {
            for at in 0..wanted.len().max(got.len()) {
                below(at.to_string(), wanted.get(at), got.get(at));
            }
        }
        (Some(Edn::Set(wanted)), Some(Edn::Set(got))) => {
            for item in wanted.iter().filter(|item| !got.contains(item)) {
                below(item.text(), Some(item), None);
            }
            for item in got.iter().filter(|item| !wanted.contains(item)) {
                below(item.text(), None, Some(item));
            }
        }
        _ => found.push(Difference {
            path: format!("[{}]", path.join(" ")),
            expected: expected.map(Edn::text),
            actual: actual.map(Edn::text),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_paths() {
        let found = |expected: &str, actual: &str| -> Vec<String> {
            let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let line = |found: Difference| format!("{} {} {}", found.path, shown(found.expected), shown(found.actual));
            differences(expected, actual).into_iter().map(line).collect()
        };
        assert_eq!(found(r#"{:a [1 {"b" 2}]}"#, r#"{:a [1 {"b" 3}]}"#), [r#"[:a 1 "b"] 2 3"#]);
        assert_eq!(found("{:a 1 :b 2}", "{:b 2 :c 3}"), ["[:a] 1 -", "[:c] - 3"]);
        assert_eq!(found("[1 2]", "(1 2 3)"), ["[2] - 3"]);
        assert_eq!(found("#{1 2}", "#{2 3}"), ["[1] 1 -", "[3] - 3"]);
        assert!(found("1", "2").is_empty() && found("{:a 1}", "#(inc %)").is_empty());
    }
}
