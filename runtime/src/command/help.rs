//! The text of `--help`, generated from the table of settings.

use std::fmt::Write as _;

use ptc_catalog::Deployment;

use super::show::Display;
use crate::settings::flag::{Default, Flag, Group, Purpose};
use crate::settings::{LinkedParts, REPL_NAMES, REPL_VARIABLES, flags};

/// A command of a pinned binary.
pub struct Usage {
    /// The word on the command line.
    pub name: &'static str,
    /// Its arguments, without settings.
    pub takes: &'static str,
    /// A description.
    pub what: &'static str,
}

/// Every command of a pinned binary. A command line without a command runs the first one.
pub static COMMANDS: &[Usage] = &[
    Usage { name: "start", takes: "", what: "serve MCP on standard input and output" },
    Usage { name: "eval", takes: "[--display HOW] [--context JSON] PROGRAM|FILE.clj|-", what: "evaluate one program" },
    Usage {
        name: "repl",
        takes: "[--display HOW] [-l FILE]... [-e PROGRAM|FILE.clj|-]...",
        what: "evaluate programs one after the other",
    },
    Usage { name: "version", takes: "[--json]", what: "what it was built from" },
];

/// An option of `eval` or `repl` that is not a setting.
pub struct Evaluating {
    /// The long name, without the two dashes.
    pub long: Option<&'static str>,
    /// The letter of the short form.
    pub short: Option<char>,
    /// The placeholder of its value. `None` for a switch. [`words`](Evaluating::words) replace it if there are any.
    pub value: Option<&'static str>,
    /// The accepted values. If empty, any text is accepted.
    pub words: &'static [&'static str],
    /// The only command that accepts it; `None` if both do. Those of `repl` can be repeated.
    pub only: Option<&'static str>,
    /// A description in one line.
    pub help: &'static str,
}

/// All of these options.
pub static EVALUATING: [Evaluating; 6] = [
    Evaluating {
        long: Some("display"),
        short: None,
        value: Some("HOW"),
        words: &Display::WORDS,
        only: None,
        help: "How results are shown: as text, cut where it is long; as clients get them; the whole value as JSON [default: text]",
    },
    Evaluating {
        long: Some("json"),
        short: None,
        value: None,
        words: &[],
        only: None,
        help: "Short for --display envelope: one object a line",
    },
    Evaluating {
        long: Some("fail-on-call-errors"),
        short: None,
        value: None,
        words: &[],
        only: None,
        help: "Exit with code 1 if an upstream call failed and the program did not check it",
    },
    Evaluating {
        long: Some("context"),
        short: None,
        value: Some("JSON"),
        words: &[],
        only: Some("eval"),
        help: "An object whose members the program reads as data/NAME, such as the arguments of a stored program",
    },
    Evaluating {
        long: None,
        short: Some('l'),
        value: Some("FILE"),
        words: &[],
        only: Some("repl"),
        help: "Evaluate a file first and show no value of it; repeatable",
    },
    Evaluating {
        long: Some("eval"),
        short: Some('e'),
        value: Some("PROGRAM"),
        words: &[],
        only: Some("repl"),
        help: "Evaluate it; repeatable. FILE.clj and - (standard input) stand for programs too",
    },
];

impl Evaluating {
    /// Formats the option for help: `-e, --eval PROGRAM`.
    fn usage(&self) -> String {
        let names = [self.short.map(|letter| format!("-{letter}")), self.long.map(|name| format!("--{name}"))];
        let names: Vec<String> = names.into_iter().flatten().collect();
        let value =
            self.value.map(|value| if self.words.is_empty() { value.to_owned() } else { format!("<{}>", self.words.join("|")) });
        [names.join(", ")].into_iter().chain(value).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the help text of a pinned binary.
pub(super) fn pinned(deployment: &'static Deployment, linked: LinkedParts) -> String {
    let catalog = deployment.catalog;
    let with_upstreams = !catalog.upstreams.is_empty();
    let mut text = format!(
        "An MCP server with one tool, lisp_eval, over {} upstreams with {} tools.\n\nUsage:\n",
        catalog.upstreams.len(),
        catalog.tool_count(),
    );
    for (at, Usage { name, takes, what }) in COMMANDS.iter().enumerate() {
        let word = if at == 0 { format!("[{name}]") } else { (*name).to_owned() };
        let usage = format!("{} {word} {takes}{}[flags]", deployment.name, if takes.is_empty() { "" } else { " " });
        row(&mut text, &usage, what);
    }
    common(&mut text, &EVALUATING);
    settings(&mut text, with_upstreams, linked, |flag| !flag.is_of_config());
    text
}

/// Returns the help text of `ptc-compile repl`.
pub(super) fn repl(program: &str, linked: LinkedParts) -> String {
    let mut text = format!(
        "Evaluates programs one after the other: those of -e and of files, else one on standard input, else\n\
         those of a terminal.\n\nUsage:\n  {program} [CONFIG] [-l FILE]... [-e PROGRAM|FILE.clj|-]... [flags]\n",
    );
    common(&mut text, EVALUATING.iter().filter(|option| option.only != Some("eval")));
    for (short, name) in REPL_NAMES {
        row(&mut text, &format!("--{short}"), &format!("Short for --{name}"));
    }
    for (name, other) in REPL_VARIABLES {
        row(&mut text, name, &format!("Goes before {other}"));
    }
    settings(&mut text, true, linked, |flag| flag.applies_to(Purpose::Repl));
    text
}

/// Returns the help text of `ptc-compile run`.
pub(super) fn run(program: &str, linked: LinkedParts) -> String {
    let mut text = format!(
        "Serves a config as its pinned binary would, without building one: MCP on standard input and\noutput.\n\n\
         Usage:\n  {program} [CONFIG] [flags]\n\n\
         CONFIG is usually upstreams.json. The lock file beside it is used where it covers an upstream;\nnothing is written.\n",
    );
    common(&mut text, &[]);
    settings(&mut text, true, linked, |flag| flag.applies_to(Purpose::Serve));
    text
}

/// Appends the options that are not settings.
fn common<'o>(text: &mut String, own: impl IntoIterator<Item = &'o Evaluating>) {
    text.push_str("\nOptions:\n");
    for option in own {
        row(text, &option.usage(), option.help);
    }
    row(text, "-h, --help", "Show this");
    row(text, "-V, --version", "Show the version");
}

fn settings(text: &mut String, with_upstreams: bool, linked: LinkedParts, shown: impl Fn(&Flag) -> bool) {
    let shown = |flag: &Flag| flag.is_built(linked) && shown(flag);
    for (group, heading) in Group::ALL {
        if !flags().any(|flag| flag.group == group && shown(flag)) {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{heading}:\n");
        for flag in flags().filter(|flag| flag.group == group && shown(flag)) {
            let left = format!("--{} {}", flag.name, flag.placeholder());
            row(text, left.trim_end(), &format!("{} [{}] [env: {}]", flag.help, default(flag, with_upstreams), flag.env));
        }
    }
    text.push_str(
        "\nA flag takes precedence over its environment variable, and the variable over the default. If a\n\
         flag is given twice, the later one counts.\n",
    );
}

/// Maximum columns of a line.
const WIDTH: usize = 100;
/// Columns before a description.
const INDENT: usize = 10;

/// Appends an item, with its description below.
fn row(text: &mut String, left: &str, what: &str) {
    let _ = write!(text, "  {left}");
    let mut column = WIDTH;
    for word in what.split(' ') {
        let length = word.chars().count();
        if column + 1 + length > WIDTH {
            let _ = write!(text, "\n{:INDENT$}{word}", "");
            column = INDENT + length;
        } else {
            let _ = write!(text, " {word}");
            column += 1 + length;
        }
    }
    text.push('\n');
}

fn default(flag: &Flag, with_upstreams: bool) -> String {
    match flag.default {
        Default::Unset(what) => format!("default: {what}"),
        _ => format!("default: {}", flag.default_text(with_upstreams).unwrap_or_default()),
    }
}
