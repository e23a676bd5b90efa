//! Runs `check-program CONFIG PROGRAM…`, which checks programs against the frozen catalog without running them.

use ptc_catalog::Catalog;
use ptc_check::{BY_OUTPUT_SCHEMA, Finding, FindingKind, Review};
use ptc_compiler::config::Config;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Severity, quoted, suggest};
use ptc_compiler::drift::callers::Caller;
use ptc_compiler::ir;
use ptc_compiler::pinned;
use ptc_compiler::source::{self, FileId, Sources};
use ptc_lisp::{Program, Span, json};
use ptc_runtime::schema::Schema;

use crate::command_args::CheckProgram;
use crate::console::Console;
use crate::{Failure, Status, const_args, load};
use ptc_compiler::files;
use ptc_compiler::leak;
use ptc_compiler::lock::Lock;
use ptc_compiler::lower;

/// Reports the findings about each program.
pub(crate) fn run(args: &CheckProgram, console: &Console) -> Result<Status, Failure> {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    // Read all programs before anything is printed, so that a wrong path is reported at once.
    let programs: Vec<(String, String)> = args
        .programs
        .iter()
        .map(|path| Ok((path.display().to_string(), load::read_text(path)?)))
        .collect::<Result<_, Failure>>()?;
    let folder = files::folder(&args.config);
    let name = args.config.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let deployment =
        pinned::read(&name, "check-program", &mut sources, &mut diagnostics, &mut |wanted| files::read(&folder, wanted));
    let Some(deployment) = deployment else {
        return Ok(console.findings(&sources, &diagnostics).at_least_findings());
    };
    let catalogs = Catalogs::new(&deployment, leak::leak_static(&deployment).catalog);
    for (path, text) in programs {
        let file = sources.add(path, text);
        // `Sources` has dropped the byte order mark.
        let text = sources.get(file).text.clone();
        if let Some(program) = check(&text, file, Some(catalogs), &mut diagnostics) {
            let cost = ptc_check::review(&program, catalogs.frozen).cost.to_string();
            diagnostics.push(Diagnostic::new(Code::ProgramCost, cost).at(source::Span { file, range: 0..0 }, ""));
        }
    }
    let status = console.findings(&sources, &diagnostics);
    if diagnostics.worst() <= Some(Severity::Note) {
        let count = args.programs.len();
        console.message(&format!("no faults in {count} {}\n", if count == 1 { "program" } else { "programs" }));
    }
    Ok(status)
}

/// The catalogs that programs are checked against.
#[derive(Clone, Copy)]
pub(crate) struct Catalogs {
    /// The catalog of the deployment.
    frozen: &'static Catalog,
    /// The catalog with observed shapes as output schemas. `None` if no tool has one. Findings against it are warnings.
    observed: Option<&'static Catalog>,
}

impl Catalogs {
    /// Returns the catalogs of a deployment. `frozen` is its own.
    pub(crate) fn new(deployment: &ir::Deployment, frozen: &'static Catalog) -> Catalogs {
        let observed = lower::with_observed_schemas(deployment).map(|deployment| leak::leak_static(&deployment).catalog);
        Catalogs { frozen, observed }
    }
}

/// Reports findings about stored programs and their schemas, and about their calls if the catalog is known.
pub(crate) fn check_stored(config: &Config, programs: &[ir::Program], catalogs: Option<Catalogs>, diagnostics: &mut Diagnostics) {
    for program in programs {
        let Some(entry) = config.programs.get(&program.name) else { continue };
        for code in &entry.silence {
            diagnostics.silence(*code, source::Span { file: program.file, range: 0..u32::MAX });
        }
        if let Some(compiled) = check(&program.source, program.file, catalogs, diagnostics) {
            check_arguments_read(program, &compiled, diagnostics);
        }
        for (key, schema) in [("args", &entry.args), ("output_schema", &entry.output_schema)] {
            let Some(schema) = schema else { continue };
            let refused = json::decode(schema.value.canonical().as_bytes())
                .map_err(|fault| fault.to_string())
                .and_then(|value| Schema::compile(&value).map(drop).map_err(|refused| refused.to_string()));
            if let Err(why) = refused {
                let message = format!("`{key}` of the program {} cannot be used: {why}", quoted(&program.name));
                diagnostics.push(Diagnostic::new(Code::ProgramSchema, message).at(schema.place.clone(), ""));
            }
        }
    }
}

/// Returns the tools that each stored program may call. A program that does not compile calls none; `--check` reports it.
pub(crate) fn callers(programs: &[ir::Program]) -> Vec<Caller> {
    programs.iter().map(|program| caller(&program.name, &program.source)).collect()
}

/// Returns the tools that a program may call.
pub(crate) fn caller(name: &str, source: &str) -> Caller {
    let compiled = Program::compile(source).ok();
    let called = compiled.map(|compiled| ptc_check::called_tools(&compiled)).unwrap_or_default();
    Caller { program: name.to_owned(), calls: called.into_iter().map(|called| (called.server, called.tool)).collect() }
}

/// The findings about stored programs with the tools of a new lock.
pub(crate) struct NewFindings {
    /// Those that the programs do not have with the old lock.
    pub(crate) new: Diagnostics,
    /// The errors of calls that fail with the old lock too.
    pub(crate) old_errors: Vec<Diagnostic>,
}

/// Compares the findings about stored programs with the tools of two locks.
pub(crate) fn new_findings(config: &Config, programs: &[ir::Program], old: &Lock, new: &Lock) -> NewFindings {
    let check = |lock: &Lock| {
        let mut found = Diagnostics::default();
        // Make the tables only if there are programs to check against them, because the tables of many tools take a while.
        if !programs.is_empty() {
            let deployment = lower::deployment(config, lock, "check");
            let catalogs = Catalogs::new(&deployment, leak::leak_static(&deployment).catalog);
            check_stored(config, programs, Some(catalogs), &mut found);
        }
        found
    };
    let (before, after) = (check(old), check(new));
    let known = before.sorted();
    let mut found = NewFindings { new: Diagnostics::default(), old_errors: Vec::new() };
    for finding in after.sorted() {
        let has_place =
            |other: &Diagnostic| other.primary.as_ref().map(|at| &at.place) == finding.primary.as_ref().map(|at| &at.place);
        let is_same = |other: &Diagnostic| other.code == finding.code && has_place(other);
        if let Some(upstream) = removed_upstream(config, programs, old, finding) {
            let hint = format!("the config has no upstream {} any more, which the lock file has", quoted(&upstream));
            found.new.push(finding.clone().hint(hint));
        } else if finding.severity != Severity::Error {
            // A similar name in the hint may be another one.
            if !known.iter().any(|other| is_same(other) && other.message == finding.message) {
                found.new.push(finding.clone());
            }
        } else if known.iter().any(|other| is_same(other)) {
            found.old_errors.push(finding.clone());
        } else {
            found.new.push(finding.clone());
        }
    }
    found
}

/// Returns the upstream of a failing call, if the lock has it and the config does not. The call did not fail with that lock.
fn removed_upstream(config: &Config, programs: &[ir::Program], lock: &Lock, finding: &Diagnostic) -> Option<String> {
    let place = &finding.primary.as_ref().filter(|_| finding.code == Code::CallFails)?.place;
    let is_removed = |server: &&String| lock.upstreams.contains_key(*server) && !config.upstreams.contains_key(*server);
    let program = programs.iter().find(|program| program.file == place.file)?;
    if lock.upstreams.keys().all(|name| config.upstreams.contains_key(name)) {
        return None;
    }
    let sites = Program::compile(&program.source).ok()?.tool_calls();
    let around = sites.iter().filter(|site| site.span.start <= place.range.start && place.range.end <= site.span.end);
    around.filter_map(|site| site.server.as_ref()).find(is_removed).cloned()
}

/// Reports each `data/NAME` that `args` of the program's entry does not declare.
fn check_arguments_read(stored: &ir::Program, program: &Program, diagnostics: &mut Diagnostics) {
    let Ok(args) = serde_json::from_str::<serde_json::Value>(&stored.args) else { return };
    let names: Vec<&str> = match args.get("properties").and_then(|properties| properties.as_object()) {
        Some(properties) => properties.keys().map(String::as_str).collect(),
        None => Vec::new(),
    };
    // Names may be declared behind other keywords, or any may be passed.
    let takes_any = args.get("additionalProperties").is_some_and(|others| *others != serde_json::Value::Bool(false));
    if takes_any || ["$ref", "allOf", "anyOf", "oneOf", "patternProperties"].iter().any(|key| args.get(key).is_some()) {
        return;
    }
    for (name, span) in ptc_check::context_reads(program).into_iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        let message = format!("`args` of the program {} does not declare {}", quoted(&stored.name), quoted(&name));
        let place = source::Span { file: stored.file, range: span.start..span.end };
        let finding = Diagnostic::new(Code::UndeclaredArgument, message).at(place, "nil in every call");
        diagnostics.push(match suggest::hint(&name, "argument", names.iter().copied()) {
            Some(hint) => finding.hint(hint),
            None => finding.hint("an entry without `args` takes no arguments"),
        });
    }
}

/// Reports findings about a program. Returns it if it compiles.
fn check(text: &str, file: FileId, catalogs: Option<Catalogs>, diagnostics: &mut Diagnostics) -> Option<Program> {
    let place = |span: Option<Span>| {
        let span = span.unwrap_or(Span { start: 0, end: 0 });
        source::Span { file, range: span.start..span.end }
    };
    let hinted = |diagnostic: Diagnostic, hint: Option<String>| match hint {
        Some(hint) => diagnostic.hint(hint),
        None => diagnostic,
    };
    match Program::compile(text) {
        Err(error) => {
            let error = match catalogs {
                Some(catalogs) => ptc_check::add_call_hint(error, text, catalogs.frozen),
                None => error,
            };
            let message = format!("{}: {}", error.kind, error.message);
            diagnostics.push(hinted(Diagnostic::new(Code::ProgramFault, message).at(place(error.span), ""), error.hint));
            None
        }
        Ok(program) => {
            let Some(Catalogs { frozen: catalog, observed }) = catalogs else { return Some(program) };
            let review = ptc_check::review(&program, catalog);
            for finding in observed.map(|observed| not_observed(&program, observed, &review)).unwrap_or_default() {
                let place = place(Some(finding.span));
                diagnostics.push(hinted(Diagnostic::new(Code::PathNotObserved, finding.message).at(place, ""), finding.hint));
            }
            for finding in review.findings {
                let code = match finding.kind {
                    FindingKind::Fails(_) => Code::CallFails,
                    FindingKind::Suspicious | FindingKind::ResultUsedAsList => Code::CallDoubtful,
                    FindingKind::UnknownPath => Code::PathNotInSchema,
                    FindingKind::ResultUsedAsValue => Code::ResultUsedAsValue,
                    FindingKind::Unchecked => Code::UncheckedResult,
                };
                diagnostics.push(hinted(Diagnostic::new(code, finding.message).at(place(Some(finding.span)), ""), finding.hint));
            }
            for mismatch in const_args::mismatches(&program, catalog) {
                let finding = Diagnostic::new(Code::CallDoubtful, mismatch.message).at(place(Some(mismatch.span)), "");
                diagnostics.push(finding.hint(mismatch.hint));
            }
            for call in ptc_check::computed_calls(&program) {
                diagnostics.push(Diagnostic::new(Code::CallNotChecked, call.message).at(place(Some(call.span)), ""));
            }
            Some(program)
        }
    }
}

/// Returns the findings about paths that a program has only with observed shapes.
fn not_observed(program: &Program, observed: &Catalog, known: &Review) -> Vec<Finding> {
    let found = ptc_check::review(program, observed).findings.into_iter();
    let new = found.filter(|finding| finding.kind == FindingKind::UnknownPath && !known.findings.contains(finding));
    new.map(|finding| {
        let message = finding.message.strip_suffix(BY_OUTPUT_SCHEMA).unwrap_or(&finding.message);
        Finding { message: format!("{message}, by the observed shape of its answers"), ..finding }
    })
    .collect()
}
