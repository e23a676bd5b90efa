//! Finds the calls of tools in functions of earlier programs that a program uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{ToolCallSite, is_upstream_call, upstream_calls};
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

/// What a part of a program uses that earlier programs have made.
#[derive(Default)]
struct Uses {
    names: BTreeSet<Arc<str>>,
    /// Whether it uses `*1`, `*2` or `*3`.
    has_history: bool,
    /// Whether it uses a function such as `tool/call` as a value.
    has_call_as_value: bool,
}

impl Uses {
    /// Adds what the expressions within a range use. `None` means all expressions.
    fn add(&mut self, ir: &Ir, unit: &Unit, within: Option<Span>) {
        if within.is_none_or(|range| range.contains(ir.span)) {
            match &ir.op {
                Op::Global { index, .. } => self.names.extend(unit.globals.get(*index as usize).cloned()),
                Op::History(_) => self.has_history = true,
                Op::Const(value) => self.has_call_as_value |= is_call(value),
                _ => {}
            }
        }
        ir.children(&mut |child| self.add(child, unit, within));
    }
}

fn is_call(value: &Value) -> bool {
    matches!(value, Value::Builtin(row) if is_upstream_call(row.namespace, row.name))
}

/// Finds the calls in functions that `unit` can use through the names of `known` and through `results`, directly or in other functions.
/// `tools` are the names of [`Program::compile_for`].
pub(crate) fn earlier_calls(
    unit: &Unit,
    known: &Bindings,
    results: &[Value],
    tools: &[&str],
    deadline: &Deadline,
) -> EarlierCalls {
    let mut found = EarlierCalls::default();
    let mut uses = Uses::default();
    uses.add(&unit.body, unit, None);
    // Of the program itself, its own checks report it.
    uses.has_call_as_value = false;
    let mut programs: BTreeMap<Arc<str>, Option<Program>> = BTreeMap::new();
    let (mut functions, mut names) = (BTreeSet::new(), BTreeSet::new());
    let mut has_history = false;
    loop {
        let mut roots: Vec<&Value> = Vec::new();
        if uses.has_history && !std::mem::replace(&mut has_history, true) {
            roots.extend(results);
        }
        for name in std::mem::take(&mut uses.names) {
            roots.extend(known.get(&name).filter(|_| names.insert(name)));
        }
        let mut new = Vec::new();
        each_distinct(roots, |value| {
            found.is_incomplete |= is_call(value);
            match value {
                Value::Closure(function) => match function.span() {
                    Some(range) if functions.insert((Arc::clone(function.source()), range)) => {
                        new.push((function.source(), range));
                    }
                    Some(_) => {}
                    None => found.is_incomplete = true,
                },
                Value::Var(name) => uses.names.extend([Arc::from(name.as_str())]),
                _ => {}
            }
            true
        });
        if new.is_empty() && uses.names.is_empty() {
            found.is_incomplete |= uses.has_call_as_value;
            return found;
        }
        for (text, range) in new {
            let compiled = || Program::compile_until(text, known, tools, deadline).ok();
            let Some(program) = programs.entry(Arc::clone(text)).or_insert_with(compiled) else {
                found.is_incomplete = true;
                continue;
            };
            let is_written_here = |site: &ToolCallSite| site.call.is_none() && range.contains(site.span);
            found.sites.extend(upstream_calls::<true>(program.unit()).into_iter().filter(is_written_here));
            uses.add(program.ir(), program.unit(), Some(range));
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
            (vec![f, "(f)"], "a"),
            (vec![f, "(map (fn [_] (g)) [1])"], "b"),
            (vec![f, h, "(h)"], "a"),
            (vec![f, h, "(def all {:x [h g]})", "((first (:x all)))"], "a b"),
            (vec![f, "(def k (partial f))", "(k)"], "a"),
            (vec![f, "(if nil (f) 2)", "1"], ""),
            (vec![f, "[f 2]", "((first *1))"], "a"),
            (vec![f, "[f 2]", "(second [1 2])"], ""),
            (vec![f, "(def v #'g)", "(v)"], "b"),
            (vec![by_name, "(f 1)"], "?"),
            (vec![by_name, "(g)"], "b"),
            (vec!["(def call tool/call)", "(call {})"], "…"),
            (vec!["(defn f [r] (map tool/call [r]))", "(f 1)"], "…"),
            // The functions of this program are checked with it.
            (vec![r#"(defn f [] (tool/call {:server "s" :tool "x"})) 1"#, r"(defn f [] 1) (f)"], "x"),
        ] {
            // A name that is defined again counts with both values, since it may be used before.
            let texts: Vec<&str> = texts;
            assert_eq!(calls(&texts), expected, "{texts:?}");
        }
    }
}
