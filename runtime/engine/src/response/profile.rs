//! `--response-profile`

/// A response profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Text only, for a model.
    Slim,
    /// Text and compact structured data.
    Structured,
    /// All data, also as text, for people who debug.
    Debug,
}

impl Profile {
    /// Returns its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Slim => "slim",
            Profile::Structured => "structured",
            Profile::Debug => "debug",
        }
    }
}
