//! Opens a config file for an embedding program.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ptc_catalog::Deployment;
use ptc_runtime::embed::{Builder, Engine};
use ptc_runtime::secrets::{MissingSecret, Secrets};
use ptc_runtime::settings::SnapshotMode;
use ptc_runtime::upstream::{Load, UpstreamSettings, Upstreams};
use tokio::runtime::Handle;

use super::ask::{self, Asker};
use super::catalog;
use crate::diag::render::{self, Style};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::files;
use crate::input::Wanted;
use crate::pinned::{self, Loaded};
use crate::resolve::Query;
use crate::source::{MAX_BYTES, Sources};
use crate::{leak, lower};

type Adjust = Arc<dyn Fn(&mut UpstreamSettings) + Send + Sync>;

/// A config file that a program serves without a build and without a lock file.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use ptc_compiler::serve::{SnapshotMode, Source};
///
/// let served = Source::file("upstreams.json").snapshot(SnapshotMode::Live).open().await?;
/// let engine = served.engine().build()?;
/// # drop(engine);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct Source {
    config: PathBuf,
    mode: SnapshotMode,
    adjust: Option<Adjust>,
}

impl Source {
    /// Names the config file. The lock file beside it is used if it exists; it is never written.
    pub fn file(config: impl Into<PathBuf>) -> Source {
        Source { config: config.into(), mode: SnapshotMode::Frozen, adjust: None }
    }

    /// Sets when MCP upstreams are asked for their tools. The default is [`SnapshotMode::Frozen`]. [`Source::open`] reads OpenAPI
    /// documents in both modes.
    pub fn snapshot(mut self, mode: SnapshotMode) -> Source {
        self.mode = mode;
        self
    }

    /// Changes the settings of upstreams, for listing and for the engine. The defaults equal those of a server.
    pub fn upstreams(mut self, change: impl Fn(&mut UpstreamSettings) + Send + Sync + 'static) -> Source {
        self.adjust = Some(Arc::new(change));
        self
    }

    /// Reads the config and asks the upstreams that the mode and the lock file leave open. Must run inside a tokio runtime with
    /// timers and input and output enabled. Connections made for listing stay open and the engine uses them, so build it in the
    /// same runtime.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: faults of the config, upstreams that cannot be listed, missing secrets.
    pub async fn open(&self) -> Result<Served, OpenError> {
        self.read(true).await
    }

    /// Like [`Source::open`], but for a program without a tokio runtime. It blocks the calling thread. Connections made for
    /// listing are closed when it returns; the engine makes new ones when a program needs them.
    ///
    /// # Errors
    ///
    /// Those of [`Source::open`], and [`OpenError::System`] if no runtime can be started.
    pub fn open_blocking(&self) -> Result<Served, OpenError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(OpenError::System)?;
        runtime.block_on(self.read(false))
    }

    async fn read(&self, keep: bool) -> Result<Served, OpenError> {
        let folder = files::folder(&self.config);
        let name = self.config.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut findings = Findings::default();
        let Findings { sources, diagnostics } = &mut findings;
        let lock_name = pinned::lock_name(&name);
        let mut lock_fault = None;
        let loaded = pinned::load(&name, sources, diagnostics, &mut |wanted| {
            let Wanted { path, max_bytes, .. } = *wanted;
            let read = files::read(&folder, &Wanted { max_bytes: max_bytes.min(MAX_BYTES as u64), ..*wanted });
            // A missing lock file means that upstreams are asked. An existing but unreadable one must not count as missing.
            if let (true, Err(reason)) = (path == lock_name && !matches!(folder.join(path).try_exists(), Ok(false)), &read) {
                lock_fault = Some(Diagnostic::new(Code::ConfigUnreadable, format!("`{path}` cannot be read: {reason}")));
            }
            read
        });
        diagnostics.extend(lock_fault);
        let (Some(loaded), false) = (loaded, diagnostics.has_errors()) else { return Err(OpenError::Findings(findings)) };
        let Loaded { config, documents, programs, known, .. } = loaded;
        let missing_pins = catalog::missing_pins(&config, &known, self.mode);
        let mut fresh = documents;
        let mut kept = None;
        if !missing_pins.is_empty() {
            if keep && missing_pins.iter().any(|missing_pin| missing_pin.what == Query::Tools) {
                let deployment = ask::bare(&config, &config);
                let secrets = Secrets::resolve(deployment, &folder).map_err(OpenError::Secrets)?;
                kept = Some(Upstreams::new(deployment, secrets, self.settings(&folder)));
            }
            let asker = Asker::new(&config, &missing_pins, &folder, self.settings(&folder)).map_err(OpenError::Secrets)?;
            let answers = asker.keeping(kept.clone()).ask(&config, &missing_pins, &mut |_| Box::new(|_| ())).await;
            fresh.extend(ask::locked(&config, answers, sources, diagnostics));
        }
        let lock = catalog::lock(&config, &known, fresh, self.mode, diagnostics);
        if diagnostics.has_errors() {
            if let Some(kept) = kept {
                kept.shutdown().await;
            }
            return Err(OpenError::Findings(findings));
        }
        let mut model = lower::deployment(&config, &lock, &pinned::deployment_name(&self.config));
        // Include credentials of other upstreams: a child process must not inherit the variables that hold them.
        model.credentials = lower::credentials(&config, |_| true);
        model.programs = programs;
        let load = (self.mode == SnapshotMode::Live).then(|| catalog::loader(config, known));
        Ok(Served { deployment: leak::leak_static(&model), folder, load, kept, adjust: self.adjust.clone(), findings })
    }

    fn settings(&self, folder: &Path) -> UpstreamSettings {
        let mut settings = UpstreamSettings::new(folder, Handle::current());
        if let Some(adjust) = &self.adjust {
            adjust(&mut settings);
        }
        settings
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("config", &self.config).field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// An opened config: a deployment, and the state that an engine needs with it. The deployment is never freed.
pub struct Served {
    deployment: &'static Deployment,
    folder: PathBuf,
    load: Option<Arc<dyn Load>>,
    kept: Option<Arc<Upstreams>>,
    adjust: Option<Adjust>,
    findings: Findings,
}

impl Served {
    /// Returns the tables of the config. In live mode they have no tools of MCP upstreams.
    pub fn deployment(&self) -> &'static Deployment {
        self.deployment
    }

    /// Returns warnings and notes about the config and the answers of its upstreams.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Returns a builder of an engine over these upstreams, to which tools, limits and other settings can be added.
    pub fn engine(self) -> Builder {
        let Served { deployment, folder, load, kept, adjust, .. } = self;
        let mut builder = Engine::builder().deployment(deployment).config_dir(folder);
        if let Some(load) = load {
            builder = builder.live(load);
        }
        if let Some(kept) = kept {
            builder = builder.connections_of(kept);
        }
        if let Some(adjust) = adjust {
            builder = builder.upstreams(move |settings| adjust(settings));
        }
        builder
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("deployment", &self.deployment.name).finish_non_exhaustive()
    }
}

/// Findings about a config. [`Display`](fmt::Display) writes the text that `ptc-compile --check` prints, without colours.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Findings {
    /// All texts to which the findings refer.
    pub sources: Sources,
    /// The findings.
    pub diagnostics: Diagnostics,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(render::full(&self.sources, &self.diagnostics, Style::Plain).trim_end())
    }
}

/// Why a config cannot be served.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// At least one finding is an error: a fault of the config or of a file beside it, or an upstream that cannot be listed.
    Findings(Findings),
    /// Secrets that listing needs and that cannot be read.
    Secrets(Vec<MissingSecret>),
    /// The tokio runtime could not be started.
    System(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Findings(findings) => findings.fmt(f),
            OpenError::Secrets(missing) => {
                let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
                write!(f, "the upstreams cannot be asked without their secrets:\n  {}", all.join("\n  "))
            }
            OpenError::System(error) => write!(f, "cannot start the runtime that talks to upstreams: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}
