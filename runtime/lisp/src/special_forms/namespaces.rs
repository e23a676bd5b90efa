//! `ns`, `require`, `import`: they load nothing, but check that the named libraries exist, and define aliases.

use super::control::nil;
use crate::analyzer::{Analysed, Analyzer};
use crate::error::{Error, Span};
use crate::form::{Form, FormKind};

type Parts<'s> = Vec<Form<'s>>;

pub(super) fn ns<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    let mut parts = parts.into_iter();
    match parts.next() {
        Some(name) if name.symbol().is_some() => {}
        other => return Err(a.invalid(other.map_or(span, |form| form.span), "ns needs a name")),
    }
    for part in parts {
        let place = part.span;
        match part.kind {
            FormKind::String(_) => {}
            FormKind::List(clause) => {
                let mut clause = clause.into_iter();
                let head = clause.next();
                match head.as_ref().and_then(Form::keyword) {
                    Some("require") => clause.try_for_each(|spec| library(a, spec))?,
                    Some("import") => clause.try_for_each(|spec| class(a, spec))?,
                    _ => return Err(a.invalid(place, "ns takes (:require …) and (:import …)")),
                }
            }
            _ => return Err(a.invalid(place, format!("ns takes (:require …) and (:import …), found {}", part.description()))),
        }
    }
    Ok(nil(span))
}

pub(super) fn require<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    parts.into_iter().try_for_each(|spec| library(a, spec))?;
    Ok(nil(span))
}

pub(super) fn import<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    parts.into_iter().try_for_each(|spec| class(a, spec))?;
    Ok(nil(span))
}

/// Parses `clojure.string` or `[clojure.string :as s :refer [join]]`, quoted or not.
fn library<'s>(a: &mut Analyzer<'s>, spec: Form<'s>) -> Result<(), Error> {
    let place = spec.span;
    let mut parts = match spec.kind {
        FormKind::Quote(inner) => return library(a, *inner),
        FormKind::Vector(parts) => parts.into_iter(),
        kind => vec![Form::new(place, kind)].into_iter(),
    };
    let Some(written) = parts.next().and_then(|form| form.symbol()) else {
        return Err(a.invalid(place, "expected a namespace, as in [clojure.string :as str]"));
    };
    let Some(known) = a.known_namespace(written) else {
        let error = a.invalid(place, format!("there is no namespace '{written}'"));
        let hint = crate::analyzer::namespace_hint(written);
        return Err(error.with_hint(hint.unwrap_or("namespaces are clojure.string, clojure.set, clojure.walk and clojure.edn")));
    };
    while let Some(option) = parts.next() {
        let value = parts.next();
        match (option.keyword(), value.map(|form| (form.span, form.kind))) {
            (Some("as"), Some((_, FormKind::Symbol(alias)))) => a.alias(alias, known),
            (Some("refer"), Some((_, FormKind::Keyword("all")))) => {}
            (Some("refer"), Some((_, FormKind::Vector(names)))) => {
                for name in names {
                    if !name.symbol().is_some_and(|text| a.refer(known, text)) {
                        return Err(a.invalid(name.span, format!("{known} has no such name: {}", name.description())));
                    }
                }
            }
            _ => return Err(a.invalid(option.span, "expected :as alias or :refer [names]")),
        }
    }
    Ok(())
}

/// Parses `java.time.LocalDate` or `[java.time LocalDate Duration]`.
fn class<'s>(a: &mut Analyzer<'s>, spec: Form<'s>) -> Result<(), Error> {
    let place = spec.span;
    let (package, names) = match spec.kind {
        FormKind::Quote(inner) => return class(a, *inner),
        FormKind::Vector(parts) | FormKind::List(parts) => {
            let mut parts = parts.into_iter();
            (parts.next().and_then(|form| form.symbol()), parts.collect())
        }
        kind => (None, vec![Form::new(place, kind)]),
    };
    for name in names {
        let Some(text) = name.symbol() else { return Err(a.invalid(name.span, "expected the name of a class")) };
        let full = package.map_or_else(|| text.to_owned(), |package| format!("{package}.{text}"));
        let constructor = format!("{full}.");
        if a.known_namespace(&full).is_none() && a.builtin(&constructor).is_none() {
            let error = a.invalid(name.span, format!("there is no class {full}"));
            return Err(error.with_hint("classes are those of java.time, Math, String and the numbers; see (apropos \"…\")"));
        }
    }
    Ok(())
}

pub(super) fn declare<'s>(a: &mut Analyzer<'s>, span: Span, parts: Parts<'s>, _: bool) -> Analysed {
    for part in parts {
        match part.symbol() {
            Some(name) => {
                a.global(name);
            }
            None => return Err(a.invalid(part.span, format!("declare needs names, found {}", part.description()))),
        }
    }
    Ok(nil(span))
}
