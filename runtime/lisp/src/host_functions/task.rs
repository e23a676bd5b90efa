//! Steps of a plan: `task`, `task-reset`, `step-done`.

use crate::Value;
use crate::analyzer::{Analysed, Analyzer, Written};
use crate::args::{at, describe, take};
use crate::builtins::{Builtin, write_str};
use crate::error::{ErrorKind, Span};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Op};
use crate::machine::{Machine, Raised};
use crate::packed_docs::packed_docs;
use crate::print::excerpt;
use crate::value::each_distinct;

/// The builtin behind `(task id form)`. The second argument is a function that returns the value of the form in a vector.
static TASK: Builtin =
    Builtin { name: "task", namespace: "ptc.core", min: 2, max: Some(2), notes: packed_docs!("", ["[id form]"], []), run: task };

/// Analyses `(task id form)`. The form is evaluated only if the journal does not have its value.
pub(crate) fn analyse<'s>(a: &mut Analyzer<'s>, span: Span, parts: Vec<Form<'s>>, _: bool) -> Analysed {
    let mut parts = parts.into_iter();
    let (Some(id), Some(form)) = (parts.next(), parts.next()) else { return Err(a.internal(span)) };
    let id = a.expr(id, false)?;
    let place = form.span;
    // The vector keeps the form out of tail position, so that `recur` cannot leave the task.
    let (params, body) = (Form::new(place, FormKind::Vector(Vec::new())), Form::new(place, FormKind::Vector(vec![form])));
    let thunk = a.function(Written { name: None, doc: None, span: place, arities: vec![(params, vec![body])] })?;
    Ok(Ir::new(span, Op::Builtin { row: &TASK, args: vec![id, thunk] }))
}

fn task(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let run_context = std::sync::Arc::clone(&m.run_context);
    let id = Value::from(id_of(m, at(args, 0))?);
    if let Some(done) = run_context.journal.as_ref().and_then(|journal| journal.get(&id)) {
        return Ok(done);
    }
    let boxed = m.call(&take(args, 1), &mut [])?;
    let result = boxed.items().and_then(|mut items| items.next().cloned()).unwrap_or_default();
    drop(boxed);
    if let Some(journal) = &run_context.journal {
        keepable(m, &id, &result)?;
        m.fail_if_comparison_gave_up()?;
        journal.put(id, result.clone());
    }
    Ok(result)
}

/// Rejects results that contain functions. A journal may outlive the program, and functions are meaningless without it.
fn keepable(m: &mut Machine, id: &Value, result: &Value) -> Result<(), Raised> {
    let (mut visited, mut function) = (0_u32, None);
    each_distinct([result], |value| {
        visited += 1;
        if matches!(value, Value::Closure(_) | Value::Composed(_)) {
            function = Some(value);
        }
        function.is_none()
    });
    m.tick(visited)?;
    let Some(function) = function else { return Ok(()) };
    let (id, found) = (excerpt(id.as_str().unwrap_or_default()), describe(function));
    let message = format!("(task id form): the result of task {id:?} holds {found}, which a journal cannot keep");
    Err(m.raise_with_hint(ErrorKind::TypeError, message, "give the task data as its value and make functions outside of it"))
}

fn id_of(m: &mut Machine, id: &Value) -> Result<String, Raised> {
    let mut text = String::new();
    write_str(m, id, &mut text)?;
    Ok(text)
}

pub(super) fn task_reset(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let id = Value::from(id_of(m, at(args, 0))?);
    m.fail_if_comparison_gave_up()?;
    if let Some(journal) = &m.run_context.journal {
        journal.reset(&id);
    }
    Ok(Value::Nil)
}

pub(super) fn step_done(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let (id, summary) = (id_of(m, at(args, 0))?, id_of(m, at(args, 1))?);
    m.charge(id.len() + summary.len())?;
    m.step_done(id, summary);
    Ok(take(args, 1))
}
