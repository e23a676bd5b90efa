//! The deployments of the configs of tests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::Failure;
use crate::console::Console;
use crate::frozen::{self, Frozen};

/// The time and the size of a file. `None` if it does not exist.
pub(super) type Stamp = Option<(SystemTime, u64)>;

/// Returns the stamp of a file.
pub(super) fn stamp(path: &Path) -> Stamp {
    let file = std::fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// Returns the stamp that a file had at a time. If it has changed since then, it is that of a missing file.
pub(super) fn stamp_at(path: &Path, time: SystemTime) -> Stamp {
    stamp(path).filter(|(modified, _)| *modified < time)
}

/// The deployments by config. The memory of a deployment is never freed, so that `--watch` opens a config again only if one of its files
/// has changed.
#[derive(Clone, Default)]
pub(super) struct Deployments(Arc<Mutex<HashMap<PathBuf, Opened>>>);

struct Opened {
    frozen: Arc<Frozen>,
    /// The files of the deployment before they were read.
    stamps: Vec<(PathBuf, Stamp)>,
}

/// Why a config cannot be used.
pub(super) struct Unusable {
    pub(super) failure: Failure,
    /// The files on which that depends.
    pub(super) files: Vec<PathBuf>,
}

impl Deployments {
    /// Returns the deployment of a config.
    pub(super) fn open(&self, config: &Path, console: &Console) -> Result<Arc<Frozen>, Unusable> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |opened: &&Opened| opened.stamps.iter().all(|(path, before)| stamp(path) == *before);
        if let Some(opened) = known.get(config).filter(is_current) {
            return Ok(Arc::clone(&opened.frozen));
        }
        let now = SystemTime::now();
        let frozen = frozen::open_or_files(config, console).map_err(|files| {
            let failure = Failure::new(format!("the config {} cannot be used", config.display()))
                .hint(format!("`ptc-compile --check {} --locked` shows its faults", config.display()));
            Unusable { failure, files }
        })?;
        let frozen = Arc::new(frozen);
        let stamps = frozen.files.iter().map(|path| (path.clone(), stamp_at(path, now))).collect();
        known.insert(config.to_owned(), Opened { frozen: Arc::clone(&frozen), stamps });
        Ok(frozen)
    }
}
