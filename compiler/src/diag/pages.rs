//! The pages that `explain` shows for each code: cause, example, fix. The texts are in one data file beside this one.

use super::Code;

/// One section for each code, with a heading such as `# PTC0101`.
static PAGES: &str = include_str!("pages.md");

/// Returns the page of a code in Markdown, or `None` if there is none. A test checks that every code has one.
pub fn page(code: Code) -> Option<&'static str> {
    sections().find(|(name, _)| *name == code.name()).map(|(_, page)| page)
}

/// Iterates over all pages with the name in their heading, in the order of the file.
pub fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.split("\n# ").filter_map(|section| {
        let section = section.strip_prefix("# ").unwrap_or(section);
        let (name, page) = section.split_once('\n')?;
        name.starts_with("PTC").then(|| (name.trim(), page.trim()))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_has_one_page_with_cause_example_and_fix() {
        let mut seen = BTreeSet::new();
        for (name, page) in sections() {
            assert!(seen.insert(name), "{name} has two pages");
            assert!(Code::ALL.iter().any(|code| code.name() == name), "{name} is a page without a code");
            for part in ["## Example", "## Fix"] {
                assert!(page.contains(part), "{name} has no section `{part}`");
            }
        }
        let missing: Vec<&str> = Code::ALL.iter().map(|code| code.name()).filter(|name| !seen.contains(name)).collect();
        assert!(missing.is_empty(), "codes without a page: {missing:?}");
    }

    #[test]
    fn codes_are_unique_and_ordered() {
        for pair in Code::ALL.windows(2) {
            assert!(pair[0].name() < pair[1].name(), "{} does not come before {}", pair[0].name(), pair[1].name());
        }
    }
}
