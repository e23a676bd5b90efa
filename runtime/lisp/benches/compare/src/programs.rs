//! The programs, one file a language. A line `;;; a`, `### a` or `/// a` starts program a; program h is made of parts.

/// Every program.
pub const NAMES: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "h"];

/// The functions of program h.
const STAGES: usize = 76;

/// A language of programs.
#[derive(Clone, Copy)]
pub enum Language {
    /// Clojure, where `data` is the input.
    Clojure,
    /// Python, which leaves its result in `answer`.
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

/// The text of a program.
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
