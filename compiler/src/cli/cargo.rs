//! Runs cargo on a generated crate.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ptc_compiler::render::toml_string;

use crate::Failure;
use crate::build_args::{Build, Lto};
use crate::cargo_lock;
use crate::children;
use crate::progress::Progress;
use crate::source::{self, Source};

/// Maximum number of lines of cargo's messages that are shown when it fails.
const SHOWN: usize = 60;

/// Variables that `cargo run` sets for the program that it runs. They are removed, because build scripts that watch one of them
/// would run again, followed by everything that depends on them.
const OF_CARGO_RUN: [&str; 8] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_MANIFEST_LINKS",
    "CARGO_BIN_NAME",
    "CARGO_CRATE_NAME",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_TMPDIR",
    "OUT_DIR",
];

/// Makes the linker fold functions with identical code, which saves 0.1 MB. No code of this workspace compares function
/// addresses.
const FOLD: &str = "-Clink-arg=-Wl,--icf=all";

/// Makes the linker pack relative relocations (`DT_RELR`), which saves 0.4 MB. Linkers without this option ignore it.
const PACK_RELOCATIONS: &str = "-Clink-arg=-Wl,-z,pack-relative-relocs";

/// The first version of the GNU C Library that loads packed relocations.
const PACKED_RELOCATIONS_GLIBC: (u32, u32) = (2, 36);

/// Whether the C library of this machine loads packed relocations. A binary is only meant to run where the C library is at least as
/// new as that of the machine that built it.
fn loads_packed_relocations() -> bool {
    let Ok(found) = children::tool("getconf").arg("GNU_LIBC_VERSION").stderr(Stdio::null()).output() else { return false };
    let text = String::from_utf8_lossy(&found.stdout);
    let version = text.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    version.is_some_and(|(major, minor)| {
        let minor: String = minor.chars().take_while(char::is_ascii_digit).collect();
        major.parse().ok().zip(minor.parse().ok()).is_some_and(|version: (u32, u32)| version >= PACKED_RELOCATIONS_GLIBC)
    })
}

/// Whether an earlier build has left a compiled runtime. The compiled runtime may be one of another version or with other
/// features.
pub(crate) fn has_compiled_runtime(source: &Source) -> bool {
    let entries = std::fs::read_dir(source.target.join("release/deps")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).any(|name| name.starts_with("libptc_runtime-"))
}

/// Builds the crate in `folder` and returns the path of its binary.
pub(crate) fn build(folder: &Path, source: &Source, args: &Build, progress: &Progress) -> Result<PathBuf, Failure> {
    let folding = cfg!(target_os = "linux");
    if registries().is_empty() {
        fetch(folder, source, args, progress)?;
    }
    let built = match attempt(folder, source, args, progress, folding)? {
        // Rust's own linker can fold functions, and so can others that a machine may use; GNU's cannot.
        Err(last) if folding && last.iter().any(|line| line.contains("icf")) => {
            attempt(folder, source, args, progress, false)?.map_err(|last| failed(last, args))
        }
        done => done.map_err(|last| failed(last, args)),
    }?;
    let lock = read(&folder.join("Cargo.lock"))?;
    if let Some(package) = cargo_lock::foreign_package(&lock, &source.cargo_lock, &read(&folder.join("Cargo.toml"))?) {
        return Err(Failure::new(format!(
            "cargo built the deployment with {package}, which is not in the lock file of the runtime"
        ))
        .hint("no binary was written; look for a configuration of cargo that replaces packages, such as `[patch]`"));
    }
    Ok(built)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::new(format!("cannot read `{}`: {error}", path.display())))
}

/// Has cargo unpack the packages of the crate in `folder`, so that [`set_flags`] knows the paths of their sources.
fn fetch(folder: &Path, source: &Source, args: &Build, progress: &Progress) -> Result<(), Failure> {
    progress.step("fetching packages");
    let mut command = metadata(&cargo()?, folder, source, args.offline);
    // A failure is reported by the build, which needs the same packages.
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| not_started(command.get_program().as_ref(), &error))?;
    Ok(())
}

/// Runs cargo once. Returns the path of the binary, or the last lines of cargo's messages.
fn attempt(
    folder: &Path,
    source: &Source,
    args: &Build,
    progress: &Progress,
    folding: bool,
) -> Result<Result<PathBuf, VecDeque<String>>, Failure> {
    let mut command = children::tool(cargo()?);
    command
        .args(["rustc", "--release", "--message-format=json-render-diagnostics", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", &source.target)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|n| OF_CARGO_RUN.contains(&n) || n.starts_with("CARGO_PKG_")) {
            command.env_remove(name);
        }
    }
    set_flags(&mut command, source);
    if args.lto == Lto::Thin {
        command.args(["--config", "profile.release.lto=\"thin\""]);
    }
    if args.offline {
        command.arg("--offline");
    }
    if let Some(jobs) = args.jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    // These flags apply only to the deployment's own crate, so that the runtime is not compiled again if the linker refuses one.
    command.arg("--");
    if folding {
        command.arg(FOLD);
    }
    if cfg!(target_os = "linux") && loads_packed_relocations() {
        command.arg(PACK_RELOCATIONS);
    }
    let mut child = command.spawn().map_err(|error| not_started(command.get_program().as_ref(), &error))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    // Read both pipes at the same time: either one could fill up and block cargo.
    let messages = std::thread::spawn(move || {
        let mut text = String::new();
        out.map(|mut out| out.read_to_string(&mut text)).transpose().map(|_| text)
    });
    let mut last: VecDeque<String> = VecDeque::new();
    for line in err.map(BufReader::new).into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        if let Some(package) = line.trim_start().strip_prefix("Compiling ") {
            progress.step(package);
        } else if line.contains("Blocking waiting for file lock") {
            progress.step("waiting for another build");
        }
        if last.len() == SHOWN {
            last.pop_front();
        }
        last.push_back(line);
    }
    let status = child.wait().map_err(|error| Failure::new(format!("cargo went away: {error}")))?;
    let messages = messages.join().ok().and_then(Result::ok).unwrap_or_default();
    if !status.success() {
        return Ok(Err(last));
    }
    executable(&messages).map(Ok).ok_or_else(|| Failure::new("cargo built the crate and names no binary"))
}

/// Returns cargo's resolution of the crate in `folder` for this platform: the output of `cargo metadata`, and the text of the
/// lock file.
pub(crate) fn resolution(folder: &Path, source: &Source, offline: bool) -> Result<(serde_json::Value, String), Failure> {
    let mut command = metadata(&cargo()?, folder, source, offline);
    let output = command.output().map_err(|error| not_started(command.get_program().as_ref(), &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("cargo cannot say what the deployment is made of:\n\n{}\n", said.trim_end())));
    }
    let metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::new(format!("what cargo says of the deployment cannot be read: {error}")))?;
    Ok((metadata, read(&folder.join("Cargo.lock"))?))
}

fn metadata(cargo: &Path, folder: &Path, source: &Source, offline: bool) -> Command {
    let mut command = children::tool(cargo);
    command
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", source::HOST, "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", &source.target)
        .stdin(Stdio::null());
    // The resolution contains packages of other platforms, which may be absent from this machine. Cargo would fetch them.
    if offline {
        command.arg("--offline");
    }
    command
}

/// Sets rustc's flags. They must be equal for every deployment, or the runtime would be compiled again.
///
/// Panics and `file!()` put paths of sources into the binary. The flags replace the paths of this machine by `/runtime/…`,
/// `/crates/…` and similar ones. A binary does not name the registry that its packages came from, which may be internal.
fn set_flags(command: &mut Command, source: &Source) {
    // If several prefixes match, rustc uses the last, so inner folders come after outer ones.
    let mut places = vec![
        (home(), "/home"),
        (Some(source.root.clone()), "/runtime"),
        (Some(source.target.clone()), "/target"),
        (cargo_home(), "/cargo"),
    ];
    places.extend(registries().into_iter().map(|folder| (Some(folder), "/crates")));
    // Frame pointers make unwind tables 0.1 MB smaller, and let an operator's profiler walk the stack.
    let mut flags = vec!["-Cforce-frame-pointers=yes".to_owned()];
    if cfg!(target_os = "linux") {
        // Under full RELRO rustc calls functions of other crates through the global offset table, and the linker cannot undo
        // that. Under partial RELRO rustc lets the linker choose, and the linker makes these calls direct. The second flag makes
        // the linker apply full RELRO nevertheless.
        flags.extend(["-Crelro-level=partial", "-Clink-arg=-Wl,-z,relro,-z,now"].map(str::to_owned));
    }
    for (place, name) in places {
        if let Some(place) = place.filter(|place| place.parent().is_some()) {
            flags.push(format!("--remap-path-prefix={}={name}", place.display()));
        }
    }
    // Cargo reads flags from one source only: the first of these variables that is set, else its configuration.
    let encoded = std::env::var("CARGO_ENCODED_RUSTFLAGS").ok();
    let plain = || Some(std::env::var("RUSTFLAGS").ok()?.split_whitespace().collect::<Vec<_>>().join("\u{1f}"));
    if let Some(own) = encoded.or_else(plain).filter(|own| !own.is_empty()) {
        flags.insert(0, own);
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    } else {
        let list: Vec<String> = flags.iter().map(|flag| toml_string(flag)).collect();
        command.arg("--config").arg(format!("target.'cfg(all())'.rustflags=[{}]", list.join(",")));
    }
}

/// Returns the value of an environment variable that is not empty.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the user's home folder.
fn home() -> Option<PathBuf> {
    variable("HOME").or_else(|| variable("USERPROFILE"))
}

/// Returns the folder with cargo's packages.
fn cargo_home() -> Option<PathBuf> {
    variable("CARGO_HOME").or_else(|| home().map(|home| home.join(".cargo")))
}

/// Returns the folders into which cargo unpacks packages, one for each registry that this machine has used.
fn registries() -> Vec<PathBuf> {
    let entries = cargo_home().and_then(|home| std::fs::read_dir(home.join("registry").join("src")).ok());
    let mut folders: Vec<_> = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    folders
}

/// Returns the path of the binary in the last artifact message. Only the generated crate has a binary.
fn executable(messages: &str) -> Option<PathBuf> {
    messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    })
}

/// Finds cargo: `$CARGO`, `cargo` in `PATH`, or the place where rustup installs it.
fn cargo() -> Result<PathBuf, Failure> {
    if let Some(set) = std::env::var_os("CARGO").filter(|c| !c.is_empty()) {
        return Ok(set.into());
    }
    let file = format!("cargo{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(cargo_home().map(|home| home.join("bin")));
    folders.map(|folder| folder.join(&file)).find(|f| f.is_file()).ok_or_else(no_toolchain)
}

/// Whether cargo is installed, so that [`build`] can run it.
pub(crate) fn is_installed() -> bool {
    // `$CARGO` may name a program that is not there. A bare name is searched in `PATH` when it is started.
    cargo().is_ok_and(|path| path.components().count() == 1 || path.is_file())
}

/// Reports that neither linker can be used.
pub(crate) fn no_toolchain_and_no_runtime(how_to_add: &str) -> Failure {
    Failure::new(
        "no Rust toolchain and no prebuilt runtime: `cargo` is neither on PATH nor in ~/.cargo/bin, and CARGO does not name it",
    )
    .hint(format!("install Rust (with rustup, or your system's packages), or {how_to_add}"))
}

fn no_toolchain() -> Failure {
    Failure::new("no Rust toolchain: `cargo` is neither on PATH nor in ~/.cargo/bin, and CARGO does not name it").hint(
        "ptc-compile generates a small crate and builds it with cargo; install Rust (with rustup, or your system's packages) and run the same command again",
    )
}

fn not_started(program: &Path, error: &std::io::Error) -> Failure {
    if error.kind() == ErrorKind::NotFound {
        return no_toolchain();
    }
    Failure::new(format!("cannot start `{}`: {error}", program.display()))
}

/// Known failures of cargo: a part of the message, and what to do.
const REMEDIES: [(&str, &str); 6] = [
    ("linker `", "install a C toolchain for linking, for example `apt install gcc` or `xcode-select --install`"),
    ("requires rustc", "the runtime needs a newer Rust: `rustup update stable`"),
    ("rustc is not installed", "install a toolchain: `rustup default stable`"),
    ("could not choose a version of cargo", "install a toolchain: `rustup default stable`"),
    ("No space left on device", "free some disk space, or set CARGO_TARGET_DIR or PTC_COMPILE_CACHE to a larger disk"),
    ("failed to download", "the packages of the runtime are fetched once from the registry; check the network and run it again"),
];

fn failed(last: VecDeque<String>, args: &Build) -> Failure {
    let text = Vec::from(last).join("\n");
    let failure = Failure::new(format!("cargo could not build the deployment:\n\n{}\n", text.trim_end()));
    let offline = "the packages of the runtime are not on this machine yet; run once without `--offline`";
    let known = REMEDIES.iter().find(|(part, _)| text.contains(part)).map(|(_, remedy)| *remedy);
    if args.offline && text.contains("offline") {
        return failure.hint(offline);
    }
    failure.hint(
        known.unwrap_or("the generated crate is sound as far as ptc-compile can tell; please report this with the message above"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_fetches_nothing_offline() {
        let source = Source {
            root: "r".into(),
            cargo_lock: String::new(),
            profile: String::new(),
            target: "t".into(),
            binaries: "b".into(),
        };
        for offline in [true, false] {
            let command = metadata(Path::new("cargo"), Path::new("f"), &source, offline);
            assert_eq!(command.get_args().any(|arg| arg == "--offline"), offline);
        }
    }

    #[test]
    fn path_of_the_binary_is_read_from_messages_of_cargo() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/t/release/x\"}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/t/release/x")));
        assert_eq!(executable("not json\n"), None);
    }
}
