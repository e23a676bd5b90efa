//! Runs tests again when their files change.
//!
//! An event of the file system only wakes the loop. What has changed follows from the time and the size of the files, so that it does
//! not matter how an editor writes a file. Events of files that are read are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _, recommended_watcher};
use ptc_text::join_limited;
use tokio::sync::mpsc;

use super::deployments::{Deployments, Stamp, stamp, stamp_at};
use super::interrupt::Interruptible;
use super::{FileResults, Test, TestFormat, discover, status_after};
use crate::console::Console;
use crate::{Failure, Status};

/// How long events are collected before the files are compared.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Maximum number of changed files that are listed.
const LISTED: usize = 5;

/// The state between two runs.
struct Watch {
    watcher: RecommendedWatcher,
    /// The files with tests, each with the files on which its last results depend.
    depends: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    failed: BTreeSet<PathBuf>,
    /// The stamps of all these files before the last run.
    stamps: BTreeMap<PathBuf, Stamp>,
    deployments: Deployments,
}

/// Runs the tests, and those of changed files again, until a signal arrives.
pub(super) fn run(args: &Test, console: &Console) -> Result<Status, Failure> {
    if args.format == TestFormat::Junit {
        let failure = Failure::new("--watch does not go with --format junit, which is one document");
        return Err(failure.hint("`--format json` prints a line for each test"));
    }
    let mut interruptible = Interruptible::new()?;
    let (wake, mut woken) = mpsc::channel(1);
    let watcher = recommended_watcher(move |event: notify::Result<Event>| {
        if !event.is_ok_and(|event| is_read(event.kind)) {
            // If the channel is full, the loop wakes anyway.
            let _ = wake.try_send(());
        }
    });
    let watcher = watcher.map_err(|error| Failure::new(format!("cannot watch files: {error}")))?;
    let mut watch = Watch {
        watcher,
        depends: BTreeMap::new(),
        failed: BTreeSet::new(),
        stamps: BTreeMap::new(),
        deployments: Deployments::default(),
    };
    loop {
        let paths = watch.changed(args, console)?;
        if !paths.is_empty() {
            let started = SystemTime::now();
            let (ran, interrupted) = interruptible.run(args, paths.clone(), watch.deployments.clone(), console);
            if let Some(status) = interrupted {
                return Ok(status_after(&ran, status, console));
            }
            watch.add(paths, ran, started, console)?;
            // A file whose folder was not watched may have changed during the run.
            continue;
        }
        let changed = interruptible.until_signal(async {
            woken.recv().await;
            // An editor writes a file in several steps.
            tokio::time::sleep(DEBOUNCE).await;
            let _ = woken.try_recv();
        });
        if changed.is_none() {
            break;
        }
    }
    Ok(if watch.failed.is_empty() { Status::Clean } else { Status::Findings })
}

impl Watch {
    /// Returns the files with tests that are new, or that depend on a file that has changed. Watches their folders.
    fn changed(&mut self, args: &Test, console: &Console) -> Result<Vec<PathBuf>, Failure> {
        let found = match discover::files(&args.paths) {
            Ok(found) => found,
            Err(failure) if self.depends.is_empty() => return Err(failure),
            // A folder may be missing while it is replaced.
            Err(failure) => {
                console.failure(&failure);
                return Ok(Vec::new());
            }
        };
        self.watch(found.folders)?;
        let known: BTreeSet<PathBuf> = found.files.into_iter().collect();
        self.depends.retain(|path, _| known.contains(path));
        self.failed.retain(|path| known.contains(path));
        let changed: BTreeSet<PathBuf> =
            self.stamps.iter().filter(|(path, before)| stamp(path) != **before).map(|(path, _)| path.clone()).collect();
        let is_affected = |path: &PathBuf| match self.depends.get(path) {
            None => true,
            Some(depends) => changed.contains(path) || !changed.is_disjoint(depends),
        };
        let affected: Vec<PathBuf> = known.into_iter().filter(|path| is_affected(path)).collect();
        if !changed.is_empty() && !affected.is_empty() {
            let names = changed.iter().map(|path| path.display());
            console.message(&format!("\nchanged: {}\n", join_limited(names, ", ", LISTED)));
        }
        // The stamps are older than the run, so that a change during it leads to another one.
        for path in affected.iter().chain(&changed) {
            self.stamps.insert(path.clone(), stamp(path));
        }
        Ok(affected)
    }

    /// Adds the results of a run that has started at a time.
    fn add(
        &mut self,
        paths: Vec<PathBuf>,
        ran: Result<FileResults, Failure>,
        started: SystemTime,
        console: &Console,
    ) -> Result<(), Failure> {
        let FileResults { mut depends, failed } = ran.unwrap_or_else(|failure| {
            // A file may be missing while it is replaced.
            console.failure(&failure);
            FileResults { failed: paths.iter().cloned().collect(), ..FileResults::default() }
        });
        for path in paths {
            self.failed.remove(&path);
            // The files that an earlier run has used stay, since a run that failed early shows not all of them.
            let known = self.depends.entry(path.clone()).or_default();
            known.extend(depends.remove(&path).unwrap_or_default());
            for file in known.iter() {
                self.stamps.entry(file.clone()).or_insert_with(|| stamp_at(file, started));
            }
        }
        self.failed.extend(failed);
        let folders = self.stamps.keys().map(|path| folder(path)).collect();
        self.watch(folders)?;
        console.message(&format!("watching {} files; Ctrl-C ends\n", self.stamps.len()));
        Ok(())
    }

    /// Watches folders. A file itself is not watched, since an editor may replace it by another one.
    fn watch(&mut self, folders: BTreeSet<PathBuf>) -> Result<(), Failure> {
        for folder in folders {
            // A folder that was made again is another one, and a folder that is watched already stays so.
            if folder.is_dir() {
                let watched = self.watcher.watch(&folder, RecursiveMode::NonRecursive);
                watched.map_err(|error| Failure::new(format!("cannot watch the folder {}: {error}", folder.display())))?;
            }
        }
        Ok(())
    }
}

/// Whether an event says only that a file or folder was read. A run of tests reads its files.
fn is_read(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn folder(path: &Path) -> PathBuf {
    ptc_compiler::files::folder(path)
}
