//! The generated crate on disk.

use std::path::{Path, PathBuf};

use ptc_compiler::ir::Deployment;
use ptc_compiler::lock;
use ptc_compiler::pinned;
use ptc_compiler::render::{self, Manifest};

use crate::source::Source;
use crate::{Failure, files};

/// Writes the crate of a deployment; only files that changed, so that cargo builds only what changed. Returns its folder.
pub(crate) fn generate(deployment: &Deployment, source: &Source, config: &Path, output: &Path) -> Result<PathBuf, Failure> {
    let package = package(&deployment.name, config, output);
    let folder = source.target.join("ptc/crates").join(&package);
    let manifest = Manifest::new(&*package, deployment, source.origin.clone(), &*source.profile);
    let rendered = render::files(deployment, &manifest).map_err(|error| Failure::new(error.to_string()))?;
    for file in rendered {
        files::write_if_changed(&folder.join(file.path), file.text.as_bytes())?;
    }
    // Cargo takes out of the lock what this crate does not use and puts the crate in. The text that it started from stays
    // beside it, so that this happens once for each resolution.
    if let Some(lock) = &source.cargo_lock
        && (files::write_if_changed(&folder.join("Cargo.lock.origin"), lock.as_bytes())? || !folder.join("Cargo.lock").is_file())
    {
        files::write_if_changed(&folder.join("Cargo.lock"), lock.as_bytes())?;
    }
    Ok(folder)
}

/// A package name for one config and one output: binaries of all deployments lie side by side in the shared target directory.
fn package(name: &str, config: &Path, output: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let key = format!("{}\n{}", absolute(config).display(), absolute(output).display());
    let digest = lock::sha256(key.as_bytes());
    let short = digest.get("sha256:".len()..).and_then(|hex| hex.get(..8)).unwrap_or_default();
    let slug: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    format!("ptc-{}-{short}", slug.trim_matches('-'))
}

/// The name of a deployment: the stem of its output, else what its config is called.
pub(crate) fn name(config: &Path, output: Option<&Path>) -> String {
    match output.and_then(Path::file_stem) {
        Some(stem) => stem.to_string_lossy().into_owned(),
        None => pinned::deployment_name(&std::path::absolute(config).unwrap_or_else(|_| config.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_are_named_after_what_tells_them_apart() {
        assert_eq!(name(Path::new("fixtures/quickstart/upstreams.json"), None), "quickstart");
        assert_eq!(name(Path::new("a/clinic.json"), None), "clinic");
        assert_eq!(name(Path::new("a/upstreams.json"), Some(Path::new("out/gate.exe"))), "gate");
    }

    #[test]
    fn packages_of_two_outputs_differ() {
        let of = |output: &str| package("a b", Path::new("c.json"), Path::new(output));
        assert_ne!(of("x"), of("y"));
        assert!(of("x").starts_with("ptc-a-b-"));
    }
}
