//! `--emit mcpb`: builds a binary and packs it into a desktop bundle. `--emit server-json`: describes published bundles for the MCP
//! registry.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use ptc_compiler::ir::Deployment;
use ptc_compiler::json::digest::sha256;
use ptc_compiler::leak::StaticDeployment;
use ptc_compiler::render::{self, Bundled, OfferedTool, Package, Release, RenderError};
use ptc_runtime::settings::Settings;
use ptc_runtime::tools_list;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::build_args::{Build, Emit};
use crate::bundle_args::PublishedBundle;
use crate::console::Console;
use crate::link::{Linker, Outputs};
use crate::{Failure, files};

const MANIFEST: &str = "manifest.json";
const NOTICES: &str = "NOTICES";

/// Maximum size of the manifest of a bundle that is read.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

const DEFAULT_VERSION: &str = "0.1.0";

/// A new desktop bundle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BuiltBundle {
    /// The path of the bundle.
    bundle: PathBuf,
    bundle_bytes: usize,
    /// SHA-256 of the bundle.
    bundle_digest: String,
    /// The version of the bundle.
    bundle_version: String,
    /// The variables for which a client asks its user.
    bundle_variables: Vec<String>,
    /// The linker of the binary: `rust` or `prebuilt`, as in `--link`.
    linker: &'static str,
    /// The platform of the binary.
    target: String,
}

/// Refuses options that the output of the build does not have.
///
/// # Errors
///
/// If there is such an option.
pub(crate) fn check_options(args: &Build) -> Result<(), Failure> {
    let options = &args.bundle_options;
    let of = [
        ("--bundle-version", "mcpb", Emit::Mcpb, options.bundle_version.is_some()),
        ("--bundle-author", "mcpb", Emit::Mcpb, options.bundle_author.is_some()),
        ("--bundle-description", "mcpb", Emit::Mcpb, options.bundle_description.is_some()),
        ("--registry-name", "server-json", Emit::ServerJson, options.registry_name.is_some()),
        ("--bundle", "server-json", Emit::ServerJson, !options.bundle.is_empty()),
    ];
    match of.iter().find(|(_, _, emit, is_set)| *is_set && args.emit != Some(*emit)) {
        Some((option, emit, ..)) => Err(Failure::new(format!("`{option}` is an option of `--emit {emit}`")).hint("leave it out")),
        None => Ok(()),
    }
}

/// Builds the binary and writes the bundle.
///
/// # Errors
///
/// If the binary cannot be built, or the bundle cannot be written.
pub(crate) fn build(
    linker: &Linker,
    deployment: &StaticDeployment,
    args: &Build,
    console: &Console,
) -> Result<BuiltBundle, Failure> {
    let model = &deployment.model;
    let target = linker.target();
    let output = args.output.clone().unwrap_or_else(|| default_output(linker, model));
    let scratch = files::Scratch::beside(&output)?;
    let (binary, notices) = (scratch.path().join("binary"), scratch.path().join(NOTICES));
    let has_notices = linker.has_notices();
    let outputs = Outputs { binary: &binary, sbom: None, notices: has_notices.then_some(&*notices) };
    linker.link(deployment, &outputs, args, console)?;
    if !has_notices {
        console.message(
            "warning: the bundle lacks the licence texts of the software in it, since they are not beside the prebuilt runtime\n\
             help: packages of ptc-compile contain them; in a checkout, choose `--link rust`\n",
        );
    }
    let options = &args.bundle_options;
    let release = Release {
        version: options.bundle_version.as_deref().unwrap_or(DEFAULT_VERSION),
        author: options.bundle_author.as_deref(),
        description: options.bundle_description.as_deref(),
    };
    let manifest = render::bundle_manifest(model, &release, target, &tools(deployment)).map_err(|error| fault(&error))?;
    let mut entries = vec![
        Entry { path: MANIFEST.to_owned(), bytes: manifest.into_bytes(), mode: 0o644 },
        Entry { path: render::program_in_bundle(model, target), bytes: read(&binary)?, mode: 0o755 },
    ];
    if has_notices {
        entries.push(Entry { path: NOTICES.to_owned(), bytes: read(&notices)?, mode: 0o644 });
    }
    let zip = zipped(&entries).map_err(|error| Failure::new(format!("cannot pack the bundle: {error}")))?;
    files::write_if_changed(&output, &zip)?;
    Ok(BuiltBundle {
        bundle_bytes: zip.len(),
        bundle_digest: sha256(&zip),
        bundle_version: release.version.to_owned(),
        bundle_variables: render::asked_variables(model),
        linker: linker.name(),
        target: target.to_owned(),
        bundle: output,
    })
}

impl BuiltBundle {
    /// Returns what a person reads of the bundle.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<12}{value}");
        };
        row("bundle", format!("{}, {:.1} MB", self.bundle.display(), self.bundle_bytes as f64 / 1e6));
        row("version", self.bundle_version.clone());
        row("digest", self.bundle_digest.clone());
        row("linker", format!("{}, for {}", self.linker, self.target));
        if !self.bundle_variables.is_empty() {
            row("asks for", self.bundle_variables.join(", "));
        }
        text
    }
}

fn default_output(linker: &Linker, model: &Deployment) -> PathBuf {
    let binary = linker.default_output(&model.name);
    binary.with_file_name(format!("{}.mcpb", model.name))
}

/// Returns the tools of a server that is started without flags.
fn tools(deployment: &StaticDeployment) -> Vec<OfferedTool> {
    let tables = deployment.tables;
    let settings = Settings::defaults(!tables.catalog.upstreams.is_empty());
    let offered = tools_list::tools(tables, &settings, &|text| Cow::Borrowed(text));
    let text = |tool: &Value, key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    offered.iter().map(|tool| OfferedTool { name: text(tool, "name"), description: text(tool, "description") }).collect()
}

/// A file of a bundle.
struct Entry {
    path: String,
    bytes: Vec<u8>,
    /// The permissions on Unix.
    mode: u32,
}

/// Packs files in their order. Equal files give equal bytes.
fn zipped(entries: &[Entry]) -> ZipResult<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(entry.mode);
        zip.start_file(&*entry.path, options)?;
        zip.write_all(&entry.bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// Renders the entry of the registry for the bundles of `--bundle`.
///
/// # Errors
///
/// If an option is missing, or a bundle does not belong to the deployment.
pub(crate) fn registry_entry(model: &Deployment, args: &Build) -> Result<String, Failure> {
    let options = &args.bundle_options;
    let Some(name) = &options.registry_name else {
        return Err(Failure::new("`--emit server-json` needs the name of the server in the registry")
            .hint("add `--registry-name io.github.USER/SERVER`; the registry checks that the namespace is yours"));
    };
    let build_digest = render::build_digest(model).map_err(|error| fault(&error))?;
    let packages: Vec<Package> =
        options.bundle.iter().map(|published| package(published, &build_digest)).collect::<Result<_, _>>()?;
    let [first, others @ ..] = packages.as_slice() else {
        return Err(Failure::new("`--emit server-json` needs a bundle, whose digest it writes").hint(
            "write one with `--emit mcpb -o FILE.mcpb`, and add `--bundle FILE.mcpb=https://…`: the URL where clients will download it",
        ));
    };
    if let Some(other) = others.iter().find(|other| other.bundled.version != first.bundled.version) {
        return Err(Failure::new(format!(
            "the bundles for {} and {} have different versions: {} and {}",
            first.bundled.target(),
            other.bundled.target(),
            first.bundled.version,
            other.bundled.version
        ))
        .hint("build both with the same `--bundle-version`"));
    }
    Ok(render::registry_entry(model, name, first, others))
}

/// Reads a bundle, and checks that it belongs to the deployment.
fn package(published: &PublishedBundle, build_digest: &str) -> Result<Package, Failure> {
    let PublishedBundle { file, url } = published;
    let bytes = read(file)?;
    let bundled = manifest(&bytes).as_deref().and_then(Bundled::read).ok_or_else(|| {
        Failure::new(format!("`{}` is not a bundle of `ptc-compile CONFIG --emit mcpb`", file.display()))
            .hint("build it from this config")
    })?;
    if bundled.build_digest() != build_digest {
        return Err(Failure::new(format!(
            "the bundle `{}` was built from another config or lock file, or by another ptc-compile",
            file.display()
        ))
        .hint("build it again with `--emit mcpb`"));
    }
    Ok(Package { url: url.clone(), sha256: sha256(&bytes).trim_start_matches("sha256:").to_owned(), bundled })
}

/// Returns the manifest of a bundle.
fn manifest(bundle: &[u8]) -> Option<Vec<u8>> {
    let mut zip = ZipArchive::new(Cursor::new(bundle)).ok()?;
    let mut manifest = Vec::new();
    zip.by_name(MANIFEST).ok()?.take(MAX_MANIFEST_BYTES).read_to_end(&mut manifest).ok()?;
    Some(manifest)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::new(format!("cannot read `{}`: {error}", path.display())))
}

fn fault(error: &RenderError) -> Failure {
    Failure::new(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_give_equal_bytes_with_modes_and_a_fixed_time() {
        let entries = || {
            [
                Entry { path: MANIFEST.to_owned(), bytes: b"{\"a\": 1}".to_vec(), mode: 0o644 },
                Entry { path: "server/x".to_owned(), bytes: vec![7; 100_000], mode: 0o755 },
            ]
        };
        let bytes = zipped(&entries()).expect("they can be packed");
        assert_eq!(bytes, zipped(&entries()).expect("they can be packed"));
        assert!(bytes.len() < 10_000, "they are compressed");
        assert_eq!(manifest(&bytes).as_deref(), Some(&b"{\"a\": 1}"[..]));
        assert_eq!(manifest(b"not a zip"), None);
        let mut zip = ZipArchive::new(Cursor::new(&bytes)).expect("it is a zip");
        let names: Vec<String> = zip.file_names().map(str::to_owned).collect();
        assert_eq!(names, [MANIFEST, "server/x"]);
        let file = zip.by_index(1).expect("the second file");
        assert_eq!(file.unix_mode().map(|mode| mode & 0o777), Some(0o755));
        assert_eq!(file.last_modified().map(|time| time.year()), Some(1980));
    }
}
