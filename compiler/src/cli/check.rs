//! `--check`: reports everything that is wrong with a config and the files that belong to it.

use std::path::Path;

use ptc_compiler::config::Config;
use ptc_compiler::diag::{Severity, quoted};
use ptc_compiler::lock::Lock;
use ptc_compiler::{checks, leak, lower, resolve};
use ptc_text::join_limited;

use crate::build_args::Build;
use crate::console::Console;
use crate::load::{self, Checked};
use crate::program::Catalogs;
use crate::{Failure, Status, defaults, environment, program, resolve_lock, sandbox};

/// Maximum number of tools for which `--check` prints how their lists are paged.
const MAX_PAGED: usize = 10;

/// Maximum number of scopes that `--check` prints for an entry.
const MAX_SCOPES: usize = 40;

/// `ptc-compile --check CONFIG`
pub(crate) fn run(args: &Build, console: &Console) -> Result<Status, Failure> {
    let path = load::config_path(args)?;
    let mut checked = load::load(path, load::syntax(args))?;
    environment::check(args, &mut checked);
    let lock = resolve_lock::for_check(args, path, &mut checked)?;
    pinned(&mut checked, lock.as_ref());
    if let Checked { config: Some(config), folder, diagnostics, .. } = &mut checked {
        sandbox::check(config, folder, diagnostics);
    }
    let status = console.findings(&checked.sources, &checked.diagnostics);
    if checked.diagnostics.worst().is_none_or(|worst| worst == Severity::Note)
        && let Some(config) = &checked.config
    {
        console.message(&format!("{}: {}\n", path.display(), summary(config)));
        console.message(&not_checked(config, path, lock.as_ref()));
        if let Some(lock) = &lock {
            for (upstream, scopes) in checks::credentials::scopes(config, lock) {
                let scopes = join_limited(scopes.into_iter().map(quoted), ", ", MAX_SCOPES);
                console.message(&format!("the token of {} needs the scopes {scopes}\n", quoted(upstream)));
            }
            console.message(&paged(config, lock));
        }
    }
    Ok(status)
}

/// Checks stored programs against the lock. Without a lock their calls are not checked, since the callable tools are unknown.
fn pinned(checked: &mut Checked, lock: Option<&Lock>) {
    let Checked { config: Some(config), programs, diagnostics, .. } = checked else { return };
    if let Some(lock) = lock {
        checks::paging::check(config, lock, diagnostics);
        checks::examples::check(config, lock, diagnostics);
        defaults::check_examples(config, lock, diagnostics);
        checks::policy::check(config, lock, diagnostics);
    }
    // Make the tables only if there are programs to check against them, because the tables of many tools take a while.
    let catalogs = lock.filter(|_| !programs.is_empty()).map(|lock| {
        let deployment = lower::deployment(config, lock, "check");
        Catalogs::new(&deployment, leak::leak_static(&deployment).catalog)
    });
    program::check_stored(config, programs, catalogs, diagnostics);
}

/// Describes how lists are paged: one line for each tool that `tool/all` can read by its schemas or by the config.
fn paged(config: &Config, lock: &Lock) -> String {
    let locked = config.upstreams.iter().filter_map(|(name, entry)| Some((name, entry, lock.upstreams.get(name)?)));
    let tools: Vec<_> = locked
        .flat_map(|(upstream, entry, locked)| locked.tools.iter().map(move |(name, tool)| (upstream, entry, name, tool)))
        .collect();
    let paged: Vec<String> = tools
        .iter()
        .filter_map(|(upstream, entry, name, tool)| {
            let how = lower::paging(entry, name, tool)?.described();
            Some(format!("  {upstream}/{name}: {how}\n"))
        })
        .collect();
    if paged.is_empty() {
        return String::new();
    }
    let more = paged.len().saturating_sub(MAX_PAGED);
    let rest = if more == 0 { String::new() } else { format!("  and {more} more, each under `paging` in the lock file\n") };
    let shown: String = paged.iter().take(MAX_PAGED).map(String::as_str).collect();
    format!("tool/all reads the pages of {} of {} tools:\n{shown}{rest}", paged.len(), tools.len())
}

/// Names what `--check` cannot check because no tools are pinned yet.
fn not_checked(config: &Config, path: &Path, lock: Option<&Lock>) -> String {
    let nothing = Lock::default();
    let unpinned: Vec<String> =
        resolve::missing_pins(config, lock.unwrap_or(&nothing)).iter().map(|pin| quoted(&pin.upstream)).collect();
    if unpinned.is_empty() || config.programs.is_empty() {
        return String::new();
    }
    format!(
        "calls of stored programs to {} are not checked yet: `ptc-compile update {}` pins the tools\n",
        unpinned.join(", "),
        path.display()
    )
}

fn summary(config: &Config) -> String {
    let count = config.upstreams.len();
    format!("no faults in {count} {}", if count == 1 { "upstream" } else { "upstreams" })
}
