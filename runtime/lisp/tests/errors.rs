//! Complete renderings of each kind of fault and each common mistake, in `tests/errors.cases`.
//!
//! A case is a program, a line `---`, and the rendering, up to a line `===`. `UPDATE=1 cargo test -p ptc-lisp errors::`
//! rewrites the renderings, so that the diff can be reviewed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ptc_lisp::host::{Discovery, Fault, Host, NoHost, PendingReply, Reply};
use ptc_lisp::{Error, ErrorKind, Limits, Program, Run, Value, builtins, host_functions, print};

/// A host with the tools `shop/orders` and `shop/refunds`. The second one fails.
struct Shop;

impl Host for Shop {
    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        match (request.get("server").and_then(Value::as_str), request.get("tool").and_then(Value::as_str)) {
            (Some("shop"), Some("orders")) => Ok(PendingReply::ready(Reply::Json(b"[{\"id\": 1, \"total\": null}]".to_vec()))),
            (Some("shop"), Some("refunds")) => {
                let message = "no refunds before 2025".to_owned();
                Ok(PendingReply::ready(Reply::Failed { reason: "tool_error", message }))
            }
            (Some("shop"), tool) => {
                let message = format!("the upstream 'shop' has no tool '{}'", tool.unwrap_or_default());
                Err(Fault::new(ErrorKind::ToolError, message).with_hint("it has: orders"))
            }
            _ => Err(Fault::new(ErrorKind::UnknownTool, "no such upstream").with_hint("configured: shop")),
        }
    }

    fn discover(&self, query: Discovery<'_>) -> Result<Value, Fault> {
        NoHost.discover(query)
    }

    fn random(&self) -> u64 {
        4
    }
}

fn fault(source: &str) -> Result<Value, Error> {
    let program = Program::compile(source)?;
    let limits = Limits::default()
        .wall_clock(Duration::from_secs(1))
        .memory_bytes(8 << 20)
        .call_depth(100)
        .loop_iterations(Some(20_000))
        .tool_calls(Some(3));
    let context = Value::map([
        (Value::keyword("items"), Value::vector(vec![Value::nil(), Value::int(2)])),
        (Value::keyword("long"), Value::string("((x \u{e9}\"".repeat(LONG / 8))),
    ]);
    Run::new(&program)
        .limits(limits)
        .host(Arc::new(Shop))
        .context(context)
        .gauge(crate::counting::gauge)
        .execute_on_thread()
        .result
}

/// Approximate bytes of `data/long`.
const LONG: usize = 100_000;

fn cases(text: &str) -> Vec<(&str, &str)> {
    let blocks = text.split("\n===\n").filter(|block| !block.trim().is_empty());
    blocks.map(|block| block.split_once("\n---\n").unwrap_or_else(|| panic!("no --- in\n{block}"))).collect()
}

#[test]
fn faults_render_as_in_case_file() {
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
        // All errors except those worded by a program or its host have a position and a hint.
        let own = matches!(error.kind, ErrorKind::Failed);
        assert!(error.position.is_some(), "{source}\n has no place");
        assert!(own || error.hint.is_some(), "{source}\n has no advice:\n{shown}");
        assert!(shown.len() < 1500, "{source}\n has a long rendering:\n{shown}");
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, written).unwrap();
        wrong.retain(|fault| !fault.contains("--- expected"));
    }
    assert!(wrong.is_empty(), "{} renderings differ:\n{}", wrong.len(), wrong.join("\n"));
    // No program raises these: they come from a bug, from a policy, from another thread, or not at all, since work without a permit
    // runs in its caller.
    let apart = [ErrorKind::InternalError, ErrorKind::Forbidden, ErrorKind::Cancelled, ErrorKind::ParallelCapacityExceeded];
    for kind in ErrorKind::ALL.iter().filter(|kind| !apart.contains(kind)) {
        assert!(kinds.contains(kind.name()), "no case of {kind}");
    }
}

#[test]
fn long_argument_is_quoted_as_preview() {
    let mut refused = 0;
    let mut verify = |program: &str, most: usize| {
        let Err(error) = fault(program) else { return };
        refused += 1;
        let shown = error.render(program);
        assert!(
            shown.len() < most,
            "{program}\n renders as {} bytes: {}",
            shown.len(),
            shown.chars().take(500).collect::<String>()
        );
    };
    for row in builtins::all().chain(host_functions::all()) {
        // A message written by the program may be longer.
        let most = if matches!(row.name, "assert" | "fail") { 4500 } else { 1200 };
        let fewest = usize::from(row.min).max(1);
        for count in fewest..=row.max.map_or(fewest + 1, usize::from).min(4) {
            for place in 0..count {
                for other in ["nil", "\"a\""] {
                    let args: Vec<&str> = (0..count).map(|at| if at == place { "data/long" } else { other }).collect();
                    let name = if row.name.starts_with('.') { row.name.to_owned() } else { row.full_name() };
                    verify(&format!("({name} {})", args.join(" ")), most);
                }
            }
        }
    }
    for program in [
        "(tool/call {:server data/long :tool \"orders\"})",
        "(tool/call {:server \"shop\" :tool data/long})",
        "(tool/call {data/long 1})",
        "(let [[a] (symbol data/long)] a)",
        "({} data/long 1 2)",
        "((keyword data/long) 1)",
        "(data/long 1)",
        "(recur-to data/long)",
        "(case data/long 1 2 (fail data/long))",
    ] {
        verify(program, 4500);
    }
    assert!(refused > 1000, "only {refused} programs were refused");
}
