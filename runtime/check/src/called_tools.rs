//! Lists the tools that a program may call, as its text names them.

use std::collections::BTreeSet;

use ptc_lisp::ir::{Ir, Op};
use ptc_lisp::{Bindings, Deadline, Program, ToolCallSite, Value, has_upstream_call, is_upstream_call_value};

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
    for used in uses_as_value(program.ir()) {
        // Code that receives `tool/call` as a value may call any tool.
        called.extend(used.unwrap_or_else(|| vec![CalledTool::default()]));
    }
    called
}

/// Functions that call their first argument with each element of their second, and with nothing else.
const EACH_ELEMENT: [&str; 6] = ["keep", "map", "mapcat", "mapv", "pmap", "run!"];

/// Returns the tools of each place that uses a function such as `tool/call` as a value. `None` if it may be called with any request.
fn uses_as_value(ir: &Ir) -> Vec<Option<Vec<CalledTool>>> {
    if let Op::Builtin { row, args } = &ir.op
        && row.namespace == "clojure.core"
        && EACH_ELEMENT.contains(&row.name)
        && let [Ir { op: Op::Const(function), .. }, requests] = args.as_slice()
        && is_upstream_call_value(function)
    {
        return [tools_of_requests(requests)].into_iter().chain(uses_as_value(requests)).collect();
    }
    let mut found = Vec::new();
    if let Op::Const(value) = &ir.op
        && has_upstream_call(value)
    {
        found.push(None);
    }
    ir.children(&mut |child| found.extend(uses_as_value(child)));
    found
}

/// Returns the tools of the requests in a literal list. `None` if one of them, or the list, is computed.
fn tools_of_requests(requests: &Ir) -> Option<Vec<CalledTool>> {
    match &requests.op {
        Op::Const(list) => Some(list.items()?.map(tool_of_request).collect()),
        Op::Vector(parts) => parts.iter().map(tool_of_literal).collect(),
        _ => None,
    }
}

fn tool_of_request(request: &Value) -> CalledTool {
    let name = |key| request.get(key).and_then(Value::as_name).map(str::to_owned);
    CalledTool { server: name("server"), tool: name("tool") }
}

/// Returns the tool of a map literal. A computed name is any name.
fn tool_of_literal(request: &Ir) -> Option<CalledTool> {
    let parts = match &request.op {
        Op::Const(request) => return Some(tool_of_request(request)),
        Op::Map(parts) => parts,
        _ => return None,
    };
    let mut tool = CalledTool::default();
    for pair in parts.chunks_exact(2) {
        // A computed key may be `:tool`.
        let [Ir { op: Op::Const(key), .. }, value] = pair else { return None };
        let name = match &value.op {
            Op::Const(value) => value.as_name().map(str::to_owned),
            _ => None,
        };
        // A call reads the keyword if there is a text with the same name.
        let is_read = |key: &Value, known: &Option<String>| matches!(key, Value::Keyword(_)) || known.is_none();
        match key.as_name() {
            Some("server") if is_read(key, &tool.server) => tool.server = name,
            Some("tool") if is_read(key, &tool.tool) => tool.tool = name,
            _ => {}
        }
    }
    Some(tool)
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
            (r#"(map tool/call [{:server "a" :tool "b"} {:server "a" :tool "c" :args {}}])"#, vec!["a/b", "a/c"]),
            (
                r#"(pmap tool/value [{:server "a" :tool "b" :args {:n (inc 1)}} {:server "a" :tool data/name}])"#,
                vec!["a/?", "a/b"],
            ),
            (r#"(mapv tool/call [{:server "a" :tool "b" data/key 1}])"#, vec!["?/?"]),
            ("(map tool/call data/requests)", vec!["?/?"]),
            (r#"(map tool/call [{:server "a" :tool "b" :args {:n (map tool/call data/requests)}}])"#, vec!["?/?", "a/b"]),
            (r#"(map {:f tool/call} [{:server "a" :tool "b"}])"#, vec!["?/?"]),
            (r#"(map tool/call [{:tool "b" "tool" "c" :server "a" :args {:n (inc 1)}}])"#, vec!["a/b"]),
            (r#"(tool/call {:tool "b" "tool" "c" :server "a" :args {:n (inc 1)}})"#, vec!["a/b"]),
            (r#"(tool/call {"tool" "c" :tool data/name :server "a"})"#, vec!["a/?"]),
            (r#"(map tool/call [(tool/value {:server "a" :tool "b"})])"#, vec!["?/?", "a/b"]),
            ("(map (fn [f] (f 1)) [tool/call])", vec!["?/?"]),
            (r#"(map #'tool/call [{:server "a" :tool "b"}])"#, vec!["a/b"]),
            (r#"(let [fs [#'tool/call]] ((first fs) {:server "a" :tool "b"}))"#, vec!["?/?"]),
            // These calls always fail.
            (r#"(tool/call {:server "a"})"#, vec![]),
            (r#"(tool/call "a")"#, vec![]),
        ] {
            assert_eq!(called(text), expected, "{text}");
        }
    }
}
