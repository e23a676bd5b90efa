//! `check-program CONFIG PROGRAM…`: programs against the frozen catalog, without running them.

use ptc_check::Concern;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Severity};
use ptc_compiler::pinned;
use ptc_compiler::source::{FileId, Sources};
use ptc_compiler::tree::Place;
use ptc_lisp::{Program, Span};

use crate::args::CheckProgram;
use crate::console::Console;
use crate::{Failure, Status, check, live};

/// Reports what is wrong with each program.
pub(crate) fn run(args: &CheckProgram, console: &Console) -> Result<Status, Failure> {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    // Read before anything is said, so that a path that is wrong is told at once.
    let programs: Vec<(String, String)> = args
        .programs
        .iter()
        .map(|path| Ok((path.display().to_string(), check::read_text(path)?)))
        .collect::<Result<_, Failure>>()?;
    let folder = check::folder(&args.config);
    let name = args.config.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let deployment = pinned::read(&name, "check-program", &mut sources, &mut diagnostics, &mut |path, most| {
        check::read_document(&folder, path, most)
    });
    let Some(deployment) = deployment else {
        return Ok(console.findings(&sources, &diagnostics).at_least_findings());
    };
    let catalog = live::leak(&deployment).catalog;
    for (path, text) in programs {
        let file = sources.add(path, text);
        // Without its byte order mark, as it is shown.
        let text = sources.get(file).text.clone();
        check(&text, file, catalog, &mut diagnostics);
    }
    let status = console.findings(&sources, &diagnostics);
    if diagnostics.worst() <= Some(Severity::Note) {
        let count = args.programs.len();
        console.message(&format!("no faults in {count} {}\n", if count == 1 { "program" } else { "programs" }));
    }
    Ok(status)
}

fn check(text: &str, file: FileId, catalog: &ptc_catalog::Catalog, diagnostics: &mut Diagnostics) {
    let place = |span: Option<Span>| {
        let span = span.unwrap_or(Span { start: 0, end: 0 });
        Place { file, range: span.start..span.end }
    };
    let hinted = |diagnostic: Diagnostic, hint: Option<String>| match hint {
        Some(hint) => diagnostic.hint(hint),
        None => diagnostic,
    };
    match Program::compile(text) {
        Err(error) => {
            let message = format!("{}: {}", error.kind, error.message);
            diagnostics.push(hinted(Diagnostic::new(Code::ProgramFault, message).at(place(error.span), ""), error.hint));
        }
        Ok(program) => {
            let review = ptc_check::review(&program, catalog);
            for finding in review.findings {
                let code = match finding.concern {
                    Concern::Fails(_) => Code::CallFails,
                    Concern::Doubtful => Code::CallDoubtful,
                    Concern::Path => Code::PathNotInSchema,
                    Concern::Unchecked => Code::UncheckedResult,
                };
                diagnostics.push(hinted(Diagnostic::new(code, finding.message).at(place(Some(finding.span)), ""), finding.hint));
            }
            diagnostics.push(Diagnostic::new(Code::ProgramCost, review.cost.to_string()).at(place(None), ""));
        }
    }
}
