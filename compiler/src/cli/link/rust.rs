//! `--link rust`: generates a crate with the catalog's tables and builds it with cargo.

use ptc_compiler::leak::StaticDeployment;

use super::Outputs;
use crate::build_args::Build;
use crate::console::Console;
use crate::progress::Progress;
use crate::source::Source;
use crate::{Failure, cargo, files, generate, sbom};

/// Builds the binary and writes the documents about it. Returns the size of the binary.
///
/// # Errors
///
/// If cargo fails, or a file cannot be written.
pub(super) fn link(
    source: &Source,
    deployment: &StaticDeployment,
    outputs: &Outputs<'_>,
    args: &Build,
    console: &Console,
) -> Result<u64, Failure> {
    let name = deployment.model.name.as_str();
    let generated = generate::generate(&deployment.model, args.abilities(), source)?;
    let first = if cargo::has_compiled_runtime(source) { "" } else { "; the first deployment on a machine takes a few minutes" };
    let progress = Progress::start(console, &format!("compiling {name}{first}"));
    let built = cargo::build(&generated.folder, source, args, &progress);
    drop(progress);
    let size = files::copy_program(&built?, outputs.binary)?;
    if outputs.sbom.is_some() || outputs.notices.is_some() {
        let (metadata, lock) = cargo::resolution(&generated.folder, source, args.offline)?;
        if let Some(path) = outputs.sbom {
            files::write_if_changed(path, sbom::document(deployment, &metadata, &lock)?.as_bytes())?;
        }
        if let Some(path) = outputs.notices {
            files::write_if_changed(path, notices(name, &metadata)?.as_bytes())?;
        }
    }
    Ok(size)
}

fn notices(name: &str, metadata: &serde_json::Value) -> Result<String, Failure> {
    ptc_packages::notices::document(name, metadata).map_err(|error| Failure::new(error.to_string()))
}
