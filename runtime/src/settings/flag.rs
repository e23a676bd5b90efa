//! A row of the table of settings, and the parsing of its value.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::PathBuf;

use super::feature::{LinkedParts, how_to_enable};
use super::{Settings, flags};

/// One setting.
#[derive(Debug)]
pub struct Flag {
    /// The name of its long flag, without the dashes.
    pub name: &'static str,
    /// Its environment variable.
    pub env: &'static str,
    /// The accepted values, and how they are stored.
    pub kind: Kind,
    /// Its default.
    pub default: Default,
    /// Its heading in `--help`.
    pub group: Group,
    /// One line for `--help`.
    pub help: &'static str,
}

/// The accepted values of a setting, and the function that stores one.
#[derive(Debug)]
pub enum Kind {
    /// An integer within bounds.
    Integer {
        /// The unit in help: `bytes`, `ms`, `calls`.
        unit: &'static str,
        /// Minimum value.
        min: u64,
        /// Maximum value.
        max: u64,
        /// Stores it.
        set: fn(&mut Settings, u64),
    },
    /// One of several words.
    Choice {
        /// The words.
        words: &'static [&'static str],
        /// Stores the word with this index.
        set: fn(&mut Settings, usize),
    },
    /// A boolean. The flag without a value means true.
    Switch {
        /// Stores it.
        set: fn(&mut Settings, bool),
    },
    /// A folder.
    Folder {
        /// Whether a missing folder is created when it is used.
        made: bool,
        /// Stores it.
        set: fn(&mut Settings, PathBuf),
    },
    /// A file.
    File {
        /// Stores it.
        set: fn(&mut Settings, PathBuf),
    },
    /// A text in a certain format.
    Text {
        /// Its placeholder in help.
        shape: &'static str,
        /// The expected format, as a phrase.
        expected: &'static str,
        /// Stores the value. Returns `None` if its format is invalid.
        set: fn(&mut Settings, &str) -> Option<()>,
    },
    /// A text that is never displayed.
    Secret {
        /// Its placeholder in help.
        shape: &'static str,
        /// The expected format, as a phrase.
        expected: &'static str,
        /// Stores the value. Returns `None` if its format is invalid.
        set: fn(&mut Settings, &str) -> Option<()>,
    },
}

/// The default of a setting, in the format of the command line.
#[derive(Debug)]
pub enum Default {
    /// The same default in all cases.
    Fixed(&'static str),
    /// The defaults without and with upstreams.
    Split(&'static str, &'static str),
    /// No default. The text describes the behaviour.
    Unset(&'static str),
}

/// Headings of `--help`, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The config of a server that is not compiled.
    Config,
    /// Frames, arguments, concurrency.
    Server,
    /// One evaluation.
    Program,
    /// Upstream calls.
    Upstreams,
    /// Results and descriptions.
    Answers,
    /// Sessions.
    Sessions,
    /// The HTTP listener.
    Http,
    /// Traces and `lisp_debug`.
    Diagnostics,
    /// Recorded answers.
    Recording,
    /// `lisp_task`.
    Agentic,
    /// `repl` on a terminal.
    Terminal,
}

/// The command for which settings are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Serve clients.
    Serve,
    /// Evaluate one program.
    Eval,
    /// Evaluate programs in sequence.
    Repl,
}

impl Purpose {
    /// Returns the name of the command for messages.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Serve => "a server",
            Purpose::Eval => "eval",
            Purpose::Repl => "repl",
        }
    }
}

impl Group {
    /// All groups with their headings.
    pub const ALL: [(Group, &'static str); 11] = [
        (Group::Config, "Config"),
        (Group::Server, "Server"),
        (Group::Program, "Programs"),
        (Group::Upstreams, "Upstreams"),
        (Group::Answers, "Answers and descriptions"),
        (Group::Sessions, "Sessions"),
        (Group::Http, "Streamable HTTP"),
        (Group::Diagnostics, "Diagnostics"),
        (Group::Recording, "Recording and replay"),
        (Group::Agentic, "Tasks in words"),
        (Group::Terminal, "Interactive prompt of repl"),
    ];
}

impl Flag {
    /// Returns the row with this name, without dashes.
    pub fn find(name: &str) -> Option<&'static Flag> {
        flags().find(|flag| flag.name == name)
    }

    /// Whether it configures the upstreams, so that a binary with compiled-in upstreams has no use for it.
    pub fn is_of_config(&self) -> bool {
        self.group == Group::Config
    }

    /// Returns the features of which it requires one. Empty if every binary has it.
    fn features(&self) -> &'static [&'static str] {
        match (self.group, self.name) {
            (Group::Agentic, _) => &["agentic"],
            (Group::Terminal, _) => &["line-editing"],
            (Group::Http, "http-viewer") => &["viewer"],
            (Group::Http, "http-tls-cert" | "http-tls-client-ca" | "http-tls-key") => &["https-server"],
            (Group::Http, name) if name.starts_with("http-oauth-") => &["http-oauth"],
            (Group::Http, _) => &["http-server"],
            (Group::Diagnostics, "otlp-endpoint") => &["otlp"],
            (Group::Recording, _) => &["recording"],
            (Group::Server, "proxy" | "proxy-file" | "no-proxy") => &["agentic", "http-oauth", "otlp"],
            _ => &[],
        }
    }

    /// Whether a binary has it. `has` returns whether the binary has the feature of that name.
    pub fn is_built_with(&self, has: impl Fn(&str) -> bool) -> bool {
        let features = self.features();
        features.is_empty() || features.iter().any(|feature| has(feature))
    }

    /// Whether a binary that links these parts has it.
    pub fn is_built(&self, linked: LinkedParts) -> bool {
        self.is_built_with(|feature| how_to_enable(feature, linked).is_none())
    }

    /// Whether it has an effect on a command.
    pub fn applies_to(&self, purpose: Purpose) -> bool {
        let serves = purpose == Purpose::Serve;
        match (self.group, self.name) {
            (Group::Sessions | Group::Http | Group::Agentic, _)
            | (
                Group::Server,
                "max-frame-bytes"
                | "max-context-bytes"
                | "max-concurrent-calls"
                | "queue-timeout-ms"
                | "memory-budget-bytes"
                | "proxy"
                | "proxy-file"
                | "no-proxy",
            )
            | (Group::Answers, "response-profile" | "aggregator-read-only")
            | (Group::Upstreams, "allow-missing-secrets") => serves,
            (Group::Diagnostics, name) => serves || name.starts_with("trace-"),
            // The command `:tools` uses these settings.
            (Group::Answers, _) => purpose != Purpose::Eval,
            (Group::Terminal, "no-history") => purpose == Purpose::Repl,
            _ => true,
        }
    }

    /// Whether the flag needs no value.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, Kind::Switch { .. })
    }

    /// Returns the default in the format of the command line, or `None` if there is none.
    pub fn default_text(&self, with_upstreams: bool) -> Option<Cow<'static, str>> {
        match self.default {
            Default::Fixed(text) => Some(text.into()),
            Default::Split(plain, upstreams) => Some(if with_upstreams { upstreams } else { plain }.into()),
            Default::Unset(_) => None,
        }
    }

    /// Describes the accepted values as a phrase: `an integer from 1 to 256`.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Integer { min, max, unit, .. } => format!("an integer from {min} to {max} ({unit})"),
            Kind::Choice { words, .. } => format!("one of {}", words.join(", ")),
            Kind::Switch { .. } => "true or false".into(),
            Kind::Folder { made: false, .. } => "an existing folder".into(),
            Kind::Folder { made: true, .. } => "a folder, or a path where one can be made".into(),
            Kind::File { .. } => "an existing file".into(),
            Kind::Text { expected, .. } | Kind::Secret { expected, .. } => expected.into(),
        }
    }

    /// Returns the placeholder of its value in `--help`.
    pub fn placeholder(&self) -> String {
        match self.kind {
            Kind::Integer { unit, .. } => format!("<{unit}>"),
            Kind::Choice { words, .. } => format!("<{}>", words.join("|")),
            Kind::Switch { .. } => String::new(),
            Kind::Folder { .. } => "<folder>".into(),
            Kind::File { .. } => "<file>".into(),
            Kind::Text { shape, .. } | Kind::Secret { shape, .. } => shape.into(),
        }
    }

    /// Returns a value for display in messages.
    pub fn shown(&self, text: &OsStr) -> String {
        match self.kind {
            Kind::Secret { .. } => format!("{} bytes", text.len()),
            _ => text.to_string_lossy().into_owned(),
        }
    }

    /// Whether a value on the command line contains a secret. Other processes can read the arguments of a process.
    pub fn reveals(&self, value: &OsStr) -> bool {
        // The URL of a session store without a password is not a secret.
        let is_secret = |text: &str| if text.contains("://") { text.contains('@') } else { text != "memory" };
        matches!(self.kind, Kind::Secret { .. }) && value.to_str().is_some_and(is_secret)
    }

    /// Parses and stores a value.
    ///
    /// # Errors
    ///
    /// Returns the accepted values, as [`Flag::expected`] describes them, if the text is not one of them. A path of the wrong
    /// kind is an error too.
    pub fn apply(&self, settings: &mut Settings, text: &OsStr) -> Result<(), String> {
        let word = || text.to_str().ok_or_else(|| self.expected());
        match self.kind {
            Kind::Integer { min, max, set, .. } => {
                let number = word()?.parse::<u64>().ok().filter(|n| (min..=max).contains(n));
                set(settings, number.ok_or_else(|| self.expected())?);
            }
            Kind::Choice { words, set } => {
                let word = word()?;
                set(settings, words.iter().position(|w| *w == word).ok_or_else(|| self.expected())?);
            }
            Kind::Switch { set } => match word()? {
                "true" | "1" => set(settings, true),
                "false" | "0" => set(settings, false),
                _ => return Err(self.expected()),
            },
            Kind::Text { set, .. } | Kind::Secret { set, .. } => {
                set(settings, word()?).ok_or_else(|| self.expected())?;
            }
            Kind::Folder { made, set } => {
                let path = PathBuf::from(text);
                let missing = made && !path.as_os_str().is_empty() && !path.exists();
                if !path.is_dir() && !missing {
                    return Err(self.expected());
                }
                set(settings, path);
            }
            Kind::File { set } => {
                let path = PathBuf::from(text);
                if !path.is_file() {
                    return Err(self.expected());
                }
                set(settings, path);
            }
        }
        Ok(())
    }
}

/// Parses a URL without query and fragment. The result is normalised so that a path can be appended.
pub fn base_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let plain = !rest.is_empty() && !rest.contains(['?', '#', '@']) && !rest.contains(char::is_whitespace);
    (["http", "https"].contains(&scheme) && plain && !rest.starts_with('/')).then(|| text.trim_end_matches('/').to_owned())
}
