//! The rules with the key of their replacements, and why they cannot be applied.

use std::fmt;
use std::str::FromStr;

use ptc_catalog::Catalog;
use ptc_runtime::settings::ScrubPath;
use regex::Regex;

use super::key::{KeyError, ScrubKey};

/// What is replaced, and by what.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The rules.
    pub list: Vec<Rule>,
    /// The key that makes the replacements. Without one they are counted in each file.
    pub key: Option<ScrubKey>,
}

impl Rules {
    /// Returns rules whose replacements are made with the key in a variable of the environment, or counted without one.
    ///
    /// # Errors
    ///
    /// The variable has no valid key, an upstream of the catalog inherits it, or there are no rules for it.
    pub fn new(list: Vec<Rule>, key_variable: Option<&str>, catalog: &Catalog) -> Result<Rules, KeyError> {
        if list.is_empty() && key_variable.is_some() {
            return Err(KeyError::NoRules);
        }
        let key = key_variable.map(|variable| ScrubKey::from_env(variable, catalog)).transpose()?;
        Ok(Rules { list, key })
    }
}

/// What is replaced.
#[derive(Debug, Clone)]
pub enum Rule {
    /// The texts and numbers at a path in the answers of a tool. Equal texts are replaced everywhere, also as words within longer
    /// texts.
    Path(ScrubPath),
    /// Each match in any text.
    Pattern(Regex),
}

impl Rule {
    /// Creates a rule for the matches of a regular expression.
    ///
    /// # Errors
    ///
    /// Returns a sentence if it is not a regular expression.
    pub fn pattern(text: &str) -> Result<Rule, String> {
        Regex::new(text).map(Rule::Pattern).map_err(|error| error.to_string())
    }
}

impl FromStr for Rule {
    type Err = String;

    /// Parses `SERVER/TOOL:PATH`.
    fn from_str(text: &str) -> Result<Rule, String> {
        text.parse().map(Rule::Path).map_err(str::to_owned)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Path(path) => path.fmt(f),
            Rule::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

/// Why rules cannot be applied to a cassette.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ScrubError {
    /// The rule selects nothing. It is likely misspelt.
    Unused(Rule),
    /// The rule makes two different requests equal.
    Merged(MergedRequests),
}

/// Two different requests became equal, and their answers differ. A replay would answer one of them with the answers to the other.
#[derive(Debug, Clone)]
pub struct MergedRequests {
    /// The rule that replaced the difference.
    pub rule: Rule,
    /// The tool, as `upstream/tool`.
    pub tool: String,
    /// What both requests became.
    pub request: String,
}

impl fmt::Display for ScrubError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScrubError::Unused(rule) => write!(f, "the rule {rule} selects nothing in the recorded answers"),
            ScrubError::Merged(merged) => merged.fmt(f),
        }
    }
}

impl fmt::Display for MergedRequests {
    /// Writes a sentence without the request, which may have data that no rule replaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rule {} makes two requests of {} equal that got different answers", self.rule, self.tool)
    }
}

impl std::error::Error for ScrubError {}
