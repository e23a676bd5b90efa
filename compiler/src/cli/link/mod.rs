//! The last stage of a build: puts a deployment into a binary.
//!
//! - `rust` generates a crate and builds it with cargo.
//! - `prebuilt` adds the deployment as an image to a prebuilt runtime.
//! - `runtimes` finds prebuilt runtimes; `runtimes list`, `runtimes add FILE`.

mod prebuilt;
pub(crate) mod runtimes;
mod rust;

use std::path::{Path, PathBuf};

use ptc_compiler::leak::StaticDeployment;

use crate::build_args::{Build, Link, Lto, ServeOn};
use crate::console::Console;
use crate::source::{self, Source};
use crate::{Failure, cargo};
use runtimes::Runtime;

/// The files that a linker writes.
pub(crate) struct Outputs<'a> {
    /// The path of the binary.
    pub(crate) binary: &'a Path,
    /// The path of the bill of materials, if it is wanted.
    pub(crate) sbom: Option<&'a Path>,
    /// The path of the licence texts, if they are wanted.
    pub(crate) notices: Option<&'a Path>,
}

/// A way to make the binary, with what it needs.
pub(crate) enum Linker {
    /// The sources of the runtime.
    Rust(Source),
    /// A prebuilt runtime.
    Prebuilt(Runtime),
}

impl Linker {
    /// Chooses the linker of `--link`. Without this option, it is `rust` if cargo is installed and there is no `--target`, and otherwise
    /// `prebuilt`.
    ///
    /// # Errors
    ///
    /// If the sources or the runtime cannot be found, or an option does not fit the choice.
    pub(crate) fn choose(args: &Build) -> Result<Linker, Failure> {
        match args.link {
            Some(Link::Rust) => match &args.target {
                Some(target) if target != source::HOST => {
                    Err(Failure::new(format!("`--link rust` builds for {} only, not for {target}", source::HOST))
                        .hint("leave `--link` out, or choose `--link prebuilt`"))
                }
                _ => source::find(args.runtime_source).map(Linker::Rust),
            },
            None if args.target.is_none() && cargo::is_installed() => source::find(args.runtime_source).map(Linker::Rust),
            choice => {
                if let Some(option) = option_of_rust(args) {
                    let why = if choice.is_some() { "`--link prebuilt`" } else { "without cargo, or with `--target`," };
                    return Err(Failure::new(format!("{option} has no effect {why}: the runtime is compiled already"))
                        .hint("leave one of the options out, or choose `--link rust`"));
                }
                let target = args.target.as_deref().unwrap_or(source::HOST);
                let missing = || match (choice, &args.target) {
                    (None, None) => cargo::no_toolchain_and_no_runtime(runtimes::HOW_TO_ADD),
                    _ => Failure::new(format!("there is no prebuilt runtime for {target} on this machine"))
                        .hint(runtimes::HOW_TO_ADD),
                };
                runtimes::find(target)?.map(Linker::Prebuilt).ok_or_else(missing)
            }
        }
    }

    /// Returns the name as in `--link`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Linker::Rust(_) => ptc_runtime::Linker::Rust.name(),
            Linker::Prebuilt(_) => ptc_runtime::Linker::Prebuilt.name(),
        }
    }

    /// Returns the platform of the binary.
    pub(crate) fn target(&self) -> &str {
        match self {
            Linker::Rust(_) => source::HOST,
            Linker::Prebuilt(runtime) => &runtime.stamp.target,
        }
    }

    /// Returns the path of a deployment's binary without an explicit output path.
    pub(crate) fn default_output(&self, deployment: &str) -> PathBuf {
        match self {
            Linker::Rust(source) => source.default_output(deployment),
            Linker::Prebuilt(runtime) => source::binaries().join(format!("{deployment}{}", runtime.stamp.exe_suffix())),
        }
    }

    /// Whether there are licence texts for [`Outputs::notices`]. A prebuilt runtime has them in a file beside it.
    pub(crate) fn has_notices(&self) -> bool {
        match self {
            Linker::Rust(_) => true,
            Linker::Prebuilt(runtime) => runtime.has_document("notices"),
        }
    }

    /// Writes the binary and the documents about it. Returns the size of the binary.
    ///
    /// # Errors
    ///
    /// If cargo fails, or a file cannot be read or written.
    pub(crate) fn link(
        &self,
        deployment: &StaticDeployment,
        outputs: &Outputs<'_>,
        args: &Build,
        console: &Console,
    ) -> Result<u64, Failure> {
        match self {
            Linker::Rust(source) => rust::link(source, deployment, outputs, args, console),
            Linker::Prebuilt(runtime) => prebuilt::link(runtime, deployment, outputs),
        }
    }
}

/// Returns the first option that only a build with cargo can follow.
fn option_of_rust(args: &Build) -> Option<&'static str> {
    let options = [
        ("--lto thin", args.lto == Lto::Thin),
        ("--runtime-source", args.runtime_source.is_some()),
        ("--jobs", args.jobs.is_some()),
        ("--serve stdio", args.serve == ServeOn::Stdio),
    ];
    options.into_iter().find_map(|(name, is_set)| is_set.then_some(name))
}
