//! Turns the forms of `clojure.test` into PTC-Lisp. Every form keeps its number of lines, so that errors have the lines of the file.
//!
//! | form | becomes |
//! |---|---|
//! | `(is (= expected actual))` | both values are bound, compared, and reported as text |
//! | `(is (pred a b))` | the arguments of a comparison or a predicate are bound and reported |
//! | `(is (thrown? (run-program …)))` | the program must fail |
//! | `(testing text form*)` | the text is bound, and reported by the assertions in it |
//! | `(are [x y] form x1 y1 …)` | one `let` with the assertion for each row |
//! | `(run-program program args?)` | the host tool that runs a program |

use std::fmt::Write;

use ptc_lisp::Span;
use ptc_lisp::form::{Form, FormKind};

use super::file::{FileError, line_of, slice};

/// The host tool that receives the outcome of an assertion.
pub(super) const ASSERT: &str = "ptc-test-assert";
/// The host tool that runs a program.
pub(super) const RUN: &str = "ptc-test-run";

/// Functions whose arguments are reported. Functions whose names end with `?` are too.
const PREDICATES: [&str; 10] = ["=", "==", "not=", "<", "<=", ">", ">=", "some", "re-find", "re-matches"];

/// Maximum bytes of the text of an assertion.
const MAX_FORM: usize = 300;

/// An assertion in a file.
#[derive(Debug, Clone)]
pub(super) struct Site {
    /// Its line.
    pub(super) line: usize,
    /// Its text without line breaks.
    pub(super) form: String,
}

/// Expands the forms of one file.
pub(super) struct Expander<'s> {
    source: &'s str,
    /// The aliases of `clojure.test`.
    pub(super) aliases: Vec<String>,
    /// The assertions so far.
    pub(super) sites: Vec<Site>,
    /// Whether a form runs a program.
    pub(super) runs_programs: bool,
    /// The number of `testing` around the form.
    depth: usize,
    /// The line of the row of `are` to which the assertions belong.
    row: Option<usize>,
}

type Expanded = Result<String, FileError>;

impl<'s> Expander<'s> {
    pub(super) fn new(source: &'s str) -> Expander<'s> {
        Expander {
            source,
            aliases: vec!["clojure.test".to_owned()],
            sites: Vec::new(),
            runs_programs: false,
            depth: 0,
            row: None,
        }
    }

    /// Returns a name without an alias of `clojure.test`.
    pub(super) fn local<'n>(&self, name: &'n str) -> &'n str {
        match name.split_once('/') {
            Some((namespace, name)) if self.aliases.iter().any(|alias| alias == namespace) => name,
            _ => name,
        }
    }

    /// Expands the body of a test.
    pub(super) fn body(&mut self, test: &Form<'_>, body: &[Form<'_>]) -> Expanded {
        let Some(first) = body.first() else { return Ok(self.padded(test.span, "nil".to_owned())) };
        let before = self.text(test.span.start, first.span.start).matches('\n').count();
        let text = format!("(do {}{})", "\n".repeat(before), self.sequence(body)?);
        Ok(self.padded(test.span, text))
    }

    /// Expands a form.
    pub(super) fn form(&mut self, form: &Form<'_>) -> Expanded {
        match &form.kind {
            FormKind::List(items) => {
                let expanded = match items.first().and_then(Form::symbol).map(|name| self.local(name)) {
                    Some("is") => self.is(form, items)?,
                    Some("testing") => self.testing(form, items)?,
                    Some("are") => self.are(form, items)?,
                    Some("run-program") => {
                        let run = self.run_program(form, items, false)?;
                        format!("(ptc-test-decode (:value {run}))")
                    }
                    _ => return self.children(form, items),
                };
                Ok(self.padded(form.span, expanded))
            }
            // `#(is …)` is `#` with a list.
            FormKind::ShortFn(items) => {
                let span = Span { start: form.span.start + 1, end: form.span.end };
                Ok(format!("#{}", self.form(&Form::new(span, FormKind::List(items.clone())))?))
            }
            FormKind::Vector(items) | FormKind::Map(items) | FormKind::Set(items) => self.children(form, items),
            _ => Ok(slice(self.source, form).to_owned()),
        }
    }

    /// Expands the parts of a form, and keeps the text between them.
    fn children(&mut self, form: &Form<'_>, items: &[Form<'_>]) -> Expanded {
        let (Some(first), Some(last)) = (items.first(), items.last()) else { return Ok(slice(self.source, form).to_owned()) };
        let (before, after) = (self.text(form.span.start, first.span.start), self.text(last.span.end, form.span.end));
        Ok(format!("{before}{}{after}", self.sequence(items)?))
    }

    /// Expands forms that follow each other, with the text between them.
    fn sequence(&mut self, items: &[Form<'_>]) -> Expanded {
        let mut text = String::new();
        let mut end = None;
        for item in items {
            if let Some(end) = end {
                text.push_str(self.text(end, item.span.start));
            }
            text.push_str(&self.form(item)?);
            end = Some(item.span.end);
        }
        Ok(text)
    }

    fn is(&mut self, form: &Form<'_>, items: &[Form<'_>]) -> Expanded {
        let (test, message) = match items {
            [_, test] => (test, None),
            [_, test, message] => (test, Some(message)),
            _ => return Err(self.error(form, "is takes a form and an optional message")),
        };
        let message = message.map(|message| self.form(message)).transpose()?;
        let call = match &test.kind {
            FormKind::List(call) => call.as_slice(),
            _ => &[],
        };
        let site = self.site(test);
        let head = call.first().and_then(Form::symbol).map(|name| self.local(name));
        let report = |bindings: &str, pass: &str, expected: &str, actual: &str, this: &Self| {
            let context: Vec<String> = (0..this.depth).map(|at| format!("ptc-test-c{at}")).collect();
            let expected = if expected.is_empty() { String::new() } else { format!(" :expected {expected}") };
            let message = message.as_ref().map_or_else(String::new, |message| format!(" :message (str {message})"));
            format!(
                "(let [{bindings}] (tool/{ASSERT} {{:test ptc-test-id :site {site} :pass (if {pass} true false){expected} :actual {actual} \
                 :context [{}]{message}}}))",
                context.join(" ")
            )
        };
        match (head, call) {
            (Some("="), [_, expected, actual]) => {
                let bindings = format!("ptc-test-e {} ptc-test-a {}", self.form(expected)?, self.form(actual)?);
                Ok(report(&bindings, "(= ptc-test-e ptc-test-a)", "(pr-str ptc-test-e)", "(pr-str ptc-test-a)", self))
            }
            (Some("thrown?" | "thrown-with-msg?"), [head, rest @ ..]) => {
                // Clojure's name of a class has no meaning here.
                let rest =
                    if matches!(rest, [class, _, ..] if class.symbol().is_some()) { rest.get(1..).unwrap_or(rest) } else { rest };
                let (pattern, program) = match (head.symbol().map(|name| self.local(name)), rest) {
                    (Some("thrown?"), [program]) => (None, program),
                    (Some("thrown-with-msg?"), [pattern, program]) => (Some(self.form(pattern)?), program),
                    _ => {
                        return Err(
                            self.error(test, "expected (thrown? (run-program …)) or (thrown-with-msg? #\"…\" (run-program …))")
                        );
                    }
                };
                let FormKind::List(run) = &program.kind else { return Err(self.only_programs_fail(program)) };
                if run.first().and_then(Form::symbol).map(|name| self.local(name)) != Some("run-program") {
                    return Err(self.only_programs_fail(program));
                }
                let bindings = format!("ptc-test-r {}", self.run_program(program, run, true)?);
                let matches = pattern.map_or_else(String::new, |pattern| format!(" (re-find {pattern} (:message ptc-test-r))"));
                let actual = "(if (:ok ptc-test-r) (pr-str (ptc-test-decode (:value ptc-test-r))) (:message ptc-test-r))";
                Ok(report(&bindings, &format!("(and (not (:ok ptc-test-r)){matches})"), "", actual, self))
            }
            (Some(head), [function, args @ ..]) if !args.is_empty() && (head.ends_with('?') || PREDICATES.contains(&head)) => {
                let names: Vec<String> = (0..args.len()).map(|at| format!("ptc-test-{at}")).collect();
                // Writing to a string cannot fail, here and below.
                let mut bindings = String::new();
                for (name, arg) in names.iter().zip(args) {
                    let _ = write!(bindings, "{name} {} ", self.form(arg)?);
                }
                let name = slice(self.source, function);
                let _ = write!(bindings, "ptc-test-a ({name} {})", names.join(" "));
                let shown: Vec<String> = names.iter().map(|name| format!("\" \" (pr-str {name})")).collect();
                let actual = format!("(str \"(not ({name}\" {} \"))\")", shown.join(" "));
                Ok(report(&bindings, "ptc-test-a", "", &actual, self))
            }
            _ => {
                let bindings = format!("ptc-test-a {}", self.form(test)?);
                Ok(report(&bindings, "ptc-test-a", "", "(pr-str ptc-test-a)", self))
            }
        }
    }

    fn testing(&mut self, form: &Form<'_>, items: &[Form<'_>]) -> Expanded {
        let [_, text, body @ ..] = items else { return Err(self.error(form, "testing needs a text")) };
        let name = format!("ptc-test-c{}", self.depth);
        let text_form = self.form(text)?;
        let Some(first) = body.first() else { return Ok("nil".to_owned()) };
        let between =
            self.text(items.first().map_or(form.span.start, |head| head.span.end), text.span.start).matches('\n').count();
        let lines = "\n".repeat(between + self.text(text.span.end, first.span.start).matches('\n').count());
        self.depth += 1;
        let body = self.sequence(body);
        self.depth -= 1;
        Ok(format!("(let [{name} (str {text_form})] {lines}{})", body?))
    }

    fn are(&mut self, form: &Form<'_>, items: &[Form<'_>]) -> Expanded {
        let [_, names, template, values @ ..] = items else {
            return Err(self.error(form, "are needs names, a form, and values"));
        };
        let FormKind::Vector(names) = &names.kind else { return Err(self.error(form, "are needs a vector of names")) };
        if names.is_empty() || values.is_empty() || values.len() % names.len() != 0 {
            let message = format!("are has {} names, and {} values, which must be a multiple of that", names.len(), values.len());
            return Err(self.error(form, &message));
        }
        let assertion = [Form::new(template.span, FormKind::Symbol("is")), template.clone()];
        let mut rows = String::new();
        for row in values.chunks(names.len()) {
            let outer = self.row;
            self.row = row.first().map(|value| line_of(self.source, value.span.start)).or(outer);
            let assertion = self.is(template, &assertion);
            self.row = outer;
            // The names must not be visible in the values, so that all values are bound first.
            let mut bindings = String::new();
            for (at, value) in row.iter().enumerate() {
                let _ = write!(bindings, "ptc-test-v{at} {} ", self.form(value)?);
            }
            for (at, name) in names.iter().enumerate() {
                let _ = write!(bindings, "{} ptc-test-v{at} ", slice(self.source, name));
            }
            let _ = write!(rows, " (let [{bindings}] {})", on_one_line(&assertion?));
        }
        Ok(format!("(do{})", on_one_line(&rows)))
    }

    fn run_program(&mut self, form: &Form<'_>, items: &[Form<'_>], caught: bool) -> Expanded {
        self.runs_programs = true;
        let (program, args) = match items {
            [_, program] => (program, "{}".to_owned()),
            [_, program, args] => (program, self.form(args)?),
            _ => {
                return Err(
                    self.error(form, "run-program takes the file or the name of a program, and an optional map of arguments")
                );
            }
        };
        let program = self.form(program)?;
        Ok(format!("(tool/{RUN} {{:test ptc-test-id :program {program} :args (pr-str {args}) :caught {caught}}})"))
    }

    /// Adds an assertion. Returns its index.
    fn site(&mut self, test: &Form<'_>) -> usize {
        let text = slice(self.source, test).split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, is_cut) = ptc_text::truncate_utf8(&text, MAX_FORM);
        let form = format!("{text}{}", if is_cut { "…" } else { "" });
        let line = self.row.unwrap_or_else(|| line_of(self.source, test.span.start));
        self.sites.push(Site { line, form });
        self.sites.len() - 1
    }

    /// Appends the line breaks that an expanded form has lost.
    fn padded(&self, span: Span, mut expanded: String) -> String {
        let lines = self.text(span.start, span.end).matches('\n').count();
        expanded.extend(std::iter::repeat_n('\n', lines.saturating_sub(expanded.matches('\n').count())));
        expanded
    }

    fn text(&self, start: u32, end: u32) -> &'s str {
        self.source.get(start as usize..end as usize).unwrap_or_default()
    }

    fn error(&self, form: &Form<'_>, message: &str) -> FileError {
        FileError { line: line_of(self.source, form.span.start), message: message.to_owned() }
    }

    fn only_programs_fail(&self, form: &Form<'_>) -> FileError {
        self.error(
            form,
            "thrown? takes (run-program …): PTC-Lisp has no exceptions, and only a program of its own can fail in a test",
        )
    }
}

/// Replaces line breaks, unless a comment or a string may depend on them.
fn on_one_line(text: &str) -> String {
    if text.lines().any(|line| line.contains(';') || line.matches('"').count() % 2 == 1) {
        return text.to_owned();
    }
    text.replace('\n', " ")
}
