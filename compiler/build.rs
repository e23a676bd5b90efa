//! Embeds the runtime's sources into `ptc-compile`, so that an installed `ptc-compile` can build deployments anywhere.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha2::{Digest, Sha256};

/// Members of the embedded workspace: the crates that a deployment can link.
const MEMBERS: [&str; 22] = [
    "runtime",
    "runtime/cassette",
    "runtime/catalog",
    "runtime/check",
    "runtime/engine",
    "runtime/isolation",
    "runtime/json",
    "runtime/json-schema",
    "runtime/lisp",
    "runtime/log",
    "runtime/oauth-client",
    "runtime/otlp",
    "runtime/policy",
    "runtime/regex",
    "runtime/resource-server",
    "runtime/schedule",
    "runtime/search",
    "runtime/secrets",
    "runtime/session-redis",
    "runtime/text",
    "runtime/upstream",
    "runtime/viewer",
];

/// Parts of each member that are embedded beside its manifest. Cargo requires the files of declared targets even if it does not
/// build them.
const PARTS: [&str; 4] = ["src", "benches", "examples", "tests"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CLI").is_none() {
        return Ok(());
    }
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).parent().ok_or("the package has no parent folder")?.to_owned();
    let mut files: Vec<PathBuf> = Vec::new();
    for member in MEMBERS {
        let folder = root.join(member);
        files.push(folder.join("Cargo.toml"));
        files.extend(Some(folder.join("build.rs")).filter(|f| f.is_file()));
        for part in PARTS {
            let only_rust = part != "src";
            collect(&folder.join(part), only_rust, &mut files)?;
        }
        // The folder as a whole must not be watched, since it contains corpora of the fuzzer. A path that does not exist would
        // always count as changed.
        let parts = PARTS.iter().chain(["Cargo.toml", "build.rs"].iter()).map(|part| folder.join(part));
        for part in parts.filter(|part| part.exists()) {
            println!("cargo:rerun-if-changed={}", part.display());
        }
    }
    files.sort();
    let manifest = trimmed_manifest(&fs::read_to_string(root.join("Cargo.toml"))?)?;
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    for name in ["Cargo.toml", "Cargo.lock"] {
        println!("cargo:rerun-if-changed={}", root.join(name).display());
    }

    let mut own = Vec::new();
    for folder in ["compiler/src", "templates"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
        collect(&root.join(folder), false, &mut own)?;
    }
    own.sort();
    let mut compiler = Sha256::new();
    for file in &own {
        hash(&mut compiler, &root, file)?;
    }

    let mut digest = Sha256::new();
    digest.update(&manifest);
    digest.update(&lock);
    let mut table = String::from("pub(super) static FILES: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let path = file.strip_prefix(&root)?.to_str().ok_or("paths are UTF-8")?.replace('\\', "/");
        hash(&mut digest, &root, file)?;
        writeln!(table, "    ({path:?}, include_bytes!({:?})),", file.display().to_string())?;
    }
    table.push_str("];\n");
    let short = hex(digest.finalize().iter().take(8))?;
    writeln!(table, "pub(super) static MANIFEST: &str = {manifest:?};")?;
    writeln!(table, "pub(super) static LOCK: &str = include_str!({:?});", root.join("Cargo.lock").display().to_string())?;
    writeln!(table, "pub(super) static DIGEST: &str = {short:?};")?;
    writeln!(table, "pub(super) static COMPILER: &str = {:?};", hex(compiler.finalize().iter())?)?;
    writeln!(table, "pub(super) static HOST: &str = {:?};", env::var("TARGET")?)?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("embedded.rs"), table)?;
    Ok(())
}

/// Adds a file's path and content to the digest.
fn hash(digest: &mut Sha256, root: &Path, file: &Path) -> Result<(), Box<dyn Error>> {
    let path = file.strip_prefix(root)?.to_str().ok_or("paths are UTF-8")?.replace('\\', "/");
    digest.update(path.as_bytes());
    digest.update([0]);
    digest.update(fs::read(file)?);
    Ok(())
}

fn hex<'a>(bytes: impl Iterator<Item = &'a u8>) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    for byte in bytes {
        write!(out, "{byte:02x}")?;
    }
    Ok(out)
}

/// Returns the workspace's manifest with only the runtime's members. Unused rows of `[workspace.dependencies]` are harmless.
fn trimmed_manifest(manifest: &str) -> Result<String, Box<dyn Error>> {
    let (head, rest) = manifest.split_once("members = [").ok_or("the workspace lists its members")?;
    let (_, tail) = rest.split_once(']').ok_or("the list of members ends")?;
    let members: Vec<String> = MEMBERS.iter().map(|m| format!("{m:?}")).collect();
    Ok(format!("{head}members = [{}]{tail}", members.join(", ")))
}

fn collect(folder: &Path, only_rust: bool, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, only_rust, files)?;
        } else if !only_rust || path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
