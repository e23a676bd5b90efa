//! Finds the runtime for the generated crate: in this workspace, or as the copy inside `ptc-compile`.

use std::path::{Path, PathBuf};

use crate::build_args::RuntimeSource;
use crate::{Failure, files};

/// The runtime's part of the workspace at the time when this program was built: path and content of every file, sorted by path.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// SHA-256 of the compiler's own sources and templates, in lower-case hex.
pub(crate) static COMPILER_DIGEST: &str = embedded::COMPILER;

/// The platform of this program, for which every deployment is built.
pub(crate) static HOST: &str = embedded::HOST;

/// The folder for binaries outside of a checkout, relative to the current one.
const BINARIES: &str = "target/ptc";

/// The folders and files that a build uses.
#[derive(Debug)]
pub(crate) struct Source {
    /// The folder that holds `runtime/`.
    pub(crate) root: PathBuf,
    /// The `Cargo.lock` with which the runtime was tested.
    pub(crate) cargo_lock: String,
    /// The `[profile.release]` sections of the workspace's manifest.
    pub(crate) profile: String,
    /// The target directory that all deployments share.
    pub(crate) target: PathBuf,
    /// The folder for binaries without an explicit output path.
    pub(crate) binaries: PathBuf,
}

impl Source {
    /// Returns the path of a deployment's binary without an explicit output path.
    pub(crate) fn default_output(&self, deployment: &str) -> PathBuf {
        self.binaries.join(format!("{deployment}{}", std::env::consts::EXE_SUFFIX))
    }
}

/// Finds the runtime.
///
/// A `ptc-compile` in a checkout's target directory builds from that checkout, so that a change of the runtime is in the next
/// binary. Elsewhere it unpacks its own copy into a cache directory.
pub(crate) fn find(wanted: Option<RuntimeSource>) -> Result<Source, Failure> {
    match wanted {
        None => match std::env::current_exe().ok().as_deref().and_then(checkout) {
            Some(root) => workspace(root),
            None => embedded(),
        },
        Some(RuntimeSource::Workspace) => {
            let places = [std::env::current_exe(), std::env::current_dir()];
            match places.iter().flatten().find_map(|place| checkout(place)) {
                Some(root) => workspace(root),
                None => Err(Failure::new("no workspace of the runtime around this ptc-compile or the current folder")
                    .hint("leave `--runtime-source` out to build from the copy inside ptc-compile")),
            }
        }
        Some(RuntimeSource::Embedded) => embedded(),
    }
}

/// Returns the folder for binaries without an explicit output path, without looking for sources.
pub(crate) fn binaries() -> PathBuf {
    let this = std::env::current_exe().ok();
    this.as_deref().and_then(checkout).map_or_else(|| PathBuf::from(BINARIES), |root| target(root).join("ptc"))
}

/// Returns the `Cargo.lock` with which the runtime was built.
pub(crate) fn lock() -> &'static str {
    embedded::LOCK
}

/// Returns the checkout that contains a path.
fn checkout(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.join("runtime/catalog/Cargo.toml").is_file() && folder.join("Cargo.lock").is_file())
}

fn workspace(root: &Path) -> Result<Source, Failure> {
    let read = |name: &str| {
        let path = root.join(name);
        std::fs::read_to_string(&path).map_err(|error| Failure::new(format!("cannot read `{}`: {error}", path.display())))
    };
    let target = target(root);
    Ok(Source {
        root: root.to_owned(),
        cargo_lock: read("Cargo.lock")?,
        profile: profile(&read("Cargo.toml")?),
        binaries: target.join("ptc"),
        target,
    })
}

/// Returns cargo's target directory of a checkout.
fn target(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => std::path::absolute(PathBuf::from(dir)).unwrap_or_else(|_| root.join("target")),
        None => root.join("target"),
    }
}

fn embedded() -> Result<Source, Failure> {
    let cache = cache()?;
    let root = cache.join(format!("runtime-{}", embedded::DIGEST));
    unpack(&root)?;
    Ok(Source {
        root,
        cargo_lock: embedded::LOCK.to_owned(),
        profile: profile(embedded::MANIFEST),
        target: cache.join("target"),
        binaries: PathBuf::from(BINARIES),
    })
}

/// Unpacks the copy once, into a temporary folder that is then renamed, so that an incomplete copy is never visible.
fn unpack(root: &Path) -> Result<(), Failure> {
    if root.join("Cargo.toml").is_file() {
        return Ok(());
    }
    let beside = root.with_extension(format!("{}.tmp", std::process::id()));
    for (path, bytes) in embedded::FILES {
        files::write_if_changed(&beside.join(path), bytes)?;
    }
    files::write_if_changed(&beside.join("Cargo.lock"), embedded::LOCK.as_bytes())?;
    // Write this file last, since its presence means that the copy is complete.
    files::write_if_changed(&beside.join("Cargo.toml"), embedded::MANIFEST.as_bytes())?;
    match std::fs::rename(&beside, root) {
        Ok(()) => Ok(()),
        // Another ptc-compile has unpacked an equal copy first.
        Err(_) if root.join("Cargo.toml").is_file() => {
            let _ = std::fs::remove_dir_all(&beside);
            Ok(())
        }
        Err(error) => Err(Failure::new(format!("cannot write `{}`: {error}", root.display()))),
    }
}

/// `$PTC_COMPILE_CACHE`, or `ptc-compile` in the user's cache directory.
fn cache() -> Result<PathBuf, Failure> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = set("PTC_COMPILE_CACHE");
    let shared = || set("XDG_CACHE_HOME").or_else(|| set("LOCALAPPDATA")).or_else(|| set("HOME").map(|home| home.join(".cache")));
    let cache = own.or_else(|| shared().map(|dir| dir.join("ptc-compile")));
    let cache = cache.ok_or_else(|| {
        Failure::new("no cache directory to build in: none of PTC_COMPILE_CACHE, XDG_CACHE_HOME and HOME is set")
            .hint("set PTC_COMPILE_CACHE to a folder that can be written")
    })?;
    std::path::absolute(&cache)
        .map_err(|error| Failure::new(format!("cannot use the cache directory `{}`: {error}", cache.display())))
}

/// Returns the sections of the release profile in a workspace manifest, unchanged.
fn profile(manifest: &str) -> String {
    let mut inside = false;
    let lines = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            inside = line.starts_with("[profile.release]") || line.starts_with("[profile.release.");
        }
        inside && !line.starts_with('#')
    });
    let sections: Vec<&str> = lines.collect();
    sections.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_profile_is_copied_unchanged() {
        let manifest = "[workspace]\n\n[profile.release]\nstrip = true\n# why\nlto = false\n\n[profile.release.package.a]\n\
                        opt-level = 3\n\n[profile.dev]\ndebug = 1\n";
        assert_eq!(
            profile(manifest),
            "[profile.release]\nstrip = true\nlto = false\n\n[profile.release.package.a]\nopt-level = 3"
        );
        assert!(profile(embedded::MANIFEST).contains("panic"));
    }

    #[test]
    fn embedded_copy_contains_only_the_runtime() {
        assert!(embedded::FILES.iter().any(|(path, _)| *path == "runtime/src/lib.rs"));
        assert!(embedded::FILES.iter().all(|(path, _)| path.starts_with("runtime/")));
        let members = embedded::MANIFEST.lines().find(|line| line.starts_with("members = ")).unwrap_or_default();
        assert_eq!(
            members,
            r#"members = ["runtime", "runtime/cassette", "runtime/catalog", "runtime/check", "runtime/engine", "runtime/isolation", "runtime/json", "runtime/json-schema", "runtime/lisp", "runtime/log", "runtime/oauth-client", "runtime/otlp", "runtime/policy", "runtime/regex", "runtime/resource-server", "runtime/schedule", "runtime/search", "runtime/secrets", "runtime/session-redis", "runtime/text", "runtime/upstream", "runtime/viewer"]"#
        );
    }
}
