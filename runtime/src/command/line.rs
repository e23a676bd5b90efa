//! From arguments to a command.
//!
//! `lexopt` splits arguments into flags and values; what flags there are comes from the table of settings. (A generated parser
//! would bring a tenth of the binary's size and a second place where flags are declared.)

use std::ffi::OsString;

use lexopt::Arg;

use crate::settings::{Fault, Reading, Settings};

/// Whose command line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// A pinned binary's: commands.
    Pinned,
    /// `ptc-compile run`'s: a config.
    Run,
    /// `ptc-compile repl`'s: a config too.
    Repl,
}

/// What the command line says.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) command: Command,
    pub(super) json: bool,
    pub(super) settings: Settings,
    pub(super) warnings: Vec<String>,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Serve MCP on standard input and output.
    Start,
    /// Evaluate a program; `-` reads it from standard input.
    Eval(String),
    /// Evaluate these programs one after the other; with none, those of standard input or a terminal.
    Repl(Vec<String>),
    Version,
    Help,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Start,
    Eval,
    Repl,
    Version,
    Help,
}

/// Documented names of the REPL for settings of the server.
pub const REPL_NAMES: [(&str, &str); 2] =
    [("max-tool-calls", "max-upstream-calls-per-program"), ("max-catalog-ops", "max-catalog-ops-per-program")];

/// Reads a command line without its program name.
pub(super) fn read(
    args: impl Iterator<Item = OsString>,
    var: impl Fn(&str) -> Option<OsString>,
    with_upstreams: bool,
    grammar: Grammar,
) -> Result<Line, Vec<Fault>> {
    let unpinned = grammar != Grammar::Pinned;
    let mut parser = lexopt::Parser::from_args(args);
    let mut reading = Reading::new(with_upstreams, unpinned);
    let mut word = (grammar == Grammar::Repl).then_some(Word::Repl);
    let mut programs = Vec::new();
    let mut json = false;
    let mut program: Option<OsString> = None;
    loop {
        match parser.next() {
            Ok(None) => break,
            Ok(Some(Arg::Long("help") | Arg::Short('h'))) => word = Some(Word::Help),
            Ok(Some(Arg::Long("version") | Arg::Short('V'))) if word != Some(Word::Help) && !unpinned => {
                word = Some(Word::Version);
            }
            Ok(Some(Arg::Long("json"))) => json = true,
            Ok(Some(Arg::Long(name))) => {
                let of_repl = REPL_NAMES.iter().find(|(of_repl, _)| word == Some(Word::Repl) && *of_repl == name);
                let name = of_repl.map_or(name, |(_, name)| name).to_owned();
                let inline = parser.optional_value();
                reading.flag(&name, inline, || parser.value().ok());
            }
            Ok(Some(Arg::Short('e'))) if word == Some(Word::Repl) => match parser.value().map(OsString::into_string) {
                Ok(Ok(program)) => programs.push(program),
                _ => reading.refused("-e: expected a program".into()),
            },
            Ok(Some(Arg::Short(letter))) => reading.unknown(&format!("-{letter}")),
            Ok(Some(Arg::Value(value))) if unpinned => reading.config(&value),
            Ok(Some(Arg::Value(value))) => match (word, value.to_str()) {
                (None, Some("start")) => word = Some(Word::Start),
                (None, Some("eval")) => word = Some(Word::Eval),
                (None, Some("repl")) => word = Some(Word::Repl),
                (None, Some("version")) => word = Some(Word::Version),
                (None, Some("help")) => word = Some(Word::Help),
                (Some(Word::Eval), _) if program.is_none() => program = Some(value),
                _ => reading.unexpected(&value),
            },
            // A value for a flag that takes none, such as `--json=1`: lexopt's sentence says it.
            Err(fault) => reading.refused(fault.to_string()),
        }
    }
    let command = match word.unwrap_or(Word::Start) {
        Word::Start => Command::Start,
        Word::Version => Command::Version,
        Word::Help => Command::Help,
        Word::Repl => Command::Repl(programs),
        Word::Eval => Command::Eval(match program.map(OsString::into_string) {
            Some(Ok(program)) => program,
            Some(Err(_)) => {
                reading.refused("eval: the program is not UTF-8".into());
                String::new()
            }
            None => {
                reading.refused("eval: expected a program, or - for standard input".into());
                String::new()
            }
        }),
    };
    if json && !matches!(command, Command::Eval(_) | Command::Repl(_) | Command::Version) {
        reading.refused("--json goes with eval, repl and version only".into());
    }
    if matches!(command, Command::Start | Command::Eval(_) | Command::Repl(_)) {
        reading.environment(var);
    }
    let (settings, warnings) = reading.finish()?;
    Ok(Line { command, json, settings, warnings })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::settings::SnapshotMode;

    fn parse(args: &[&str]) -> Result<Line, String> {
        read(args.iter().map(OsString::from), |_| None, false, Grammar::Pinned)
            .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn commands() {
        for (args, command) in [
            (&[][..], Command::Start),
            (&["start", "--max-frame-bytes", "2048"], Command::Start),
            (&["--max-frame-bytes=2048"], Command::Start),
            (&["eval", "(+ 1 2)"], Command::Eval("(+ 1 2)".into())),
            (&["eval", "--json", "-"], Command::Eval("-".into())),
            (&["eval", "--", "-5"], Command::Eval("-5".into())),
            (&["--aggregator-read-only", "eval", "1"], Command::Eval("1".into())),
            (&["repl"], Command::Repl(vec![])),
            (&["repl", "-e", "1", "--max-tool-calls=3", "-e", "-2"], Command::Repl(vec!["1".into(), "-2".into()])),
            (&["version", "--json"], Command::Version),
            (&["--help"], Command::Help),
        ] {
            assert_eq!(parse(args).map(|line| line.command), Ok(command), "{args:?}");
        }
    }

    #[test]
    fn a_config_is_an_argument_or_a_flag() {
        let config = env!("CARGO_MANIFEST_DIR").to_owned() + "/Cargo.toml";
        let read = |args: &[&str]| {
            let line = read(args.iter().map(OsString::from), |_| None, true, Grammar::Run);
            line.map(|line| (line.command, line.settings.upstreams_config, line.settings.catalog_snapshot_mode))
                .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
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
    fn faults() {
        for (args, fault) in [
            (&["evil"][..], "unexpected argument 'evil'; --help shows the usage"),
            (&["eval"], "eval: expected a program, or - for standard input"),
            (&["eval", "1", "2"], "unexpected argument '2'; --help shows the usage"),
            (&["--json"], "--json goes with eval, repl and version only"),
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
