//! Parses arguments and environment into settings, and collects all faults.

use std::ffi::{OsStr, OsString};
use std::fmt;

use litemap::LiteMap;

use super::Settings;
use super::feature::LinkedParts;
use super::flag::{Flag, Purpose};
use super::flags::{Optional, REPL_NAMES, REPL_VARIABLES, disabled_settings, flags};

/// The flags of scheduler limits whose source is reported.
pub(super) const LIMITS: [&str; 4] =
    ["max-concurrent-calls", "queue-timeout-ms", "memory-budget-bytes", "http-max-in-flight-per-session"];

/// A parser of flags and environment.
pub struct SettingsParser {
    pub(super) settings: Settings,
    /// Whether the command reads a config.
    pub(super) unpinned: bool,
    /// Whether the REPL's names of settings are accepted too.
    pub(super) repl: bool,
    pub(super) linked: LinkedParts,
    /// The settings that were given, with the name of the source: `--flag`, `CONFIG` or a variable.
    pub(super) given: LiteMap<&'static str, String>,
    /// Whether an optional part has settings of its own.
    pub(super) has_parts: bool,
    pub(super) faults: Vec<Fault>,
    pub(super) warnings: Vec<String>,
}

/// An error in the operator's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A value that its setting does not accept.
    Value {
        /// `--flag`, or the name of the environment variable.
        place: String,
        /// The given value.
        found: String,
        /// The accepted values.
        expected: String,
    },
    /// A flag without its value.
    MissingValue {
        /// The flag as written.
        flag: String,
        /// The accepted values.
        expected: String,
    },
    /// A flag that does not exist.
    Unknown {
        /// The flag as written.
        flag: String,
        /// A flag with a similar name.
        near: Option<&'static str>,
    },
    /// A flag that this binary was built without.
    Unbuilt {
        /// The flag as written.
        flag: String,
        /// How to enable it.
        how_to_enable: String,
    },
    /// A flag of the config, given to a binary with compiled-in upstreams.
    Pinned {
        /// The flag.
        flag: &'static str,
    },
    /// An argument that no command takes.
    Unexpected {
        /// The argument as written.
        argument: String,
        /// A command with a similar name.
        near: Option<&'static str>,
    },
    /// Another error, as a sentence.
    Refused(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Value { place, found, expected } => write!(f, "{place}: expected {expected}, found '{found}'"),
            Fault::MissingValue { flag, expected } => write!(f, "{flag}: expected {expected}, found nothing"),
            Fault::Unknown { flag, near: Some(near) } => write!(f, "unknown flag {flag}; did you mean --{near}?"),
            Fault::Unknown { flag, near: None } => write!(f, "unknown flag {flag}; --help lists all flags"),
            Fault::Unbuilt { flag, how_to_enable } => write!(f, "{flag}: this binary was built without it; {how_to_enable}"),
            Fault::Pinned { flag } => write!(
                f,
                "--{flag}: the upstreams of this binary were fixed when it was built, so there is no config to read; change the \
                 config and build the binary again"
            ),
            Fault::Unexpected { argument, near: Some(near) } => {
                write!(f, "unexpected argument '{argument}'; did you mean {near}?")
            }
            Fault::Unexpected { argument, near: None } => write!(f, "unexpected argument '{argument}'; --help shows the usage"),
            Fault::Refused(sentence) => f.write_str(sentence),
        }
    }
}

impl SettingsParser {
    /// Starts with the defaults. `unpinned` is whether the command reads a config, and `linked` are the optional parts of the
    /// binary.
    pub fn new(with_upstreams: bool, unpinned: bool, linked: LinkedParts) -> Self {
        let settings = Settings::defaults(with_upstreams);
        let (given, faults, warnings) = (LiteMap::new(), Vec::new(), Vec::new());
        SettingsParser { settings, unpinned, repl: false, linked, given, has_parts: false, faults, warnings }
    }

    /// Accepts the documented names of `repl` from now on.
    pub fn of_repl(&mut self) {
        self.repl = true;
    }

    /// Handles one long flag, `written` without dashes. `inline` is the value after `=`, and `next` returns the following
    /// argument. Returns false for an unknown flag, of which it is unknown whether the following argument is its value.
    pub fn flag(&mut self, written: &str, inline: Option<OsString>, next: impl FnOnce() -> Option<OsString>) -> bool {
        let of_repl = REPL_NAMES.iter().find(|(short, _)| self.repl && *short == written);
        let Some(flag) = Flag::find(of_repl.map_or(written, |(_, name)| name)) else {
            let is_disabled = disabled_settings(self.linked).find(|(optional, _)| written.starts_with(optional.prefix));
            let flag = format!("--{written}");
            self.faults.push(match is_disabled {
                Some((_, how_to_enable)) => Fault::Unbuilt { flag, how_to_enable },
                None => Fault::Unknown { flag, near: self.near(written) },
            });
            return false;
        };
        let place = format!("--{written}");
        if flag.is_of_config() && !self.unpinned {
            // The value is skipped, so that it is not taken for a command.
            if inline.is_none() {
                next();
            }
            self.faults.push(Fault::Pinned { flag: flag.name });
            return true;
        }
        let alone = || if flag.is_switch() { Some("true".into()) } else { next() };
        let Some(value) = inline.or_else(alone) else {
            self.faults.push(Fault::MissingValue { flag: place, expected: flag.expected() });
            return true;
        };
        if flag.reveals(&value) {
            self.warnings.push(format!(
                "{place}: other users of this machine can read the arguments of a process; use {} or --{}-file",
                flag.env, flag.name
            ));
        }
        self.set(flag, place, &value);
        true
    }

    /// Handles the config as a positional argument.
    pub fn config(&mut self, path: &OsStr) {
        match Flag::find("upstreams-config").filter(|flag| !self.given.contains_key(flag.name)) {
            Some(flag) => self.set(flag, "CONFIG".to_owned(), path),
            None => self.unexpected(path),
        }
    }

    /// Records an unexpected argument.
    pub fn unexpected(&mut self, argument: &OsStr) {
        self.misspelt(argument, None);
    }

    /// Records an unexpected argument with a command of a similar name.
    pub fn misspelt(&mut self, argument: &OsStr, near: Option<&'static str>) {
        self.faults.push(Fault::Unexpected { argument: argument.to_string_lossy().into_owned(), near });
    }

    /// Records another error, as a sentence.
    pub fn refused(&mut self, sentence: String) {
        self.faults.push(Fault::Refused(sentence));
    }

    /// Records an unknown short or misspelt flag, as written.
    pub fn unknown(&mut self, flag: &str) {
        let near = self.near(flag.trim_start_matches('-'));
        self.faults.push(Fault::Unknown { flag: flag.to_owned(), near });
    }

    /// Applies environment variables for settings without a flag. An empty variable counts as unset. Variables without effect on
    /// this command are ignored, since they may be meant for a server, which would report errors in them.
    pub fn environment(&mut self, purpose: Purpose, var: impl Fn(&str) -> Option<OsString>) {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        for flag in flags().filter(|flag| flag.applies_to(purpose)) {
            let of_repl = REPL_VARIABLES.iter().filter(|(_, env)| self.repl && *env == flag.env).map(|(name, _)| *name);
            let found = of_repl.chain([flag.env]).find_map(|name| Some((name, var(name)?)));
            let Some((name, value)) = found.filter(|_| !self.given.contains_key(flag.name)) else { continue };
            if flag.name == "upstreams-config" && self.settings.plain {
                continue;
            }
            if flag.is_of_config() && !self.unpinned {
                self.warnings.push(format!("{name} is ignored: the upstreams of this binary were fixed when it was built"));
            } else {
                self.set(flag, name.to_owned(), &value);
            }
        }
        let disabled = disabled_settings(self.linked).filter(|(optional, _)| var(optional.env).is_some());
        for (Optional { env: name, .. }, how_to_enable) in disabled {
            self.warnings.push(format!("{name} is ignored: this binary was built without it; {how_to_enable}"));
        }
    }

    /// Reads the settings of an optional part, which depend on those read so far. Records their warnings or faults.
    pub fn part<T>(&mut self, read: impl FnOnce(&Settings) -> Result<(Option<T>, Vec<String>), Vec<Fault>>) -> Option<T> {
        match read(&self.settings) {
            Ok((settings, warnings)) => {
                self.warnings.extend(warnings);
                self.has_parts |= settings.is_some();
                settings
            }
            Err(faults) => {
                self.faults.extend(faults);
                None
            }
        }
    }

    /// Applies the scheduler limits from the environment for a command that only displays them. Errors are ignored, since the
    /// server reports them.
    pub fn limits_of_environment(&mut self, var: impl Fn(&str) -> Option<OsString>) {
        for flag in LIMITS.into_iter().filter_map(Flag::find) {
            let value = var(flag.env).filter(|value| !value.is_empty() && !self.given.contains_key(flag.name));
            if value.is_some_and(|value| flag.apply(&mut self.settings, &value).is_ok()) {
                self.given.insert(flag.name, flag.env.to_owned());
            }
        }
    }

    /// Returns the settings with warnings.
    ///
    /// # Errors
    ///
    /// Returns all faults. A flag without effect on the command is only a warning.
    pub fn finish(mut self, purpose: Purpose) -> Result<(Settings, Vec<String>), Vec<Fault>> {
        let idle = flags().filter(|flag| !flag.applies_to(purpose)).filter_map(|flag| self.given.get(flag.name));
        self.warnings.extend(idle.map(|place| format!("{place} has no effect on {}", purpose.name())));
        if let (true, Some(place)) = (self.settings.plain, self.given.get("upstreams-config")) {
            let why = format!("--plain starts without upstreams and does not go with {place}: leave one of them out");
            self.faults.push(Fault::Refused(why));
        }
        #[cfg(feature = "interception")]
        self.contradictions_of_interception();
        if purpose == Purpose::Serve {
            self.contradictions();
        }
        if self.faults.is_empty() { Ok((self.settings, self.warnings)) } else { Err(self.faults) }
    }

    /// Returns a flag with a similar name that this command accepts.
    fn near(&self, name: &str) -> Option<&'static str> {
        let serves = self.unpinned && !self.repl;
        let others: &[&str] =
            if serves { &["help", "version"] } else { &["help", "version", "json", "display", "fail-on-call-errors"] };
        let settings = flags().filter(|flag| self.unpinned || !flag.is_of_config()).map(|flag| flag.name);
        let of_repl = REPL_NAMES.iter().filter(|_| self.repl).map(|(name, _)| *name);
        let names: Vec<&'static str> = settings.chain(of_repl).chain(others.iter().copied()).collect();
        ptc_text::closest_match(name, names.iter().copied()).or_else(|| {
            // The group of a flag was left out: `--metrics` for `--http-metrics`.
            let mut ending = names.iter().copied().filter(|own| own.strip_suffix(name).is_some_and(|group| group.ends_with('-')));
            ending.next().filter(|_| ending.next().is_none())
        })
    }

    fn set(&mut self, flag: &'static Flag, place: String, value: &OsStr) {
        self.given.insert(flag.name, place.clone());
        self.apply(flag, place, value);
    }

    fn apply(&mut self, flag: &Flag, place: String, value: &OsStr) {
        if let Err(expected) = flag.apply(&mut self.settings, value) {
            self.faults.push(Fault::Value { place, found: flag.shown(value), expected });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Group;
    use super::*;
    use crate::settings::flag::{Default, Kind};

    fn read(args: &[(&str, Option<&str>)], env: &[(&str, &str)]) -> Result<(Settings, Vec<String>), Vec<String>> {
        read_for(Purpose::Serve, args, env)
    }

    fn read_for(
        purpose: Purpose,
        args: &[(&str, Option<&str>)],
        env: &[(&str, &str)],
    ) -> Result<(Settings, Vec<String>), Vec<String>> {
        let mut reading = SettingsParser::new(false, false, LinkedParts::default());
        for (name, value) in args {
            reading.flag(name, value.map(OsString::from), || None);
        }
        reading.environment(purpose, |name| env.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)));
        reading.finish(purpose).map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn flags_have_unique_names_variables_and_help() {
        let mut names = std::collections::BTreeSet::new();
        for flag in flags() {
            assert!(names.insert(flag.name), "twice: {}", flag.name);
            let variable = format!("PTC_RUNNER_MCP_{}", flag.name.to_uppercase().replace('-', "_"));
            // Flag and variable have the same name, except for the oldest one, and for `--upstreams`, whose name that one has.
            let is_exempt = ["PTC_RUNNER_MCP_UPSTREAMS", "PTC_RUNNER_MCP_REPLAY"].contains(&flag.env);
            assert!(flag.env == variable || is_exempt, "{}", flag.name);
            assert!(Group::ALL.iter().any(|(group, _)| *group == flag.group));
            assert!(!flag.help.is_empty() && !flag.help.ends_with('.'), "{}", flag.name);
            assert!(
                !disabled_settings(LinkedParts::default()).any(|(optional, _)| flag.name.starts_with(optional.prefix)),
                "{} exists",
                flag.name
            );
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
    fn misspelt_variables_are_reported() {
        let told = |name: &str| crate::settings::unknown_env_vars([name.to_owned()].into_iter(), LinkedParts::default());
        assert_eq!(
            told("PTC_RUNNER_MCP_MAX_FRAME_BYTS"),
            ["PTC_RUNNER_MCP_MAX_FRAME_BYTS is not a setting; did you mean PTC_RUNNER_MCP_MAX_FRAME_BYTES?"]
        );
        assert_eq!(told("PTC_RUNNER_MCP_ZZZ"), ["PTC_RUNNER_MCP_ZZZ is not a setting; --help names the variable of each"]);
        for known in ["PTC_RUNNER_MCP_UPSTREAMS", "PTC_RUNNER_UPSTREAMS", "PTC_RUNNER_MCP_AGENTIC_MODEL", "HOME"] {
            assert_eq!(told(known), [] as [&str; 0], "{known}");
        }
    }

    #[test]
    fn defaults_are_as_documented() {
        let (plain, aggregating) = (Settings::defaults(false), Settings::defaults(true));
        let program = |settings: &Settings| (settings.program_timeout.as_millis(), settings.program_memory_limit_bytes);
        assert_eq!((program(&plain), program(&aggregating)), ((1_000, 10 << 20), (10_000, 100 << 20)));
        let bytes = |s: &Settings| (s.max_frame_bytes, s.max_program_bytes, s.max_context_bytes, s.max_upstream_response_bytes);
        // Without the flag, the config decides.
        assert_eq!(bytes(&aggregating), (8 << 20, 64 << 10, 4 << 20, None));
        let calls = (aggregating.upstream_call_timeout.as_millis(), aggregating.max_upstream_calls_per_program);
        assert_eq!(calls, (5_000, 50));
        assert_eq!((aggregating.max_catalog_ops_per_program, aggregating.max_catalog_result_bytes), (25, 256 << 10));
        assert_eq!(aggregating.schedule.in_flight.value, 1_000);
    }

    #[test]
    fn flag_takes_precedence_over_variable_and_default() {
        let env = [("PTC_RUNNER_MCP_MAX_PROGRAM_BYTES", "7"), ("PTC_RUNNER_MCP_MAX_CONTEXT_BYTES", "8")];
        let (settings, warnings) = read(&[("max-program-bytes", Some("5"))], &env).expect("all is right");
        assert_eq!((settings.max_program_bytes, settings.max_context_bytes), (5, 8));
        assert_eq!(settings.max_frame_bytes, 8 << 20);
        assert!(warnings.is_empty());
    }

    #[test]
    fn wrong_variable_is_ignored_if_its_flag_is_given() {
        assert!(read(&[("max-program-bytes", Some("5"))], &[("PTC_RUNNER_MCP_MAX_PROGRAM_BYTES", "x")]).is_ok());
    }

    #[test]
    fn all_faults_are_reported_at_once() {
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
    fn settings_of_tasks_need_the_agentic_flag() {
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
    fn variable_of_a_disabled_feature_causes_a_warning() {
        let (_, warnings) = read(&[], &[("PTC_RUNNER_MCP_AGENTIC", "true")]).expect("all is right");
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn wrong_server_variables_do_not_prevent_eval_and_repl() {
        let wrong = |name: &str| match name {
            "PTC_RUNNER_MCP_HTTP_PORT" | "PTC_RUNNER_MCP_MAX_FRAME_BYTES" => Some(OsString::from("x")),
            _ => None,
        };
        for (purpose, faults) in [(Purpose::Serve, 2), (Purpose::Eval, 0), (Purpose::Repl, 0)] {
            let mut reading = SettingsParser::new(false, false, LinkedParts::default());
            reading.environment(purpose, wrong);
            let found = reading.finish(purpose).map_or_else(|faults| faults.len(), |(_, warnings)| warnings.len());
            assert_eq!(found, faults, "{purpose:?}");
        }
    }

    #[test]
    fn wrong_value_names_its_flag_or_its_variable() {
        let odd = "\u{7f} no such value";
        let strict = |flag: &&'static Flag| {
            !flag.is_of_config()
                && matches!(
                    flag.kind,
                    Kind::Integer { .. }
                        | Kind::Choice { .. }
                        | Kind::Switch { .. }
                        | Kind::File { .. }
                        | Kind::Folder { made: false, .. }
                )
        };
        let mut looked_at = 0;
        for flag in flags().filter(strict) {
            let by_flag = read(&[(flag.name, Some(odd))], &[]).expect_err("a fault");
            let purpose = if flag.applies_to(Purpose::Serve) { Purpose::Serve } else { Purpose::Repl };
            let by_variable = read_for(purpose, &[], &[(flag.env, odd)]).expect_err("a fault");
            assert!(by_flag.iter().any(|fault| fault.starts_with(&format!("--{}: expected ", flag.name))), "{by_flag:?}");
            assert!(by_variable.iter().any(|fault| fault.starts_with(&format!("{}: expected ", flag.env))), "{by_variable:?}");
            // The values beyond both ends of a range are rejected.
            if let Kind::Integer { min, max, .. } = flag.kind {
                for beyond in [min.checked_sub(1), max.checked_add(1)].into_iter().flatten() {
                    assert!(read(&[(flag.name, Some(&beyond.to_string()))], &[]).is_err(), "{} takes {beyond}", flag.name);
                }
            }
            looked_at += 1;
        }
        assert!(looked_at > 40, "{looked_at}");
    }

    #[test]
    fn collector_endpoint_needs_the_otlp_part() {
        let read = |linked| {
            let mut reading = SettingsParser::new(false, false, linked);
            reading.flag("otlp-endpoint", Some("http://127.0.0.1:4318".into()), || None);
            reading.finish(Purpose::Serve).map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let settings = read(LinkedParts { otlp: true, ..LinkedParts::default() }).expect("all is right").0;
        assert_eq!(settings.diagnostics.otlp_endpoint.as_deref(), Some("http://127.0.0.1:4318"));
        let why = "--otlp-endpoint: this binary was built without it; build it with `--otlp` (crate ptc-otlp)";
        assert_eq!(read(LinkedParts::default()).expect_err("a fault"), [why]);
    }

    #[cfg(feature = "http")]
    #[test]
    fn keyring_needs_its_feature_in_a_binary_with_logins() {
        let read = |linked| {
            let mut reading = SettingsParser::new(true, false, linked);
            reading.flag("token-store", Some("keyring".into()), || None);
            reading.finish(Purpose::Serve).map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let with_logins = LinkedParts { oauth_client: true, ..LinkedParts::default() };
        for linked in [LinkedParts::default(), LinkedParts { keyring: true, ..with_logins }] {
            let settings = read(linked).expect("all is right").0;
            assert_eq!(settings.token_store.as_deref(), Some(std::path::Path::new("keyring")));
        }
        let why = "--token-store keyring: this binary was built without it; build it with `--keyring` (feature keyring of \
                   ptc-oauth-client)";
        assert_eq!(read(with_logins).expect_err("a fault"), [why]);
    }

    #[test]
    fn recording_needs_its_part() {
        let mut reading = SettingsParser::new(false, false, LinkedParts::default());
        reading.flag("record-dir", Some(std::env::temp_dir().into()), || None);
        let faults = reading.finish(Purpose::Eval).expect_err("a fault");
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(faults, ["--record-dir: this binary was built without it; build it with `--recording` (crate ptc-cassette)"]);
    }

    #[test]
    fn switch_is_set_and_config_variable_causes_a_warning() {
        let (settings, warnings) =
            read(&[("aggregator-read-only", None)], &[("PTC_RUNNER_MCP_UPSTREAMS", "x.json")]).expect("all is right");
        assert!(settings.aggregator_read_only);
        assert_eq!(warnings.len(), 1);
    }
}
