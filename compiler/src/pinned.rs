//! Reads a deployment from files alone: config, OpenAPI documents, lock file. It contacts no upstream and writes nothing.

use std::collections::BTreeMap;

use crate::config::{self, Config};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::input::{Text, Wanted};
use crate::ir::{Deployment, Program};
use crate::lock::{self, Lock, LockedUpstream};
use crate::lower;
use crate::openapi;
use crate::programs;
use crate::source::Sources;
use crate::{checks, drift, resolve};

pub use crate::input::Reader;

/// A config and the files beside it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The config. Faulty entries are left out.
    pub config: Config,
    /// The included operations of the OpenAPI documents that are files, by upstream.
    pub documents: BTreeMap<String, LockedUpstream>,
    /// The stored programs of the config.
    pub programs: Vec<Program>,
    /// The lock file; empty if there is none.
    pub known: Lock,
}

/// Reads the config file `name`, such as `upstreams.json`, and the files beside it. Returns `None` if the config or the lock file
/// cannot be used at all. Less severe faults are in `diagnostics` too, so check [`Diagnostics::has_errors`].
pub fn load(name: &str, sources: &mut Sources, diagnostics: &mut Diagnostics, reader: &mut Reader<'_>) -> Option<Loaded> {
    let text = match reader(&Wanted::new(name, u64::MAX)) {
        Ok(text) => text,
        Err(reason) => {
            diagnostics.push(Diagnostic::new(Code::ConfigUnreadable, format!("`{name}` cannot be read: {reason}")));
            return None;
        }
    };
    let file = sources.add(text.path, text.text);
    let config = config::read(sources, file, diagnostics)?;
    let documents = openapi::read(sources, &config, diagnostics, reader);
    let programs = programs::read(sources, &config, diagnostics, reader);
    let known = match reader(&Wanted::new(&lock_name(name), u64::MAX)) {
        Ok(Text { path, text, .. }) => {
            let file = sources.add(path, text);
            lock::read::read(sources, file, diagnostics)?
        }
        Err(_) => Lock::default(),
    };
    Some(Loaded { config, documents, programs, known })
}

/// Returns the deployment of the config file `name` (such as `upstreams.json`), called `deployment`, exactly as the lock file
/// beside it pins it. Returns `None` if there are faults, which are then in `diagnostics`.
pub fn read(
    name: &str,
    deployment: &str,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
    reader: &mut Reader<'_>,
) -> Option<Deployment> {
    read_with_lock(name, deployment, sources, diagnostics, reader).map(|(deployment, _)| deployment)
}

/// Like [`read`], with the lock that the deployment was made from.
pub fn read_with_lock(
    name: &str,
    deployment: &str,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
    reader: &mut Reader<'_>,
) -> Option<(Deployment, Lock)> {
    let Loaded { config, documents, programs, known } = load(name, sources, diagnostics, reader)?;
    for need in resolve::missing_pins(&config, &known) {
        let message = format!("the upstream `{}` {}", need.upstream, need.why);
        let mut diagnostic = Diagnostic::new(Code::LockStale, message).hint(drift::update_hint(name, &need.upstream));
        if let Some(upstream) = config.upstreams.get(&need.upstream) {
            diagnostic = diagnostic.at(upstream.place.clone(), "");
        }
        diagnostics.push(diagnostic);
    }
    if diagnostics.has_errors() {
        return None;
    }
    let lock = resolve::merge(&config, &known, documents);
    checks::read_only::check(&config, &lock, diagnostics);
    diagnostics.extend(resolve::changes(&config, name, &known, &lock));
    (!diagnostics.has_errors()).then(|| {
        let mut deployment = lower::deployment(&config, &lock, deployment);
        deployment.programs = programs;
        (deployment, lock)
    })
}

/// Returns the name of the lock file of a config file: `upstreams.lock.json` for `upstreams.json`.
pub fn lock_name(config: &str) -> String {
    format!("{}.lock.json", config.strip_suffix(".json").unwrap_or(config))
}

/// Returns the name of a deployment: the stem of its config file, or the config's folder if the file is called `upstreams.json`.
pub fn deployment_name(config: &std::path::Path) -> String {
    let text = |part: Option<&std::ffi::OsStr>| part.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = text(config.file_stem());
    let folder = text(config.parent().and_then(std::path::Path::file_name));
    if stem == "upstreams" && !folder.is_empty() { folder } else { stem }
}
