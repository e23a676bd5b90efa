//! Lists the tools that a program may call, as its text names them.

use std::collections::BTreeSet;

use ptc_lisp::{Bindings, Deadline, Program, ToolCallSite, Value};

use crate::computed::as_values;

/// A tool that a program may call. A name that is computed when the program runs is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalledTool {
    /// The upstream.
    pub server: Option<String>,
    /// The tool, by its exposed name or by its operation.
    pub tool: Option<String>,
}

/// Returns the tools that a program may call, also in functions of earlier programs that it uses: see [`Program::earlier_calls`].
pub fn called_tools_in_session(
    program: &Program,
    known: &Bindings,
    results: &[Value],
    tools: &[&str],
    deadline: &Deadline,
) -> BTreeSet<CalledTool> {
    let mut called = called_tools(program);
    if !known.is_empty() || !results.is_empty() {
        let earlier = program.earlier_calls(known, results, tools, deadline);
        called.extend(earlier.sites.into_iter().filter_map(called_tool));
        called.extend(earlier.is_incomplete.then(CalledTool::default));
    }
    called
}

/// Returns the tool of a call. `None` if the call fails before it reaches a tool.
fn called_tool(site: ToolCallSite) -> Option<CalledTool> {
    let is_usable = site.arity.is_none() && site.other_request.is_none() && site.bad_server.is_none() && site.bad_tool.is_none();
    is_usable.then_some(CalledTool { server: site.server, tool: site.tool })
}

/// Returns the tools that a program may call. Names count as the literals that they are bound to, and calls of the program's own
/// functions are followed.
pub fn called_tools(program: &Program) -> BTreeSet<CalledTool> {
    let sites = program.tool_calls_by_name();
    let mut called: BTreeSet<CalledTool> = sites.into_iter().filter(|site| !site.is_covered).filter_map(called_tool).collect();
    if !as_values(program.ir()).is_empty() {
        // Code that receives `tool/call` as a value may call any tool.
        called.insert(CalledTool::default());
    }
    called
}

#[cfg(test)]
mod tests {
    use ptc_lisp::Program;

    use super::called_tools;

    fn called(text: &str) -> Vec<String> {
        let program = Program::compile(text).unwrap_or_else(|error| panic!("{text}: {}", error.message));
        let shown = |name: Option<String>| name.unwrap_or_else(|| "?".to_owned());
        called_tools(&program).into_iter().map(|called| format!("{}/{}", shown(called.server), shown(called.tool))).collect()
    }

    #[test]
    fn called_tools_are_the_named_ones_and_computed_names_are_unknown() {
        for (text, expected) in [
            ("(+ 1 2)", vec![]),
            (r#"(tool/call {:server "a" :tool "b"})"#, vec!["a/b"]),
            (r#"(tool/value {:server "a" :tool "c"}) (tool/all {:server "a" :tool "b"})"#, vec!["a/b", "a/c"]),
            (r#"(let [s "a"] (tool/call {:server s :tool "b"}))"#, vec!["a/b"]),
            (r#"(defn f [t] (tool/call {:server "a" :tool t})) (f "b") (f "c")"#, vec!["a/b", "a/c"]),
            (r#"(tool/call {:server "a" :tool data/name})"#, vec!["a/?"]),
            (r#"(tool/call {:server data/name :tool "b"})"#, vec!["?/b"]),
            ("(tool/call data/request)", vec!["?/?"]),
            (r#"(map tool/call [{:server "a" :tool "b"}])"#, vec!["?/?"]),
            // These calls always fail.
            (r#"(tool/call {:server "a"})"#, vec![]),
            (r#"(tool/call "a")"#, vec![]),
        ] {
            assert_eq!(called(text), expected, "{text}");
        }
    }
}
