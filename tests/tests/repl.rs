//! Tests `ptc-compile repl` on a terminal: what a user sees while typing. A terminal emulator renders the output to a screen.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::pty::{SIZE, Terminal};
use ptc_tests::deployment::{self, ptc_compile};
use pty_process::blocking::Command;
use serde_json::json;
use tempfile::TempDir;

/// A folder with a config of one upstream that runs and one that does not, and with a place for the REPL's history.
struct Folder(TempDir);

/// Keys that the tests press.
const UP: &str = "\u{1b}[A";
const ENTER: &str = "\r";
const INTERRUPT: &str = "\u{3}";
const END: &str = "\u{4}";

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = json!({ "transport": "mcp_stdio", "command": ptc_compile(), "args": ["demo", "--stdio"] });
        let dead = json!({ "transport": "mcp_stdio", "command": "/no/such/program" });
        let config = json!({ "upstreams": { "notes": notes, "nowhere": dead } });
        std::fs::write(folder.path().join("upstreams.json"), config.to_string()).expect("a config");
        Folder(folder)
    }

    fn command(&self, program: &Path, args: &[&str]) -> Command {
        let command = Command::new(program).args(args).current_dir(self.0.path()).env_clear();
        let command = command.env("TERM", "xterm-256color").env("XDG_STATE_HOME", self.0.path().join("state"));
        command.env("XDG_CONFIG_HOME", self.0.path().join("configs"))
    }

    fn repl(&self, args: &[&str]) -> Screen {
        let repl = [&["repl"], args].concat();
        Screen(Terminal::start(self.command(ptc_compile(), &repl))).waits("user=> ")
    }

    fn history(&self) -> PathBuf {
        self.0.path().join("state/ptc-compile/history")
    }
}

/// The terminal and its screen.
struct Screen(Terminal);

fn emulated(text: &str) -> vt100::Parser {
    let mut parser = vt100::Parser::new(SIZE.0, SIZE.1, 0);
    parser.process(text.as_bytes());
    parser
}

/// Returns the non-empty lines of a screen.
fn lines(text: &str) -> Vec<String> {
    emulated(text).screen().contents().lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

impl Screen {
    fn types(&self, text: &str) {
        self.0.types(text);
    }

    /// Waits until a line equals `wanted`, except for trailing white space.
    fn line(&self, wanted: &str) {
        self.0.until(&format!("line {wanted:?}"), |text| lines(text).iter().any(|line| line.trim_end() == wanted));
    }

    /// Waits until a line contains `wanted`.
    fn part(&self, wanted: &str) {
        self.0.until(&format!("{wanted:?}"), |text| lines(text).iter().any(|line| line.contains(wanted)));
    }

    /// Waits until the last line begins with `prompt`.
    fn waits(self, prompt: &str) -> Screen {
        self.last(prompt);
        self
    }

    fn last(&self, wanted: &str) {
        self.0.until(&format!("last line {wanted:?}"), |text| {
            lines(text).last().is_some_and(|line| line.starts_with(wanted.trim_end()))
        });
    }

    /// Types keys of which the last leads to a new prompt, and waits for that prompt. While there is no prompt, typed text is
    /// buffered by the terminal, and an interrupt discards it.
    fn enters(&self, keys: &str) {
        let prompts = |text: &str| text.matches("\u{1b}[?2004h").count();
        let before = prompts(&self.0.until("anything", |_| true));
        self.types(keys);
        self.0.until("another prompt", |text| prompts(text) > before);
    }

    /// Types a line, and waits for its result and the next prompt.
    fn asks(&self, program: &str, answer: &str) {
        self.enters(&format!("{program}\r"));
        self.part(answer);
    }

    fn clears(&self) {
        self.enters(INTERRUPT);
    }

    fn quits(self) {
        self.types(":quit\r");
        self.0.ends();
    }
}

#[test]
fn names_are_completed_and_signatures_shown() {
    let folder = Folder::new();
    let screen = folder.repl(&["upstreams.json"]);
    // Completes builtins, namespaces and definitions.
    screen.types("(group-\t");
    screen.line("user=> (group-by  ; [f coll]");
    screen.clears();
    screen.asks("(defn triple-it [number] (* 3 number))", "#'triple-it");
    screen.types("(trip\t");
    screen.part("user=> (triple-it  ; [number]");
    screen.enters(" 14)\r");
    screen.line("42");
    screen.types("(str/upper-\t");
    screen.part("(str/upper-case");
    screen.clears();
    // Completes names that the program itself binds.
    screen.types("(let [overdue-total 1] (inc over\t");
    screen.part("(inc overdue-total");
    screen.clears();
    // Upstreams can be completed from the start. The tools of a live upstream can be completed once they have been listed.
    screen.types("(dir \"not\t");
    screen.part("(dir \"notes\"");
    screen.enters(")\r");
    screen.part("read_note");
    screen.types("(tool/call ");
    screen.part("(tool/call   ; {:server :tool :args}");
    screen.types("{:ser\t \"note\t :to\t \"re\t :ar\t {");
    screen.part("{:server \"notes\" :tool \"read_note\" :args {  ; name string");
    screen.enters(":na\t \"watchlist\"}})\r");
    screen.part(":ok true");
    // A comment is not part of the program, so nothing is completed.
    screen.types("; (tri\t");
    screen.part("user=> ; (tri");
    screen.clears();
    screen.enters(":di\t js\t\r");
    screen.asks("{:a [1 2]}", "{\"a\":[1,2]}");
    screen.quits();
}

/// Tests lines that arrive together, as `tmux send-keys` and editors that send a region write them.
#[test]
fn lines_pasted_together_are_all_evaluated() {
    let folder = Folder::new();
    let screen = folder.repl(&[]);
    screen.types("(+ 40 2)\r(+ 40 3)\r(str \"a\"\r \"b\")\r");
    screen.line("42");
    screen.line("43");
    screen.line("\"ab\"");
    screen.types(":quit\r");
    screen.0.ends();
}

#[test]
fn several_candidates_are_listed() {
    let folder = Folder::new();
    let screen = folder.repl(&["upstreams.json"]);
    screen.types("(dir \"no\t");
    screen.types("\t");
    screen.part("\"notes\"");
    screen.part("\"nowhere\"");
    screen.clears();
    screen.quits();
}

#[test]
fn multiline_form_is_recalled_from_history_complete() {
    let folder = Folder::new();
    let screen = folder.repl(&[]);
    screen.types("(str \"a\"\r");
    screen.enters("     \"b\")\r");
    screen.line("\"ab\"");
    screen.types(UP);
    screen.enters("\u{5} ; again\r"); // moves to the end of the line
    screen.0.until("the answer twice", |text| lines(text).iter().filter(|line| line.as_str() == "\"ab\"").count() == 2);
    screen.types("(+ 1");
    screen.clears();
    screen.asks("(+ *e 1)", "*e");
    screen.types(END);
    screen.0.ends();
}

#[test]
fn history_file_is_readable_by_its_owner_only() {
    let folder = Folder::new();
    let screen = folder.repl(&[]);
    screen.asks("(+ 40 2)", "42");
    screen.asks(" (str \"not kept\")", "\"not kept\"");
    screen.quits();
    let kept = std::fs::read_to_string(folder.history()).expect("a history");
    assert!(kept.contains("(+ 40 2)") && !kept.contains("not kept"), "{kept}");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&folder.history()), mode(folder.history().parent().expect("a folder"))), (0o600, 0o700));
    // Permissions that are too wide are narrowed.
    std::fs::set_permissions(folder.history(), std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let screen = folder.repl(&[]);
    screen.types(UP);
    screen.types(UP);
    screen.part("user=> (+ 40 2)");
    screen.enters(ENTER);
    screen.line("42");
    screen.quits();
    assert_eq!(mode(&folder.history()), 0o600);

    let folder = Folder::new();
    let screen = folder.repl(&["--no-history"]);
    screen.asks("(+ 40 2)", "42");
    screen.quits();
    assert!(!folder.history().exists());
}

#[test]
fn colours_follow_option_and_environment() {
    let folder = Folder::new();
    let green = |text: &str| {
        let parser = emulated(text);
        let cells = (0..SIZE.0).flat_map(|row| (0..SIZE.1).map(move |column| (row, column)));
        let mut cells = cells.filter_map(|(row, column)| parser.screen().cell(row, column));
        cells.any(|cell| cell.contents() == "z" && cell.fgcolor() == vt100::Color::Idx(2))
    };
    let converse = |args: &[&str], no_color: bool| {
        let mut command = folder.command(ptc_compile(), &[&["repl"], args].concat());
        if no_color {
            command = command.env("NO_COLOR", "1");
        }
        let screen = Screen(Terminal::start(command)).waits("user=> ");
        screen.enters("(str \"z\" \"z\")\r");
        screen.line("\"zz\"");
        let text = screen.0.until("anything", |_| true);
        screen.quits();
        text
    };
    assert!(green(&converse(&[], false)));
    assert!(green(&converse(&["--color", "always"], true)));
    for text in [converse(&[], true), converse(&["--color=never"], false)] {
        assert!(!green(&text) && !text.contains("\u{1b}[3"), "{text:?}");
    }
}

#[test]
fn signals_restore_the_terminal_mode() {
    let folder = Folder::new();
    let screen = folder.repl(&["--program-timeout-ms", "600000"]);
    screen.types("(loop [i 0] (recur (inc i)))\r");
    screen.0.computes();
    screen.enters(INTERRUPT);
    screen.part("cancelled");
    screen.asks("(inc 1)", "2");
    let id = rustix::process::Pid::from_raw(i32::try_from(screen.0.id()).expect("a process")).expect("it has one");
    assert!(!screen.0.is_canonical(), "it edits lines");
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it lives");
    screen.asks("(str \"still \" \"here\")", "\"still here\"");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it lives");
    let terminal = screen.0.ended();
    assert!(terminal.is_canonical(), "a shell can read lines again");
}

#[test]
fn documented_options_and_commands_work() {
    let folder = Folder::new();
    let options = [
        "upstreams.json",
        "--max-tool-calls=1",
        "--max-catalog-ops=2",
        "--upstream-call-timeout-ms=4000",
        "--max-upstream-response-bytes=20000",
        "--catalog-mode=lazy",
    ];
    let screen = folder.repl(&options);
    screen.part("2 upstreams. :help lists commands");
    screen.asks(":limits", "1 upstream calls of 4 s each, 2 discovery forms");
    screen.asks(":tools", "not listed yet, :tools UPSTREAM asks: ");
    screen.asks("(map nil? [(tool/servers) (tool/servers) (tool/servers)])", "[false false true]");
    let call = |tool: &str, args: &str| format!("(tool/call {{:server \"notes\" :tool \"{tool}\" :args {args}}})");
    // Only one of the two calls is made.
    let twice = format!("(map :reason [{0} {0}])", call("list_notes", "{}"));
    screen.asks(&twice, "[nil :cap_exhausted]");
    // In lazy mode only names are shown, and details of an upstream that is named.
    screen.asks(":tools", "- notes (2 tools)");
    assert!(!screen.0.until("anything", |_| true).contains("  - read_note"), "the mode is lazy");
    screen.asks(":tools notes", "  - read_note {:name string}");
    screen.asks(":tools noets", "noets");
    screen.asks(":help notes/read_note", "The text of one note.");
    screen.asks(":help list_notes", "notes/list_notes");
    screen.asks(":help map", "Signatures: (map");
    screen.asks(":display envelope", "user=>");
    screen.asks("(+ 1 2)", "\"status\":\"ok\"");
    screen.asks(":display text", "user=>");
    screen.asks(":time", "times are shown");
    screen.asks("(+ 1 2)", "µs");
    screen.quits();
    let screen = folder.repl(&["upstreams.json", "--catalog-mode", "inline", "--catalog-snapshot-mode", "live"]);
    screen.asks(":tools notes", "  - read_note {:name string}");
    screen.asks(":tools", "- nowhere");
    let text = screen.0.until("anything", |_| true);
    assert_eq!(text.matches("  - read_note {:name string}").count(), 2, "the mode is inline: {text}");
    screen.quits();
    // A result over the maximum size is an error.
    let screen = folder.repl(&["upstreams.json", "--max-upstream-response-bytes", "90"]);
    screen.asks(&format!("(:reason {})", call("list_notes", "{}")), ":response_too_large");
    screen.quits();
}

#[test]
fn repl_finds_config_in_documented_order_or_starts_without() {
    let folder = Folder::new();
    let screen = folder.repl(&[]);
    screen.part("0 upstreams.");
    screen.quits();
    let configs = folder.0.path().join("configs/ptc_runner_mcp");
    std::fs::create_dir_all(&configs).expect("a folder");
    std::fs::write(configs.join("upstreams.json"), r#"{"upstreams": {}}"#).expect("a config");
    let mut command = folder.command(ptc_compile(), &["repl"]);
    command = command.env("PTC_RUNNER_UPSTREAMS", folder.0.path().join("upstreams.json"));
    let screen = Screen(Terminal::start(command)).waits("user=> ");
    screen.part("2 upstreams.");
    screen.quits();
    let one = r#"{"upstreams": {"only": {"transport": "mcp_stdio", "command": "/no/such/program"}}}"#;
    std::fs::write(configs.join("upstreams.json"), one).expect("a config");
    let screen = folder.repl(&[]);
    screen.part("1 upstreams.");
    screen.quits();
}

#[test]
fn dumb_terminal_gets_plain_lines() {
    let folder = Folder::new();
    let mut terminal = Terminal::start(folder.command(ptc_compile(), &["repl"]).env("TERM", "dumb"));
    terminal.shows("user=> ");
    terminal.types("(str 1\n");
    terminal.shows("#_=> ");
    terminal.types("2)\n");
    let answer = terminal.shows("\"12\"\r\n");
    assert!(!answer.contains('\u{1b}'), "{answer:?}");
    terminal.types(":quit\n");
    terminal.ends();
}

#[test]
#[ignore = "slow: builds a binary"]
fn pinned_binary_edits_lines_if_built_with_line_editing() {
    let folder = Folder::new();
    let pinned = folder.0.path().join("pinned");
    std::fs::write(folder.0.path().join("plain.json"), r#"{"upstreams": {}}"#).expect("a config");
    let options = ["--line-editing", "--serve", "stdio", "--offline"];
    deployment::build(&folder.0.path().join("plain.json"), &pinned, &options);
    let screen = Screen(Terminal::start(folder.command(&pinned, &["repl"]))).waits("user=> ");
    screen.types("(frequ\t");
    screen.part("user=> (frequencies  ; [coll]");
    screen.clears();
    screen.quits();
    // Other binaries have lines without editing, and do not document flags that they lack.
    let mut terminal = Terminal::start(folder.command(deployment::quickstart(), &["repl", "--help"]));
    assert!(!terminal.shows("A flag takes precedence over its environment").contains("--no-history"));
    terminal.ends();
}
