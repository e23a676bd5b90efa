//! Writes the generated crate to disk.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use ptc_compiler::ir::Deployment;
use ptc_compiler::pinned;
use ptc_compiler::render::{self, Abilities, Manifest, toml_string};

use crate::source::Source;
use crate::{Failure, files};

const MANIFEST: &str = "Cargo.toml";

/// A generated crate. Until it is dropped, no other `ptc-compile` generates or builds a crate of the same name.
pub(crate) struct Generated {
    /// The folder of the crate.
    pub(crate) folder: PathBuf,
    _lock: File,
}

/// Writes the crate of a deployment. Only changed files are written, so that cargo rebuilds only what changed.
///
/// The text depends on the deployment alone. The location of the runtime, which depends on the machine, is in
/// `.cargo/config.toml` of the crate.
pub(crate) fn generate(deployment: &Deployment, abilities: impl Into<Abilities>, source: &Source) -> Result<Generated, Failure> {
    let package = package(&deployment.name);
    let crates = source.target.join("ptc/crates");
    let folder = crates.join(&package);
    let lock = exclusive(&crates.join(format!("{package}.lock")))?;
    let manifest = Manifest::new(&*package, deployment, abilities, &*source.profile);
    let rendered = render::files(deployment, &manifest).map_err(|error| Failure::new(error.to_string()))?;
    // Cargo removes packages that this crate does not use from the lock file, and adds the crate. The original text is kept
    // beside it, so that this happens once for each resolution; a manifest that needs more packages starts from the original
    // again. The lock file is reset before the files that show that a reset is needed are written, and the manifest is written
    // last. If a run is interrupted, the next one therefore repairs its work.
    let origin = source.cargo_lock.as_bytes();
    let same = |name: &str, bytes: &[u8]| std::fs::read(folder.join(name)).is_ok_and(|old| old == bytes);
    let needs_same = rendered.iter().filter(|file| file.path == MANIFEST).all(|file| same(MANIFEST, file.text.as_bytes()));
    if !needs_same || !same("Cargo.lock.origin", origin) || !folder.join("Cargo.lock").is_file() {
        files::write_if_changed(&folder.join("Cargo.lock"), origin)?;
    }
    files::write_if_changed(&folder.join("Cargo.lock.origin"), origin)?;
    files::write_if_changed(&folder.join(".cargo/config.toml"), patches(&source.root, &manifest).as_bytes())?;
    let (manifest, others): (Vec<_>, Vec<_>) = rendered.into_iter().partition(|file| file.path == MANIFEST);
    for file in others.into_iter().chain(manifest) {
        files::write_if_changed(&folder.join(file.path), file.text.as_bytes())?;
    }
    Ok(Generated { folder, _lock: lock })
}

/// Returns cargo's configuration that maps the runtime's packages to its sources.
fn patches(root: &Path, manifest: &Manifest) -> String {
    let mut text = String::from("[patch.crates-io]\n");
    for (package, folder) in manifest.dependencies() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{package} = {{ path = {} }}", toml_string(&root.join(folder).display().to_string()));
    }
    text
}

/// Takes an exclusive lock, which is released when the file is closed or the process ends.
fn exclusive(path: &Path) -> Result<File, Failure> {
    files::write_if_changed(path, b"")?;
    let locked = File::options().write(true).open(path).and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| Failure::new(format!("cannot lock `{}`: {error}", path.display())))
}

/// Returns the package name of a deployment. Binaries of all deployments are side by side in one target directory.
fn package(name: &str) -> String {
    let slug: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    format!("ptc-{}", slug.trim_matches('-'))
}

/// Returns the name of a deployment: the stem of its output file, else the name derived from its config.
pub(crate) fn name(config: &Path, output: Option<&Path>) -> String {
    match output.and_then(Path::file_stem) {
        Some(stem) => stem.to_string_lossy().into_owned(),
        None => pinned::deployment_name(&std::path::absolute(config).unwrap_or_else(|_| config.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ptc_compiler::ir;

    use ptc_compiler::render::Serve;

    use super::*;

    #[test]
    fn deployment_names_contain_what_distinguishes_them() {
        assert_eq!(name(Path::new("fixtures/quickstart/upstreams.json"), None), "quickstart");
        assert_eq!(name(Path::new("a/clinic.json"), None), "clinic");
        assert_eq!(name(Path::new("a/upstreams.json"), Some(Path::new("out/gate.exe"))), "gate");
        assert_eq!(package("a b"), "ptc-a-b");
    }

    /// Returns every file of a generated crate except cargo's configuration, by its path in the crate.
    fn texts(folder: &Path) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut waiting = vec![folder.to_owned()];
        while let Some(at) = waiting.pop() {
            for entry in std::fs::read_dir(&at).expect("the crate is there").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    waiting.extend(Some(path).filter(|path| !path.ends_with(".cargo")));
                } else {
                    let name = path.strip_prefix(folder).expect("the path is in the crate").to_owned();
                    found.insert(name, std::fs::read_to_string(&path).expect("generated files are text"));
                }
            }
        }
        found
    }

    fn clinic() -> ir::Deployment {
        ir::Deployment {
            name: "clinic".into(),
            server_name: String::new(),
            compiler: "0.1.0".into(),
            config_digest: "sha256:1".into(),
            catalog_digest: "sha256:2".into(),
            credentials: Vec::new(),
            upstreams: Vec::new(),
            programs: Vec::new(),
            policy: None,
        }
    }

    fn source(place: &Path) -> Source {
        Source {
            root: place.join("checkout"),
            cargo_lock: "version = 4\n".into(),
            profile: "[profile.release]\nstrip = true".into(),
            target: place.join("target"),
            binaries: place.join("bin"),
        }
    }

    #[test]
    fn generation_after_a_failed_one_completes_the_crate() {
        let place = std::env::temp_dir().join(format!("ptc-generate-{}-stopped", std::process::id()));
        let source = source(&place);
        let folder = generate(&clinic(), Serve::Http, &source).expect("it can be generated").folder;
        std::fs::write(folder.join("Cargo.lock"), "what cargo made of it\n").expect("cargo writes its lock");
        let configuration = folder.join(".cargo/config.toml");
        std::fs::remove_file(&configuration).expect("it was written");
        std::fs::create_dir_all(configuration.join("in the way")).expect("a folder");
        assert!(generate(&clinic(), Serve::Https, &source).is_err(), "there is a folder at the path of a file");
        std::fs::remove_dir_all(&configuration).expect("it was made");
        generate(&clinic(), Serve::Https, &source).expect("nothing is in the way");
        let lock = std::fs::read_to_string(folder.join("Cargo.lock")).expect("a lock");
        let _ = std::fs::remove_dir_all(&place);
        assert_eq!(lock, source.cargo_lock, "a manifest with other needs starts from the whole resolution");
    }

    #[test]
    fn generated_crate_is_independent_of_its_folder() {
        let deployment = clinic();
        let places: Vec<PathBuf> = ["here", "there"]
            .iter()
            .map(|place| std::env::temp_dir().join(format!("ptc-generate-{}-{place}", std::process::id())))
            .collect();
        let crates: Vec<BTreeMap<PathBuf, String>> = places
            .iter()
            .map(|place| {
                let generated = generate(&deployment, Serve::Http, &source(place)).expect("it can be generated");
                let configuration = std::fs::read_to_string(generated.folder.join(".cargo/config.toml"))
                    .expect("cargo's configuration is generated");
                assert!(configuration.contains(&place.display().to_string()), "{configuration}");
                texts(&generated.folder)
            })
            .collect();
        for place in &places {
            let _ = std::fs::remove_dir_all(place);
        }
        assert_eq!(crates.first(), crates.last());
        for (name, text) in crates.first().expect("two were generated") {
            assert!(!text.contains("ptc-generate-"), "{} names a place:\n{text}", name.display());
        }
        assert_eq!(crates.first().map(BTreeMap::len), Some(6));
    }
}
