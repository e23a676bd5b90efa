//! Finds the calls of tools in functions of earlier programs that a program uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{ToolCallSite, is_upstream_call, upstream_calls};
use crate::collection::Children;
use crate::deadline::Deadline;
use crate::error::Span;
use crate::ir::{Ir, Op, Unit};
use crate::value::each_distinct;
use crate::{Bindings, Program, Value};

/// The calls of tools in the functions of earlier programs that a program can call.
#[derive(Debug, Default)]
pub struct EarlierCalls {
    /// The calls as they are written there. Their ranges refer to the texts of those programs.
    pub sites: Vec<ToolCallSite>,
    /// Whether there may be further calls: a function such as `tool/call` is used as a value, or the text of a function refers to a
    /// name that does not exist any more.
    pub is_incomplete: bool,
}

/// What a program uses that earlier programs have made.
#[derive(Default)]
struct Uses {
    names: BTreeSet<Arc<str>>,
    /// Whether it uses `*1`, `*2` or `*3`.
    has_history: bool,
    /// Whether it uses a function such as `tool/call` as a value.
    has_call_as_value: bool,
}

impl Uses {
    fn of(unit: &Unit) -> Uses {
        let mut uses = Uses::default();
        uses.add(&unit.body, unit);
        uses
    }

    fn add(&mut self, ir: &Ir, unit: &Unit) {
        match &ir.op {
            Op::Global { index, .. } => self.names.extend(unit.globals.get(*index as usize).cloned()),
            Op::History(_) => self.has_history = true,
            Op::Const(value) => each_distinct([value], |value| {
                self.has_call_as_value |= is_upstream_call_value(value);
                if let Value::Var(name) = value {
                    self.names.insert(name.as_str().into());
                }
                true
            }),
            _ => {}
        }
        ir.children(&mut |child| self.add(child, unit));
    }
}

/// Whether a value is a function such as `tool/call`, or refers to it by name.
pub fn is_upstream_call_value(value: &Value) -> bool {
    match value {
        Value::Builtin(row) => is_upstream_call(row.namespace, row.name),
        Value::Var(name) => name.as_str().split_once('/').is_some_and(|(namespace, name)| is_upstream_call(namespace, name)),
        _ => false,
    }
}

/// Whether a constant contains a function such as `tool/call`.
pub fn has_upstream_call(constant: &Value) -> bool {
    is_upstream_call_value(constant) || Children::new(constant).is_some_and(|mut children| children.any(has_upstream_call))
}

/// Adds the ranges of all functions within an expression.
fn functions(ir: &Ir, found: &mut Vec<Span>) {
    match &ir.op {
        Op::Fn(group) => found.extend(group.members.iter().map(|member| member.span)),
        Op::LetFn { group, body, .. } => {
            found.extend(group.members.iter().map(|member| member.span));
            functions(body, found);
        }
        _ => ir.children(&mut |child| functions(child, found)),
    }
}

/// Finds the calls in functions that `unit` can use through the names of `known` and through `results`, directly or in other functions.
/// If it can use one function of an earlier program, all functions of that program count. `tools` are the names of
/// [`Program::compile_for`].
pub(crate) fn earlier_calls(
    unit: &Unit,
    known: &Bindings,
    results: &[Value],
    tools: &[&str],
    deadline: &Deadline,
) -> EarlierCalls {
    let mut found = EarlierCalls::default();
    // The program's own checks report a function such as `tool/call` that it uses itself.
    let Uses { mut names, mut has_history, .. } = Uses::of(unit);
    let (mut seen_names, mut seen_texts, mut seen_history) = (BTreeSet::new(), BTreeSet::new(), false);
    loop {
        let mut roots: Vec<&Value> = Vec::new();
        if std::mem::take(&mut has_history) && !std::mem::replace(&mut seen_history, true) {
            roots.extend(results);
        }
        for name in std::mem::take(&mut names) {
            if !seen_names.contains(&name) {
                roots.extend(known.get(&name));
                seen_names.insert(name);
            }
        }
        if roots.is_empty() {
            return found;
        }
        let mut texts = Vec::new();
        each_distinct(roots, |value| {
            found.is_incomplete |= is_upstream_call_value(value) || deadline.step();
            match value {
                Value::Closure(function) if seen_texts.insert(Arc::as_ptr(function.source())) => texts.push(function.source()),
                Value::Var(name) => names.extend([Arc::from(name.as_str())]),
                _ => {}
            }
            !found.is_incomplete
        });
        for text in texts {
            let Ok(program) = Program::compile_until(text, known, tools, deadline) else {
                // A name does not exist any more, or there is no time left.
                found.is_incomplete = true;
                continue;
            };
            let mut ranges = Vec::new();
            functions(program.ir(), &mut ranges);
            let is_in_function =
                |site: &ToolCallSite| site.call.is_none() && ranges.iter().any(|range| range.contains(site.span));
            found.sites.extend(upstream_calls::<true>(program.unit()).into_iter().filter(is_in_function));
            let uses = Uses::of(program.unit());
            found.is_incomplete |= uses.has_call_as_value;
            has_history |= uses.has_history;
            names.extend(uses.names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    /// Runs all texts but the last one, and returns the calls in functions that the last one can use.
    fn calls(texts: &[&str]) -> String {
        let (last, earlier) = texts.split_last().unwrap();
        let (mut bindings, mut results) = (Bindings::default(), Vec::new());
        for text in earlier {
            let program = Program::compile_with(text, &bindings).unwrap();
            let outcome = Run::new(&program).bindings(bindings).execute_on_thread();
            (bindings, results) = (outcome.bindings, vec![outcome.result.unwrap()]);
        }
        let program = Program::compile_with(last, &bindings).unwrap();
        let found = program.earlier_calls(&bindings, &results, &[], &Deadline::none());
        let mut shown: Vec<String> = found.sites.iter().map(|site| site.tool.clone().unwrap_or_else(|| "?".into())).collect();
        shown.sort();
        shown.extend(found.is_incomplete.then(|| "…".to_owned()));
        shown.join(" ")
    }

    #[test]
    fn calls_of_earlier_functions_are_found_if_a_program_can_use_them() {
        let f = r#"(defn f [] (tool/call {:server "s" :tool "a"})) (defn g [] (tool/call {:server "s" :tool "b"})) 1"#;
        let h = "(defn h [] [(f) 1])";
        let by_name =
            r#"(defn f [t] (tool/call {:server "s" :tool t})) (defn g [] (let [t "b"] (tool/call {:server "s" :tool t}))) 1"#;
        for (texts, expected) in [
            (vec![f, "(+ 1 2)"], ""),
            (vec![f, "(f)"], "a b"),
            (vec![f, "(map (fn [_] (g)) [1])"], "a b"),
            (vec![f, h, "(h)"], "a b"),
            (vec![f, h, "(def all {:x [h g]})", "((first (:x all)))"], "a b"),
            (vec![f, "(def k (partial f))", "(k)"], "a b"),
            (vec![f, "(if nil (f) 2)", "1"], ""),
            (vec![f, "[f 2]", "((first *1))"], "a b"),
            (vec![f, "[f 2]", "(second [1 2])"], ""),
            (vec![f, "(def v #'g)", "(v)"], "a b"),
            (vec![f, "(#'g)"], "a b"),
            (vec![f, "(def v (fn [] (map #'g [1])))", "(v)"], "a b"),
            (vec![by_name, "(f 1)"], "? b"),
            (vec![r#"(letfn [(f [] (g)) (g [] (tool/call {:server "s" :tool "a"}))] (def h f))"#, "(h)"], "a"),
            // Calls outside of functions have been made already.
            (vec![r#"(def x (if nil (tool/call {:server "s" :tool "a"}) 1)) (def f (fn [] x))"#, "(f)"], ""),
            (vec!["(def call #'tool/call)", "(call {})"], "…"),
            (vec!["(def call tool/call)", "(call {})"], "…"),
            (vec!["(defn f [r] (map tool/call [r]))", "(f 1)"], "…"),
            (vec![r#"(letfn [(g [] 1)] (def h (fn [] (tool/call {:server "s" :tool "a"}))))"#, "(h)"], "a"),
            // Names without a value.
            (vec!["#'inc", "*1"], ""),
            (vec!["(def x)", "[*1 *1]"], ""),
            (vec!["#'tool/call", "*1"], "…"),
            (vec!["(def b 1)", "(def a {:next #'b})", "(def b {:next #'a})", "a"], ""),
            // The functions of this program are checked with it.
            (vec![r#"(defn f [] (tool/call {:server "s" :tool "x"})) 1"#, r"(defn f [] 1) (f)"], "x"),
        ] {
            // A name that is defined again counts with both values, since it may be used before.
            let texts: Vec<&str> = texts;
            assert_eq!(calls(&texts), expected, "{texts:?}");
        }
    }
}
