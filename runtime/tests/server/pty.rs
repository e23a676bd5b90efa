//! A program on a pseudo-terminal.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

/// Time limit for awaited output, after which a test fails. It is generous since no passing test depends on it.
const PATIENCE: Duration = Duration::from_mins(1);
/// Rows and columns of the terminal.
pub(crate) const SIZE: (u16, u16) = (40, 120);

pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: std::process::Child,
    shown: Arc<(Mutex<String>, Condvar)>,
    seen: usize,
}

impl Terminal {
    pub(crate) fn start(command: Command) -> Terminal {
        let (pty, pts) = open().expect("the system has pseudo-terminals");
        pty.resize(Size::new(SIZE.0, SIZE.1)).expect("it has a size");
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

    pub(crate) fn types(&self, text: &str) {
        (&*self.pty).write_all(text.as_bytes()).expect("the terminal is there");
    }

    /// Waits for a text after the previously awaited one. Returns the output up to its end.
    pub(crate) fn shows(&mut self, wanted: &str) -> String {
        let seen = self.seen;
        let text = self.until(&format!("{wanted:?}"), |text| text[seen..].contains(wanted));
        let end = seen + text[seen..].find(wanted).expect("it was waited for") + wanted.len();
        self.seen = end;
        text[seen..end].to_owned()
    }

    /// Waits until the whole output satisfies a condition. Returns the output.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let (lock, changed) = &*self.shown;
        let text = lock.lock().expect("no panic");
        let (text, waited) = changed.wait_timeout_while(text, PATIENCE, |text| !holds(text)).expect("no panic");
        let end: String = text.chars().rev().take(2_000).collect::<Vec<_>>().into_iter().rev().collect();
        assert!(!waited.timed_out(), "no {what} at the end of {end:?}");
        text.clone()
    }

    /// Waits until the program has used processor time.
    #[allow(dead_code, reason = "only the tests of the line editor need it")]
    pub(crate) fn computes(&self) {
        let ticks = || -> u64 {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).expect("it runs");
            let fields = stat.rsplit_once(") ").expect("a name in brackets").1;
            fields.split_whitespace().nth(11).and_then(|user| user.parse().ok()).expect("user time")
        };
        let before = ticks();
        while ticks() < before + 5 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the program to exit successfully.
    pub(crate) fn ends(self) {
        self.ended();
    }

    /// Like [`Terminal::ends`], but returns the terminal, which remains usable.
    pub(crate) fn ended(mut self) -> Terminal {
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
        self
    }

    /// Whether the terminal is in canonical mode, which delivers whole lines.
    pub(crate) fn is_canonical(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&*self.pty).expect("a terminal has modes").local_modes;
        modes.contains(rustix::termios::LocalModes::ICANON)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The program may have exited by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
