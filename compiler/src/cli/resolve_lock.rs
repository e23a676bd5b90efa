//! Resolves the lock file of a command: reads it, compares it with the config, and updates it if that is allowed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ptc_compiler::checks::lint;
use ptc_compiler::config::Config;
use ptc_compiler::config::model::Upstream;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Severity, quoted};
use ptc_compiler::lock::{self, Lock, LockedUpstream};
use ptc_compiler::pinned;
use ptc_compiler::resolve::{self, MissingPin, Query};
use ptc_compiler::serve::catalog;
use ptc_compiler::tree::Syntax;
use ptc_runtime::command::Preparation;
use ptc_runtime::settings::SnapshotMode;
use ptc_runtime::upstream::Contacts;

use crate::build_args::Build;
use crate::console::Console;
use crate::load::{self, Checked};
use crate::query_upstreams::{self, Connections};
use crate::{Failure, defaults, files};

/// Returns the path of the lock file: `upstreams.lock.json` beside `upstreams.json`.
pub(crate) fn path(config: &Path) -> PathBuf {
    config.with_file_name(pinned::lock_name(&config.file_name().unwrap_or_default().to_string_lossy()))
}

/// Resolves the lock for a build. Returns `None` if there is none; the findings then explain why.
///
/// Upstreams that the lock file does not cover are queried in parallel, and the file is rewritten. With `--locked` a stale lock
/// file is an error; with `--offline` no upstream is queried.
pub(crate) fn for_build(
    args: &Build,
    config_path: &Path,
    checked: &mut Checked,
    console: &Console,
) -> Result<Option<Lock>, Failure> {
    let path = path(config_path);
    let Ok(old) = read(&path, checked)? else { return Ok(None) };
    let Some(config) = &checked.config else { return Ok(None) };
    let known = old.clone().unwrap_or_default();
    let missing_pins = resolve::missing_pins(config, &known);
    let mut fresh = checked.documents.clone();
    if args.locked && old.is_none() && !config.upstreams.is_empty() {
        let findings = missing_lock_errors(config, config_path, &path);
        checked.diagnostics.extend(findings);
        return Ok(None);
    }
    if args.locked || args.offline {
        if !missing_pins.is_empty() {
            for missing_pin in &missing_pins {
                checked.diagnostics.push(stale_lock_error(config, config_path, missing_pin, old.is_none().then_some(&path)));
            }
            return Ok(None);
        }
    } else if !missing_pins.is_empty() {
        let answers = query_upstreams::ask(
            config,
            &checked.folder,
            &missing_pins,
            Connections::Own(args.connecting),
            &mut checked.sources,
            &mut checked.diagnostics,
            console,
        )?;
        fresh.extend(answers);
        if checked.diagnostics.has_errors() {
            return Ok(None);
        }
    }
    let lock = merge(config, &known, fresh);
    resolve::warn_without_addresses(config, &config_path.display().to_string(), &lock, &mut checked.diagnostics);
    resolve::note_other_servers(config, &lock, &mut checked.diagnostics);
    // Lint before writing: definitions in the file count as reviewed.
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
        // Upstreams that were removed from the config change the file but not the build.
        let stale = resolve::changes(config, &config_path.display().to_string(), &known, &lock);
        let is_stale = !stale.is_empty();
        checked.diagnostics.extend(stale);
        return Ok((!is_stale).then_some(lock));
    }
    console.message(&dropped_examples(&known, &lock));
    files::write_if_changed(&path, lock::write::write(&lock).as_bytes())?;
    console.message(&format!("{} {}\n", if old.is_some() { "updated" } else { "wrote" }, path.display()));
    Ok(Some(lock))
}

/// Merges the lock for a config as [`resolve::merge`] does, and drops the recorded examples that the whole schemas of changed tools refuse.
pub(crate) fn merge(config: &Config, known: &Lock, fresh: BTreeMap<String, LockedUpstream>) -> Lock {
    let mut lock = resolve::merge(config, known, fresh);
    defaults::drop_examples(known, &mut lock);
    lock
}

/// Names the tools whose recorded examples are dropped, one on each line.
pub(crate) fn dropped_examples(old: &Lock, new: &Lock) -> String {
    let line = |(upstream, tool): (&str, &str)| {
        format!("dropped the example of {} of {}: its schema does not permit it any more\n", quoted(tool), quoted(upstream))
    };
    resolve::dropped_examples(old, new).map(line).collect()
}

/// Writes new pins into the lock file of a config, with those of local documents. Returns whether they were accepted; the findings
/// are printed.
pub(crate) fn pin(config_path: &Path, fresh: BTreeMap<String, LockedUpstream>, console: &Console) -> Result<bool, Failure> {
    let mut checked = load::load(config_path, Syntax::CONFIG)?;
    let path = path(config_path);
    let old = if checked.diagnostics.has_errors() { Err(()) } else { read(&path, &mut checked)? };
    let (Ok(old), Some(config)) = (old, &checked.config) else {
        console.findings(&checked.sources, &checked.diagnostics);
        return Ok(false);
    };
    let known = old.unwrap_or_default();
    let mut pins = std::mem::take(&mut checked.documents);
    pins.extend(fresh);
    let lock = merge(config, &known, pins);
    let mut found = Diagnostics::default();
    lint::lint(config, &known, &lock, &mut found);
    console.findings(&checked.sources, &found);
    if found.has_errors() {
        return Ok(false);
    }
    console.message(&dropped_examples(&known, &lock));
    files::write_if_changed(&path, lock::write::write(&lock).as_bytes())?;
    console.message(&format!("wrote {}\n", path.display()));
    Ok(true)
}

/// Resolves the lock for `--check` from local files: the upstreams that the lock file covers, and local documents. Queries no
/// upstream and writes nothing. Stale pins are warnings, or errors with `--locked`; upstreams without a pin are reported only
/// with `--locked`. Returns `None` if there is no lock; the findings then explain why.
pub(crate) fn for_check(args: &Build, config_path: &Path, checked: &mut Checked) -> Result<Option<Lock>, Failure> {
    let path = path(config_path);
    let Ok(old) = read(&path, checked)? else { return Ok(None) };
    let (Some(config), false) = (&checked.config, checked.diagnostics.has_errors()) else { return Ok(None) };
    let known = old.clone().unwrap_or_default();
    let lock = merge(config, &known, std::mem::take(&mut checked.documents));
    resolve::warn_without_addresses(config, &config_path.display().to_string(), &lock, &mut checked.diagnostics);
    resolve::note_other_servers(config, &lock, &mut checked.diagnostics);
    lint::lint(config, &known, &lock, &mut checked.diagnostics);
    let severity = if args.locked { Severity::Error } else { Severity::Warning };
    let mut stale = Vec::new();
    if old.is_some() {
        let missing_pins = resolve::missing_pins(config, &known);
        let reported =
            missing_pins.iter().filter(|missing_pin| args.locked || known.upstreams.contains_key(&missing_pin.upstream));
        stale.extend(reported.map(|missing_pin| stale_lock_error(config, config_path, missing_pin, None)));
        let changes = resolve::changes(config, &config_path.display().to_string(), &known, &lock);
        // One reason to pin an upstream anew is enough.
        let others: Vec<Diagnostic> =
            changes.into_iter().filter(|change| stale.iter().all(|told| told.primary != change.primary)).collect();
        stale.extend(others);
    } else if args.locked {
        stale.extend(missing_lock_errors(config, config_path, &path));
    }
    for finding in stale {
        checked.diagnostics.push(Diagnostic { severity, ..finding });
    }
    Ok(Some(lock))
}

/// Resolves the lock for a server without a binary: pins of the lock file, and current listings of the other upstreams. The
/// result is not written. With a live catalog, MCP upstreams are not queried and have no tools yet. Connections stay open for the
/// server. Returns the lock with the connections, and the lock file. Returns `None` if there is no lock; the findings then explain why.
pub(crate) fn ephemeral(
    config_path: &Path,
    checked: &mut Checked,
    mode: SnapshotMode,
    preparation: Preparation<'_>,
    console: &Console,
) -> Result<Option<(Lock, Option<Contacts>, Lock)>, Failure> {
    let Ok(old) = read(&path(config_path), checked)? else { return Ok(None) };
    let Some(config) = &checked.config else { return Ok(None) };
    let known = old.unwrap_or_default();
    let missing_pins = catalog::missing_pins(config, &known, mode);
    let mut fresh = checked.documents.clone();
    let mut contacts = None;
    if missing_pins.iter().any(|missing_pin| missing_pin.what == Query::Tools) {
        contacts = Some(query_upstreams::open(config, &checked.folder, preparation)?);
    }
    if !missing_pins.is_empty() {
        let kept = contacts.as_ref();
        fresh.extend(query_upstreams::ask(
            config,
            &checked.folder,
            &missing_pins,
            Connections::Kept(kept),
            &mut checked.sources,
            &mut checked.diagnostics,
            console,
        )?);
    }
    let lock = catalog::lock(config, &known, fresh, mode, &mut checked.diagnostics);
    Ok((!checked.diagnostics.has_errors()).then_some((lock, contacts, known)))
}

/// Resolves the lock of a config from local files, which must cover it. Returns `None` if they do not; the findings then explain
/// why.
pub(crate) fn pinned(config_path: &Path, checked: &mut Checked) -> Result<Option<Lock>, Failure> {
    let path = path(config_path);
    let Ok(old) = read(&path, checked)? else { return Ok(None) };
    let Some(config) = &checked.config else { return Ok(None) };
    let known = old.clone().unwrap_or_default();
    let missing_pins = resolve::missing_pins(config, &known);
    for missing_pin in &missing_pins {
        checked.diagnostics.push(stale_lock_error(config, config_path, missing_pin, old.is_none().then_some(&path)));
    }
    Ok(missing_pins.is_empty().then(|| merge(config, &known, checked.documents.clone())))
}

/// Reads the lock file if it exists. The inner `Err` means a faulty file, whose faults are reported as findings.
pub(crate) fn read(path: &Path, checked: &mut Checked) -> Result<Result<Option<Lock>, ()>, Failure> {
    // An unreadable file must not count as missing: changed definitions would be trusted.
    if matches!(path.try_exists(), Ok(false)) {
        return Ok(Ok(None));
    }
    let Some(file) = load::read_source(path, &mut checked.sources, &mut checked.diagnostics)? else { return Ok(Err(())) };
    Ok(lock::read::read(&checked.sources, file, &mut checked.diagnostics).map(Some).ok_or(()))
}

/// Returns one error for each upstream, for a build without a lock file.
fn missing_lock_errors(config: &Config, config_path: &Path, path: &Path) -> Vec<Diagnostic> {
    let finding = |(name, upstream): (&String, &Upstream)| {
        let message = format!("the upstream `{name}` is not pinned: there is no lock file `{}`", path.display());
        let finding = Diagnostic::new(Code::LockStale, message).at(upstream.place.clone(), "");
        finding.hint(format!("`ptc-compile update {}` writes it; commit it", config_path.display()))
    };
    config.upstreams.iter().map(finding).collect()
}

/// Returns the finding for a pin that the lock file lacks. `missing`: the path of the lock file, if it does not exist.
pub(crate) fn stale_lock_error(
    config: &Config,
    config_path: &Path,
    missing_pin: &MissingPin,
    missing: Option<&PathBuf>,
) -> Diagnostic {
    let message = match missing {
        Some(path) => {
            format!("the upstream `{}` has no pinned tools: there is no lock file `{}`", missing_pin.upstream, path.display())
        }
        None => format!("the upstream `{}` {}", missing_pin.upstream, missing_pin.why),
    };
    let diagnostic = Diagnostic::new(Code::LockStale, message)
        .hint(ptc_compiler::drift::update_hint(&config_path.display().to_string(), &missing_pin.upstream));
    match config.upstreams.get(&missing_pin.upstream) {
        Some(upstream) => diagnostic.at(upstream.place.clone(), ""),
        None => diagnostic,
    }
}
