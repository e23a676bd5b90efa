//! `repl` evaluates programs in sequence. Each sees the definitions and results of the earlier ones. With `-e`, a file, or a
//! program on standard input it runs a script. On a terminal it is interactive.
//!
//! - `plain`: lines of a terminal.
//! - `edit`: a line editor with history, completion, highlighting and hints, with the feature `line-editing`.

#[cfg(feature = "line-editing")]
mod edit;
mod plain;

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use ptc_catalog::Catalog;
use ptc_lisp::{Position, reader};

use super::eval::LocalEvaluator;
use super::line::{Script, Source};
use super::live::PrintLine;
use super::services::Services;
use super::show::{
    Colors, Display, ResultOptions, View, fault, for_output, notes, object, painted, replace_control_chars, sentence, whole,
};
use super::{Origin, ended_early, unusable, written};
use crate::description;
use crate::settings::Settings;
use plain::Lines;
use ptc_engine::evaluation::{Call, Evaluation, Failure, PriorState, Reason};
use ptc_engine::response::Profile;

/// The prompt.
const PROMPT: &str = "user=> ";
/// The greeting of a binary without a line editor.
const PLAIN: &str = if cfg!(feature = "line-editing") {
    ""
} else {
    "\nHistory and completion come with a binary that is built with --line-editing."
};
/// Number of results named `*1 *2 *3`.
const RECENT: usize = 3;
/// Commands of the prompt, with their descriptions.
const COMMANDS: [(&str, &str); 6] = [
    (":help [NAME]", "this, or what NAME is: a builtin, a tool"),
    (":tools [UPSTREAM]", "upstreams, with their tools where --catalog-mode shows them; all of UPSTREAM"),
    (":display text|envelope|json", "how results are shown: as values, as a client gets them, as JSON"),
    (":limits", "what one program may use"),
    (":time", "show how long each program takes, or stop showing it"),
    (":quit", "end, as the end of input does"),
];

/// The input at a prompt.
enum Typed {
    /// A command, or a program without open forms.
    Text(String),
    /// Cancelled input.
    Nothing,
    /// The end of the session.
    End,
}

/// The source of interactive input.
enum Input {
    Plain(Lines),
    #[cfg(feature = "line-editing")]
    Edited(edit::Editor),
}

impl Input {
    fn read(&mut self, services: &mut Services) -> Typed {
        match self {
            Input::Plain(lines) => lines.read(services),
            #[cfg(feature = "line-editing")]
            Input::Edited(editor) => editor.read(services),
        }
    }

    /// Updates the names that can be completed.
    #[cfg_attr(not(feature = "line-editing"), expect(unused_variables, clippy::unused_self, reason = "plain lines ignore names"))]
    fn learn(&self, past: &PriorState) {
        #[cfg(feature = "line-editing")]
        if let Input::Edited(editor) = self {
            editor.learn(&past.bindings);
        }
    }
}

/// Runs a script, standard input, or an interactive session.
pub(super) fn run(origin: &Origin, mut settings: Settings, script: &Script, options: ResultOptions) -> ExitCode {
    settings.response_profile = Profile::Debug;
    let services = match Services::new(origin, &settings) {
        Ok(services) => services,
        Err(why) => return unusable(origin.deployment.name, &why.sentences()),
    };
    let local = match LocalEvaluator::new(&services, &settings) {
        Ok(local) => local,
        Err(why) => return ended_early(origin.deployment.name, services, &why),
    };
    let mut repl = Repl { services, local, past: PriorState::default(), settings, options, timed: false };
    let code = repl.start(origin, script).unwrap_or_else(|code| code);
    repl.services.shut_down();
    code
}

struct Repl {
    services: Services,
    local: LocalEvaluator,
    past: PriorState,
    settings: Settings,
    options: ResultOptions,
    timed: bool,
}

impl Repl {
    /// Runs the files to load, and then the script or the interactive session.
    fn start(&mut self, origin: &Origin, script: &Script) -> Result<ExitCode, ExitCode> {
        let unread = |why: String| unusable(origin.deployment.name, &[why]);
        let view = View::new(self.options, &self.settings, self.services.redactor());
        for file in &script.loads {
            let program = Source::File(file.clone()).read(&self.settings).map_err(unread)?;
            view.load(&self.evaluate(&program))?;
        }
        let input = [Source::Input];
        let programs = match script.programs.as_slice() {
            [] if std::io::stdin().is_terminal() => return Ok(self.run_interactive(origin)),
            [] => &input,
            programs => programs,
        };
        // Runs the programs up to the first one that fails.
        for source in programs {
            let program = source.read(&self.settings).map_err(unread)?;
            let evaluation = self.evaluate(&program);
            let code = view.program(&evaluation);
            if code != ExitCode::SUCCESS {
                return Err(code);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn run_interactive(&mut self, origin: &Origin) -> ExitCode {
        let catalog = origin.deployment.catalog;
        written(&format!("{} upstreams. :help lists commands, :quit ends.{PLAIN}\n", catalog.upstreams.len()));
        let mut asking = self.asking();
        loop {
            let source = match asking.read(&mut self.services) {
                Typed::Text(source) => source,
                Typed::Nothing => continue,
                Typed::End => return ExitCode::SUCCESS,
            };
            // White space and comments are skipped. Evaluating them would give nil.
            if reader::read(&source).is_ok_and(|forms| forms.is_empty()) {
                continue;
            }
            let words: Vec<&str> = source.split_whitespace().collect();
            if words == [":quit"] {
                return ExitCode::SUCCESS;
            }
            if let Some(text) = self.command(&words) {
                written(&replace_control_chars(text));
            } else {
                self.answer(&source);
                asking.learn(&self.past);
            }
        }
    }

    #[cfg(feature = "line-editing")]
    fn asking(&self) -> Input {
        let editor = edit::Editor::start(std::sync::Arc::clone(self.services.upstreams()), &self.settings);
        editor.map_or_else(|| Input::Plain(Lines::of_standard_input()), Input::Edited)
    }

    #[cfg(not(feature = "line-editing"))]
    #[expect(clippy::unused_self, reason = "the line editor uses it")]
    fn asking(&self) -> Input {
        Input::Plain(Lines::of_standard_input())
    }

    /// Executes a command and returns its output. `None` if the words are not a command.
    fn command(&mut self, words: &[&str]) -> Option<String> {
        Some(match *words {
            [":help"] => COMMANDS.iter().fold(String::new(), |mut text, (usage, what)| {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{usage:<30} {what}");
                text
            }),
            [":help", name] => self.help(name),
            [":tools"] => self.tools(),
            [":tools", upstream] => self.tools_of(upstream),
            [":display", "text"] => self.shows(Display::Text),
            [":display", "envelope"] => self.shows(Display::Envelope),
            [":display", "json"] => self.shows(Display::Json),
            [":display", ..] => "expected :display text, :display envelope or :display json\n".to_owned(),
            [":limits"] => {
                let s = &self.settings;
                format!(
                    "{} s, {} bytes of memory, {} upstream calls of {} s each, {} discovery forms\n",
                    s.program_timeout.as_secs_f64(),
                    s.program_memory_limit_bytes,
                    s.max_upstream_calls_per_program,
                    s.upstream_call_timeout.as_secs_f64(),
                    s.max_catalog_ops_per_program,
                )
            }
            [":time"] => {
                self.timed = !self.timed;
                format!("times are {}\n", if self.timed { "shown" } else { "not shown" })
            }
            [word, ..] if COMMANDS.iter().any(|(usage, _)| first_word(usage) == word) => {
                let usage = COMMANDS.iter().find(|(usage, _)| first_word(usage) == word).map_or("", |(usage, _)| usage);
                format!("expected {usage}\n")
            }
            // A keyword is a valid program, and is evaluated even if it resembles a command.
            [word] if word.starts_with(':') => {
                let near = ptc_text::closest_match(word, COMMANDS.iter().map(|(usage, _)| first_word(usage)));
                if let Some(near) = near {
                    written(&format!("; did you mean {near}? :help lists commands\n"));
                }
                return None;
            }
            _ => return None,
        })
    }

    /// Returns the documentation of a name. A tool can be named without its upstream.
    fn help(&mut self, name: &str) -> String {
        let tool_of = |upstream: &'static ptc_catalog::Upstream| upstream.tool(name).map(|tool| (upstream.name, tool.name));
        let tools: Vec<_> = self.services.upstreams().catalog().upstreams.iter().filter_map(tool_of).collect();
        let names: Vec<String> = match tools.as_slice() {
            [] => vec![name.to_owned()],
            tools => tools.iter().map(|(upstream, tool)| format!("{upstream}/{tool}")).collect(),
        };
        let mut text = String::new();
        for name in names {
            let evaluation = self.run(&format!("(doc {})", quoted(&name)), PriorState::default());
            let told = match (&evaluation.value, &evaluation.outcome) {
                (Some(told), Ok(_)) => told.as_str().unwrap_or("nothing is known of it").to_owned(),
                (_, Err(failure)) if name.contains('/') => sentence(failure),
                // The tool of an upstream that was not fetched yet cannot be found by its name alone.
                (_, Err(_)) => format!("nothing is known of {name}\n{}", self.unlisted()),
                (None, Ok(_)) => continue,
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", told.trim_end());
        }
        text
    }

    fn shows(&mut self, display: Display) -> String {
        self.options.display = display;
        String::new()
    }

    /// Returns the catalog in the format of `--catalog-mode`, and the upstreams whose tools were not fetched yet.
    fn tools(&self) -> String {
        let upstreams = self.services.upstreams();
        let catalog = upstreams.catalog();
        if catalog.upstreams.is_empty() {
            return "there are no upstreams\n".to_owned();
        }
        let mut text = description::catalog::render(catalog, &self.settings) + "\n";
        text += &self.unlisted();
        text
    }

    /// Returns a line with the upstreams whose tools were not fetched yet. Empty if there are none.
    fn unlisted(&self) -> String {
        let upstreams = self.services.upstreams();
        let names = upstreams.catalog().upstreams.iter().map(|upstream| upstream.name);
        let unlisted: Vec<&str> = names.filter(|name| upstreams.is_unlisted(name)).collect();
        if unlisted.is_empty() {
            return String::new();
        }
        format!("not listed yet, :tools UPSTREAM asks: {}\n", unlisted.join(", "))
    }

    /// Returns all tools of an upstream, which are fetched if necessary.
    fn tools_of(&mut self, name: &str) -> String {
        let evaluation = self.run(&format!("(dir {})", quoted(name)), PriorState::default());
        let upstream = self.services.upstreams().catalog().upstream(name);
        match (evaluation.outcome, upstream) {
            (Err(failure), _) => sentence(&failure) + "\n",
            (Ok(_), None) => format!("there is no upstream '{name}'\n"),
            (Ok(_), Some(_)) if self.services.upstreams().is_unlisted(name) => {
                format!("{name} cannot be asked for its tools now\n")
            }
            (Ok(_), Some(upstream)) => {
                let one = Catalog { digest: "", search_index: &[], upstreams: std::slice::from_ref(upstream) };
                description::catalog::list(&one, description::catalog::Detail::Described, &|_| String::new()) + "\n"
            }
        }
    }

    /// Evaluates a program and prints the result.
    fn answer(&mut self, source: &str) {
        // Lines are shown as they are printed, before the value or the fault. An envelope contains all lines.
        let print_line: PrintLine = |line| {
            written(&(replace_control_chars(line.to_owned()) + "\n"));
        };
        self.local.print_line = (self.options.display != Display::Envelope).then_some(print_line);
        let evaluation = self.evaluate(source);
        let colored = Colors::from_settings(&self.settings).output;
        let is_terminal = std::io::stdout().is_terminal();
        let mut text = String::new();
        match (self.options.display, &evaluation.outcome) {
            (Display::Envelope, _) => text = for_output(object(&evaluation), is_terminal),
            (_, Err(failure)) => text += &(fault(sentence(failure), colored) + "\n"),
            (Display::Text, Ok(value)) => text += &(painted(&replace_control_chars(value.text.clone()), colored) + "\n"),
            (Display::Json, Ok(_)) => match evaluation.value.as_ref().map(|value| whole(value, &self.services.redactor())) {
                Some(Ok(json)) => text += &(painted(&for_output(json, is_terminal), colored) + "\n"),
                Some(Err(why)) => text += &(fault(why, colored) + "\n"),
                None => {}
            },
        }
        if self.options.display != Display::Envelope {
            text += &notes(&evaluation);
        }
        if self.timed {
            let _ = writeln!(text, "{:.1?}", Duration::from_micros(evaluation.duration.as_micros() as u64));
        }
        written(&text);
    }

    /// Evaluates a program and stores its definitions and its result, or its error.
    fn evaluate(&mut self, source: &str) -> Box<Evaluation> {
        let past = self.past.clone();
        let evaluation = match Call::of_program(source.to_owned(), self.settings.argument_limits()) {
            Ok(call) => self.local.evaluate_traced(&mut self.services, call, past),
            Err(message) => Evaluation::refused(Failure::plain(Reason::ArgsError, message)),
        };
        match (&evaluation.outcome, &evaluation.value) {
            (Ok(_), Some(value)) => {
                self.past.called.add(evaluation.calls.as_deref().unwrap_or_default());
                self.past.bindings = evaluation.bindings.clone();
                self.past.results.insert(0, value.clone());
                self.past.results.truncate(RECENT);
            }
            (Err(failure), _) => self.keep(source, failure),
            (Ok(_), None) => {}
        }
        evaluation
    }

    /// Defines `*e`.
    fn keep(&mut self, source: &str, failure: &Failure) {
        let mut known = format!(":reason :{} :message {}", failure.reason.name(), quoted(&failure.message));
        if let Some(span) = failure.span {
            let Position { line, column } = Position::at_offset(source, span.start);
            // Writing to a string cannot fail.
            let _ = write!(known, " :line {line} :column {column}");
        }
        if let Some(hint) = failure.feedback.lines().find_map(|line| line.strip_prefix("hint: ")) {
            let _ = write!(known, " :hint {}", quoted(hint));
        }
        // The displayed form is stored: functions in the value itself would refer to definitions that are lost with the failed
        // program.
        let value = failure.value.as_ref().filter(|value| !value.truncated);
        let value = value.map(|value| format!("(def *e {{{known} :value (quote {})}})", value.text));
        for program in value.into_iter().chain([format!("(def *e {{{known}}})")]) {
            let past = PriorState { results: Vec::new(), ..self.past.clone() };
            let kept = self.run(&program, past);
            if kept.outcome.is_ok() {
                self.past.bindings = kept.bindings;
                return;
            }
        }
    }

    /// Evaluates an internal program, without a trace.
    fn run(&mut self, source: &str, past: PriorState) -> Box<Evaluation> {
        match Call::of_program(source.to_owned(), self.settings.argument_limits()) {
            Ok(call) => self.local.evaluate(&mut self.services, call, past),
            Err(message) => Evaluation::refused(Failure::plain(Reason::ArgsError, message)),
        }
    }
}

/// Formats a string literal. The escapes of JSON are valid in programs.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or(text)
}
