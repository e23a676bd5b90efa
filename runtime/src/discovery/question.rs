//! Reading a discovery form: what it refers to and its options.

use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_check::argument::shown;
use ptc_lisp::host::{Discovery, Fault};
use ptc_lisp::{ErrorKind, Kind, Value};

use super::search::{TooMany, Words};
use crate::upstream::{find_tool, find_upstream};

/// A form whose reference and options are right.
pub(crate) enum Question {
    Servers,
    Dir { upstream: &'static Upstream, limit: usize, offset: usize },
    Doc { tool: &'static Tool },
    Meta { upstream: &'static Upstream, tool: &'static Tool },
    Apropos { words: Words, limit: usize, load: bool },
}

/// The upstreams whose tools a form is about, as far as there are such upstreams.
pub(crate) fn subjects(catalog: &'static Catalog, form: Discovery<'_>) -> Vec<&'static str> {
    let of = |name: &str| catalog.upstream(name).map(|upstream| upstream.name).into_iter().collect();
    match form {
        Discovery::Servers => Vec::new(),
        Discovery::Dir { reference, .. } => of(reference),
        Discovery::Doc { reference } | Discovery::Meta { reference } => {
            reference.split_once('/').map_or_else(Vec::new, |(server, _)| of(server))
        }
        Discovery::Apropos { options, .. } => match options.get("load").and_then(Value::as_bool) {
            Some(true) => catalog.upstreams.iter().map(|upstream| upstream.name).collect(),
            _ => Vec::new(),
        },
    }
}

/// An option of a form: its name, and what it admits.
struct Rule {
    name: &'static str,
    admits: Admits,
}

enum Admits {
    /// An integer within bounds, and its default.
    Count {
        min: i64,
        max: i64,
        default: i64,
    },
    Boolean,
}

const DIR: [Rule; 2] = [
    Rule { name: "limit", admits: Admits::Count { min: 1, max: 200, default: 50 } },
    Rule { name: "offset", admits: Admits::Count { min: 0, max: i64::MAX, default: 0 } },
];
const APROPOS: [Rule; 2] = [
    Rule { name: "limit", admits: Admits::Count { min: 1, max: 50, default: 8 } },
    Rule { name: "load", admits: Admits::Boolean },
];

impl Question {
    /// Checks a form against the catalog.
    pub(crate) fn read(catalog: &'static Catalog, form: Discovery<'_>) -> Result<Question, Fault> {
        match form {
            Discovery::Servers if catalog.upstreams.is_empty() => {
                Err(Fault::new(ErrorKind::RuntimeError, "tool/servers is not available: no upstreams are configured"))
            }
            Discovery::Servers => Ok(Question::Servers),
            Discovery::Dir { reference, options } => {
                if reference.is_empty() {
                    return Err(fault("dir requires a quoted symbol or string ref, got \"\""));
                }
                let [limit, offset] = counts("dir", &DIR, options)?;
                Ok(Question::Dir { upstream: find_upstream(catalog, reference)?, limit, offset })
            }
            Discovery::Doc { reference } => find("doc", catalog, reference).map(|(_, tool)| Question::Doc { tool }),
            Discovery::Meta { reference } => {
                find("meta", catalog, reference).map(|(upstream, tool)| Question::Meta { upstream, tool })
            }
            Discovery::Apropos { query, options } => {
                if query.trim().is_empty() {
                    return Err(fault(format!("apropos requires query (non-empty string), got {query:?}")));
                }
                let [limit, load] = counts("apropos", &APROPOS, options)?;
                let words = Words::of(query).map_err(|TooMany { most, found }| {
                    fault(format!("apropos looks for at most {most} different words, got {found}"))
                })?;
                Ok(Question::Apropos { words, limit, load: load > 0 })
            }
        }
    }
}

fn fault(message: impl Into<String>) -> Fault {
    Fault::new(ErrorKind::ToolError, message)
}

fn find(form: &str, catalog: &'static Catalog, reference: &str) -> Result<(&'static Upstream, &'static Tool), Fault> {
    if reference.is_empty() {
        return Err(fault(format!("{form} requires a quoted symbol or string ref, got \"\"")));
    }
    let Some((server, tool)) = reference.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty()) else {
        let hint = match catalog.upstream(reference) {
            Some(_) => format!("(dir \"{reference}\") lists the tools of that upstream"),
            None => "a tool is written \"upstream/tool\"; (tool/servers) lists the upstreams".to_owned(),
        };
        return Err(fault(format!("{form} requires upstream/tool ref, got \"{reference}\"")).with_hint(hint));
    };
    let upstream = find_upstream(catalog, server)?;
    Ok((upstream, find_tool(upstream, tool)?))
}

/// The values of the options, in the order of `rules`; 0 for a switch that is off.
fn counts(form: &str, rules: &[Rule; 2], options: &Value) -> Result<[usize; 2], Fault> {
    if !options.is_nil() && options.kind() != Kind::Map {
        return Err(fault(format!("discovery options must be a map, got {}", shown(options))));
    }
    for (key, _) in options.entries().into_iter().flatten() {
        if !rules.iter().any(|rule| key.as_name() == Some(rule.name)) {
            let names = rules.iter().map(|rule| format!(":{}", rule.name)).collect::<Vec<_>>().join(" and ");
            return Err(fault(format!("{form} got unknown option {}; its options are {names}", shown(key))));
        }
    }
    let mut found = [0; 2];
    for (rule, slot) in rules.iter().zip(&mut found) {
        let given = options.get(rule.name);
        *slot = match rule.admits {
            Admits::Boolean => {
                let given = given.map(|value| value.as_bool().ok_or_else(|| wrong(form, rule, value))).transpose()?;
                usize::from(given == Some(true))
            }
            Admits::Count { min, max, default } => match given {
                None => default as usize,
                Some(value) => value
                    .as_int()
                    .filter(|n| (min..=max).contains(n))
                    .and_then(|n| usize::try_from(n).ok())
                    .ok_or_else(|| wrong(form, rule, value))?,
            },
        };
    }
    Ok(found)
}

fn wrong(form: &str, rule: &Rule, value: &Value) -> Fault {
    let wanted = match rule.admits {
        Admits::Boolean => "a boolean".to_owned(),
        Admits::Count { min: 0, max: i64::MAX, .. } => "a non-negative integer".to_owned(),
        Admits::Count { min, max, .. } => format!("an integer {min}..{max}"),
    };
    fault(format!("{form} :{} must be {wanted}, got {}", rule.name, shown(value)))
}
