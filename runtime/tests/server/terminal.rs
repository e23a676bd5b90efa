//! `repl`: as a script, and as a conversation on a real pseudo-terminal.

use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use pty_process::blocking::{Command, Pty, open};

use crate::Test;
use crate::peer::server;

/// The tests of this module.
pub(crate) const TESTS: &[Test] = &[
    ("terminal::a_script_ends_at_its_first_fault", a_script_ends_at_its_first_fault),
    ("terminal::a_program_comes_on_standard_input", a_program_comes_on_standard_input),
    ("terminal::a_conversation_remembers", a_conversation_remembers),
    ("terminal::an_interrupt_ends_the_program_alone", an_interrupt_ends_the_program_alone),
    ("terminal::commands_of_the_prompt", commands_of_the_prompt),
];

fn repl(args: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = server("plain");
    command.arg("repl").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // It may not read at all.
    let _ = child.stdin.take().expect("it was piped").write_all(input.as_bytes());
    let done = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn a_script_ends_at_its_first_fault() {
    let (code, out, err) = repl(&["-e", "(def x 41)", "-e", "(println \"hi\") (inc x)", "-e", "(+ *1 1)"], "");
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "user=> #'x\nhi\nuser=> 42\nuser=> 43\n", ""));
    let (code, out, err) = repl(&["-e", "1", "-e", "(+ 1\n  yy)", "-e", "3"], "");
    assert_eq!((code, out.as_str()), (Some(1), "user=> 1\n"));
    assert!(err.contains("yy") && err.contains("line 2") && err.contains('^'), "{err}");
    let (code, _, err) = repl(&["--max-tool-calls", "x"], "");
    assert_eq!(code, Some(2));
    assert!(err.contains("--max-upstream-calls-per-program: expected an integer"), "{err}");
}

fn a_program_comes_on_standard_input() {
    assert_eq!(repl(&[], "(def x 2)\n(* x\n   21)\n"), (Some(0), "user=> 42\n".into(), String::new()));
    let (code, out, err) = repl(&[], "(fail :no)");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("fail: :no"), "{err}");
}

/// A program on a terminal of its own.
struct Terminal {
    pty: Arc<Pty>,
    child: std::process::Child,
    shown: Arc<(Mutex<String>, Condvar)>,
    seen: usize,
}

impl Terminal {
    fn start(args: &[&str]) -> Terminal {
        let (pty, pts) = open().expect("the system has pseudo-terminals");
        let exe = std::env::current_exe().expect("a test has a file");
        let command = Command::new(exe).env_clear().env(crate::ROLE, "plain").arg("repl").args(args);
        let child = command.spawn(pts).expect("it starts");
        let (pty, shown) = (Arc::new(pty), Arc::<(Mutex<String>, Condvar)>::default());
        let (reader, text) = (Arc::clone(&pty), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read) = (&*reader).read(&mut bytes) {
                let new = String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()).into_owned();
                text.0.lock().expect("no panic").push_str(&new);
                text.1.notify_all();
            }
        });
        Terminal { pty, child, shown, seen: 0 }
    }

    fn types(&self, text: &str) {
        (&*self.pty).write_all(text.as_bytes()).expect("the terminal is there");
    }

    /// Waits for a text after what was waited for before; what came up to it.
    fn shows(&mut self, wanted: &str) -> String {
        let (lock, changed) = &*self.shown;
        let text = lock.lock().expect("no panic");
        let seen = self.seen;
        let lacks = |text: &mut String| !text[seen..].contains(wanted);
        let (text, waited) = changed.wait_timeout_while(text, Duration::from_secs(30), lacks).expect("no panic");
        assert!(!waited.timed_out(), "no {wanted:?} in {:?}", &text[seen..]);
        let end = seen + text[seen..].find(wanted).expect("it was waited for") + wanted.len();
        self.seen = end;
        text[seen..end].to_owned()
    }

    fn ends(mut self) {
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

fn a_conversation_remembers() {
    let mut terminal = Terminal::start(&[]);
    terminal.shows("user=> ");
    terminal.types("(defn twice [x]\n");
    terminal.shows("#_=> ");
    terminal.types("  (* 2 x))\n");
    terminal.shows("#'twice");
    terminal.types("(twice 21)\n");
    terminal.shows("42\r\n");
    terminal.types("(+ *1 1)\n");
    terminal.shows("43\r\n");
    // A fault harms nothing, and can be looked at.
    terminal.types("(twice nope)\n");
    terminal.shows("nope");
    terminal.types("[(:reason *e) (twice 1) *1]\n");
    terminal.shows("[:runtime_error 2 43]");
    terminal.types(":quit\n");
    terminal.ends();
    let mut terminal = Terminal::start(&[]);
    terminal.shows("user=> ");
    // The end of input.
    terminal.types("\u{4}");
    terminal.ends();
}

fn an_interrupt_ends_the_program_alone() {
    let mut terminal = Terminal::start(&["--program-timeout-ms", "600000"]);
    terminal.shows("user=> ");
    terminal.types("(def kept 7) (println \"on its way\")\n");
    terminal.shows("on its way\r\n");
    terminal.types("(loop [i 0] (recur (inc i)))\n");
    terminal.shows("recur");
    // An interrupt that comes before the line is read takes the line with it: wait until something computes.
    let ticks = || -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", terminal.child.id())).expect("it runs");
        let fields = stat.rsplit_once(") ").expect("a name in brackets").1;
        fields.split_whitespace().nth(11).and_then(|user| user.parse().ok()).expect("user time")
    };
    let before = ticks();
    while ticks() < before + 5 {
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.types("\u{3}");
    terminal.shows("cancelled");
    terminal.shows("user=> ");
    // What is half typed goes as well.
    terminal.types("(+ 1\n");
    terminal.shows("#_=> ");
    terminal.types("\u{3}");
    terminal.shows("user=> ");
    terminal.types("(str \"kept \" kept)\n");
    terminal.shows("\"kept 7\"");
    terminal.types("\u{4}");
    terminal.ends();
}

fn commands_of_the_prompt() {
    let mut terminal = Terminal::start(&[]);
    for (line, answer) in [
        (":help", ":display text|envelope|json"),
        (":help map", "Signatures: (map"),
        (":help no-such-thing", "no-such-thing"),
        (":tools", "there are no upstreams"),
        (":limits", "1 s, 10485760 bytes of memory"),
        (":display json", "user=> "),
        ("{:a [1 \"x\"]}", "{\"a\":[1,\"x\"]}"),
        (":display envelope", "user=> "),
        ("(+ 1 2)", "\"status\":\"ok\""),
        (":display loud", "expected :display text"),
        (":display text", "user=> "),
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
