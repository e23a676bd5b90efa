//! Reads the deployment of a config from files alone, exactly as its lock file pins it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ptc_catalog::Deployment;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::lock::Lock;
use ptc_compiler::source::Sources;
use ptc_compiler::{files, leak, pinned};

use crate::console::Console;

/// A deployment with the files that it was made from.
pub(crate) struct Frozen {
    pub(crate) deployment: &'static Deployment,
    /// The files of the stored programs by name.
    pub(crate) program_files: BTreeMap<String, PathBuf>,
    /// The lock that the deployment was made from.
    pub(crate) lock: Lock,
    /// All files that the deployment was made from.
    pub(crate) files: Vec<PathBuf>,
}

/// Returns the deployment. Prints the findings and returns `None` if one of them is an error.
pub(crate) fn open(config: &Path, console: &Console) -> Option<&'static Deployment> {
    open_all(config, console).map(|frozen| frozen.deployment)
}

/// Like [`open`], with the files of the stored programs and the lock.
pub(crate) fn open_all(config: &Path, console: &Console) -> Option<Frozen> {
    open_or_files(config, console).ok()
}

/// Like [`open_all`].
///
/// # Errors
///
/// Returns the files that were read, on which the findings depend.
pub(crate) fn open_or_files(config: &Path, console: &Console) -> Result<Frozen, Vec<PathBuf>> {
    let mut sources = Sources::default();
    let mut diagnostics = Diagnostics::default();
    let folder = files::folder(config);
    let name = config.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let deployment_name = pinned::deployment_name(config);
    let mut read_files = Vec::new();
    let mut reader = |wanted: &ptc_compiler::input::Wanted<'_>| {
        read_files.push(folder.join(wanted.path));
        files::read(&folder, wanted)
    };
    let read = pinned::read_with_lock(&name, &deployment_name, &mut sources, &mut diagnostics, &mut reader);
    if read.is_none() {
        console.findings(&sources, &diagnostics);
    }
    let Some((deployment, lock)) = read else { return Err(read_files) };
    let path = |program: &ptc_compiler::ir::Program| (program.name.clone(), PathBuf::from(&sources.get(program.file).path));
    let program_files = deployment.programs.iter().map(path).collect();
    Ok(Frozen { deployment: leak::leak_static(&deployment), program_files, lock, files: read_files })
}
