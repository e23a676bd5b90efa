//! Runs `explain CODE`, which prints the page of a diagnostic code.

use std::fmt::Write;

use ptc_compiler::diag::{Code, pages, suggest};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::command_args::Explain;
use crate::console::Console;
use crate::{Failure, Status};

/// Prints the page of a code, or the list of all codes.
pub(crate) fn run(args: &Explain, console: &Console) -> Result<Status, Failure> {
    let Some(wanted) = &args.code else {
        let mut list = String::new();
        for code in Code::ALL {
            // Writing to a string cannot fail.
            let _ = if args.json {
                writeln!(list, "{}", json!(described(*code)))
            } else {
                writeln!(list, "{}  {:<7}  {}", code.name(), code.severity().name(), code.title())
            };
        }
        console.data(&list);
        return Ok(Status::Clean);
    };
    let name = full_name(wanted);
    let Some(code) = Code::find(&name) else {
        let failure = Failure::new(format!("there is no diagnostic code `{wanted}`"));
        let hint = match suggest::closest_match(&name, Code::ALL.iter().map(|code| code.name())) {
            Some(near) => format!("did you mean `{near}`? `ptc-compile explain` lists all codes"),
            None => "`ptc-compile explain` lists all codes".to_owned(),
        };
        return Err(failure.hint(hint));
    };
    let page = pages::page(code).unwrap_or("");
    if args.json {
        console.data(&format!("{}\n", json!(ExplainedCode { page: Some(page), ..described(code) })));
        return Ok(Status::Clean);
    }
    console.data(&format!("{} ({}): {}\n\n{page}\n", code.name(), code.severity().name(), code.title()));
    Ok(Status::Clean)
}

/// A line of `explain --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplainedCode {
    code: &'static str,
    /// `error`, `warning` or `note`.
    severity: &'static str,
    title: &'static str,
    /// Cause, example and fix in Markdown. The list of all codes has no pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

fn described(code: Code) -> ExplainedCode {
    ExplainedCode { code: code.name(), severity: code.severity().name(), title: code.title(), page: None }
}

/// Returns the full name of a code: `ptc0201` and `201` mean PTC0201.
fn full_name(wanted: &str) -> String {
    if wanted.chars().all(|c| c.is_ascii_digit()) { format!("PTC{wanted:0>4}") } else { wanted.to_ascii_uppercase() }
}
