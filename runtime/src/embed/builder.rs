//! The builder of engines.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ptc_catalog::Deployment;
#[cfg(feature = "coverage")]
use ptc_lisp::coverage::Collector;
use ptc_lisp::limits::Limits;
use ptc_lisp::signature::underscored;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::engine::Engine;
use super::tool::{Tool, ToolDefinitionError};
use crate::fibers::Fibers;
use crate::log::{self, LogLine};
use crate::schedule::{Limit, ScheduleLimits, Scheduler, Source};
use crate::secrets::{MissingSecret, Secrets};
use crate::settings::Settings;
use crate::upstream::{Load, UpstreamSettings, Upstreams};
use ptc_engine::evaluation::Evaluator;

/// The configuration of an engine.
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
    log_sink: Option<LogSink>,
    #[cfg(feature = "coverage")]
    coverage: Option<Arc<Collector>>,
}

/// The receiver of log lines.
type LogSink = Box<dyn Fn(&LogLine<'_>) + Send + Sync>;

/// A change of the settings of upstreams by the embedding program.
type Adjust = Box<dyn FnOnce(&mut UpstreamSettings) + Send>;

/// A change of the scheduler's limits by the embedding program.
type Change = Box<dyn FnOnce(&mut ScheduleLimits) + Send>;

/// The reason why an engine cannot be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool has an invalid definition.
    Tool(ToolDefinitionError),
    /// The secrets of the deployment that could not be resolved.
    Secrets(Vec<MissingSecret>),
    /// [`UpstreamSettings::extra_roots`] does not contain certificates in PEM. Contains the reason.
    Certificates(String),
    /// A limit of the scheduler is zero. Contains its name.
    Limit(&'static str),
    /// The deployment has a policy. An engine has no callers to which its rules could apply.
    Policy,
    /// The allocator does not count memory, so that limits would have no effect. See [`crate::alloc`].
    Allocator,
    /// The thread of the engine's own runtime cannot be started.
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
            BuildError::Limit(name) => {
                write!(f, "the limit `{name}` of the scheduler is 0, so that no program could run: set at least 1")
            }
            BuildError::Policy => f.write_str(
                "the deployment has a policy, which an engine does not enforce: leave `policy` out of its config, and check callers in \
                 the embedding program",
            ),
            BuildError::Allocator => f.write_str(crate::alloc::NOT_COUNTING),
            BuildError::System(why) => write!(f, "cannot start a thread for tools and upstreams: {why}"),
        }
    }
}

impl std::error::Error for BuildError {}

static NO_UPSTREAMS: Deployment = Deployment { name: "embedded", ..Deployment::EMPTY };

impl Builder {
    /// Adds a tool that programs call as `(tool/NAME {…})`.
    pub fn tool(mut self, tool: Tool) -> Builder {
        self.tools.push(tool);
        self
    }

    /// Sets the upstreams that programs call with `tool/call`: the deployment of `catalog!`, or one made at run time and leaked.
    pub fn deployment(mut self, deployment: &'static Deployment) -> Builder {
        self.deployment = Some(deployment);
        self
    }

    /// Sets the limits of a program. [`Limits::tool_calls`] includes calls of own tools and of upstreams.
    pub fn limits(mut self, limits: Limits) -> Builder {
        self.limits = Some(limits);
        self
    }

    /// Sets the maximum bytes of a value's preview. The default is 8 KiB.
    pub fn preview_bytes(mut self, bytes: usize) -> Builder {
        self.preview_bytes = Some(bytes);
        self
    }

    /// Changes the scheduler's limits: the number of programs in flight, the queue timeout, the memory budget. Several changes
    /// are applied in the order of the calls.
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

    /// Sets the maximum number of programs in flight. Further ones wait in a queue. The default is 1,000. [`Builder::build`]
    /// refuses zero.
    pub fn concurrent(self, programs: usize) -> Builder {
        self.schedule(move |limits| limits.in_flight = Limit { value: programs, source: Source::Set("concurrent".into()) })
    }

    /// Sets the folder for relative paths of the deployment's credentials. The default is the folder of the executable.
    pub fn config_dir(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.config_dir = Some(folder.into());
        self
    }

    /// Sets the Tokio runtime for tools and upstreams, with timers and I/O enabled. The default is the runtime in which
    /// [`Builder::build`] is called, or else a runtime of the engine.
    pub fn runtime(mut self, handle: Handle) -> Builder {
        self.handle = Some(handle);
        self
    }

    /// Fetches the tools of the deployment's MCP upstreams when a program first needs them. `load` converts each list to its form
    /// in the catalog, and `ptc_compiler::serve` provides it for a config. MCP tools in the deployment are ignored.
    pub fn live(mut self, load: Arc<dyn Load>) -> Builder {
        self.load = Some(load);
        self
    }

    /// Takes over the open connections of upstreams whose tools were fetched before, so that no child process is started twice.
    /// They must run on the engine's runtime. This is ignored with a [live](Builder::live) catalog.
    pub fn connections_of(mut self, upstreams: Arc<Upstreams>) -> Builder {
        self.connections = Some(upstreams);
        self
    }

    /// Changes the settings of upstreams. The defaults are those of a server. Folder and runtime are always those of the engine.
    /// Several changes are applied in the order of the calls.
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

    /// Passes log lines to `sink` and not to standard error, for as long as the engine exists. The lines are redacted. They report
    /// starts, failures and recoveries of upstreams, changed tools, and threads that the system does not start; the upstreams of
    /// an engine without a sink only report changed tools.
    ///
    /// The log belongs to the process: with several engines, each sink receives the lines of all of them. [`log::set_level`] sets
    /// the minimum level, which is `info` at first. A sink is called on the thread that logs. It must not block or use the engine,
    /// because programs may wait for it. Its panics are ignored.
    ///
    /// ```
    /// # use ptc_runtime::embed::Engine;
    /// let engine = Engine::builder().log_sink(|line| {
    ///     let upstream = line.text("upstream").unwrap_or("-");
    ///     eprintln!("{} {upstream}: {}", line.level().name(), line.event());
    /// });
    /// # let _ = engine;
    /// ```
    pub fn log_sink(mut self, sink: impl Fn(&LogLine<'_>) + Send + Sync + 'static) -> Builder {
        self.log_sink = Some(Box::new(sink));
        self
    }

    /// Counts the evaluated forms and branches of all programs in `collector`, which several engines can share. Programs give the
    /// same values and failures, but take more time and native stack.
    #[cfg(feature = "coverage")]
    pub fn coverage(mut self, collector: Arc<Collector>) -> Builder {
        self.coverage = Some(collector);
        self
    }

    /// Resolves credentials and prepares upstreams. Nothing is started or sent before a program needs it.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError`] if the allocator does not count memory, two tools have the same name, a secret cannot be
    /// resolved, a limit of the scheduler is 0, a certificate is invalid, or the engine's own runtime cannot be started.
    pub fn build(self) -> Result<Engine, BuildError> {
        if !crate::alloc::counts() {
            return Err(BuildError::Allocator);
        }
        if self.deployment.is_some_and(|deployment| deployment.policy.is_some()) {
            return Err(BuildError::Policy);
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
        let mut limits = settings.schedule.clone();
        for change in self.schedule {
            change(&mut limits);
        }
        if let Some(name) = limits.zero() {
            return Err(BuildError::Limit(name));
        }
        let (handle, driver) = if let Some(handle) = self.handle.or_else(|| Handle::try_current().ok()) {
            (handle, None)
        } else {
            let driver = Driver::start(&limits).map_err(BuildError::System)?;
            (driver.handle.clone(), Some(driver))
        };
        let mut upstream_settings = UpstreamSettings::new(settings.config_dir(), handle.clone());
        upstream_settings.logs_health = self.log_sink.is_some();
        for change in self.upstreams {
            change(&mut upstream_settings);
        }
        let secrets = if upstream_settings.is_offline() {
            Secrets::resolve_available(deployment, None, &settings.config_dir())
        } else {
            Secrets::resolve(deployment, &settings.config_dir()).map_err(BuildError::Secrets)?
        };
        let redactor = secrets.redactor();
        #[cfg(feature = "http")]
        if let Some(pem) = &upstream_settings.extra_roots {
            crate::upstream::check_certificates(pem).map_err(BuildError::Certificates)?;
        }
        let log_guard = self.log_sink.map(|sink| log::add_sink(redactor.clone(), sink));
        let upstreams = match (self.load, self.connections) {
            (Some(load), _) => Upstreams::live(deployment, secrets, upstream_settings, load),
            (None, Some(earlier)) => Upstreams::taking_over(deployment, secrets, upstream_settings, &earlier),
            (None, None) => Upstreams::new(deployment, secrets, upstream_settings),
        };
        let program_limits = self.limits.unwrap_or_else(|| settings.limits());
        let preview_bytes = self.preview_bytes.unwrap_or(settings.response_profile.budget().preview_bytes);
        let evaluator =
            Evaluator::new(program_limits, preview_bytes, Arc::clone(&upstreams), deployment.programs, redactor.clone());
        Ok(Engine {
            deployment,
            evaluator: Arc::new(evaluator),
            redactor,
            tools: self.tools.into(),
            upstreams,
            handle,
            fibers: Arc::new(Fibers::new(limits.threads.value)),
            scheduler: Scheduler::new(limits),
            #[cfg(feature = "coverage")]
            coverage: self.coverage,
            _driver: driver,
            _log_guard: log_guard,
        })
    }
}

/// A runtime of the engine. Its thread lives as long as the engine, which matters to child processes that are killed when the
/// thread that started them ends.
pub(super) struct Driver {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Driver {
    fn start(limits: &ScheduleLimits) -> io::Result<Driver> {
        let runtime = limits.tokio_runtime()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("ptc-engine".into()).spawn(move || {
            let _ = runtime.block_on(ended);
            // A blocked tool does not delay the shutdown.
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
