//! Parses discovery forms.

use ptc_catalog::{Catalog, Tool, Upstream};
use ptc_lisp::ErrorKind;
use ptc_lisp::host::{Discovery, Fault};
use ptc_lisp::print::excerpt;

use ptc_search::{Query, TooManyWords};

use super::search::MAX_WORDS;
use crate::{find_tool, find_upstream};

/// A form with a valid reference.
pub(crate) enum Question {
    Servers,
    Dir { upstream: &'static Upstream, limit: usize, offset: usize },
    Doc { tool: &'static Tool },
    Meta { upstream: &'static Upstream, tool: &'static Tool },
    Apropos { words: Query, limit: usize, load: bool },
}

/// Returns the existing upstreams that a form refers to.
pub(crate) fn subjects(catalog: &'static Catalog, form: Discovery<'_>) -> Vec<&'static str> {
    let of = |name: &str| catalog.upstream(name).map(|upstream| upstream.name).into_iter().collect();
    match form {
        Discovery::Dir { reference, .. } => of(reference),
        Discovery::Doc { reference } | Discovery::Meta { reference } => {
            reference.split_once('/').map_or_else(Vec::new, |(server, _)| of(server))
        }
        Discovery::Apropos { load: true, .. } => catalog.upstreams.iter().map(|upstream| upstream.name).collect(),
        Discovery::Apropos { load: false, .. } | Discovery::Servers => Vec::new(),
    }
}

impl Question {
    /// Checks a form against the catalog.
    pub(crate) fn read(catalog: &'static Catalog, form: Discovery<'_>) -> Result<Question, Fault> {
        match form {
            Discovery::Servers if catalog.upstreams.is_empty() => {
                let hint = "this server has no upstreams to call: compute with the language's functions and the data of the context, data/NAME";
                Err(fault("tool/servers is not available: no upstreams are configured").with_hint(hint))
            }
            Discovery::Servers => Ok(Question::Servers),
            Discovery::Dir { reference, limit, offset } => {
                Ok(Question::Dir { upstream: find_upstream(catalog, reference)?, limit, offset })
            }
            Discovery::Doc { reference } => find("doc", catalog, reference).map(|(_, tool)| Question::Doc { tool }),
            Discovery::Meta { reference } => {
                find("meta", catalog, reference).map(|(upstream, tool)| Question::Meta { upstream, tool })
            }
            Discovery::Apropos { query, limit, load } => {
                let words = Query::parse(query, MAX_WORDS).map_err(|TooManyWords { found }| {
                    fault(format!("apropos looks for at most {MAX_WORDS} different words, got {found}"))
                })?;
                Ok(Question::Apropos { words, limit, load })
            }
        }
    }
}

fn fault(message: impl Into<String>) -> Fault {
    Fault::new(ErrorKind::RuntimeError, message)
}

fn find(form: &str, catalog: &'static Catalog, reference: &str) -> Result<(&'static Upstream, &'static Tool), Fault> {
    let Some((server, tool)) = reference.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty()) else {
        let hint = match catalog.upstream(reference) {
            Some(_) => format!("(dir \"{reference}\") lists the tools of that upstream"),
            None => match ptc_check::meant_tool(reference, None, catalog) {
                Some((upstream, tool)) => format!("did you mean \"{}/{}\"?", upstream.name, tool.name),
                None => "a tool is written \"upstream/tool\"; (tool/servers) lists the upstreams".to_owned(),
            },
        };
        return Err(fault(format!("{form} requires upstream/tool ref, got \"{}\"", excerpt(reference))).with_hint(hint));
    };
    let upstream = find_upstream(catalog, server)?;
    Ok((upstream, find_tool(catalog, upstream, tool)?))
}
