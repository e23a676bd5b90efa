//! The lock file of a build: read, compared with the config, brought up to date where that is allowed.

use std::path::{Path, PathBuf};

use ptc_compiler::config::Config;
use ptc_compiler::config::model::Upstream;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Severity};
use ptc_compiler::lock::cover::{self, Ask, Need};
use ptc_compiler::lock::{self, Lock, lint};
use ptc_compiler::pinned;
use ptc_compiler::serve::catalog;
use ptc_runtime::command::Preparation;
use ptc_runtime::settings::SnapshotMode;
use ptc_runtime::upstream::Contacts;

use crate::args::Build;
use crate::check::{self, Checked};
use crate::console::Console;
use crate::{Failure, contact, files};

/// `upstreams.lock.json` beside `upstreams.json`.
pub(crate) fn path(config: &Path) -> PathBuf {
    config.with_file_name(pinned::lock_name(&config.file_name().unwrap_or_default().to_string_lossy()))
}

/// The lock that the build goes by. `None` where there is none; then the findings say why.
///
/// Upstreams that the lock file does not cover are contacted, all at once, and the file is written anew. With `--locked` it is
/// used as it is or not at all; with `--offline` nothing is contacted.
pub(crate) fn lock(args: &Build, config_path: &Path, checked: &mut Checked, console: &Console) -> Result<Option<Lock>, Failure> {
    let path = path(config_path);
    let Ok(old) = read(&path, checked)? else { return Ok(None) };
    let Some(config) = &checked.config else { return Ok(None) };
    let known = old.clone().unwrap_or_default();
    let needs = cover::needs(config, &known);
    let mut fresh = checked.documents.clone();
    if args.locked && old.is_none() && !config.upstreams.is_empty() {
        let findings = unpinned(config, &path);
        checked.diagnostics.extend(findings);
        return Ok(None);
    }
    if let Some(option) = forbids_contact(args) {
        if !needs.is_empty() {
            for need in &needs {
                checked.diagnostics.push(uncovered(config, need, option, old.is_none().then_some(&path)));
            }
            return Ok(None);
        }
    } else if !needs.is_empty() {
        let answers =
            contact::ask(config, &checked.folder, &needs, None, &mut checked.sources, &mut checked.diagnostics, console)?;
        fresh.extend(answers);
        if checked.diagnostics.has_errors() {
            return Ok(None);
        }
    }
    let lock = cover::cover(config, &known, fresh);
    // Before it is written: what is in the file counts as looked at.
    let mut found = Diagnostics::default();
    lint::lint(config, &known, &lock, &mut found);
    let is_refused = found.has_errors();
    checked.diagnostics.append(found);
    if is_refused {
        return Ok(None);
    }
    if old.as_ref() == Some(&lock) {
        return Ok(Some(lock));
    }
    if args.locked {
        // Upstreams that the config no longer has change the file, and nothing that is built.
        let stale = cover::changes(config, &known, &lock);
        let is_stale = !stale.is_empty();
        checked.diagnostics.extend(stale);
        return Ok((!is_stale).then_some(lock));
    }
    files::write_if_changed(&path, lock::write::write(&lock).as_bytes())?;
    console.message(&format!("{} {}\n", if old.is_some() { "updated" } else { "wrote" }, path.display()));
    Ok(Some(lock))
}

/// The lock that `--check` goes by: what the lock file covers, and documents that are files. Nobody is contacted and nothing is written.
/// What a build would pin anew is a warning, with `--locked` an error; that an upstream was never pinned is told only with it. `None`
/// where there is none; then the findings say why.
pub(crate) fn known(args: &Build, config_path: &Path, checked: &mut Checked) -> Result<Option<Lock>, Failure> {
    let path = path(config_path);
    let Ok(old) = read(&path, checked)? else { return Ok(None) };
    let (Some(config), false) = (&checked.config, checked.diagnostics.has_errors()) else { return Ok(None) };
    let known = old.clone().unwrap_or_default();
    let lock = cover::cover(config, &known, std::mem::take(&mut checked.documents));
    lint::lint(config, &known, &lock, &mut checked.diagnostics);
    let (severity, option) = if args.locked { (Severity::Error, "--locked") } else { (Severity::Warning, "--check") };
    let mut stale = Vec::new();
    if old.is_some() {
        let needs = cover::needs(config, &known);
        let told = needs.iter().filter(|need| args.locked || known.upstreams.contains_key(&need.upstream));
        stale.extend(told.map(|need| uncovered(config, need, option, None)));
        let changes = cover::changes(config, &known, &lock);
        // One reason to pin an upstream anew is enough.
        let others: Vec<Diagnostic> =
            changes.into_iter().filter(|change| stale.iter().all(|told| told.primary != change.primary)).collect();
        stale.extend(others);
    } else if args.locked {
        stale.extend(unpinned(config, &path));
    }
    for finding in stale {
        checked.diagnostics.push(Diagnostic { severity, ..finding });
    }
    Ok(Some(lock))
}

/// The lock that a server without a binary goes by: what the lock file covers, and for the rest what the upstreams say now. A live
/// one leaves MCP upstreams alone, and their tools out. Connections that were made stay open for the server. `None` where there is none;
/// then the findings say why.
pub(crate) fn unwritten(
    config_path: &Path,
    checked: &mut Checked,
    mode: SnapshotMode,
    preparation: Preparation<'_>,
    console: &Console,
) -> Result<Option<(Lock, Option<Contacts>)>, Failure> {
    let Ok(old) = read(&path(config_path), checked)? else { return Ok(None) };
    let Some(config) = &checked.config else { return Ok(None) };
    let known = old.unwrap_or_default();
    let needs = catalog::needs(config, &known, mode);
    let mut fresh = checked.documents.clone();
    let mut contacts = None;
    if needs.iter().any(|need| need.what == Ask::Tools) {
        contacts = Some(contact::open(config, &checked.folder, preparation)?);
    }
    if !needs.is_empty() {
        let kept = contacts.as_ref();
        fresh.extend(contact::ask(
            config,
            &checked.folder,
            &needs,
            kept,
            &mut checked.sources,
            &mut checked.diagnostics,
            console,
        )?);
    }
    let lock = catalog::lock(config, &known, fresh, mode, &mut checked.diagnostics);
    Ok((!checked.diagnostics.has_errors()).then_some((lock, contacts)))
}

/// The lock file, where there is one. The inner `Err` is a file with faults, which are among the findings then.
fn read(path: &Path, checked: &mut Checked) -> Result<Result<Option<Lock>, ()>, Failure> {
    // A file that is there and cannot be read must not count as none: what it pins would be trusted anew.
    if matches!(path.try_exists(), Ok(false)) {
        return Ok(Ok(None));
    }
    let Some(file) = check::read_source(path, &mut checked.sources, &mut checked.diagnostics)? else { return Ok(Err(())) };
    Ok(lock::read::read(&checked.sources, file, &mut checked.diagnostics).map(Some).ok_or(()))
}

/// Every upstream, where there is no lock file.
fn unpinned(config: &Config, path: &Path) -> Vec<Diagnostic> {
    let finding = |(name, upstream): (&String, &Upstream)| {
        let message = format!("the upstream `{name}` is not pinned: there is no lock file `{}`", path.display());
        let finding = Diagnostic::new(Code::LockStale, message).at(upstream.place.clone(), "");
        finding.hint("run ptc-compile once without `--locked`, and commit the lock file that it writes")
    };
    config.upstreams.iter().map(finding).collect()
}

/// The option that forbids to contact anybody.
fn forbids_contact(args: &Build) -> Option<&'static str> {
    args.locked.then_some("--locked").or_else(|| args.offline.then_some("--offline"))
}

fn uncovered(config: &Config, need: &Need, option: &str, missing: Option<&PathBuf>) -> Diagnostic {
    let message = match missing {
        Some(path) => format!("the upstream `{}` has no pinned tools: there is no lock file `{}`", need.upstream, path.display()),
        None => format!("the upstream `{}` {}", need.upstream, need.why),
    };
    let diagnostic = Diagnostic::new(Code::LockStale, message)
        .hint(format!("run ptc-compile once without `{option}` while the upstream can be reached, and commit the lock file"));
    match config.upstreams.get(&need.upstream) {
        Some(upstream) => diagnostic.at(upstream.place.clone(), ""),
        None => diagnostic,
    }
}
