//! Classifies verbs by their effect. A tool that changes something is a bad answer to a query that only reads.

/// The effect of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Changes nothing.
    Read,
    /// Makes something new.
    Create,
    /// Changes something that exists.
    Update,
    /// Removes something.
    Delete,
}

const VERBS: [(Intent, &str); 4] = [
    (
        Intent::Read,
        "browse check compare count describe download enumerate fetch find get inspect list locate look lookup query read retrieve \
         search show view what which who whose where when is are does do did has have many",
    ),
    (Intent::Create, "add append copy create draft duplicate file fork generate insert new raise register report submit write"),
    (Intent::Update, "assign change edit modify move patch rename replace set update"),
    (Intent::Delete, "clear delete destroy discard drop erase purge remove"),
];

/// Returns all verbs with their intents.
pub(crate) fn verbs() -> impl Iterator<Item = (Intent, &'static str)> {
    VERBS.iter().flat_map(|(intent, verbs)| verbs.split_ascii_whitespace().map(|verb| (*intent, verb)))
}

impl Intent {
    pub(crate) const ALL: [Intent; 4] = [Intent::Read, Intent::Create, Intent::Update, Intent::Delete];

    /// Classifies a verb in its base form. Question words count as reading.
    pub(crate) fn from_word(word: &str) -> Option<Intent> {
        verbs().find(|(_, verb)| *verb == word).map(|(intent, _)| intent)
    }

    /// Classifies a tool by its `readOnlyHint`, and by the first verb in its name that agrees with it. A tool that changes
    /// something, without such a verb, counts as updating.
    pub(crate) fn from_tool(verbs: &[Intent], is_read_only: Option<bool>) -> Option<Intent> {
        match is_read_only {
            Some(true) => Some(Intent::Read),
            Some(false) => verbs.iter().find(|intent| **intent != Intent::Read).copied().or(Some(Intent::Update)),
            None => verbs.first().copied(),
        }
    }

    /// Returns the index term whose postings are the tools with this intent.
    pub(crate) fn term(self) -> &'static str {
        match self {
            Intent::Read => "!read",
            Intent::Create => "!create",
            Intent::Update => "!update",
            Intent::Delete => "!delete",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Intent;
    use crate::words;

    #[test]
    fn tool_is_classified_by_its_hint_before_its_name() {
        for (name, is_read_only, expected) in [
            ("create_issue", None, Some(Intent::Create)),
            ("API-post-search", Some(true), Some(Intent::Read)),
            ("deleteLabel", Some(false), Some(Intent::Delete)),
            ("find_and_replace", Some(false), Some(Intent::Update)),
            ("press_key", Some(false), Some(Intent::Update)),
            ("merge_pull_request", None, None),
        ] {
            let mut verbs = Vec::new();
            words::each_word(name, |word| verbs.extend(Intent::from_word(word)));
            assert_eq!(Intent::from_tool(&verbs, is_read_only), expected, "{name}");
        }
    }
}
