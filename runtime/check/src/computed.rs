//! Finds calls that cannot be checked, since their names or arguments are computed when the program runs.

use ptc_lisp::ir::{Ir, Op};
use ptc_lisp::{Program, Span, ToolCallSite, has_upstream_call};

use crate::{CallSpans, MAX_FINDINGS};

/// A call that cannot be checked completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComputedCall {
    /// What is computed, and what is therefore not checked.
    pub message: &'static str,
    /// The range of the computed part, or of the call that passes it to a function of the program.
    pub span: Span,
}

/// Returns the calls whose names or arguments are computed, at most [`MAX_FINDINGS`]. A call in a function of the program is
/// reported where the function is called.
pub fn computed_calls(program: &Program) -> Vec<ComputedCall> {
    let sites = program.tool_calls_by_name();
    let mut computed: Vec<ComputedCall> = Vec::new();
    let of_sites = sites.iter().filter(|site| !site.is_covered).filter_map(|site| of_site(program, site));
    for call in of_sites.chain(as_values(program.ir())) {
        if computed.len() < MAX_FINDINGS && !computed.contains(&call) {
            computed.push(call);
        }
    }
    computed.sort_by_key(|call| call.span);
    computed
}

/// Returns the calls whose server or tool is not a literal, in the order of the text: their results are not compared with output schemas.
/// Unlike for [`computed_calls`], a name that is bound to a literal is not one.
pub fn calls_without_literal_tool(program: &Program) -> Vec<Span> {
    let is_usable = |site: &ToolCallSite| site.arity.is_none() && site.other_request.is_none();
    let has_name = |name: &Option<String>, bad: &Option<ptc_lisp::Value>| name.is_some() || bad.is_some();
    let has_tool = |site: &ToolCallSite| has_name(&site.server, &site.bad_server) && has_name(&site.tool, &site.bad_tool);
    let sites = program.tool_calls().into_iter().filter(|site| is_usable(site) && !has_tool(site)).map(|site| site.span);
    let mut spans: Vec<Span> = sites.chain(as_values(program.ir()).into_iter().map(|call| call.span)).collect();
    spans.sort();
    spans.dedup();
    spans
}

fn of_site(program: &Program, site: &ToolCallSite) -> Option<ComputedCall> {
    if site.arity.is_some() || site.other_request.is_some() {
        return None;
    }
    let has_server = site.server.is_some() || site.bad_server.is_some();
    let has_tool = site.tool.is_some() || site.bad_tool.is_some();
    let (message, path): (_, &[&str]) = match (has_server, has_tool) {
        _ if site.request.is_none() => ("the request is computed: names and arguments are not checked", &[]),
        (false, false) => ("server and tool are computed: names and arguments are not checked", &["server"]),
        (false, true) => ("the server is computed: names and arguments are not checked", &["server"]),
        (true, false) => ("the tool is computed: name and arguments are not checked", &["tool"]),
        (true, true) if site.args.is_none() && site.other_args.is_none() => {
            ("the arguments are computed: they are not checked", &["args"])
        }
        (true, true) => return None,
    };
    Some(ComputedCall { message, span: CallSpans::new(program, site).value(path) })
}

/// Returns the functions such as `tool/call` that are used as values.
fn as_values(ir: &Ir) -> Vec<ComputedCall> {
    let mut found = Vec::new();
    if let Op::Const(value) = &ir.op
        && has_upstream_call(value)
    {
        let message = "a function that calls tools is used as a value: names and arguments are not checked";
        found.push(ComputedCall { message, span: ir.span });
    }
    ir.children(&mut |child| found.extend(as_values(child)));
    found
}
