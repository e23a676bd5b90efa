//! What a model is told about each kind of fault and each common mistake: `tests/errors.cases`, whole renderings.
//!
//! A case is a program, a line `---`, and the rendering, up to a line `===`. `UPDATE=1 cargo test -p ptc-lisp --test errors`
//! writes the renderings anew, for a diff to be read.

mod counting;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::host::{Discovery, Fault, Host, Reply, Ticket};
use ptc_lisp::{Error, ErrorKind, Limits, Program, Run, Value, print};

/// A host with one tool, `shop/orders`.
struct Shop;

impl Host for Shop {
    fn submit(&self, request: &Value) -> Result<Ticket, Fault> {
        match (request.get("server").and_then(Value::as_str), request.get("tool").and_then(Value::as_str)) {
            (Some("shop"), Some("orders")) => Ok(Ticket::ready(Reply::Json(b"[{\"id\": 1, \"total\": null}]".to_vec()))),
            (Some("shop"), tool) => {
                let message = format!("the upstream 'shop' has no tool '{}'", tool.unwrap_or_default());
                Err(Fault::new(ErrorKind::ToolError, message).with_hint("it has: orders"))
            }
            _ => Err(Fault::new(ErrorKind::UnknownTool, "no such upstream").with_hint("configured: shop")),
        }
    }

    fn discover(&self, _: Discovery<'_>) -> Result<Value, Fault> {
        Ok(Value::nil())
    }

    fn random(&self) -> u64 {
        4
    }
}

fn fault(source: &str) -> Result<Value, Error> {
    let program = Program::compile(source)?;
    let limits = Limits {
        wall_clock: Duration::from_millis(200),
        memory_bytes: 8 << 20,
        call_depth: 100,
        loop_iterations: Some(20_000),
        tool_calls: Some(3),
        ..Limits::default()
    };
    let context = Value::map([(Value::keyword("items"), Value::vector(vec![Value::nil(), Value::int(2)]))]);
    Run::new(&program).limits(limits).host(Arc::new(Shop)).context(context).gauge(counting::gauge).execute_on_thread().result
}

fn cases(text: &str) -> Vec<(&str, &str)> {
    let blocks = text.split("\n===\n").filter(|block| !block.trim().is_empty());
    blocks.map(|block| block.split_once("\n---\n").unwrap_or_else(|| panic!("no --- in\n{block}"))).collect()
}

#[test]
fn faults_are_told_as_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors.cases");
    let text = std::fs::read_to_string(&path).unwrap();
    let (mut wrong, mut written) = (Vec::new(), String::new());
    let mut kinds = BTreeSet::new();
    for (source, expected) in cases(&text) {
        let source = source.trim_start_matches('\n');
        let error = match fault(source) {
            Ok(value) => {
                wrong.push(format!("{source}\n gave {}", print::readable(&value)));
                continue;
            }
            Err(error) => error,
        };
        kinds.insert(error.kind.name());
        let shown = error.render(source);
        if shown != expected {
            wrong.push(format!("{source}\n--- expected\n{expected}\n--- got\n{shown}\n"));
        }
        written.extend([source, "\n---\n", &shown, "\n===\n"]);
        // Everything but what a program or its host says itself comes with a place and with advice.
        let own = matches!(error.kind, ErrorKind::Failed);
        assert!(error.position.is_some(), "{source}\n has no place");
        assert!(own || error.hint.is_some(), "{source}\n has no advice:\n{shown}");
        assert!(shown.len() < 1500, "{source}\n is told at length:\n{shown}");
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, written).unwrap();
        wrong.retain(|fault| !fault.contains("--- expected"));
    }
    assert!(wrong.is_empty(), "{} renderings differ:\n{}", wrong.len(), wrong.join("\n"));
    // Raised by no program: by a bug of ours, by another thread, and by none since work without a place runs in its caller.
    let apart = [ErrorKind::InternalError, ErrorKind::Cancelled, ErrorKind::ParallelCapacityExceeded];
    for kind in ErrorKind::ALL.iter().filter(|kind| !apart.contains(kind)) {
        assert!(kinds.contains(kind.name()), "no case of {kind}");
    }
}
