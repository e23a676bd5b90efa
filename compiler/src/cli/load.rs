//! The first stage of a build: reads a config with all files that belong to it, and checks them.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use ptc_compiler::config::model::Transport;
use ptc_compiler::config::{self, Config};
use ptc_compiler::diag::{Diagnostics, suggest};
use ptc_compiler::input::Wanted;
use ptc_compiler::lock::LockedUpstream;
use ptc_compiler::source::{FileId, MAX_BYTES, Sources, decode};
use ptc_compiler::tree::{Syntax, too_large};
use ptc_compiler::{files, ir, openapi, programs};

use crate::build_args::Build;
use crate::{Failure, defaults};

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
    let mut reader = |wanted: &Wanted<'_>| files::read(&folder, wanted);
    let (documents, programs) = match &config {
        Some(config) => (
            openapi::read(&mut sources, config, &mut diagnostics, &mut reader),
            programs::read(&mut sources, config, &mut diagnostics, &mut reader),
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
            match similar_file(path) {
                Some(near) => failure.hint(format!("did you mean `{}`?", near.display())),
                None => failure,
            }
        }
    })?;
    if bytes.len() > MAX_BYTES {
        return Err(Failure::new(too_large(&path.display().to_string()).message));
    }
    decode(bytes).map_err(|fault| Failure::new(format!("cannot read `{}`: {}", path.display(), fault.what)).hint(fault.hint))
}

/// Returns the file in the same folder whose name is closest to that of a file which does not exist.
fn similar_file(path: &Path) -> Option<PathBuf> {
    if path.exists() {
        return None;
    }
    let names: Vec<String> =
        std::fs::read_dir(files::folder(path)).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let near = suggest::closest_match(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(path.with_file_name(near))
}
