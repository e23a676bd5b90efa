//! `repl` as a script, and interactively on a pseudo-terminal.

use std::io::Write;
use std::process::Stdio;

use pty_process::blocking::Command;

use crate::Test;
use crate::peer::server;
use crate::pty::Terminal;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("terminal::script_ends_at_its_first_fault", script_ends_at_its_first_fault),
    ("terminal::control_characters_are_not_written_to_a_terminal", control_characters_are_not_written_to_a_terminal),
    ("terminal::program_is_read_from_standard_input", program_is_read_from_standard_input),
    ("terminal::programs_are_read_from_files", programs_are_read_from_files),
    ("terminal::scripts_write_traces", scripts_write_traces),
    ("terminal::values_are_shown_in_the_requested_format", values_are_shown_in_the_requested_format),
    ("terminal::repl_remembers_definitions_and_results", repl_remembers_definitions_and_results),
    ("terminal::interrupt_ends_only_the_program", interrupt_ends_only_the_program),
    ("terminal::repl_commands_give_documented_output", repl_commands_give_documented_output),
];

fn repl(args: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = server("plain");
    command.arg("repl").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // The process may exit without reading.
    let _ = child.stdin.take().expect("it was piped").write_all(input.as_bytes());
    let done = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn script_ends_at_its_first_fault() {
    let (code, out, err) = repl(&["-e", "(def x 41)", "-e", "(println \"hi\") (inc x)", "-e", "(+ *1 1)"], "");
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "#'x\nhi\n42\n43\n", ""));
    let (code, out, err) = repl(&["-e", "1", "-e", "(+ 1\n  yy)", "-e", "3"], "");
    assert_eq!((code, out.as_str()), (Some(1), "1\n"));
    assert!(err.starts_with("error: ") && err.contains("yy") && err.contains("line 2") && err.contains('^'), "{err}");
    // Output before the error is kept.
    let (code, out, err) = repl(&["-e", "(println \"a\") (/ 1 0)"], "");
    assert_eq!((code, out.as_str()), (Some(1), "a\n"), "{err}");
    let (code, _, err) = repl(&["--max-tool-calls", "x"], "");
    assert_eq!(code, Some(2));
    assert!(err.contains("--max-tool-calls: expected an integer"), "{err}");
}

fn control_characters_are_not_written_to_a_terminal() {
    let program = r#"(println "\u001b[31mred") "\u001b[32mgreen""#;
    let mut terminal = conversation(&["-e", program]);
    terminal.shows("\u{fffd}[31mred\r\nuser=> \"\u{fffd}[32mgreen\"\r\n");
    terminal.ends();
    let (_, out, _) = repl(&["-e", program], "");
    assert_eq!(out, "\u{1b}[31mred\n\"\u{1b}[32mgreen\"\n", "a file gets what was printed");
    let (_, _, err) = repl(&["-e", r#"(fail "\u001b]0;title")"#], "");
    assert_eq!(err, "error: fail: \"\u{fffd}]0;title\"\n");
}

fn program_is_read_from_standard_input() {
    assert_eq!(repl(&[], "(def x 2)\n(* x\n   21)\n"), (Some(0), "42\n".into(), String::new()));
    let (code, out, err) = repl(&[], "(fail :no)");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("fail: :no"), "{err}");
    let (code, _, err) = repl(&[], " \n");
    assert!(code == Some(2) && err.contains("standard input: expected a program, found nothing"), "{code:?} {err}");
    // Input is read only up to the maximum size of a program.
    for text in ["x".repeat(100_000), "é".repeat(100_000)] {
        let (code, _, err) = repl(&["--max-program-bytes", "50000"], &text);
        assert!(code == Some(1) && err.contains("max_program_bytes"), "{err}");
    }
}

fn programs_are_read_from_files() {
    let folder = std::env::temp_dir().join(format!("ptc-programs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a plain path").to_owned()
    };
    let (tools, main) = (file("tools.clj", "(defn twice [x] (* 2 x)) (println \"loaded\") 7"), file("main.clj", "(twice 4)"));
    let (code, out, err) = repl(&["-l", &tools, &main, "--eval", "(+ *1 1)", "-"], "(+ *1 1)");
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "loaded\n8\n9\n10\n", ""));
    let (code, out, err) = repl(&["-l", &main, "-e", "1"], "");
    assert!(code == Some(1) && out.is_empty() && err.contains("twice"), "{out}{err}");
    let (code, _, err) = repl(&["no/such.clj"], "");
    assert!(code == Some(2) && err.contains("no/such.clj: "), "{err}");
    std::fs::remove_dir_all(folder).expect("it was made above");
}

fn scripts_write_traces() {
    let folder = std::env::temp_dir().join(format!("ptc-traces-{}", std::process::id()));
    let path = folder.to_str().expect("a plain path");
    let (code, out, err) = repl(&["--trace-dir", path, "--trace-payloads", "full", "-e", "(+ 40 2)", "-e", "(nope)"], "");
    assert_eq!((code, out.as_str()), (Some(1), "42\n"), "{err}");
    let mut texts: Vec<String> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("a trace"))
        .collect();
    texts.sort_by_key(|text| !text.contains("(+ 40 2)"));
    let [good, bad] = texts.as_slice() else { panic!("two traces: {texts:?}") };
    assert!(good.contains("(+ 40 2)") && good.contains("\"status\":\"ok\""), "{good}");
    assert!(bad.contains("(nope)") && bad.contains("\"status\":\"error\"") && bad.contains("unbound"), "{bad}");
    std::fs::remove_dir_all(folder).expect("it was made above");
}

/// The value of a script is data: JSON output is complete, and other output reports on standard error that it was truncated.
fn values_are_shown_in_the_requested_format() {
    let (code, out, err) = repl(&["--display", "json", "-e", "(println \"on its way\") (range 100000)"], "");
    let whole: Vec<u32> = serde_json::from_str(&out).expect("JSON and nothing else");
    assert_eq!((code, whole.len(), err.as_str()), (Some(0), 100_000, "on its way\n"));
    let (code, out, err) = repl(&["-e", "(range 100000)"], "");
    assert!(code == Some(0) && out.len() < 70_000 && err.contains("--display json writes all of it"), "{err}");
    let (code, out, _) = repl(&["--display=json", "-e", ESCAPING], "");
    assert_eq!((code, &*out), (Some(0), "\"a\u{9b}b\u{7f}\"\n"), "a pipe gets every byte");
    let (code, out, err) = repl(&["--display=json", "-e", "1", "-e", "inc"], "");
    assert_eq!((code, out.as_str()), (Some(1), "1\n"));
    assert!(err.contains("cannot be shown as JSON"), "{err}");
    let (code, out, _) = repl(&["--display", "envelope", "-e", "(+ 1 2)"], "");
    assert!(code == Some(0) && out.contains("\"result\":\"user=> 3\""), "{out}");
    let (_, _, err) = repl(&["-e", "(dotimes [_ 2000] (println (apply str (repeat 1000 \"x\"))))"], "");
    assert!(err.contains("what the program printed was cut"), "{err}");
}

/// Starts an interactive session on a terminal without line editing.
fn conversation(args: &[&str]) -> Terminal {
    let exe = std::env::current_exe().expect("a test has a file");
    Terminal::start(Command::new(exe).env_clear().env("TERM", "dumb").env(crate::ROLE, "plain").arg("repl").args(args))
}

fn repl_remembers_definitions_and_results() {
    let mut terminal = conversation(&[]);
    terminal.shows("user=> ");
    assert!(terminal.is_canonical(), "the terminal gathers lines");
    terminal.types("(defn twice [x]\n");
    terminal.shows("#_=> ");
    terminal.types("  (* 2 x))\n");
    terminal.shows("#'twice");
    terminal.types("(twice 21)\n");
    terminal.shows("42\r\n");
    terminal.types("(+ *1 1)\n");
    terminal.shows("43\r\n");
    // An error does not end the session and can be inspected.
    terminal.types("(twice nope)\n");
    terminal.shows("nope");
    terminal.types("[(:reason *e) (twice 1) *1]\n");
    terminal.shows("[:runtime_error 2 43]");
    // The value of `fail` can be inspected too. A comment is not a program.
    terminal.types("(fail {:why 1})\n");
    terminal.shows("fail: {:why 1}");
    terminal.types("; a note\n");
    terminal.types("[(:why (:value *e)) (:line *e) (:column *e) (count *1)]\n");
    terminal.shows("[1 1 1 3]\r\n");
    terminal.types("(/ 1 0)\n");
    terminal.shows("hint: ");
    terminal.types("(subs (:hint *e) 0 4)\n");
    terminal.shows("\"test\"");
    terminal.types(":quit\n");
    terminal.ends();
    let mut terminal = conversation(&[]);
    terminal.shows("user=> ");
    // Control-D is the end of input.
    terminal.types("\u{4}");
    terminal.ends();
}

fn interrupt_ends_only_the_program() {
    let mut terminal = conversation(&["--program-timeout-ms", "600000"]);
    terminal.shows("user=> ");
    terminal.types("(def kept 7) (println \"on its way\")\n");
    terminal.shows("on its way\r\n");
    terminal.types("(println (* 6 7) \"so far\") (loop [i 0] (recur (inc i)))\n");
    // Lines are printed while the program runs. An interrupt before a line is read would discard the line.
    terminal.shows("42 so far\r\n");
    terminal.types("\u{3}");
    let since = terminal.shows("cancelled");
    assert!(!since.contains("so far"), "a line comes once: {since}");
    terminal.shows("user=> ");
    // An interrupt also discards incomplete input.
    terminal.types("(+ 1\n");
    terminal.shows("#_=> ");
    terminal.types("\u{3}");
    terminal.shows("user=> ");
    terminal.types("(str \"kept \" kept)\n");
    terminal.shows("\"kept 7\"");
    terminal.types("\u{4}");
    terminal.ends();
}

/// A value with control characters, of which one starts an escape sequence on a terminal.
const ESCAPING: &str = "(str \"a\" (char 155) \"b\" (char 127))";

fn repl_commands_give_documented_output() {
    let mut terminal = conversation(&[]);
    for (line, answer) in [
        (":help", ":display text|envelope|json"),
        (":help map", "Signatures: (map"),
        (":help no-such-thing", "no-such-thing"),
        (":tools", "there are no upstreams"),
        (":limits", "1 s, 10485760 bytes of memory"),
        (":display json", "user=> "),
        ("{:a [1 \"x\"]}", "{\"a\":[1,\"x\"]}"),
        (ESCAPING, r"a\u009bb\u007f"),
        (":display envelope", "user=> "),
        ("(+ 1 2)", "\"status\":\"ok\""),
        (ESCAPING, r"a\u009bb\u007f"),
        (":display loud", "expected :display text"),
        (":display text", "user=> "),
        (ESCAPING, "\"a\u{fffd}b\u{fffd}\""),
        (":quit now", "expected :quit"),
        (":tols", "did you mean :tools?"),
        (":time", "times are shown"),
        ("(+ 1 2)", "s\r\n"),
        (":a-keyword", ":a-keyword\r\n"),
    ] {
        terminal.shows("user=> ");
        terminal.types(&format!("{line}\n"));
        terminal.shows(&format!("{line}\r\n")[..line.len()]);
        if answer != "user=> " {
            terminal.shows(answer);
        }
    }
    terminal.types(":quit\n");
    terminal.ends();
}
