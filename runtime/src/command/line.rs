//! Parses the command line into a command.
//!
//! `lexopt` splits arguments into flags and values, and the table of settings declares the flags. (A generated parser would add a
//! tenth of the binary's size and a second place that declares flags.)

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lexopt::Arg;

use super::help::COMMANDS;
use super::show::{Display, ResultOptions};
use crate::diagnostics::export::ExporterSettings;
use crate::parts::Parts;
use crate::settings::{Fault, Flag, Purpose, Settings, SettingsParser};

/// Which command line is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// Commands of a pinned binary.
    Pinned,
    /// `ptc-compile run`, which takes a config.
    Run,
    /// `ptc-compile repl`, which takes a config too.
    Repl,
}

/// The parsed command line.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) command: Command,
    pub(super) settings: Settings,
    /// The settings of the exporter, if calls are to be exported.
    pub(super) exporter: Option<Box<dyn ExporterSettings>>,
    pub(super) warnings: Vec<String>,
}

/// The command to execute.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Serve MCP on standard input and output.
    Start,
    /// Evaluate a program with a context, which is JSON text.
    Eval(Source, Option<String>, ResultOptions),
    /// Evaluate programs in sequence.
    Repl(Script, ResultOptions),
    /// Print the version, as JSON if the value is true.
    Version(bool),
    Help,
}

/// The programs of `repl`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Files that are evaluated first. Their values are not shown.
    pub(super) loads: Vec<PathBuf>,
    /// The programs. If empty, they are read from standard input or a terminal.
    pub(super) programs: Vec<Source>,
}

/// The source of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    Text(String),
    File(PathBuf),
    /// Standard input up to its end.
    Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Start,
    Eval,
    Repl,
    Version,
    Help,
}

impl Word {
    fn parse(text: &str) -> Option<Word> {
        Some(match text {
            "start" => Word::Start,
            "eval" => Word::Eval,
            "repl" => Word::Repl,
            "version" => Word::Version,
            "help" => Word::Help,
            _ => return None,
        })
    }
}

/// Parses a command line without the name of the program, for a binary with these parts.
pub(super) fn read(
    args: impl Iterator<Item = OsString>,
    var: impl Fn(&str) -> Option<OsString>,
    with_upstreams: bool,
    grammar: Grammar,
    parts: &Parts,
) -> Result<Line, Vec<Fault>> {
    let unpinned = grammar != Grammar::Pinned;
    let mut parser = lexopt::Parser::from_args(args);
    let mut reading = SettingsParser::new(with_upstreams, unpinned, parts.linked());
    let mut word = (grammar == Grammar::Repl).then_some(Word::Repl);
    if word.is_some() {
        reading.of_repl();
    }
    let mut script = Script::default();
    let mut json = false;
    let mut display = None;
    let mut fail_on_call_errors = false;
    let mut program: Option<OsString> = None;
    let mut context = None;
    let mut unknown = false;
    let mut switch = None;
    loop {
        let after_unknown = std::mem::take(&mut unknown);
        let after_switch: Option<String> = switch.take();
        match parser.next() {
            Ok(None) => break,
            Ok(Some(Arg::Long("help") | Arg::Short('h'))) => word = Some(Word::Help),
            Ok(Some(Arg::Long("version") | Arg::Short('V'))) if word != Some(Word::Help) => word = Some(Word::Version),
            Ok(Some(Arg::Long("json"))) => json = true,
            Ok(Some(Arg::Long("fail-on-call-errors"))) => fail_on_call_errors = true,
            Ok(Some(Arg::Long("display"))) => {
                match parser.value().as_deref().unwrap_or_default().to_str().and_then(Display::parse) {
                    Some(given) => display = Some(given),
                    None => reading.refused(format!("--display: expected one of {}", Display::WORDS.join(", "))),
                }
            }
            Ok(Some(Arg::Long("context"))) => match parser.value().map(OsString::into_string) {
                Ok(Ok(json)) => context = Some(json),
                _ => reading.refused("--context: expected a JSON object".into()),
            },
            Ok(Some(Arg::Long("eval") | Arg::Short('e'))) if word == Some(Word::Repl) => {
                match parser.value().map(OsString::into_string) {
                    Ok(Ok(program)) => script.programs.push(Source::Text(program)),
                    _ => reading.refused("-e: expected a program".into()),
                }
            }
            Ok(Some(Arg::Short('l'))) if word == Some(Word::Repl) => match parser.value() {
                Ok(file) => script.loads.push(file.into()),
                Err(_) => reading.refused("-l: expected a file".into()),
            },
            Ok(Some(Arg::Long(name))) => {
                let name = name.to_owned();
                let inline = parser.optional_value();
                let alone = inline.is_none();
                switch = Flag::find(&name).filter(|flag| alone && flag.is_switch()).map(|_| name.clone());
                unknown = !reading.flag(&name, inline, || parser.value().ok()) && alone;
            }
            Ok(Some(Arg::Short(letter))) => reading.unknown(&format!("-{letter}")),
            // The value may belong to the unknown flag before it, which is already reported.
            Ok(Some(Arg::Value(value))) if after_unknown && value.to_str().and_then(Word::parse).is_none() => {}
            Ok(Some(Arg::Value(value))) if after_switch.is_some() && is_truth(&value) => {
                let (flag, value) = (after_switch.unwrap_or_default(), value.to_string_lossy().into_owned());
                reading.refused(format!("--{flag}: a switch is joined to its value: --{flag}={value}"));
            }
            Ok(Some(Arg::Value(value))) if word == Some(Word::Repl) && value == "-" => script.programs.push(Source::Input),
            Ok(Some(Arg::Value(value))) if word == Some(Word::Repl) && is_program(&value) => {
                script.programs.push(Source::File(value.into()));
            }
            Ok(Some(Arg::Value(value))) if unpinned => reading.config(&value),
            Ok(Some(Arg::Value(value))) if word.is_none() => {
                word = value.to_str().and_then(Word::parse);
                if word == Some(Word::Repl) {
                    reading.of_repl();
                }
                if word.is_none() {
                    let commands = COMMANDS.iter().map(|usage| usage.name).chain(["help"]);
                    let near = value.to_str().and_then(|text| ptc_text::closest_match(text, commands));
                    reading.misspelt(&value, near);
                    // The following arguments are parsed as if the suggested command had been given.
                    word = near.and_then(Word::parse);
                }
            }
            Ok(Some(Arg::Value(value))) if word == Some(Word::Eval) && program.is_none() => program = Some(value),
            Ok(Some(Arg::Value(value))) => reading.unexpected(&value),
            // A value for a flag that takes none, such as `--json=1`. The message is lexopt's.
            Err(fault) => reading.refused(fault.to_string()),
        }
    }
    let word = word.unwrap_or(Word::Start);
    if json && display.is_some_and(|display| display != Display::Envelope) {
        reading.refused("--json is short for --display envelope: give one of them".into());
    }
    if json && matches!(word, Word::Start | Word::Help) {
        reading.refused("--json goes with eval, repl and version only".into());
    }
    if display.is_some() && !matches!(word, Word::Eval | Word::Repl) {
        reading.refused("--display goes with eval and repl only".into());
    }
    if fail_on_call_errors && !matches!(word, Word::Eval | Word::Repl) {
        reading.refused("--fail-on-call-errors goes with eval and repl only".into());
    }
    if context.is_some() && word != Word::Eval {
        reading.refused("--context goes with eval only".into());
    }
    let display = if json { Display::Envelope } else { display.unwrap_or(Display::Text) };
    let options = ResultOptions { display, fail_on_call_errors };
    let (command, purpose) = match word {
        Word::Start => (Command::Start, Purpose::Serve),
        Word::Version => (Command::Version(json), Purpose::Serve),
        Word::Help => (Command::Help, Purpose::Serve),
        Word::Repl => (Command::Repl(script, options), Purpose::Repl),
        Word::Eval => {
            let program = match program {
                Some(dash) if dash == "-" => Source::Input,
                Some(file) if is_program(&file) => Source::File(file.into()),
                other => Source::Text(match other.map(OsString::into_string) {
                    Some(Ok(program)) => program,
                    Some(Err(_)) => {
                        reading.refused("eval: the program is not UTF-8".into());
                        String::new()
                    }
                    None => {
                        reading.refused("eval: expected a program, FILE.clj, or - for standard input".into());
                        String::new()
                    }
                }),
            };
            (Command::Eval(program, context, options), Purpose::Eval)
        }
    };
    match word {
        Word::Version => reading.limits_of_environment(&var),
        Word::Help => {}
        _ => reading.environment(purpose, &var),
    }
    let source = parts.exporter.filter(|_| word == Word::Start);
    let exporter =
        source.and_then(|source| reading.part(|settings| source.read(settings.diagnostics.otlp_endpoint.as_deref(), &var)));
    let (settings, warnings) = reading.finish(purpose)?;
    Ok(Line { command, settings, exporter, warnings })
}

/// Whether an argument is a value of a switch.
fn is_truth(argument: &OsStr) -> bool {
    ["true", "false", "1", "0"].iter().any(|word| argument == *word)
}

/// Whether an argument is the path of a program rather than a config.
fn is_program(argument: &OsStr) -> bool {
    Path::new(argument).extension().is_some_and(|extension| extension == "clj")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::settings::{SnapshotMode, flags};

    fn said(faults: &[Fault]) -> String {
        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    fn parse(args: &[&str]) -> Result<Line, String> {
        read(args.iter().map(OsString::from), |_| None, false, Grammar::Pinned, &Parts::NONE).map_err(|faults| said(&faults))
    }

    fn shown(display: Display) -> ResultOptions {
        ResultOptions { display, fail_on_call_errors: false }
    }

    fn texts(programs: &[&str]) -> Script {
        Script { loads: Vec::new(), programs: programs.iter().map(|&text| Source::Text(text.into())).collect() }
    }

    #[test]
    fn command_lines_are_parsed_as_commands() {
        let text = |program: &str| Source::Text(program.into());
        for (args, command) in [
            (&[][..], Command::Start),
            (&["start", "--max-frame-bytes", "2048"], Command::Start),
            (&["--max-frame-bytes=2048"], Command::Start),
            (&["eval", "(+ 1 2)"], Command::Eval(text("(+ 1 2)"), None, shown(Display::Text))),
            (&["eval", "--json", "-"], Command::Eval(Source::Input, None, shown(Display::Envelope))),
            (&["eval", "a.clj"], Command::Eval(Source::File("a.clj".into()), None, shown(Display::Text))),
            (&["eval", "--context", "{}", "1"], Command::Eval(text("1"), Some("{}".into()), shown(Display::Text))),
            (&["eval", "--display=json", "--", "-5"], Command::Eval(text("-5"), None, shown(Display::Json))),
            (
                &["eval", "--fail-on-call-errors", "1"],
                Command::Eval(text("1"), None, ResultOptions { display: Display::Text, fail_on_call_errors: true }),
            ),
            (&["--aggregator-read-only", "eval", "1"], Command::Eval(text("1"), None, shown(Display::Text))),
            (&["repl"], Command::Repl(Script::default(), shown(Display::Text))),
            (
                &["repl", "-e", "1", "--max-tool-calls=3", "--eval", "-2"],
                Command::Repl(texts(&["1", "-2"]), shown(Display::Text)),
            ),
            (
                &["repl", "-l", "a.clj", "b.clj", "-"],
                Command::Repl(
                    Script { loads: vec!["a.clj".into()], programs: vec![Source::File("b.clj".into()), Source::Input] },
                    shown(Display::Text),
                ),
            ),
            (&["version", "--json"], Command::Version(true)),
            (&["-V"], Command::Version(false)),
            (&["--help"], Command::Help),
        ] {
            assert_eq!(parse(args).map(|line| line.command), Ok(command), "{args:?}");
        }
    }

    #[test]
    fn config_is_an_argument_or_a_flag() {
        let config = env!("CARGO_MANIFEST_DIR").to_owned() + "/Cargo.toml";
        let read = |args: &[&str]| {
            let line = read(args.iter().map(OsString::from), |_| None, true, Grammar::Run, &Parts::NONE);
            line.map(|line| (line.command, line.settings.upstreams_config, line.settings.catalog_snapshot_mode))
                .map_err(|faults| said(&faults))
        };
        let found = Some(PathBuf::from(&config));
        assert_eq!(read(&[]), Ok((Command::Start, None, None)));
        assert_eq!(read(&[&config]), Ok((Command::Start, found.clone(), None)));
        let live = ["--catalog-snapshot-mode=live", "--upstreams-config", &config];
        assert_eq!(read(&live), Ok((Command::Start, found, Some(SnapshotMode::Live))));
        assert_eq!(read(&["no/such.json"]), Err("CONFIG: expected an existing file, found 'no/such.json'".into()));
        assert_eq!(read(&[&config, &config]), Err(format!("unexpected argument '{config}'; --help shows the usage")));
    }

    #[test]
    fn run_and_repl_report_usage_like_ptc_compile() {
        for grammar in [Grammar::Run, Grammar::Repl] {
            for (flag, command) in
                [("--version", Command::Version(false)), ("-V", Command::Version(false)), ("-h", Command::Help)]
            {
                let line = read([OsString::from(flag)].into_iter(), |_| None, true, grammar, &Parts::NONE);
                assert_eq!(line.map(|line| line.command).map_err(|faults| said(&faults)), Ok(command), "{grammar:?} {flag}");
            }
            // Only the flag is reported, not the argument that may be its value.
            let args = ["--max-tool-cals", "3"].map(OsString::from);
            let faults = said(&read(args.into_iter(), |_| None, true, grammar, &Parts::NONE).expect_err("no such flag"));
            let near = if grammar == Grammar::Repl { "did you mean --max-tool-calls?" } else { "--help lists all flags" };
            assert_eq!(faults, format!("unknown flag --max-tool-cals; {near}"));
        }
    }

    /// Flags without effect on a command cause a warning. Variables do not, since they may be meant for a server.
    #[test]
    fn flags_without_effect_cause_a_warning() {
        let warnings = |args: &[&str]| {
            let var = |name: &str| (name == "PTC_RUNNER_MCP_HTTP").then(|| "true".into());
            let line = read(args.iter().map(OsString::from), var, true, Grammar::Pinned, &Parts::NONE);
            line.map(|line| line.warnings).map_err(|faults| said(&faults))
        };
        let folder = std::env::temp_dir();
        let folder = folder.to_str().expect("a plain path");
        for (args, idle) in [
            (&["eval", "1", "--sessions"][..], &["--sessions has no effect on eval"][..]),
            (&["eval", "1", "--catalog-mode", "lazy"], &["--catalog-mode has no effect on eval"]),
            (&["repl", "--catalog-mode", "lazy", "--trace-dir", folder], &[]),
            (&["repl", "--debug-tool", "--http"], &["--http has no effect on repl", "--debug-tool has no effect on repl"]),
            (&["repl", "--max-tool-calls", "3", "--max-frame-bytes=2048"], &["--max-frame-bytes has no effect on repl"]),
        ] {
            assert_eq!(warnings(args), Ok(idle.iter().map(|&text| text.to_owned()).collect()), "{args:?}");
        }
        #[cfg(feature = "agentic")]
        assert_eq!(warnings(&["repl", "--agentic"]), Ok(vec!["--agentic has no effect on repl".into()]));
        for flag in flags().filter(|flag| !flag.is_of_config()) {
            assert!(flag.applies_to(Purpose::Serve) || flag.name == "no-history", "{} applies to no command", flag.name);
        }
    }

    #[test]
    fn faults_name_the_flag_or_variable_as_written() {
        let read = |args: &[&str], set: (&'static str, &'static str), grammar| {
            let var = |name: &str| (name == set.0).then(|| OsString::from(set.1));
            said(&read(args.iter().map(OsString::from), var, true, grammar, &Parts::NONE).expect_err("a fault"))
        };
        let none = ("", "");
        for (found, expected) in [
            (read(&["--max-tool-calls", "x"], none, Grammar::Repl), "--max-tool-calls: expected an integer from"),
            (read(&["--max-catalog-ops"], none, Grammar::Repl), "--max-catalog-ops: expected an integer from"),
            (read(&[], ("PTC_RUNNER_UPSTREAMS", "/nope"), Grammar::Repl), "PTC_RUNNER_UPSTREAMS: expected an existing file"),
            (read(&[], ("PTC_RUNNER_MCP_UPSTREAMS", "/nope"), Grammar::Repl), "PTC_RUNNER_MCP_UPSTREAMS: expected an"),
        ] {
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn config_flag_takes_precedence_over_variables() {
        let [one, two, three] =
            ["Cargo.toml", "src/lib.rs", "README.md"].map(|name| format!("{}/{name}", env!("CARGO_MANIFEST_DIR")));
        let read = |args: &[&str], set: &[(&str, &str)]| {
            let var = |name: &str| set.iter().find(|(own, _)| *own == name).map(|(_, value)| OsString::from(value));
            let line =
                read(args.iter().map(OsString::from), var, true, Grammar::Repl, &Parts::NONE).map_err(|faults| said(&faults));
            line.map(|line| line.settings.upstreams_config)
        };
        let variables = [("PTC_RUNNER_UPSTREAMS", two.as_str()), ("PTC_RUNNER_MCP_UPSTREAMS", three.as_str())];
        assert_eq!(read(&["--upstreams-config", &one], &variables), Ok(Some(PathBuf::from(&one))));
        assert_eq!(read(&[], &variables), Ok(Some(PathBuf::from(&two))));
        assert_eq!(read(&[], &variables[1..]), Ok(Some(PathBuf::from(&three))));
    }

    #[test]
    fn wrong_command_lines_are_refused_with_a_message() {
        for (args, fault) in [
            (
                &["evil"][..],
                "unexpected argument 'evil'; did you mean eval?\neval: expected a program, FILE.clj, or - for standard input",
            ),
            (&["evl", "1"], "unexpected argument 'evl'; did you mean eval?"),
            (&["serve"], "unexpected argument 'serve'; --help shows the usage"),
            (&["--sessions", "false"], "--sessions: a switch is joined to its value: --sessions=false"),
            (&["--display", "loud", "eval", "1"], "--display: expected one of text, envelope, json"),
            (&["eval", "1", "--json", "--display=json"], "--json is short for --display envelope: give one of them"),
            (&["start", "--display=json"], "--display goes with eval and repl only"),
            (&["start", "--fail-on-call-errors"], "--fail-on-call-errors goes with eval and repl only"),
            (&["eval"], "eval: expected a program, FILE.clj, or - for standard input"),
            (&["eval", "1", "2"], "unexpected argument '2'; --help shows the usage"),
            (&["--json"], "--json goes with eval, repl and version only"),
            (&["--auth-token", "x"], "unknown flag --auth-token; did you mean --http-auth-token?"),
            (&["-x"], "unknown flag -x; --help lists all flags"),
            (
                &["--upstreams-config", "u.json", "start"],
                "--upstreams-config: the upstreams of this binary were fixed when it was built, so there is no config to read; \
                 change the config and build the binary again",
            ),
        ] {
            assert_eq!(parse(args).map(|line| line.command), Err(fault.to_owned()), "{args:?}");
        }
    }
}
