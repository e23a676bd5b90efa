//! Mismatches and warnings of a check, each with its path.

use std::fmt;

/// Maximum findings that are stored. Further ones are only counted.
const MAX_REPORTED: usize = 20;

/// A mismatch or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path, such as `results[0].customer.id`. Empty for the whole value.
    pub path: String,
    /// What was expected and found, or how the value was coerced.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

/// Findings in the order of the value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    kept: Vec<Finding>,
    more: usize,
}

impl Findings {
    /// Iterates over the stored findings, at most 20.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.kept.iter()
    }

    /// Number of all findings, including those that are not stored.
    pub fn len(&self) -> usize {
        self.kept.len() + self.more
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn add(&mut self, path: String, message: String) {
        if self.kept.len() < MAX_REPORTED {
            self.kept.push(Finding { path, message });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn append(&mut self, other: Findings) {
        self.more += other.more;
        other.kept.into_iter().for_each(|finding| self.add(finding.path, finding.message));
    }
}

/// Formats one line per finding: `- path: message`.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.kept.iter().enumerate() {
            write!(f, "{}- {finding}", if index > 0 { "\n" } else { "" })?;
        }
        if self.more > 0 { write!(f, "\n… and {} more", self.more) } else { Ok(()) }
    }
}

impl std::error::Error for Findings {}

/// One step of a path into a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Formats a path such as `results[0].customer.id`.
pub(super) fn path(steps: &[Step<'_>]) -> String {
    use fmt::Write as _;
    let mut path = String::new();
    for step in steps {
        // Writing to a string cannot fail.
        let _ = match step {
            Step::Key(name) if path.is_empty() => write!(path, "{name}"),
            Step::Key(name) => write!(path, ".{name}"),
            Step::Index(index) => write!(path, "[{index}]"),
        };
    }
    path
}
