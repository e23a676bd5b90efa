//! The services that serving and evaluating share: secrets, upstreams, and the runtime of their connections.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ptc_catalog::{Binding, Deployment, StoredProgram};
use tokio::runtime::{Handle, Runtime};

use super::Origin;
#[cfg(feature = "http-server")]
use super::signals::Hangups;
use super::signals::{Interrupts, ShutdownSignals};
#[cfg(feature = "agentic")]
use crate::agentic::{Plan, Planner, client::Client};
use crate::alloc;
use crate::diagnostics::export::{Connection, Exporter, ExporterSettings};
use crate::log::{self, Level};
use crate::parts::Parts;
use crate::secrets::{MissingSecret, Redactor, Secrets};
#[cfg(feature = "http-oauth")]
use crate::server::http::access_token::{TokenVerifier, TokenVerifierSource};
#[cfg(feature = "interception")]
use crate::settings::InterceptionSettings;
use crate::settings::{Connect, Isolate, SessionKeys, Settings, StoreUrl};
#[cfg(feature = "http")]
use crate::upstream::http::access_token::AccessTokens;
#[cfg(feature = "interception")]
use crate::upstream::intercept::Interceptor;
use crate::upstream::{Children, Contacts, StartLimits, UpstreamSettings, Upstreams};
use ptc_engine::evaluation::{Evaluator, Isolation};
use ptc_isolation::{WorkerSettings, Workers};

/// Timeout for child processes and connections to end.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// Number of idle worker processes that are kept on a machine with few processors.
const MAX_IDLE_WORKERS: usize = 8;

/// The running services of a deployment.
///
/// Its runtime is driven by the thread that calls [`Services::until`], the main thread. This thread lives as long as the process,
/// which matters to children that are killed when the thread that started them ends.
pub(super) struct Services {
    runtime: Runtime,
    upstreams: Arc<Upstreams>,
    programs: &'static [StoredProgram],
    redactor: Redactor,
    interrupts: Interrupts,
    signals: ShutdownSignals,
    #[cfg(feature = "http-server")]
    hangups: Hangups,
    /// The processes that run programs. `None` if threads run them.
    workers: Option<Arc<Workers>>,
}

/// Why the services cannot start.
pub(super) enum StartupError {
    /// The secrets that could not be resolved.
    Secrets(Vec<MissingSecret>),
    /// The file of certificates is invalid, with the reason.
    Certificates(String),
    /// What `--record-dir` or `--upstreams` names cannot be used, with the reason.
    #[cfg(feature = "interception")]
    Recording(String),
    /// `--connect eager`: the upstreams that could not be reached, with the reasons.
    Upstreams(Vec<String>),
    /// A signal arrived first. Contains its name.
    Signal(&'static str),
    /// The operating system reported an error.
    System(io::Error),
}

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended<T> {
    /// The result.
    Done(T),
    /// The name of the signal that came first.
    Signal(&'static str),
}

impl Services {
    /// Resolves secrets and prepares upstreams. Connects to them only with `--connect eager`.
    pub(super) fn new(origin: &Origin, settings: &Settings) -> Result<Services, StartupError> {
        Services::with(origin, settings, None, None)
    }

    /// Like [`Services::new`], with an additional secret of the server itself, and with the settings of an exporter.
    pub(super) fn with(
        origin: &Origin,
        settings: &Settings,
        own: Option<&'static Binding>,
        exporter: Option<&dyn ExporterSettings>,
    ) -> Result<Services, StartupError> {
        if !alloc::counts() {
            return Err(StartupError::System(io::Error::other(alloc::NOT_COUNTING)));
        }
        let deployment = origin.deployment;
        let config_dir = settings.config_dir();
        let secrets = secrets(deployment, own, &config_dir, settings)?;
        let mut redactor = secrets.redactor();
        if let Some(token) = &settings.http.auth_token {
            redactor = redactor.with(token.text());
        }
        #[cfg(feature = "http-oauth")]
        if let Some(secret) = &settings.http.oauth.client_secret {
            redactor = redactor.with(secret.text());
        }
        for secret in settings.session_store.iter().flat_map(StoreUrl::secrets) {
            redactor = redactor.with(&secret);
        }
        for key in settings.session_keys.iter().flat_map(SessionKeys::iter) {
            redactor = redactor.with(key);
        }
        #[cfg(feature = "proxy")]
        for secret in settings.proxy.secrets() {
            redactor = redactor.with(&secret);
        }
        for secret in exporter.iter().flat_map(|exporter| exporter.secrets()) {
            redactor = redactor.with(secret);
        }
        log::set_redactor(redactor.clone());
        let (runtime, earlier) = match origin.contacts.take().and_then(Contacts::into_parts) {
            Some((runtime, upstreams)) => (runtime, Some(upstreams)),
            None => (runtime(settings)?, None),
        };
        // The handlers are installed before anything is served. Without them a signal ends the process but not its children.
        let (interrupts, signals) = {
            let _inside = runtime.enter();
            let interrupts = Interrupts::listen().map_err(StartupError::System)?;
            (interrupts, ShutdownSignals::listen(false, !settings.http.reloads()).map_err(StartupError::System)?)
        };
        #[cfg(feature = "http-server")]
        let hangups = {
            let _inside = runtime.enter();
            Hangups::listen(settings.http.reloads()).map_err(StartupError::System)?
        };
        let upstream_settings = upstream_settings(settings, origin.parts, config_dir, runtime.handle().clone())?;
        #[cfg(feature = "interception")]
        let upstream_settings = UpstreamSettings { interceptor: interceptor(origin, settings)?, ..upstream_settings };
        let upstreams = match (&origin.load, &earlier) {
            (Some(load), _) => Upstreams::live(deployment, secrets, upstream_settings, Arc::clone(load)),
            (None, Some(earlier)) => Upstreams::taking_over(deployment, secrets, upstream_settings, earlier),
            (None, None) => Upstreams::new(deployment, secrets, upstream_settings),
        };
        let services = Services {
            runtime,
            upstreams,
            programs: deployment.programs,
            redactor,
            interrupts,
            signals,
            #[cfg(feature = "http-server")]
            hangups,
            workers: None,
        };
        if settings.connect == Connect::Eager { services.connected() } else { Ok(services) }
    }

    /// Connects to every upstream.
    fn connected(mut self) -> Result<Services, StartupError> {
        let upstreams = Arc::clone(&self.upstreams);
        let why = match self.until(async move { upstreams.connect_all().await }) {
            Ended::Done(Ok(())) => return Ok(self),
            Ended::Done(Err(faults)) => {
                StartupError::Upstreams(faults.iter().map(|(name, fault)| format!("upstream '{name}': {fault}")).collect())
            }
            Ended::Signal(name) => StartupError::Signal(name),
        };
        self.shut_down();
        Err(why)
    }

    /// Returns an evaluator with the upstreams.
    pub(super) fn evaluator(&self, settings: &Settings) -> Evaluator {
        let preview_bytes = settings.response_profile.budget().preview_bytes;
        let evaluator =
            Evaluator::new(settings.limits(), preview_bytes, Arc::clone(&self.upstreams), self.programs, self.redactor.clone());
        match &self.workers {
            Some(workers) => evaluator.isolated(Arc::clone(workers) as Arc<dyn Isolation>),
            None => evaluator,
        }
    }

    /// Makes programs run in processes of their own, if the settings ask for it.
    pub(super) fn isolate(&mut self, origin: &Origin, settings: &mut Settings) -> Result<(), String> {
        // Over HTTP, a program that leaves the interpreter must not reach the credentials and the data of other callers. Over
        // standard input and output there is one caller, who has started the server.
        let default = if settings.http.on && origin.is_pinned { Isolate::Process } else { Isolate::Thread };
        let isolate = settings.isolate.unwrap_or(default);
        if isolate == Isolate::Thread {
            return Ok(());
        }
        if !origin.is_pinned {
            return Err("--isolate: only a pinned binary runs programs in processes of their own; compile the config, or use \
                        --isolate thread"
                .to_owned());
        }
        settings.schedule.limit_processes();
        let processors = settings.schedule.processors.value;
        let worker_settings = WorkerSettings {
            name: origin.deployment.name,
            is_confined: isolate == Isolate::Process,
            memory_bytes: settings.program_memory_limit_bytes,
            preview_bytes: settings.response_profile.budget().preview_bytes,
            max_calls_per_program: settings.max_upstream_calls_per_program,
            max_idle: MAX_IDLE_WORKERS.max(2 * processors).min(settings.schedule.in_flight.value),
            most: settings.schedule.in_flight.value,
        };
        let workers = Workers::new(worker_settings, self.runtime.handle().clone()).map_err(|why| {
            format!(
                "--isolate process: {why}; with --isolate process-unconfined programs run in processes that the kernel does not \
                 confine, and with --isolate thread in the server's own"
            )
        })?;
        workers.warm_up(processors);
        self.workers = Some(workers);
        Ok(())
    }

    /// Returns the planner that runs tasks.
    #[cfg(feature = "agentic")]
    pub(super) fn planner(&self, plan: Plan, settings: &Settings) -> Result<Arc<Planner>, String> {
        let client = Client::new(&plan, self.upstreams.secrets(), self.upstreams.extra_roots(), settings.proxy.resolved())?;
        Ok(Planner::new(plan, client, self.evaluator(settings), self.redactor(), self.runtime.handle().clone()))
    }

    /// Starts an exporter.
    pub(super) fn start_exporter(
        &self,
        exporter: &dyn ExporterSettings,
        settings: &Settings,
        deployment: &str,
    ) -> Result<Arc<dyn Exporter>, String> {
        exporter.start(self.upstreams.secrets(), self.connection(settings), &self.redactor, deployment)
    }

    /// Makes the verifier of access tokens, if there is an issuer.
    #[cfg(feature = "http-oauth")]
    pub(super) fn token_verifier(
        &self,
        source: Option<&dyn TokenVerifierSource>,
        settings: &Settings,
        deployment: &Deployment,
    ) -> Result<Option<Arc<dyn TokenVerifier>>, String> {
        let source = source.filter(|_| settings.http.oauth.issuer.is_some());
        let scopes = deployment.policy.map(ptc_catalog::Policy::scopes).unwrap_or_default();
        let start = |source: &dyn TokenVerifierSource| {
            source.start(&settings.http, &scopes, self.upstreams.secrets(), self.connection(settings))
        };
        source.map(start).transpose()
    }

    /// Returns how an optional part makes its connections.
    fn connection(
        &self,
        #[cfg_attr(not(feature = "proxy"), expect(unused_variables, reason = "it has only the proxy of a part"))]
        settings: &Settings,
    ) -> Connection {
        Connection {
            extra_roots: self.upstreams.extra_roots(),
            #[cfg(feature = "proxy")]
            proxy: settings.proxy.resolved(),
        }
    }

    /// Returns the upstreams.
    pub(super) fn upstreams(&self) -> &Arc<Upstreams> {
        &self.upstreams
    }

    /// Returns the redactor.
    pub(super) fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// Drives connections until `done`, SIGINT or SIGTERM.
    pub(super) fn until<T>(&mut self, done: impl Future<Output = T>) -> Ended<T> {
        let Services { runtime, interrupts, signals, .. } = self;
        runtime.block_on(async {
            tokio::select! {
                value = done => Ended::Done(value),
                () = interrupts.recv() => Ended::Signal("SIGINT"),
                name = signals.recv() => Ended::Signal(name),
            }
        })
    }

    /// Takes the receiver of SIGHUP, which makes the server read files again.
    #[cfg(feature = "http-server")]
    pub(super) fn take_hangups(&mut self) -> Hangups {
        std::mem::take(&mut self.hangups)
    }

    /// Discards an interrupt that arrived before there was anything to stop.
    #[cfg(feature = "line-editing")]
    pub(super) fn forget_interrupt(&self) {
        self.interrupts.forget();
    }

    /// Ends connections and child processes, within a time limit.
    pub(super) fn shut_down(self) {
        let ended = self.runtime.block_on(async { tokio::time::timeout(SHUTDOWN, self.upstreams.shutdown()).await });
        if ended.is_err() {
            log::line(Level::Warn, "upstreams did not end in time", &[]);
        }
        #[cfg(feature = "interception")]
        self.upstreams.finish_interception();
        self.runtime.shutdown_background();
    }
}

fn runtime(settings: &Settings) -> Result<Runtime, StartupError> {
    settings.schedule.tokio_runtime().map_err(StartupError::System)
}

/// Resolves the secrets. A server needs all of them, unless it is started to be checked. For a command that evaluates programs, a
/// missing secret only fails the calls to the upstreams that need it, so that questions to the catalog need no secrets. Recorded answers need
/// none.
fn secrets(
    deployment: &'static Deployment,
    own: Option<&'static Binding>,
    config_dir: &Path,
    settings: &Settings,
) -> Result<Secrets, StartupError> {
    if settings.serves && !settings.allow_missing_secrets && !settings.is_offline() {
        return Secrets::resolve_with(deployment, own, config_dir).map_err(StartupError::Secrets);
    }
    let secrets = Secrets::resolve_available(deployment, own, config_dir);
    for missing in secrets.missing().iter().filter(|_| settings.serves && !settings.is_offline()) {
        log::line(Level::Warn, "a secret is missing", &[("reason", &missing.to_string())]);
    }
    Ok(secrets)
}

/// Returns what answers or observes the calls of programs.
#[cfg(feature = "interception")]
fn interceptor(origin: &Origin, settings: &Settings) -> Result<Option<Arc<dyn Interceptor>>, StartupError> {
    let interception = &settings.interception;
    if origin.interceptor.is_some() && interception.record_dir.is_none() {
        return Ok(origin.interceptor.clone());
    }
    let (Some(recorder), catalog) = (origin.parts.recorder, origin.deployment.catalog) else { return Ok(None) };
    let opened = match (&interception.record_dir, &interception.cassette) {
        (Some(_), _) => recorder.open(interception, catalog),
        (None, Some(_)) => recorder.replay(interception, catalog),
        (None, None) => return Ok(None),
    };
    opened.map(Some).map_err(StartupError::Recording)
}

fn upstream_settings(
    settings: &Settings,
    #[cfg_attr(not(feature = "http"), expect(unused_variables, reason = "only an HTTP client has an optional part"))]
    parts: &'static Parts,
    config_dir: PathBuf,
    handle: Handle,
) -> Result<UpstreamSettings, StartupError> {
    Ok(UpstreamSettings {
        call_timeout: settings.upstream_call_timeout,
        max_response_bytes: settings.max_upstream_response_bytes,
        max_calls_per_program: settings.max_upstream_calls_per_program,
        max_writes_per_program: settings.max_writes_per_program,
        max_catalog_ops: settings.max_catalog_ops_per_program,
        max_catalog_result_bytes: settings.max_catalog_result_bytes,
        on_drift: settings.on_drift,
        extra_roots: settings.ca_file.as_deref().map(certificates).transpose()?,
        start_limits: StartLimits::new(settings.connect_concurrency),
        children: Children::new(settings.max_children),
        connect_timeout: settings.connect_timeout,
        logs_health: settings.serves,
        #[cfg(feature = "http")]
        access_tokens: AccessTokens::new(parts.oauth_client).with_store(settings.token_store.clone()),
        ..UpstreamSettings::new(config_dir, handle)
    })
}

/// Passed by a server that is about to start to the code that makes its catalog, so that the server can take over the connections
/// made for it.
#[derive(Clone, Copy)]
pub struct Preparation<'s> {
    pub(super) settings: &'s Settings,
    pub(super) parts: &'static Parts,
}

impl Preparation<'_> {
    /// Returns the settings of the replay and of the recording of answers.
    #[cfg(feature = "interception")]
    pub fn interception(&self) -> &InterceptionSettings {
        &self.settings.interception
    }

    /// Contacts the upstreams of a deployment without tools, with the settings of the server.
    ///
    /// # Errors
    ///
    /// Returns a sentence for each secret that cannot be resolved, or one sentence if the file of certificates cannot be used
    /// or the Tokio runtime cannot be created.
    pub fn contacts(&self, deployment: &'static Deployment, config_dir: &Path) -> Result<Contacts, Vec<String>> {
        let open = || {
            let config_dir = self.settings.config_dir.clone().unwrap_or_else(|| config_dir.to_owned());
            #[cfg(feature = "agentic")]
            let own = Plan::key_of(deployment, self.settings);
            #[cfg(not(feature = "agentic"))]
            let own = None;
            let secrets = secrets(deployment, own, &config_dir, self.settings)?;
            let runtime = runtime(self.settings)?;
            let settings = upstream_settings(self.settings, self.parts, config_dir, runtime.handle().clone())?;
            Ok(Contacts::new(runtime, deployment, secrets, settings))
        };
        open().map_err(|why: StartupError| why.sentences())
    }
}

/// Reads and checks a file of certificates before anything is started.
fn certificates(path: &Path) -> Result<Arc<[u8]>, StartupError> {
    let text = std::fs::read(path).map_err(|why| why.to_string());
    #[cfg(feature = "http")]
    let text = text.and_then(|text| crate::upstream::check_certificates(&text).map(|()| text));
    text.map(Into::into).map_err(|why| StartupError::Certificates(format!("--ca-file {}: {why}", path.display())))
}

impl StartupError {
    /// Returns a sentence for each problem.
    pub(super) fn sentences(&self) -> Vec<String> {
        match self {
            StartupError::Secrets(missing) => missing.iter().map(ToString::to_string).collect(),
            StartupError::Certificates(why) => vec![why.clone()],
            #[cfg(feature = "interception")]
            StartupError::Recording(why) => vec![why.clone()],
            StartupError::Upstreams(faults) => faults.clone(),
            StartupError::Signal(name) => vec![format!("{name} came before all upstreams were connected")],
            StartupError::System(fault) => vec![format!("cannot start: {fault}")],
        }
    }
}
