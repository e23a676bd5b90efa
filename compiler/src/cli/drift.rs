//! Runs `diff` and `update`, which compare the upstreams as they are now with the lock file.

mod causes;
mod compared;
mod removed_reads;
mod untested;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ptc_compiler::checks::lint;
use ptc_compiler::config::model::{Config, SchemaSource, Transport};
use ptc_compiler::diag::render::{self, Style};
use ptc_compiler::diag::{Code, Diagnostics, Severity, suggest};
use ptc_compiler::drift::markdown::{self, Comparison};
use ptc_compiler::drift::report::Extent;
use ptc_compiler::drift::{self, Count};
use ptc_compiler::lock::read::Places;
use ptc_compiler::lock::{self, Lock};
use ptc_compiler::resolve::{self, MissingPin, Query};
use ptc_compiler::source::Span;
use ptc_compiler::tree::Syntax;

use crate::command_args::{Diff, Threshold, Update};
use crate::console::Console;
use crate::load::{self, Checked};
use crate::query_upstreams::{self, Connections};
use crate::shared_args::{Connecting, Format};
use crate::{Failure, Status, files, program, resolve_lock};
use compared::Compared;

/// Runs `diff`: compares, and changes nothing.
pub(crate) fn diff(args: &Diff, console: &Console) -> Result<Status, Failure> {
    let mut checked = load::load(&args.config, Syntax::CONFIG)?;
    let lock_path = resolve_lock::path(&args.config);
    if !lock_path.exists() {
        return Err(Failure::new(format!("there is no lock file `{}` to compare with", lock_path.display()))
            .hint(format!("`ptc-compile update {}` writes it", args.config.display())));
    }
    let found = locks(&args.config, &args.names, args.connecting, &mut checked, console)?;
    // The new state of an upstream that could not be queried is unknown.
    let is_whole = is_comparable(&checked.diagnostics);
    let is_incomplete = checked.diagnostics.has_errors();
    let mut drifted = None;
    let mut stale = 0;
    let mut broken = Ok(());
    let compared = found.and_then(|Locks { old, new, places }| {
        let config = checked.config.as_ref()?;
        let mut compared = Compared::new(config, &checked.programs, old, new, &places, Some(&args.config));
        broken = compared.add_tests(&args.config, config, &checked.programs, &args.tests, &mut checked.sources);
        drifted = compared.drift.worst().max(compared.programs.worst());
        let Compared { old, new, .. } = &compared;
        // A lock that no longer covers the config is stale, also if the tools are the same.
        for pin in resolve::missing_pins(config, old) {
            let pair = [old, new].map(|lock| lock.upstreams.get(&pin.upstream));
            let is_named = args.names.is_empty() || args.names.contains(&pin.upstream);
            let changes = config.upstreams.get(&pin.upstream).map(|entry| drift::changes(&pin.upstream, entry, pair[0], pair[1]));
            if is_named && changes.is_none_or(|changes| changes.is_empty()) {
                let finding = resolve_lock::stale_lock_error(config, &args.config, &pin, None);
                drifted = drifted.max(Some(finding.severity));
                checked.diagnostics.push(finding);
                stale += 1;
            }
        }
        if let Some(finding) = resolve::policy_change(config, &args.config.display().to_string(), old, new) {
            drifted = drifted.max(Some(finding.severity));
            checked.diagnostics.push(finding);
            stale += 1;
        }
        lint::lint(config, old, new, &mut checked.diagnostics);
        Some(compared)
    });
    broken?;
    let outcome = Outcome { checked: &checked, compared: compared.as_ref(), is_whole, has_details: args.details };
    let status = outcome.print(console);
    for report in &args.report {
        files::write_if_changed(&report.path, outcome.rendered(report.format).as_bytes())?;
    }
    let changed = compared.map(|compared| compared.changed);
    let (Some(changed), true) = (changed, is_whole) else { return Ok(status.at_least_findings()) };
    if stale == 0 || changed != Count::default() {
        console.message(&format!("{}\n", changed.clause()));
    }
    if changed != Count::default() && !args.details && !console.is_for_tools() {
        let command = format!("ptc-compile update {}", args.config.display());
        console.message(&format!("help: `{command}` pins the changes; review the lock file and commit it\n"));
    }
    let threshold = match args.fail_on {
        Threshold::Error => Some(Severity::Error),
        Threshold::Warning => Some(Severity::Warning),
        Threshold::Note => Some(Severity::Note),
        Threshold::Never => None,
    };
    let reached = threshold.is_some_and(|threshold| drifted >= Some(threshold));
    Ok(if reached || is_incomplete { Status::Findings } else { Status::Clean })
}

/// Runs `update`: compares, and writes the current state into the lock file.
pub(crate) fn update(args: &Update, console: &Console) -> Result<Status, Failure> {
    let mut checked = load::load(&args.config, Syntax::CONFIG)?;
    let found = locks(&args.config, &args.names, args.connecting, &mut checked, console)?;
    // Only findings that prevent the update are errors; changes are merely reported.
    let unreachable: Vec<String> = if args.keep_going { unreachable(&checked) } else { Vec::new() };
    let is_prevented = checked.diagnostics.has_errors() && unreachable.is_empty();
    let (Some(Locks { old, new, places }), Some(config), false) = (found, &checked.config, is_prevented) else {
        let outcome = Outcome { checked: &checked, compared: None, is_whole: false, has_details: args.details };
        return Ok(outcome.print(console).at_least_findings());
    };
    let mut found = Diagnostics::default();
    lint::lint(config, &old, &new, &mut found);
    let is_refused = found.has_errors();
    checked.diagnostics.append(found);
    let mut compared = Compared::new(config, &checked.programs, old, new, &places, None);
    compared.add_tests(&args.config, config, &checked.programs, &args.tests, &mut checked.sources)?;
    let outcome =
        Outcome { checked: &checked, compared: Some(&compared), is_whole: unreachable.is_empty(), has_details: args.details };
    let status = outcome.print(console);
    let Compared { old, new, changed, .. } = &compared;
    if is_refused {
        return Ok(status.at_least_findings());
    }
    let has_other_policy = old.policy_digest != new.policy_digest;
    if has_other_policy {
        console.message("the policy changed\n");
    }
    if !has_other_policy || *changed != Count::default() {
        console.message(&format!("{}\n", changed.clause()));
    }
    console.message(&resolve_lock::dropped_examples(old, new));
    let path = resolve_lock::path(&args.config);
    if files::write_if_changed(&path, lock::write::write(new).as_bytes())? {
        console.message(&format!(
            "wrote {}; review and commit it, then `ptc-compile {} --locked` builds\n",
            path.display(),
            args.config.display()
        ));
    }
    if unreachable.is_empty() {
        return Ok(Status::Clean);
    }
    let (config, names) = (args.config.display(), unreachable.join(" "));
    console.message(&format!("not pinned anew: {names}; continue with `ptc-compile update {config} {names}`\n"));
    Ok(status.at_least_findings())
}

/// The outcome of a comparison. Each format of the output is made from it.
struct Outcome<'a> {
    checked: &'a Checked,
    /// `None` if the upstreams could not be compared.
    compared: Option<&'a Compared>,
    /// Whether the comparison covers all upstreams.
    is_whole: bool,
    /// Whether the output shows each change of a tool instead of one line for each tool.
    has_details: bool,
}

impl Outcome<'_> {
    /// Prints the findings, and then the report on changes. The report is a document in Markdown, or text for people. The formats for
    /// programs have no report, because their findings contain each change.
    fn print(&self, console: &Console) -> Status {
        let has_changes = console.is_for_tools() || self.has_details;
        let status = console.findings(&self.checked.sources, &self.findings(has_changes));
        if console.is_markdown() {
            console.data(&self.document());
        } else if let (Some((config, compared)), false) = (self.config_and_locks(), console.is_for_tools()) {
            let extent = if self.has_details { Extent::Summaries } else { Extent::Tools };
            let Compared { old, new, breaking, .. } = compared;
            console.message(&drift::report::report(config, old, new, breaking, extent, console.style()));
        }
        status
    }

    /// Returns the outcome in a format of files.
    fn rendered(&self, format: Format) -> String {
        let (sources, findings) = (&self.checked.sources, || self.findings(true));
        match format {
            Format::Markdown => self.document(),
            Format::Json => render::json_lines(sources, &findings()),
            Format::Sarif => render::sarif(sources, &findings()),
            Format::Github => render::github(sources, &findings()),
            Format::Full => render::full(sources, &findings(), Style::Plain),
            Format::Short => render::short(sources, &findings(), Style::Plain),
        }
    }

    /// Returns all findings. `has_changes`: whether each change is a finding.
    fn findings(&self, has_changes: bool) -> Diagnostics {
        let mut all = self.checked.diagnostics.clone();
        if let Some(compared) = self.compared {
            if has_changes {
                all.append(compared.drift.clone());
            }
            all.append(compared.programs.clone());
        }
        all
    }

    fn config_and_locks(&self) -> Option<(&Config, &Compared)> {
        self.checked.config.as_ref().zip(self.compared)
    }

    /// Returns the document for reviewers.
    fn document(&self) -> String {
        let callers = program::callers(&self.checked.programs);
        let comparison = self.config_and_locks().map(|(config, compared)| Comparison {
            config,
            old: &compared.old,
            new: &compared.new,
            changed: compared.changed,
            breaking: &compared.breaking,
            callers: &callers,
            program_findings: &compared.programs,
            has_details: self.has_details,
        });
        markdown::document(comparison.as_ref(), self.is_whole, &self.checked.sources, &self.checked.diagnostics)
    }
}

/// Returns the upstreams that could not be asked, or nothing if there are errors of other kinds.
fn unreachable(checked: &Checked) -> Vec<String> {
    let sorted = checked.diagnostics.sorted();
    let errors: Vec<_> = sorted.iter().filter(|found| found.severity == Severity::Error).collect();
    if errors.iter().any(|found| found.code != Code::UpstreamUnreachable) {
        return Vec::new();
    }
    let is_of = |place: &Span| errors.iter().any(|error| error.primary.as_ref().is_some_and(|label| label.place == *place));
    let upstreams = checked.config.iter().flat_map(|config| &config.upstreams);
    upstreams.filter(|(_, upstream)| is_of(&upstream.place)).map(|(name, _)| name.clone()).collect()
}

/// Whether the current tools can be compared. If a document no longer contains an operation, the others still can.
fn is_comparable(diagnostics: &Diagnostics) -> bool {
    !diagnostics.sorted().iter().any(|found| found.severity == Severity::Error && found.code != Code::UnknownOperation)
}

/// Two locks to compare.
struct Locks {
    /// The lock file as it is.
    old: Lock,
    /// The positions of its pins.
    places: Places,
    /// The lock file as it would be if upstreams were pinned now.
    new: Lock,
}

/// Returns the current lock file, and the one that would result if the named upstreams (all, if none is named) were pinned now.
/// Returns `None` if one of them is not available; the findings then explain why.
fn locks(
    path: &Path,
    names: &[String],
    connecting: Connecting,
    checked: &mut Checked,
    console: &Console,
) -> Result<Option<Locks>, Failure> {
    let lock_path: PathBuf = resolve_lock::path(path);
    let (Some(config), true) = (&checked.config, is_comparable(&checked.diagnostics)) else { return Ok(None) };
    let names = chosen(config, names)?;
    let (old, places) = if lock_path.exists() {
        let Some(file) = load::read_source(&lock_path, &mut checked.sources, &mut checked.diagnostics)? else { return Ok(None) };
        let Some(read) = lock::read::read_with_places(&checked.sources, file, &mut checked.diagnostics) else { return Ok(None) };
        read
    } else {
        <(Lock, Places)>::default()
    };
    let missing_pins: Vec<MissingPin> = names.iter().filter_map(|name| missing_pin(config, name)).collect();
    let mut fresh = checked.documents.clone();
    fresh.retain(|name, _| names.contains(name.as_str()));
    if !missing_pins.is_empty() {
        let folder = checked.folder.clone();
        let mut asked = query_upstreams::answers(config, &folder, &missing_pins, Connections::Own(connecting), console)?;
        fresh.extend(asked.take_moved(config, &old, &mut checked.diagnostics));
        fresh.extend(asked.locked(config, &mut checked.sources, &mut checked.diagnostics));
    }
    let new = resolve_lock::merge(config, &old, fresh);
    Ok(Some(Locks { old, places, new }))
}

/// Returns the named upstreams, or all.
fn chosen<'c>(config: &'c Config, names: &[String]) -> Result<BTreeSet<&'c str>, Failure> {
    let known = || config.upstreams.keys().map(String::as_str);
    if names.is_empty() {
        return Ok(known().collect());
    }
    names
        .iter()
        .map(|name| {
            known().find(|known| known == name).ok_or_else(|| {
                let failure = Failure::new(format!("the config has no upstream `{name}`"));
                match suggest::hint(name, "upstream", known().collect::<Vec<_>>()) {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            })
        })
        .collect()
}

/// Returns the query that pins an upstream anew. Returns `None` for a document that is a file, since it has been read already.
fn missing_pin(config: &Config, name: &str) -> Option<MissingPin> {
    let what = match &config.upstreams.get(name)?.transport {
        Transport::OpenApi(entry) if matches!(entry.schema.value, SchemaSource::File(_)) => return None,
        Transport::OpenApi(_) => Query::Document,
        Transport::McpStdio(_) | Transport::McpHttp(_) => Query::Tools,
    };
    Some(MissingPin { upstream: name.to_owned(), what, why: "is compared".to_owned() })
}
