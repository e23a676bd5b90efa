//! A deployment from files alone: config, OpenAPI documents, lock file. Nothing is contacted and nothing is written.

use std::collections::BTreeMap;

use crate::config::{self, Config};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::ir::{Deployment, Program};
use crate::lock::{self, Lock, LockedUpstream, cover};
use crate::lower;
use crate::openapi::{self, Text};
use crate::programs;
use crate::source::Sources;

/// Reads a file beside the config: its path, relative to the config's folder, and the most bytes that it may have.
pub type Reader<'a> = openapi::Reader<'a>;

/// A config and the files beside it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The config. Entries with faults are left out.
    pub config: Config,
    /// SHA-256 of its text.
    pub digest: String,
    /// What it includes of the OpenAPI documents that are files, by upstream.
    pub documents: BTreeMap<String, LockedUpstream>,
    /// Its stored programs.
    pub programs: Vec<Program>,
    /// The lock file; empty where there is none.
    pub known: Lock,
}

/// Reads the config file `name`, such as `upstreams.json`, and the files beside it. `None` where the config or the lock file cannot be
/// used at all. Faults that leave something to read are among `diagnostics` too, so look at [`Diagnostics::has_errors`].
pub fn load(name: &str, sources: &mut Sources, diagnostics: &mut Diagnostics, reader: &mut Reader<'_>) -> Option<Loaded> {
    let text = match reader(name, u64::MAX) {
        Ok(text) => text,
        Err(reason) => {
            diagnostics.push(Diagnostic::new(Code::ConfigUnreadable, format!("`{name}` cannot be read: {reason}")));
            return None;
        }
    };
    let digest = lock::sha256(text.text.as_bytes());
    let file = sources.add(text.path, text.text);
    let config = config::read(sources, file, diagnostics)?;
    let documents = openapi::read(sources, &config, diagnostics, reader);
    let programs = programs::read(sources, &config, diagnostics, reader);
    let known = match reader(&lock_name(name), u64::MAX) {
        Ok(Text { path, text, .. }) => {
            let file = sources.add(path, text);
            lock::read::read(sources, file, diagnostics)?
        }
        Err(_) => Lock::default(),
    };
    Some(Loaded { config, digest, documents, programs, known })
}

/// The deployment of the config file `name` (such as `upstreams.json`), called `deployment`, exactly as the lock file beside it
/// pins it. `None` where there are faults; then `diagnostics` has them.
pub fn read(
    name: &str,
    deployment: &str,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
    reader: &mut Reader<'_>,
) -> Option<Deployment> {
    let Loaded { config, digest, documents, programs, known } = load(name, sources, diagnostics, reader)?;
    let lock_name = lock_name(name);
    for need in cover::needs(&config, &known) {
        let message = format!("the upstream `{}` {}", need.upstream, need.why);
        let mut diagnostic = Diagnostic::new(Code::LockStale, message)
            .hint(format!("run `ptc-compile {name}`, which writes `{lock_name}`, and commit it"));
        if let Some(upstream) = config.upstreams.get(&need.upstream) {
            diagnostic = diagnostic.at(upstream.place.clone(), "");
        }
        diagnostics.push(diagnostic);
    }
    if diagnostics.has_errors() {
        return None;
    }
    let lock = cover::cover(&config, &known, documents);
    diagnostics.extend(cover::changes(&config, &known, &lock));
    (!diagnostics.has_errors()).then(|| {
        let mut deployment = lower::deployment(&config, &lock, deployment, &digest);
        deployment.programs = programs;
        deployment
    })
}

/// The lock file of a config file: `upstreams.lock.json` of `upstreams.json`.
pub fn lock_name(config: &str) -> String {
    format!("{}.lock.json", config.strip_suffix(".json").unwrap_or(config))
}

/// The name of a deployment: the stem of its config, or the config's folder where that is called `upstreams.json`.
pub fn deployment_name(config: &std::path::Path) -> String {
    let text = |part: Option<&std::ffi::OsStr>| part.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = text(config.file_stem());
    let folder = text(config.parent().and_then(std::path::Path::file_name));
    if stem == "upstreams" && !folder.is_empty() { folder } else { stem }
}
