//! A Rust program with the tables of `catalog!` inside, and tools of its own beside them.

use ptc_runtime::embed::{Args, Engine, Request, Tool};

mod upstreams {
    ptc_macros::catalog!("../fixtures/quickstart/upstreams.json");
}

#[test]
fn programs_see_the_catalog_of_the_macro_and_own_tools() {
    let shout = Tool::new("shout", "(text :string) -> :string", |args: Args| Ok(args.text("text").map(str::to_uppercase)));
    let engine = Engine::builder().deployment(&upstreams::DEPLOYMENT).tool(shout.expect("a tool")).build().expect("an engine");
    let program = "(map (fn [server] (tool/shout {:text (get server \"name\")})) (tool/servers))";
    assert_eq!(engine.run(Request::new(program)).preview(), Ok("[\"NOTES\" \"PETSTORE\" \"VISITS\"]"));
    // What is wrong about a call is found before anything is called, as in a pinned binary.
    let answer = engine.run(Request::new("(tool/shout {:text \"a\"}) (tool/call {:server \"petstor\" :tool \"x\"})"));
    assert_eq!((answer.preview(), answer.tool_calls.len()), (Err("runtime_error"), 0));
}
