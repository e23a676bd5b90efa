//! Prebuilt runtimes: where they are, and which of them fit this compiler. `runtimes list`, `runtimes add FILE`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ptc_compiler::json::digest::sha256;
use ptc_image::Stamp;

use crate::console::Console;
use crate::{Failure, Status, files};

/// The name of a prebuilt runtime, without the suffix of Windows.
const NAME: &str = "ptc-runtime";

/// Documents about a runtime, in files beside it.
const DOCUMENTS: [&str; 2] = ["packages.json", "notices"];

/// `ptc-compile runtimes`
#[derive(Debug, Args)]
pub(crate) struct Runtimes {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the prebuilt runtimes on this machine, and say which of them `--link prebuilt` and `--target` can use
    List,
    /// Keep a prebuilt runtime for later builds, for example of another platform
    Add {
        /// The runtime, as a package or `cargo build --release --package ptc-prebuilt` has made it
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// A prebuilt runtime that fits this compiler.
pub(crate) struct Runtime {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
    pub(crate) executable: Vec<u8>,
}

impl Runtime {
    /// Reads a runtime.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not a runtime, or belongs to another compiler.
    fn read(path: &Path) -> Result<Runtime, Failure> {
        let executable =
            std::fs::read(path).map_err(|error| Failure::new(format!("cannot read `{}`: {error}", path.display())))?;
        Runtime::check(path, executable)
    }

    /// Checks the content of a file.
    fn check(path: &Path, executable: Vec<u8>) -> Result<Runtime, Failure> {
        let stamp = Stamp::find(&executable)
            .ok_or_else(|| Failure::new(format!("`{}` is not a prebuilt runtime of ptc-compile", path.display())))?;
        if let Some(difference) = difference(&stamp) {
            return Err(Failure::new(format!("the prebuilt runtime `{}` {difference}", path.display()))
                .hint("take the runtime and ptc-compile from the same package or checkout"));
        }
        let sum = checksum_path(path);
        if let Ok(expected) = std::fs::read_to_string(&sum)
            && expected.trim() != sha256(&executable)
        {
            return Err(Failure::new(format!("the prebuilt runtime `{}` has changed since it was added", path.display()))
                .hint("add it again with `ptc-compile runtimes add FILE`"));
        }
        Ok(Runtime { path: path.to_owned(), stamp, executable })
    }

    /// Whether there is a document about the runtime.
    pub(super) fn has_document(&self, name: &str) -> bool {
        document_path(&self.path, name).is_file()
    }

    /// Returns a document about the runtime, which is in a file beside it.
    ///
    /// # Errors
    ///
    /// If there is no such file.
    pub(super) fn document(&self, name: &str) -> Result<String, Failure> {
        let path = document_path(&self.path, name);
        std::fs::read_to_string(&path).map_err(|error| {
            Failure::new(format!("cannot read `{}`, which belongs to the prebuilt runtime: {error}", path.display()))
                .hint("packages contain it; in a checkout, choose `--link rust`")
        })
    }
}

/// Returns how a runtime differs from the one that this compiler needs.
fn difference(stamp: &Stamp) -> Option<String> {
    let version = ptc_compiler::VERSION;
    if stamp.version != version {
        Some(format!("has version {}; this ptc-compile needs version {version}", stamp.version))
    } else if stamp.digest != ptc_runtime::DIGEST {
        Some(format!("was built from other sources ({}); this ptc-compile needs {}", stamp.digest, ptc_runtime::DIGEST))
    } else {
        None
    }
}

/// How to get a prebuilt runtime.
pub(super) const HOW_TO_ADD: &str = "add a prebuilt runtime with `ptc-compile runtimes add FILE`, or, in a checkout, run `cargo build --release --package ptc-prebuilt`";

/// Finds the runtime for a platform: beside this program, where packages put it, or among those that were added. Returns `None` if
/// there is none.
///
/// # Errors
///
/// If there are runtimes and none of them fits. The failure names one.
pub(super) fn find(target: &str) -> Result<Option<Runtime>, Failure> {
    let mut unfit = None;
    for path in places() {
        match Runtime::read(&path) {
            Ok(runtime) if runtime.stamp.target == target => return Ok(Some(runtime)),
            Ok(_) => {}
            // One of another version may lie beside one that fits.
            Err(failure) => unfit = unfit.or(Some(failure)),
        }
    }
    unfit.map_or(Ok(None), Err)
}

/// Returns the files that may be runtimes, in the order in which they are tried.
fn places() -> Vec<PathBuf> {
    let file = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let this = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let folder = this.as_deref().and_then(Path::parent);
    let beside = folder.map(|folder| folder.join(&file));
    let packaged = folder.and_then(Path::parent).map(|prefix| prefix.join("lib/ptc-compile").join(&file));
    let mut found: Vec<PathBuf> = [beside, packaged].into_iter().flatten().filter(|path| path.is_file()).collect();
    let mut added: Vec<PathBuf> = Vec::new();
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for folder in store().iter().flat_map(|store| entries(store)) {
        added.extend(entries(&folder).filter(|path| path.file_stem().is_some_and(|stem| stem == NAME) && is_program(path)));
    }
    added.sort();
    found.extend(added);
    found
}

/// Whether the name of a file is that of a runtime and not of a document about it.
fn is_program(path: &Path) -> bool {
    path.extension().is_none_or(|extension| extension == "exe")
}

/// Returns the folder of added runtimes: `$PTC_COMPILE_RUNTIMES`, or `ptc-compile/runtimes` in the user's data directory.
fn store() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || set("XDG_DATA_HOME").or_else(|| set("LOCALAPPDATA")).or_else(|| Some(set("HOME")?.join(".local/share")));
    set("PTC_COMPILE_RUNTIMES").or_else(|| Some(data()?.join("ptc-compile/runtimes")))
}

fn checksum_path(runtime: &Path) -> PathBuf {
    runtime.with_file_name(format!("{NAME}.sha256"))
}

fn document_path(runtime: &Path, name: &str) -> PathBuf {
    runtime.with_file_name(format!("{NAME}.{name}"))
}

/// Runs `runtimes list` and `runtimes add`.
///
/// # Errors
///
/// If a file cannot be read or written, or does not fit this compiler.
pub(crate) fn run(args: &Runtimes, console: &Console) -> Result<Status, Failure> {
    match &args.command {
        Command::List => Ok(list(console)),
        Command::Add { file } => add(file, console),
    }
}

fn list(console: &Console) -> Status {
    let mut text = String::new();
    for path in places() {
        let executable = std::fs::read(&path).unwrap_or_default();
        let Some(stamp) = Stamp::find(&executable) else { continue };
        let fits = match Runtime::check(&path, executable) {
            Ok(_) => "usable".to_owned(),
            Err(failure) => format!("not usable: {failure}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}  {}  {}  {fits}", stamp.target, stamp.version, path.display());
    }
    if text.is_empty() {
        console.message("no prebuilt runtime on this machine; `ptc-compile runtimes add FILE` adds one\n");
    }
    console.data(&text);
    Status::Clean
}

fn add(file: &Path, console: &Console) -> Result<Status, Failure> {
    let Runtime { stamp, executable, .. } = Runtime::read(file)?;
    let store = store().ok_or_else(|| {
        Failure::new("no folder for prebuilt runtimes: none of PTC_COMPILE_RUNTIMES, XDG_DATA_HOME and HOME is set")
    })?;
    let digest = stamp.digest.trim_start_matches("sha256:");
    let folder = store.join(format!("{}-{}-{}", stamp.target, stamp.version, digest.get(..16).unwrap_or(digest)));
    let path = folder.join(format!("{NAME}{}", stamp.exe_suffix()));
    for name in DOCUMENTS {
        if let Ok(document) = std::fs::read(document_path(file, name)) {
            files::write_if_changed(&document_path(&path, name), &document)?;
        }
    }
    files::write_program(&path, &executable)?;
    files::write_if_changed(&checksum_path(&path), format!("{}\n", sha256(&executable)).as_bytes())?;
    console.message(&format!("added the runtime for {} as {}\n", stamp.target, path.display()));
    Ok(Status::Clean)
}
