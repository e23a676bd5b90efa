//! The programs, one file per language. A line `;;; a`, `### a` or `/// a` starts program a. Program h is generated from parts.

/// The names of all programs.
pub const NAMES: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "h"];

/// Number of functions in program h.
const STAGES: usize = 76;

/// A language that the programs are written in.
#[derive(Clone, Copy)]
pub enum Language {
    /// Clojure. `data` is the input.
    Clojure,
    /// Python. The result is left in `answer`.
    Python,
    /// Starlark.
    Starlark,
    /// Rhai.
    Rhai,
    /// JavaScript.
    JavaScript,
}

impl Language {
    fn text(self) -> &'static str {
        match self {
            Language::Clojure => include_str!("../programs/lisp.clj"),
            Language::Python => include_str!("../programs/python.py"),
            Language::Starlark => include_str!("../programs/starlark.star"),
            Language::Rhai => include_str!("../programs/rhai.rhai"),
            Language::JavaScript => include_str!("../programs/javascript.js"),
        }
    }
}

/// Returns the text of a program.
pub fn source(language: Language, name: &str) -> String {
    let part = |name: &str| section(language.text(), name);
    if name != "h" {
        return part(name);
    }
    let stages = |template: &str| -> String {
        let fill = |i: usize| template.replace("{i}", &i.to_string()).replace("{x}", &(i % 7).to_string());
        (0..STAGES).map(fill).collect()
    };
    [stages(&part("h-each")), part("h-start"), stages(&part("h-call")), part("h-end")].concat()
}

fn section(text: &str, name: &str) -> String {
    let title = |line: &str| ["### ", ";;; ", "/// "].iter().find_map(|mark| line.strip_prefix(mark).map(str::to_owned));
    let lines = text.lines().skip_while(|line| title(line).as_deref() != Some(name)).skip(1);
    lines.take_while(|line| title(line).is_none()).map(|line| format!("{line}\n")).collect()
}
