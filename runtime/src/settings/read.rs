//! From arguments and environment to settings, with every fault at once.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;

use super::Settings;
use super::flag::{Flag, Group};
use super::flags::{UNBUILT, flags};
use crate::profile::Profile;

/// A reading of flags and environment in progress.
pub struct Reading {
    settings: Settings,
    /// Whether there is a config to read.
    unpinned: bool,
    given: BTreeSet<&'static str>,
    faults: Vec<Fault>,
    warnings: Vec<String>,
}

/// Something that an operator set wrongly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A value that its setting does not take.
    Value {
        /// `--flag`, or the name of the environment variable.
        place: String,
        /// What was written.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// A flag without its value.
    MissingValue {
        /// The flag.
        flag: &'static str,
        /// What would be right.
        expected: String,
    },
    /// A flag that does not exist.
    Unknown {
        /// As written.
        flag: String,
        /// A flag of a similar name.
        near: Option<&'static str>,
    },
    /// A flag that this binary was built without.
    Unbuilt {
        /// As written.
        flag: String,
        /// What brings it.
        remedy: &'static str,
    },
    /// A flag of the config, given to a binary that has none to read.
    Pinned {
        /// The flag.
        flag: &'static str,
    },
    /// An argument that no command takes.
    Unexpected {
        /// As written.
        argument: String,
    },
    /// Another misuse, as a sentence.
    Refused(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Value { place, found, expected } => write!(f, "{place}: expected {expected}, found '{found}'"),
            Fault::MissingValue { flag, expected } => write!(f, "--{flag}: expected {expected}, found nothing"),
            Fault::Unknown { flag, near: Some(near) } => write!(f, "unknown flag {flag}; did you mean --{near}?"),
            Fault::Unknown { flag, near: None } => write!(f, "unknown flag {flag}; --help lists all flags"),
            Fault::Unbuilt { flag, remedy } => write!(f, "{flag}: this binary was built without it; {remedy}"),
            Fault::Pinned { flag } => write!(
                f,
                "--{flag}: the upstreams of this binary were fixed when it was built, so there is no config to read; change the \
                 config and build the binary again"
            ),
            Fault::Unexpected { argument } => write!(f, "unexpected argument '{argument}'; --help shows the usage"),
            Fault::Refused(sentence) => f.write_str(sentence),
        }
    }
}

impl Reading {
    /// A reading that starts from the defaults; `unpinned` says whether there is a config to read.
    pub fn new(with_upstreams: bool, unpinned: bool) -> Self {
        let settings = Settings::defaults(with_upstreams);
        Reading { settings, unpinned, given: BTreeSet::new(), faults: Vec::new(), warnings: Vec::new() }
    }

    /// Takes one long flag, `name` without dashes. `inline` is the value after `=`; `next` gives the following argument.
    pub fn flag(&mut self, name: &str, inline: Option<OsString>, next: impl FnOnce() -> Option<OsString>) {
        let Some(flag) = Flag::find(name) else {
            let unbuilt = UNBUILT.iter().find(|(prefix, ..)| name.starts_with(prefix));
            let flag = format!("--{name}");
            self.faults.push(match unbuilt {
                Some((.., remedy)) => Fault::Unbuilt { flag, remedy },
                None => Fault::Unknown { flag, near: near(name) },
            });
            return;
        };
        if flag.is_of_config() && !self.unpinned {
            // Its value goes with it, so that it is not taken for a command.
            if inline.is_none() {
                next();
            }
            self.faults.push(Fault::Pinned { flag: flag.name });
            return;
        }
        let value = match inline {
            Some(value) => value,
            None if flag.is_switch() => "true".into(),
            None => match next() {
                Some(value) => value,
                None => return self.faults.push(Fault::MissingValue { flag: flag.name, expected: flag.expected() }),
            },
        };
        self.given.insert(flag.name);
        self.apply(flag, format!("--{}", flag.name), &value);
    }

    /// Takes the config as an argument.
    pub fn config(&mut self, path: &OsStr) {
        match Flag::find("upstreams-config").filter(|flag| self.given.insert(flag.name)) {
            Some(flag) => self.apply(flag, "CONFIG".to_owned(), path),
            None => self.unexpected(path),
        }
    }

    /// Takes an argument that belongs nowhere.
    pub fn unexpected(&mut self, argument: &OsStr) {
        self.faults.push(Fault::Unexpected { argument: argument.to_string_lossy().into_owned() });
    }

    /// Takes another misuse, as a sentence.
    pub fn refused(&mut self, sentence: String) {
        self.faults.push(Fault::Refused(sentence));
    }

    /// Takes an unknown short or misspelt flag, as written.
    pub fn unknown(&mut self, flag: &str) {
        self.faults.push(Fault::Unknown { flag: flag.to_owned(), near: near(flag.trim_start_matches('-')) });
    }

    /// Takes the environment for what no flag has set. An empty variable is an unset one.
    pub fn environment(&mut self, var: impl Fn(&str) -> Option<OsString>) {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        for flag in flags() {
            let Some(value) = var(flag.env).filter(|_| !self.given.contains(flag.name)) else { continue };
            if flag.is_of_config() && !self.unpinned {
                self.warnings.push(format!("{} is ignored: the upstreams of this binary were fixed when it was built", flag.env));
            } else {
                self.given.insert(flag.name);
                self.apply(flag, flag.env.to_owned(), &value);
            }
        }
        for (_, name, remedy) in UNBUILT.iter().filter(|(_, name, _)| var(name).is_some()) {
            self.warnings.push(format!("{name} is ignored: this binary was built without it; {remedy}"));
        }
    }

    /// The settings with warnings, or all faults.
    pub fn finish(mut self) -> Result<(Settings, Vec<String>), Vec<Fault>> {
        self.faults.extend(self.settings.http.contradictions().into_iter().map(Fault::Refused));
        if let Some(url) = &self.settings.session_store {
            if !cfg!(feature = "session-redis") {
                self.faults.push(Fault::Refused(
                    "--session-store: this binary keeps sessions in its memory only; build it with `--session-store redis` (feature \
                     session-redis of ptc-runtime)"
                        .into(),
                ));
            } else if let Err(why) = url.check() {
                self.faults.push(Fault::Refused(format!("--session-store: {why}")));
            } else if !self.settings.sessions {
                self.warnings.push("--session-store has no effect without --sessions".into());
            }
        }
        if self.settings.http.viewer && self.settings.diagnostics.trace_dir.is_none() {
            self.faults.push(Fault::Refused("--http-viewer: without --trace-dir there is nothing to look at".into()));
        }
        if self.settings.diagnostics.tool && !self.given.contains("response-profile") {
            self.settings.response_profile = Profile::Debug;
        }
        self.idle(Group::Http, "http", self.settings.http.on);
        #[cfg(feature = "agentic")]
        {
            self.faults.extend(self.settings.agentic.contradictions().into_iter().map(Fault::Refused));
            self.idle(Group::Agentic, "agentic", self.settings.agentic.on);
        }
        if self.faults.is_empty() { Ok((self.settings, self.warnings)) } else { Err(self.faults) }
    }

    /// Warns of settings of a group whose switch is off.
    fn idle(&mut self, group: Group, switch: &str, on: bool) {
        let idle = flags().filter(|flag| !on && flag.group == group && flag.name != switch && self.given.contains(flag.name));
        self.warnings.extend(idle.map(|flag| format!("--{} has no effect without --{switch}", flag.name)));
    }

    fn apply(&mut self, flag: &Flag, place: String, value: &OsStr) {
        if let Err(expected) = flag.apply(&mut self.settings, value) {
            self.faults.push(Fault::Value { place, found: flag.shown(value), expected });
        }
    }
}

fn near(name: &str) -> Option<&'static str> {
    let known = flags().map(|flag| flag.name).chain(["help", "json", "version"]);
    ptc_check::near_name(name, known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::flag::Default;

    fn read(args: &[(&str, Option<&str>)], env: &[(&str, &str)]) -> Result<(Settings, Vec<String>), Vec<String>> {
        let mut reading = Reading::new(false, false);
        for (name, value) in args {
            reading.flag(name, value.map(OsString::from), || None);
        }
        reading.environment(|name| env.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)));
        reading.finish().map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn rows_are_sound() {
        let mut names = BTreeSet::new();
        for flag in flags() {
            assert!(names.insert(flag.name), "twice: {}", flag.name);
            let variable = format!("PTC_RUNNER_MCP_{}", flag.name.to_uppercase().replace('-', "_"));
            // One name for both, but for the oldest of them.
            assert!(flag.env == variable || flag.env == "PTC_RUNNER_MCP_UPSTREAMS", "{}", flag.name);
            assert!(Group::ALL.iter().any(|(group, _)| *group == flag.group));
            assert!(!flag.help.is_empty() && !flag.help.ends_with('.'), "{}", flag.name);
            assert!(!UNBUILT.iter().any(|(prefix, ..)| flag.name.starts_with(prefix)), "{} exists", flag.name);
            for with_upstreams in [false, true] {
                let mut settings = Settings::defaults(with_upstreams);
                match flag.default_text(with_upstreams) {
                    Some(text) => assert_eq!(flag.apply(&mut settings, OsStr::new(&*text)), Ok(()), "{}", flag.name),
                    None => assert!(matches!(flag.default, Default::Unset(_))),
                }
            }
        }
    }

    #[test]
    fn flag_before_environment_before_default() {
        let env = [("PTC_RUNNER_MCP_MAX_PROGRAM_BYTES", "7"), ("PTC_RUNNER_MCP_MAX_CONTEXT_BYTES", "8")];
        let (settings, warnings) = read(&[("max-program-bytes", Some("5"))], &env).expect("all is right");
        assert_eq!((settings.max_program_bytes, settings.max_context_bytes), (5, 8));
        assert_eq!(settings.max_frame_bytes, 8 << 20);
        assert!(warnings.is_empty());
    }

    #[test]
    fn a_wrong_variable_behind_a_flag_does_not_matter() {
        assert!(read(&[("max-program-bytes", Some("5"))], &[("PTC_RUNNER_MCP_MAX_PROGRAM_BYTES", "x")]).is_ok());
    }

    #[test]
    fn all_faults_at_once() {
        let args = [
            ("max-frame-bytes", Some("8MB")),
            ("max-frame-bites", Some("1")),
            ("program-timeout-ms", None),
            ("agentic-modle", Some("x")),
            ("response-profile", Some("slimmer")),
            ("upstreams-config", Some("x.json")),
        ];
        let misspelt = if cfg!(feature = "agentic") {
            "unknown flag --agentic-modle; did you mean --agentic-model?"
        } else {
            "--agentic-modle: this binary was built without it; build it with `--agentic` (feature agentic of ptc-runtime)"
        };
        let faults = read(&args, &[("PTC_RUNNER_MCP_LOG_LEVEL", "loud")]).expect_err("six faults and one");
        assert_eq!(
            faults,
            [
                "--max-frame-bytes: expected an integer from 1024 to 1073741824 (bytes), found '8MB'",
                "unknown flag --max-frame-bites; did you mean --max-frame-bytes?",
                "--program-timeout-ms: expected an integer from 1 to 86400000 (ms), found nothing",
                misspelt,
                "--response-profile: expected one of slim, structured, debug, found 'slimmer'",
                "--upstreams-config: the upstreams of this binary were fixed when it was built, so there is no config to read; \
                 change the config and build the binary again",
                "PTC_RUNNER_MCP_LOG_LEVEL: expected one of debug, info, warn, error, found 'loud'",
            ]
        );
    }

    #[test]
    #[cfg(feature = "agentic")]
    fn settings_of_tasks_need_tasks() {
        let (_, warnings) = read(&[("agentic-max-turns", Some("3"))], &[]).expect("all is right");
        assert_eq!(warnings, ["--agentic-max-turns has no effect without --agentic"]);
        assert_eq!(
            read(&[("agentic-allow-writes", None)], &[]).expect_err("a fault"),
            ["--agentic-allow-writes needs --agentic"]
        );
        let env = [("PTC_RUNNER_MCP_AGENTIC", "true"), ("PTC_RUNNER_MCP_AGENTIC_MAX_TURNS", "4")];
        let (settings, warnings) =
            read(&[("agentic-max-turns", Some("3")), ("agentic-include-program", Some("false"))], &env).expect("all is right");
        assert_eq!((settings.agentic.on, settings.agentic.max_turns, settings.agentic.retry_turns), (true, Some(3), None));
        assert_eq!((settings.agentic.include_program, warnings), (false, Vec::new()));
        for url in ["ftp://x", "http://", "https://u:p@x/v1", "https://x/v1?key=1", "x/v1"] {
            assert!(read(&[("agentic", None), ("agentic-base-url", Some(url))], &[]).is_err(), "{url}");
        }
    }

    #[test]
    #[cfg(not(feature = "agentic"))]
    fn a_variable_of_what_was_not_built_is_warned_of() {
        let (_, warnings) = read(&[], &[("PTC_RUNNER_MCP_AGENTIC", "true")]).expect("all is right");
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn switches_and_the_pinned_config() {
        let (settings, warnings) =
            read(&[("aggregator-read-only", None)], &[("PTC_RUNNER_MCP_UPSTREAMS", "x.json")]).expect("all is right");
        assert!(settings.aggregator_read_only);
        assert_eq!(warnings.len(), 1);
    }
}
