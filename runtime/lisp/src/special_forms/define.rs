//! Definitions of globals: `def`, `defonce`, `defn`.

use std::sync::Arc;

use crate::analyzer::{Analysed, Analyzer, Written};
use crate::error::{Error, Span};
use crate::form::{Form, FormKind};
use crate::ir::{Ir, Op};

type Parts<'s> = Vec<Form<'s>>;

/// Returns the name that a definition binds.
fn target<'s>(a: &mut Analyzer<'s>, form: &Form<'s>, of: &str) -> Result<&'s str, Error> {
    let Some(name) = form.symbol() else {
        return Err(a.invalid(form.span, format!("{of} needs a name, found {}", form.description())));
    };
    if name.len() > 1 && name.contains('/') {
        return Err(a.invalid(form.span, format!("{name} cannot be defined: names of a program have no namespace")));
    }
    if super::find(name).is_some() {
        return Err(a.invalid(form.span, format!("{name} cannot be defined: it is a special form")));
    }
    if matches!(name, "*1" | "*2" | "*3" | "&") || name.starts_with('%') {
        return Err(a.invalid(form.span, format!("{name} cannot be defined")));
    }
    Ok(name)
}

pub(super) fn def<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    bind(a, span, parts, "def", false)
}

pub(super) fn defonce<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    bind(a, span, parts, "defonce", true)
}

fn bind<'s>(a: &mut Analyzer<'s>, span: Span, mut parts: Parts<'s>, of: &str, once: bool) -> Analysed {
    let name = target(a, &parts.remove(0), of)?;
    let mut doc = None;
    if parts.len() == 2 {
        let first = parts.remove(0);
        if let FormKind::String(text) = first.kind {
            doc = Some(Arc::from(text.as_ref()));
        } else {
            let error =
                a.invalid(first.span, format!("between name and value {of} takes a doc string, found {}", first.description()));
            return Err(error.with_hint(format!("write ({of} name value); several forms go into (do …)")));
        }
    }
    let value = match parts.pop() {
        None => None,
        // A function receives the name that it is bound to, for messages and traces.
        Some(form) => Some(Box::new(match anonymous_fn(&form).filter(|_| !a.is_local("fn")) {
            Some(parts) => {
                let arities = a.arities("fn", form.span, parts)?;
                a.defined(Written { name: Some(name), doc, span: form.span, arities })?
            }
            None => a.expr(form, false)?,
        })),
    };
    let index = a.global(name);
    Ok(Ir::new(span, Op::Def { index, value, once }))
}

/// Returns the parts of `(fn [x] …)` if it has no name.
fn anonymous_fn<'s>(form: &Form<'s>) -> Option<Vec<Form<'s>>> {
    let FormKind::List(parts) = &form.kind else { return None };
    let [head, params, ..] = parts.as_slice() else { return None };
    let plain = head.symbol() == Some("fn") && !matches!(params.kind, FormKind::Symbol(_));
    plain.then(|| parts.iter().skip(1).cloned().collect())
}

pub(super) fn defn<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    let mut parts = parts.into_iter().peekable();
    let Some(head) = parts.next() else { return Err(a.internal(span)) };
    let name = target(a, &head, "defn")?;
    let doc = match parts.next_if(|part| matches!(part.kind, FormKind::String(_))) {
        Some(Form { kind: FormKind::String(text), .. }) => Some(Arc::from(text.as_ref())),
        _ => None,
    };
    if let Some(attributes) = parts.peek().filter(|part| matches!(part.kind, FormKind::Map(_))) {
        return Err(a.invalid(attributes.span, "defn takes no map of attributes").with_hint("leave it out"));
    }
    let arities = a.arities("defn", span, parts.collect())?;
    let function = a.defined(Written { name: Some(name), doc, span, arities })?;
    let index = a.global(name);
    Ok(Ir::new(span, Op::Def { index, value: Some(Box::new(function)), once: false }))
}
