//! The calls in the text of a program, with the tools that they name.

use std::collections::BTreeSet;

use ptc_catalog::Catalog;
use ptc_lisp::{Program, Span};

/// A call that names its tool.
#[derive(Debug, Clone)]
pub(crate) struct CallSite {
    pub(crate) span: Span,
    /// The upstream and the exposed name of the tool.
    pub(crate) tool: (String, String),
    /// The upstream and the tool as the program writes them.
    pub(crate) written: String,
    /// The names of the arguments. `None` if they are computed.
    pub(crate) arguments: Option<BTreeSet<String>>,
}

/// Returns the calls of a program, in the order of its text. There are none if it does not compile. Tools are searched in all
/// `catalogs`, since one that is gone is only in the former one.
pub(crate) fn call_sites(program: &str, catalogs: [&'static Catalog; 2]) -> Vec<CallSite> {
    let Ok(program) = Program::compile(program) else { return Vec::new() };
    let sites = program.tool_calls().into_iter().filter_map(|site| {
        let (server, tool) = (site.server?, site.tool?);
        let exposed = catalogs.iter().find_map(|catalog| Some(catalog.upstream(&server)?.tool(&tool)?.name))?;
        let arguments = site.args.map(|args| args.into_iter().map(|(name, _)| name).collect());
        let written = format!("{server}/{tool}");
        Some(CallSite { span: site.span, tool: (server, exposed.to_owned()), written, arguments })
    });
    let mut sites: Vec<CallSite> = sites.collect();
    sites.sort_by_key(|site| site.span);
    sites
}

impl CallSite {
    /// Returns the innermost call around a part of the text.
    pub(crate) fn around(sites: &[CallSite], part: Span) -> Option<&CallSite> {
        sites.iter().rfind(|site| site.span.start <= part.start && part.end <= site.span.end)
    }
}
