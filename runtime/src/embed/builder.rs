//! Builders: what an engine is made of.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ptc_catalog::{Catalog, Deployment};
use ptc_lisp::limits::Limits;
use ptc_lisp::signature::underscored;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::engine::Engine;
use super::tool::{Tool, ToolDefinitionError};
use crate::evaluation::Evaluator;
use crate::fibers::Fibers;
use crate::schedule::{Limit, ScheduleLimits, Scheduler, Source};
use crate::secrets::{MissingSecret, Secrets};
use crate::settings::Settings;
use crate::upstream::{Load, UpstreamSettings, Upstreams};

/// What an engine is made of.
#[derive(Default)]
#[must_use]
pub struct Builder {
    tools: Vec<Tool>,
    deployment: Option<&'static Deployment>,
    limits: Option<Limits>,
    preview_bytes: Option<usize>,
    schedule: Vec<Change>,
    config_dir: Option<PathBuf>,
    handle: Option<Handle>,
    upstreams: Vec<Adjust>,
    load: Option<Arc<dyn Load>>,
    connections: Option<Arc<Upstreams>>,
}

/// What an embedding program changes about the settings of its upstreams.
type Adjust = Box<dyn FnOnce(&mut UpstreamSettings) + Send>;

/// What an embedding program changes about the scheduler.
type Change = Box<dyn FnOnce(&mut ScheduleLimits) + Send>;

/// Why there is no engine.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool that cannot be offered.
    Tool(ToolDefinitionError),
    /// Every secret of the deployment that could not be had.
    Secrets(Vec<MissingSecret>),
    /// What [`UpstreamSettings::extra_roots`] holds is no PEM of certificates; the reason.
    Certificates(String),
    /// No memory limit would hold, [`crate::alloc`] says why.
    Allocator,
    /// No thread for the engine's own runtime.
    System(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Tool(why) => write!(f, "{why}"),
            BuildError::Secrets(missing) => {
                let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
                f.write_str(&all.join("\n"))
            }
            BuildError::Certificates(why) => write!(f, "certificates beside those of the system: {why}"),
            BuildError::Allocator => f.write_str(crate::alloc::NOT_COUNTING),
            BuildError::System(why) => write!(f, "cannot start a thread for tools and upstreams: {why}"),
        }
    }
}

impl std::error::Error for BuildError {}

static NO_UPSTREAMS: Deployment =
    Deployment { name: "embedded", compiler: "", config_digest: "", credentials: &[], catalog: &Catalog::EMPTY, programs: &[] };

impl Builder {
    /// A tool that programs call as `(tool/NAME {…})`.
    pub fn tool(mut self, tool: Tool) -> Builder {
        self.tools.push(tool);
        self
    }

    /// Upstreams that programs reach with `tool/call`: what `catalog!` defines, or a deployment made at run time and leaked.
    pub fn deployment(mut self, deployment: &'static Deployment) -> Builder {
        self.deployment = Some(deployment);
        self
    }

    /// What a program may use. [`Limits::tool_calls`] counts calls of own tools and of upstreams together.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = Some(limits);
        self
    }

    /// Bytes of a value's preview; 8 KiB unless set.
    pub fn preview_bytes(mut self, bytes: usize) -> Builder {
        self.preview_bytes = Some(bytes);
        self
    }

    /// Changes what the scheduler allows: how many programs may be in flight, how long others wait, how much memory all of them
    /// have. Several changes are made in the order of the calls.
    ///
    /// ```
    /// # use ptc_runtime::embed::Engine;
    /// let engine = Engine::builder().schedule(|limits| {
    ///     limits.in_flight.value = 100;
    ///     limits.queue_timeout_ms.value = 10_000;
    /// });
    /// # let _ = engine;
    /// ```
    pub fn schedule(mut self, change: impl FnOnce(&mut ScheduleLimits) + Send + 'static) -> Builder {
        self.schedule.push(Box::new(change));
        self
    }

    /// Programs that may be in flight; others wait for a place. 1,000 unless set.
    pub fn concurrent(self, programs: usize) -> Builder {
        self.schedule(move |limits| limits.in_flight = Limit { value: programs.max(1), source: Source::Set("concurrent".into()) })
    }

    /// Where relative paths of the deployment's credentials start; the folder of the executable unless set.
    pub fn config_dir(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.config_dir = Some(folder.into());
        self
    }

    /// The Tokio runtime for tools and upstreams. Unless set it is the one around [`Builder::build`], and one of the engine's own
    /// where there is none. It needs its timers and its input and output enabled.
    pub fn runtime(mut self, handle: Handle) -> Builder {
        self.handle = Some(handle);
        self
    }

    /// Lists the tools of the deployment's MCP upstreams when a program first needs them; `load` makes of each list what the
    /// catalog holds. Tools of MCP upstreams that the deployment has are ignored until then. `ptc_compiler::serve` provides `load`
    /// for a config.
    pub fn live(mut self, load: Arc<dyn Load>) -> Builder {
        self.load = Some(load);
        self
    }

    /// Takes over open connections of upstreams that were asked for their tools, so that no child process is started twice. They
    /// have to run on the engine's runtime. Ignored where the catalog is [live](Builder::live).
    pub fn connections_of(mut self, upstreams: Arc<Upstreams>) -> Builder {
        self.connections = Some(upstreams);
        self
    }

    /// Changes the settings of upstreams, which are the documented defaults of a server. Folder and runtime are those of the
    /// engine. Several changes are made in the order of the calls.
    ///
    /// ```
    /// # use ptc_runtime::embed::Engine;
    /// # use std::time::Duration;
    /// let engine = Engine::builder().upstreams(|upstreams| {
    ///     upstreams.call_timeout = Duration::from_secs(30);
    ///     upstreams.max_calls_per_program = 500;
    /// });
    /// # let _ = engine;
    /// ```
    pub fn upstreams(mut self, change: impl FnOnce(&mut UpstreamSettings) + Send + 'static) -> Builder {
        self.upstreams.push(Box::new(change));
        self
    }

    /// Resolves credentials and prepares upstreams. Nothing is started or sent before a program needs it.
    pub fn build(self) -> Result<Engine, BuildError> {
        if !crate::alloc::counts() {
            return Err(BuildError::Allocator);
        }
        for (index, tool) in self.tools.iter().enumerate() {
            let name = underscored(tool.name());
            if self.tools.iter().take(index).any(|before| underscored(before.name()) == name) {
                return Err(BuildError::Tool(ToolDefinitionError::Twice(tool.name().to_owned())));
            }
        }
        let deployment = self.deployment.unwrap_or(&NO_UPSTREAMS);
        let mut settings = Settings::defaults(!deployment.catalog.upstreams.is_empty());
        settings.config_dir = self.config_dir;
        let secrets = Secrets::resolve(deployment, &settings.config_dir()).map_err(BuildError::Secrets)?;
        let redactor = secrets.redactor();
        let (handle, driver) = if let Some(handle) = self.handle.or_else(|| Handle::try_current().ok()) {
            (handle, None)
        } else {
            let driver = Driver::start().map_err(BuildError::System)?;
            (driver.handle.clone(), Some(driver))
        };
        let mut upstream_settings = UpstreamSettings::new(settings.config_dir(), handle.clone());
        for change in self.upstreams {
            change(&mut upstream_settings);
        }
        #[cfg(feature = "http")]
        if let Some(pem) = &upstream_settings.extra_roots {
            crate::upstream::check_certificates(pem).map_err(BuildError::Certificates)?;
        }
        let upstreams = match (self.load, self.connections) {
            (Some(load), _) => Upstreams::live(deployment, secrets, upstream_settings, load),
            (None, Some(earlier)) => Upstreams::taking_over(deployment, secrets, upstream_settings, &earlier),
            (None, None) => Upstreams::new(deployment, secrets, upstream_settings),
        };
        let mut evaluator = Evaluator::new(&settings, Arc::clone(&upstreams), deployment.programs, redactor.clone());
        evaluator.adjust(self.limits, self.preview_bytes);
        let mut limits = settings.schedule;
        for change in self.schedule {
            change(&mut limits);
        }
        Ok(Engine {
            deployment,
            evaluator: Arc::new(evaluator),
            redactor,
            tools: self.tools.into(),
            upstreams,
            handle,
            fibers: Arc::new(Fibers::new(limits.threads.value)),
            scheduler: Scheduler::new(limits),
            _driver: driver,
        })
    }
}

/// A runtime of the engine's own. Its thread lives as long as the engine, which matters to child processes that are to end with
/// the thread that started them.
pub(super) struct Driver {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Driver {
    fn start() -> io::Result<Driver> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("ptc-engine".into()).spawn(move || {
            let _ = runtime.block_on(ended);
            // A tool that blocks does not hold up the end.
            runtime.shutdown_background();
        })?;
        Ok(Driver { handle, end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
