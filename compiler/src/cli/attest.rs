//! Runs `attest BINARY` and `verify BINARY`: what a binary was built from, and whether it was built from that.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::json::digest::sha256;
use ptc_compiler::provenance::{Input, Parts, Statement};
use ptc_compiler::source::Sources;
use ptc_compiler::{files, pinned};

use crate::console::Console;
use crate::files::write_if_changed;
use crate::{Failure, Status, children, load};

/// Maximum size of what a binary says of itself, and maximum time that it takes.
const MAX_VERSION_BYTES: u64 = 1 << 20;
const MAX_VERSION_TIME: Duration = Duration::from_secs(20);

/// `ptc-compile attest`
///
/// Writes an in-toto statement with SLSA provenance: the digests of the binary, of the config with all files that it names, of the
/// lock file, and of the sources of compiler and runtime. The statement is not signed. The binary is started for its digests.
#[derive(Debug, Args)]
pub(crate) struct Attest {
    /// The binary
    #[arg(value_name = "BINARY")]
    binary: PathBuf,

    /// The config that it was built from
    #[arg(long, value_name = "FILE", default_value = "upstreams.json")]
    config: PathBuf,

    /// Where the statement goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The URI of the build platform, such as that of a workflow
    #[arg(long, value_name = "URI", default_value = "urn:ptc-compile:local")]
    builder: String,
}

/// `ptc-compile verify`
///
/// Checks a binary against a statement of `attest`, which shows that the binary has not changed, and against a config with its lock
/// file. Without a statement the binary is started and says itself which config it has.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("against").required(true).multiple(true)))]
pub(crate) struct Verify {
    /// The binary
    #[arg(value_name = "BINARY")]
    binary: PathBuf,

    /// The config that it should be built from
    #[arg(long, value_name = "FILE", group = "against")]
    config: Option<PathBuf>,

    /// The statement of `attest`
    #[arg(long, value_name = "FILE", group = "against")]
    statement: Option<PathBuf>,
}

/// Writes the statement about a binary.
pub(crate) fn attest(args: &Attest, console: &Console) -> Result<Status, Failure> {
    let Some(built) = Source::read(&args.config, console)? else { return Ok(Status::Findings) };
    let binary = digest(&args.binary)?;
    let parts = parts(&args.binary)?;
    let differences = parts.differences(&built.config_digest, &built.catalog_digest);
    if !differences.is_empty() {
        return Err(Failure::new(differences.join("\n")).hint("build it again, or name its config with `--config`"));
    }
    let config = args.config.file_name().unwrap_or_default().to_string_lossy();
    let statement = Statement::new(&binary, &parts, &config, &built.inputs, &args.builder);
    let text = serde_json::to_string_pretty(&statement).map_err(|error| Failure::new(error.to_string()))? + "\n";
    match &args.output {
        Some(path) => {
            write_if_changed(path, text.as_bytes())?;
            console.message(&format!("wrote {}\n", path.display()));
        }
        None => console.data(&text),
    }
    Ok(Status::Clean)
}

/// Checks a binary against a statement and a config.
pub(crate) fn verify(args: &Verify, console: &Console) -> Result<Status, Failure> {
    let source = match &args.config {
        Some(config) => match Source::read(config, console)? {
            Some(source) => Some(source),
            None => return Ok(Status::Findings),
        },
        None => None,
    };
    let mut differences = Vec::new();
    let mut statement = None;
    if let Some(path) = &args.statement {
        let read: Statement = serde_json::from_str(&load::read_text(path)?)
            .ok()
            .filter(Statement::is_of_ptc_compile)
            .ok_or_else(|| Failure::new(format!("`{}` is not a statement of `ptc-compile attest`", path.display())))?;
        differences = read.differences_of_binary(&digest(&args.binary)?.digest);
        if let Some(source) = &source {
            differences.extend(read.differences_of_inputs(&source.inputs));
        }
        statement = Some(read);
    }
    // A binary that is not the one of the statement is not started.
    if let (Some(source), true) = (&source, differences.is_empty()) {
        let parts = parts(&args.binary)?;
        differences = parts.differences(&source.config_digest, &source.catalog_digest);
        if let Some(statement) = &statement {
            differences.extend(statement.differences_of_parts(&parts));
        }
    }
    if differences.is_empty() {
        let what = match (&statement, &source) {
            (Some(_), Some(_)) => "fits the statement, the config and its lock file",
            (Some(_), None) => "is the binary of the statement",
            _ => "fits the config and its lock file",
        };
        console.message(&format!("{} {what}\n", args.binary.display()));
        return Ok(Status::Clean);
    }
    for difference in differences {
        console.message(&format!("error: {difference}\n"));
    }
    Ok(Status::Findings)
}

/// A config with its lock file and all files that it names.
struct Source {
    config_digest: String,
    catalog_digest: String,
    inputs: Vec<Input>,
}

impl Source {
    /// Reads the files of a config. Returns `None` if they have faults, which are then printed.
    fn read(config: &Path, console: &Console) -> Result<Option<Source>, Failure> {
        load::read_text(config)?;
        let folder = files::folder(config);
        let name = config.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (mut sources, mut diagnostics) = (Sources::default(), Diagnostics::default());
        let mut inputs: Vec<Input> = Vec::new();
        let deployment = pinned::read(&name, "verify", &mut sources, &mut diagnostics, &mut |wanted| {
            let text = files::read(&folder, wanted)?;
            // The text may differ from the bytes, such as by a byte order mark.
            let digest =
                std::fs::read(folder.join(wanted.path)).map(|bytes| sha256(&bytes)).map_err(|error| error.to_string())?;
            let input = Input { name: wanted.path.to_owned(), digest };
            if !inputs.contains(&input) {
                inputs.push(input);
            }
            Ok(text)
        });
        let Some(deployment) = deployment else {
            console.findings(&sources, &diagnostics);
            return Ok(None);
        };
        Ok(Some(Source { config_digest: deployment.config_digest, catalog_digest: deployment.catalog_digest, inputs }))
    }
}

/// Returns the name and the digest of a binary.
fn digest(binary: &Path) -> Result<Input, Failure> {
    let bytes = std::fs::read(binary).map_err(|error| Failure::new(format!("cannot read `{}`: {error}", binary.display())))?;
    let name = binary.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Input { name, digest: sha256(&bytes) })
}

/// Asks a binary what it was built from. It gets no variable of the environment, since it may be another one than was meant.
fn parts(binary: &Path) -> Result<Parts, Failure> {
    // A path without a slash would be searched in `PATH`.
    let path = std::path::absolute(binary).unwrap_or_else(|_| binary.to_owned());
    let cannot_start = |error: std::io::Error| Failure::new(format!("cannot start `{}`: {error}", binary.display()));
    let mut command = children::tool(&path);
    command.args(["version", "--json"]).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(cannot_start)?;
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // After a failure the bytes are incomplete, so that they do not parse as JSON.
        let _ = output.map(|output| output.take(MAX_VERSION_BYTES).read_to_end(&mut bytes));
        bytes
    });
    let started = Instant::now();
    while !reader.is_finished() && started.elapsed() < MAX_VERSION_TIME {
        std::thread::sleep(Duration::from_millis(5));
    }
    // A binary that has ended is only reaped.
    let _ = child.kill();
    let _ = child.wait();
    let bytes = if reader.is_finished() { reader.join().unwrap_or_default() } else { Vec::new() };
    let parts: Option<Parts> = serde_json::from_slice(&bytes).ok();
    parts.filter(|parts| !parts.catalog_digest.is_empty()).ok_or_else(|| {
        Failure::new(format!("`{}` is not a binary of ptc-compile", binary.display()))
            .hint("name the file that `ptc-compile CONFIG -o PATH` has built")
    })
}
