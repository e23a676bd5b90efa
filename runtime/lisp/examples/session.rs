//! A session: each line is a program that sees the definitions and the last results of those before it.
//!
//! `cargo run -p ptc-lisp --example session` reads programs from standard input, one a line.

use std::io::BufRead;

use ptc_lisp::{Bindings, Program, Run, Value, print};

/// What a session keeps between programs.
#[derive(Default)]
struct Session {
    bindings: Bindings,
    /// `*1`, `*2` and `*3`.
    history: Vec<Value>,
}

impl Session {
    /// Runs a program. One that fails leaves the session as it was.
    fn eval(&mut self, source: &str) -> Result<String, ptc_lisp::Error> {
        let program = Program::compile_with(source, &self.bindings)?;
        let run = Run::new(&program).bindings(self.bindings.clone()).history(self.history.clone());
        let outcome = run.execute_on_thread();
        let value = outcome.result?;
        self.bindings = outcome.bindings;
        let shown = print::preview(&value, 1024).text;
        self.history.insert(0, value);
        self.history.truncate(3);
        Ok(shown)
    }
}

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> std::io::Result<()> {
    let mut session = Session::default();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match session.eval(&line) {
            Ok(shown) => println!("{shown}"),
            Err(error) => println!("{}", error.render(&line)),
        }
    }
    println!("; {} definitions, {} bytes", session.bindings.len(), session.bindings.bytes());
    Ok(())
}
