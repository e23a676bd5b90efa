//! `(tool/NAME …)`: tools of the embedding program.

use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::host::{Discovery, Fault, Host, PendingReply, Reply};
use ptc_lisp::{Bindings, ErrorKind, Limits, Program, Run, Value, image, print};

/// A host that answers with the request as data.
struct Echo;

impl Host for Echo {
    fn submit(&self, _: &Value) -> Result<PendingReply, Fault> {
        Ok(PendingReply::ready(Reply::None))
    }

    fn submit_tool(&self, tool: &str, args: &Value) -> Result<PendingReply, Fault> {
        let reply = match tool {
            "echo" => Reply::Json(format!("[\"{tool}\", {}]", ptc_lisp::json::encode(args, 10_000).unwrap_or_default()).into()),
            "get_one" => Reply::Text("one".into()),
            "nothing" => Reply::None,
            "broken" => Reply::Json(b"{".to_vec()),
            "failing" => Reply::Failed { reason: "tool_error", message: "the disk is full".into() },
            "silent" => {
                let (answer, ticket) = PendingReply::pair();
                // The call is neither answered nor abandoned.
                std::mem::forget(answer);
                return Ok(ticket);
            }
            other => return Err(Fault::new(ErrorKind::UnknownTool, format!("there is no tool/{other}"))),
        };
        Ok(PendingReply::ready(reply).holding(args.clone()))
    }

    fn receive_tool(&self, tool: &str, value: Value) -> Result<Value, Fault> {
        if tool == "nothing" { Err(Fault::new(ErrorKind::ToolError, "nothing is too little")) } else { Ok(value) }
    }

    fn tool_lines(&self) -> Vec<String> {
        TOOLS.iter().map(|tool| format!("{tool} - a tool")).collect()
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        Ok(Value::from(format!("{query:?}")))
    }

    fn random(&self) -> u64 {
        4
    }
}

const TOOLS: &[&str] = &["echo", "get_one", "nothing", "broken", "failing", "silent"];

fn run(source: &str, limits: Limits) -> String {
    let program = match Program::compile_for(source, &Bindings::default(), TOOLS) {
        Ok(program) => program,
        Err(error) => return error.render(source),
    };
    let outcome = Run::new(&program).limits(limits).host(Arc::new(Echo)).execute_on_thread();
    outcome.result.map_or_else(|error| error.render(source), |value| print::readable(&value))
}

fn roomy() -> Limits {
    Limits::default().wall_clock(Duration::from_secs(20))
}

#[test]
fn named_arguments_reach_the_host() {
    for (source, expected) in [
        ("(tool/echo {:query \"x\" :limit 1})", "[\"echo\" {\"limit\" 1 \"query\" \"x\"}]"),
        ("(tool/echo :query \"x\" :limit (inc 0))", "[\"echo\" {\"limit\" 1 \"query\" \"x\"}]"),
        ("(tool/echo)", "[\"echo\" {}]"),
        ("(tool/echo nil)", "[\"echo\" {}]"),
        ("(tool/echo {})", "[\"echo\" {}]"),
        ("(let [id 7] (tool/echo {:id id}))", "[\"echo\" {\"id\" 7}]"),
        ("(tool/get-one)", "\"one\""),
        ("(map tool/echo [{:a 1} {:a 2}])", "[[\"echo\" {\"a\" 1}] [\"echo\" {\"a\" 2}]]"),
        ("(pmap #(second (tool/echo {:id %})) [1 2 3])", "[{\"id\" 1} {\"id\" 2} {\"id\" 3}]"),
        ("(pcalls tool/get_one tool/echo)", "[\"one\" [\"echo\" {}]]"),
        ("(-> {:a 1} tool/echo second)", "{\"a\" 1}"),
        ("(let [f tool/echo] (fn? f))", "true"),
    ] {
        assert_eq!(run(source, roomy()), expected, "{source}");
    }
}

#[test]
fn invalid_calls_fail_with_message_and_hint() {
    for (source, expected) in [
        ("(tool/echo \"x\" 10)", "tool_error: tool/echo takes named arguments, got a string \"x\"\n at line 1, column 1"),
        ("(tool/echo :query)", "tool_error: tool/echo takes named arguments, got a keyword"),
        ("(tool/echo {:a 1} {:b 2})", "tool_error: tool/echo takes named arguments, got a map"),
        ("(tool/eco {})", "unknown_tool: there is no tool/eco\n at line 1, column 2"),
        ("(tool/failing {})", "tool_error: tool/failing: the disk is full\n at line 1, column 1"),
        ("[1\n (tool/nothing)]", "tool_error: nothing is too little\n at line 2, column 2"),
        ("(tool/broken)", "tool_error: tool/broken: the answer is not JSON"),
    ] {
        let found = run(source, roomy());
        assert!(found.starts_with(expected), "{source}: {found}");
    }
    assert!(run("(tool/eco {})", roomy()).ends_with(
        "hint: did you mean tool/echo? the tools are tool/echo, tool/get_one, tool/nothing, tool/broken, tool/failing, tool/silent"
    ));
    // The name is unknown if no tool is registered.
    let error = Program::compile("(tool/echo {})").unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::UnknownTool, "there is no tool/echo"));
}

#[test]
fn calls_count_toward_limit_and_waits_end_at_timeout() {
    let three = roomy().tool_calls(Some(3));
    assert!(run("(map tool/echo [{} {} {} {}])", three).starts_with("tool_error: the program made more than 3 calls of tools"));
    let short = Limits::default().wall_clock(Duration::from_millis(50));
    assert!(run("(tool/silent)", short).starts_with("timeout"));
}

#[test]
fn dir_and_doc_list_host_tools() {
    assert!(run("(dir 'tool)", roomy()).contains("\"echo - a tool\""));
    assert!(run("(doc tool/echo)", roomy()).contains("tool/echo"));
    assert_eq!(run("(dir 'tool {:limit 1 :offset 5})", roomy()), "[\"get_one - a tool\" \"… 4 more: (dir 'tool {:offset 6})\"]");
}

#[test]
fn functions_that_call_tools_are_decoded_from_image() {
    let define = Program::compile_for("(defn ask [id] (tool/echo {:id id})) (def all tool/get_one)", &Bindings::default(), TOOLS);
    let bindings = Run::new(&define.unwrap()).host(Arc::new(Echo)).execute_on_thread().bindings;
    let (bindings, _) = image::decode(&image::encode(&bindings, &[]).unwrap()).unwrap();
    let program = Program::compile_with("[(ask 5) (all)]", &bindings).unwrap();
    let outcome = Run::new(&program).bindings(bindings).host(Arc::new(Echo)).execute_on_thread();
    assert_eq!(print::readable(&outcome.result.unwrap()), "[[\"echo\" {\"id\" 5}] \"one\"]");
}
