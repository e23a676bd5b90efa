//! Embeds the interpreter: limits, a host with one tool, a context, and errors as people read them.
//!
//! `cargo run -p ptc-lisp --example embed -- '(+ 1 2)'` runs a program of your own.

use std::sync::Arc;

use ptc_lisp::host::{Discovery, Fault, Host, PendingReply, Reply};
use ptc_lisp::{Limits, Program, Run, Value, print};

/// A host whose only upstream, `shop`, lists two orders.
struct Shop;

impl Host for Shop {
    fn submit(&self, _request: &Value) -> Result<PendingReply, Fault> {
        let orders = r#"{"items": [{"id": 1, "total": 40}, {"id": 2, "total": 75}]}"#;
        Ok(PendingReply::ready(Reply::Json(orders.into())))
    }

    fn discover(&self, _query: Discovery<'_>) -> Result<Value, Fault> {
        Ok(Value::vector(Vec::new()))
    }

    fn random(&self) -> u64 {
        4
    }
}

const PROGRAM: &str = r#"
(let [r (tool/call {:server "shop" :tool "orders" :args {}})]
  (if (:ok r)
    (->> (get (:value r) "items")
         (filter (fn [order] (> (:total order) data/least)))
         (map :id))
    (fail (:message r))))
"#;

#[expect(clippy::print_stdout, reason = "an example")]
fn main() {
    let source = std::env::args().nth(1).unwrap_or_else(|| PROGRAM.to_owned());
    let outcome = Program::compile(&source).and_then(|program| {
        let context = Value::map([(Value::keyword("least"), Value::int(50))]);
        let run = Run::new(&program).limits(Limits::with_upstreams()).host(Arc::new(Shop)).context(context);
        let outcome = run.execute_on_thread();
        outcome.prints.iter().for_each(|line| println!("{line}"));
        outcome.result
    });
    match outcome {
        Ok(value) => println!("{}", print::readable(&value)),
        Err(error) => println!("{}", error.render(&source)),
    }
}
