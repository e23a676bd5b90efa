//! Reads and checks a config with all files that belong to it. This is the whole of `--check`, and the start of a build.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use ptc_compiler::config::model::Transport;
use ptc_compiler::config::{self, Config};
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics};
use ptc_compiler::lock::{self, Lock, LockedUpstream};
use ptc_compiler::serve::files;
use ptc_compiler::source::{FileId, MAX_BYTES, Sources, decode};
use ptc_compiler::tree::{Syntax, too_large};
use ptc_compiler::{ir, lower, openapi, programs};
use ptc_runtime::secrets::Secrets;

use crate::args::Build;
use crate::console::Console;
use crate::{Failure, Status, commands, defaults, program, resolve_lock, source};
use ptc_compiler::leak::{self, StaticDeployment};

/// The files read for a config, and the findings about them.
pub(crate) struct Checked {
    /// The texts of all files.
    pub(crate) sources: Sources,
    /// All findings so far.
    pub(crate) diagnostics: Diagnostics,
    /// The config, or `None` if none of it could be read. Faulty entries are left out, so check [`Diagnostics::has_errors`]
    /// before building from it.
    pub(crate) config: Option<Config>,
    /// The included operations of the OpenAPI documents that are files, by upstream. Documents behind a `schema_url` are not read
    /// here.
    pub(crate) documents: BTreeMap<String, LockedUpstream>,
    /// The texts of the stored programs.
    pub(crate) programs: Vec<ir::Program>,
    /// The folder of the config. Relative paths in the config start there.
    pub(crate) folder: PathBuf,
}

/// Maximum number of tools for which `--check` prints how their lists are paged.
const MAX_PAGED: usize = 50;

/// `ptc-compile --check CONFIG`
pub(crate) fn run(args: &Build, console: &Console) -> Result<Status, Failure> {
    let path = config_path(args)?;
    let mut checked = load(path, syntax(args))?;
    environment(args, &mut checked);
    let lock = resolve_lock::for_check(args, path, &mut checked)?;
    pinned(&mut checked, lock.as_ref());
    let status = console.findings(&checked.sources, &checked.diagnostics);
    if checked.diagnostics.worst().is_none()
        && let Some(config) = &checked.config
    {
        console.message(&format!("{}: {}\n", path.display(), summary(config)));
        if let Some(lock) = &lock {
            console.message(&paged(&lower::deployment(config, lock, "check", "")));
        }
    }
    Ok(status)
}

/// Checks stored programs against the lock. Without a lock their calls are not checked, since the callable tools are unknown.
fn pinned(checked: &mut Checked, lock: Option<&Lock>) {
    let Checked { config: Some(config), programs, diagnostics, .. } = checked else { return };
    if let Some(lock) = lock {
        lower::paging::check_overrides(config, lock, diagnostics);
    }
    // Make the tables only if there are programs to check against them, because the tables of many tools take a while.
    let tables =
        lock.filter(|_| !programs.is_empty()).map(|lock| leak::leak_static(&lower::deployment(config, lock, "check", "")));
    program::check_stored(config, programs, tables.map(|tables| tables.catalog), diagnostics);
    // The cost of a program is not a fault, so `--check` does not report it.
    diagnostics.forget(Code::ProgramCost);
}

/// Returns the config named on the command line.
pub(crate) fn config_path(args: &Build) -> Result<&Path, Failure> {
    args.config.as_deref().ok_or_else(|| Failure::new("no config given").hint("ptc-compile upstreams.json"))
}

/// Reads and checks a config and the OpenAPI documents that it names as files.
pub(crate) fn load(path: &Path, syntax: Syntax) -> Result<Checked, Failure> {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let file = read_source(path, &mut sources, &mut diagnostics)?;
    let config = file.and_then(|file| config::read_as(&sources, file, syntax, &mut diagnostics));
    let folder = files::folder(path);
    let mut schema = |path: &str, most: u64| files::read(&folder, path, most, "the limit of `schema_max_bytes`");
    let mut program = |path: &str, most: u64| files::read(&folder, path, most, "the most that is read");
    let (documents, programs) = match &config {
        Some(config) => (
            openapi::read(&mut sources, config, &mut diagnostics, &mut schema),
            programs::read(&mut sources, config, &mut diagnostics, &mut program),
        ),
        None => (BTreeMap::new(), Vec::new()),
    };
    for (name, locked) in &documents {
        if let Some(Transport::OpenApi(entry)) = config.as_ref().and_then(|c| c.upstreams.get(name)).map(|u| &u.transport) {
            defaults::check(entry, locked, &mut diagnostics);
        }
    }
    Ok(Checked { sources, diagnostics, config, documents, programs, folder })
}

/// Returns the syntax of configs: JSON with extensions, or strict JSON.
pub(crate) fn syntax(args: &Build) -> Syntax {
    if args.strict_json { Syntax::STRICT } else { Syntax::CONFIG }
}

/// Checks the machine. No command may be this program or the one to be built. With `--check-env` every command and secret must be
/// present.
pub(crate) fn environment(args: &Build, checked: &mut Checked) {
    if args.agentic {
        // An unused binding may be the key of the planner's model.
        checked.diagnostics.forget(Code::UnusedBinding);
    }
    let Checked { config: Some(config), folder, diagnostics, .. } = &mut *checked else { return };
    commands::check_self(config, folder, args.output.as_deref(), diagnostics);
    if args.check_env {
        commands::check_found(config, folder, diagnostics);
        secrets(checked);
    }
}

/// Returns the deployment of a config as a lock pins it, with its stored programs. Reports faults of the programs. A deployment
/// with a planner includes every credential, since the planner's key may be any of them.
pub(crate) fn deployment(checked: &mut Checked, lock: &Lock, name: &str, agentic: bool) -> Option<StaticDeployment> {
    let Checked { config: Some(config), sources, diagnostics, programs, .. } = checked else { return None };
    let digest = lock::sha256(sources.get(config.file).text.as_bytes());
    lower::paging::check_overrides(config, lock, diagnostics);
    let mut deployment = lower::deployment(config, lock, name, &digest);
    deployment.compiler = format!("{}+{}", ptc_compiler::VERSION, source::COMPILER_DIGEST);
    if agentic {
        deployment.credentials = lower::credentials(config, |_| true);
    }
    deployment.programs = std::mem::take(programs);
    let deployment = StaticDeployment::new(deployment);
    program::check_stored(config, &deployment.model.programs, Some(deployment.tables.catalog), diagnostics);
    Some(deployment)
}

/// Reports every secret that cannot be read on this machine, with the same check that the server makes when it starts.
fn secrets(checked: &mut Checked) {
    let Some(config) = &checked.config else { return };
    // The deployment has no tools here, because only the secrets of upstreams are checked.
    let deployment = leak::leak_static(&lower::deployment(config, &Lock::default(), "check-env", ""));
    ptc_runtime::secrets::seal();
    for missing in Secrets::resolve(deployment, &checked.folder).err().unwrap_or_default() {
        let binding = missing.binding.and_then(|name| config.credentials.get(name)).map(|binding| binding.place.clone());
        let upstream = missing.upstreams.first().and_then(|name| config.upstreams.get(*name));
        let variable = || match (missing.variable, upstream.map(|upstream| &upstream.transport)) {
            (Some(name), Some(Transport::McpStdio(stdio))) => stdio.env_places.get(name).cloned(),
            _ => None,
        };
        let mut diagnostic = Diagnostic::new(Code::SecretUnavailable, missing.to_string());
        if let Some(place) = binding.or_else(variable).or_else(|| upstream.map(|upstream| upstream.place.clone())) {
            diagnostic = diagnostic.at(place, "");
        }
        checked.diagnostics.push(diagnostic);
    }
}

/// Adds a config or a lock file to `sources`. Returns `None` and reports a finding if the file exceeds the maximum size.
pub(crate) fn read_source(path: &Path, sources: &mut Sources, diagnostics: &mut Diagnostics) -> Result<Option<FileId>, Failure> {
    let name = path.display().to_string();
    if std::fs::metadata(path).is_ok_and(|file| file.len() > MAX_BYTES as u64) {
        diagnostics.push(too_large(&name));
        return Ok(None);
    }
    Ok(Some(sources.add(name, read_text(path)?)))
}

/// Reads a file that the command line names. Reading stops one byte after the maximum size, since a device may be endless.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        let failure = Failure::new(format!("cannot read `{}`: {error}", path.display()));
        if path.is_dir() {
            failure.hint(format!("name a file in it, such as `{}`", path.join("upstreams.json").display()))
        } else {
            failure
        }
    })?;
    if bytes.len() > MAX_BYTES {
        return Err(Failure::new(too_large(&path.display().to_string()).message));
    }
    decode(bytes).map_err(|fault| Failure::new(format!("cannot read `{}`: {}", path.display(), fault.what)).hint(fault.hint))
}

/// Describes how lists are paged: one line for each tool that `tool/all` can read by its schemas or by the config.
fn paged(deployment: &ir::Deployment) -> String {
    let tools = deployment.upstreams.iter().flat_map(|upstream| upstream.tools.iter().map(move |tool| (&upstream.name, tool)));
    let paged: Vec<String> = tools
        .filter_map(|(upstream, tool)| {
            let how = ptc_catalog::Paging::parse(&tool.paging)?.described();
            Some(format!("  {upstream}/{}: {how}\n", tool.name))
        })
        .collect();
    if paged.is_empty() {
        return String::new();
    }
    let more = paged.len().saturating_sub(MAX_PAGED);
    let rest = if more == 0 { String::new() } else { format!("  and {more} more, each under `paging` in the lock file\n") };
    let shown: String = paged.iter().take(MAX_PAGED).map(String::as_str).collect();
    format!("tool/all reads the pages of {} of {} tools:\n{shown}{rest}", paged.len(), deployment.tool_count())
}

fn summary(config: &Config) -> String {
    let count = config.upstreams.len();
    format!("no faults in {count} {}", if count == 1 { "upstream" } else { "upstreams" })
}
