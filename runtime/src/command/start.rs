//! `start` serves MCP on standard input and output or over HTTP, until the input ends or a signal arrives.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ptc_catalog::Deployment;
use tokio::sync::Notify;

use super::services::{Ended, Services};
use super::{Origin, ended_early, unusable};
#[cfg(feature = "agentic")]
use crate::agentic::{Plan, Planner, tool};
use crate::diagnostics::Diagnostics;
use crate::diagnostics::export::ExporterSettings;
#[cfg(feature = "agentic")]
use crate::digest::{hex, sha256};
#[cfg(feature = "agentic")]
use crate::log::Field;
use crate::log::{self, Level};
use crate::parts::Parts;
use crate::schedule::Scheduler;
use crate::server::caller::{OutboxSink, ResponseSink};
use crate::server::outbox::Outbox;
use crate::server::{Server, stdio};
use crate::session::Sessions;
use crate::settings::Settings;
use crate::settings::http::AuthToken;

/// Time limit for the calls to end after standard input has ended, and again for writing their answers.
const STDIO_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval at which calls are checked for their end during shutdown.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Time limit for exporting the last spans during shutdown.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// Serves clients.
pub(super) fn run(origin: &Origin, mut settings: Settings, exporter: Option<&dyn ExporterSettings>) -> ExitCode {
    let Origin { deployment, parts, .. } = *origin;
    settings.serves = true;
    let policy = parts.policy_of(deployment);
    if deployment.policy.is_some() && policy.is_none() {
        // Without it every caller could call every tool.
        let fault = "the deployment has a policy, and this binary cannot evaluate it: pass ptc_policy::POLICY in Parts::policy";
        return unusable(deployment.name, &[fault.to_owned()]);
    }
    let token = match settings.http.generate_token() {
        Ok(token) => token,
        Err(fault) => return unusable(deployment.name, &[format!("no random bytes for a token: {fault}")]),
    };
    #[cfg(feature = "http-server")]
    if settings.http.on {
        // The limit is raised before descriptors are opened for upstreams or clients.
        crate::schedule::descriptors::raise_limit();
    }
    #[cfg(feature = "agentic")]
    let plan = match settings.agentic.on.then(|| Plan::new(deployment, &settings)).transpose() {
        Ok(plan) => plan,
        Err(why) => return unusable(deployment.name, &why),
    };
    #[cfg(feature = "agentic")]
    let key = plan.as_ref().and_then(|plan| plan.key);
    #[cfg(not(feature = "agentic"))]
    let key = None;
    let mut services = match Services::with(origin, &settings, key, exporter) {
        Ok(services) => services,
        Err(why) => return unusable(deployment.name, &why.sentences()),
    };
    if let Err(why) = services.isolate(origin, &mut settings) {
        return ended_early(deployment.name, services, &why);
    }
    let scheduler = Scheduler::new(settings.schedule.clone());
    let sessions = match Sessions::open(&settings, deployment.name, &scheduler, parts.session_stores) {
        Ok(sessions) => sessions,
        Err(why) => return ended_early(deployment.name, services, &why),
    };
    #[cfg(feature = "agentic")]
    let planner = match plan.map(|plan| planner(&services, plan, &settings)).transpose() {
        Ok(planner) => planner,
        Err(why) => return ended_early(deployment.name, services, &why),
    };
    let diagnostics = Diagnostics::new(&settings.diagnostics, !deployment.catalog.upstreams.is_empty(), services.redactor());
    let diagnostics = match diagnostics {
        Ok(diagnostics) => diagnostics,
        Err(why) => return ended_early(deployment.name, services, &why),
    };
    let exporter = match exporter.map(|exporter| services.start_exporter(exporter, &settings, deployment.name)).transpose() {
        Ok(exporter) => exporter,
        Err(why) => return ended_early(deployment.name, services, &why),
    };
    let diagnostics = diagnostics.with_exporter(exporter.clone());
    let evaluator = services.evaluator(&settings);
    let limits: Vec<_> =
        scheduler.limits().in_force().into_iter().map(|(name, value, source)| (name, format!("{value} ({source})"))).collect();
    let limits: Vec<_> = limits.iter().map(|(name, limit)| (*name, limit.as_str())).collect();
    log::line(Level::Info, "limits", &limits);
    warn_of_long_calls(deployment, &settings);
    let over_http = settings.http.on;
    let server = Server::new(deployment, settings, evaluator, sessions, services.redactor(), scheduler, diagnostics.if_enabled())
        .with_policy(policy);
    #[cfg(feature = "agentic")]
    let server = server.with_planner(planner);
    let server = Arc::new(server);
    let ended = if over_http {
        http(deployment, parts, server, services, token.as_ref())
    } else {
        standard(deployment, &server, services)
    };
    if let Some(exporter) = exporter {
        exporter.end(LAST_SPANS);
    }
    match ended {
        Ok(reason) => {
            log::line(Level::Info, "ended", &[("reason", reason)]);
            ExitCode::SUCCESS
        }
        Err(fault) => unusable(deployment.name, &[fault]),
    }
}

/// Warns of tools whose calls may take longer than a program.
fn warn_of_long_calls(deployment: &Deployment, settings: &Settings) {
    let limit = settings.program_timeout.as_millis();
    for upstream in deployment.catalog.upstreams {
        let is_longer = |time: u64| u128::from(time) > limit;
        if !upstream.tools.facts().longest_call_ms.is_some_and(is_longer) {
            continue;
        }
        if let Some(tool) = upstream.tools.iter().find(|tool| tool.call_timeout_ms.is_some_and(is_longer)) {
            let reason = "call_timeout_ms is longer than --program-timeout-ms, which ends the program first";
            log::line(
                Level::Warn,
                "a time limit has no effect",
                &[("upstream", upstream.name), ("tool", tool.name), ("reason", reason)],
            );
        }
    }
}

/// Creates the planner and logs its settings. Only size and digest of texts are logged.
#[cfg(feature = "agentic")]
fn planner(services: &Services, plan: Plan, settings: &Settings) -> Result<Arc<Planner>, String> {
    let planner = services.planner(plan, settings)?;
    let plan = planner.plan();
    let summary = tool::told(plan, services.upstreams().catalog());
    if !plan.is_private() {
        let why = "what programs see goes there unencrypted; use https, or http to this machine";
        log::line(Level::Warn, "tasks can be read on their way", &[("endpoint", &plan.model.base_url), ("reason", why)]);
    }
    let bytes = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() as u64);
    log::record(
        Level::Info,
        "tasks",
        &[
            ("model", Field::Text(&plan.model.shown)),
            ("endpoint", Field::Text(&plan.model.base_url)),
            ("max_turns", Field::Number(plan.max_turns.into())),
            ("retry_turns", Field::Number(plan.retry_turns.into())),
            ("prefix_bytes", Field::Number(bytes(&plan.prefix))),
            ("suffix_bytes", Field::Number(bytes(&plan.suffix))),
            ("summary_bytes", Field::Number(summary.len() as u64)),
            ("summary_sha256", Field::Text(&hex(&sha256(summary.as_bytes())))),
        ],
    );
    Ok(planner)
}

/// Serves standard input and output. Returns the reason of the end.
fn standard(deployment: &'static Deployment, server: &Arc<Server>, mut services: Services) -> Result<&'static str, String> {
    let unusable = |fault: std::io::Error| format!("standard input or output: {fault}");
    let (input, output) = (stdio::input().map_err(unusable)?, stdio::output().map_err(unusable)?);
    let end = Arc::new(Notify::new());
    let (unread, broken) = (Arc::new(AtomicBool::new(false)), Arc::clone(&end));
    let gone = Arc::clone(&unread);
    let outbox = Arc::new(Outbox::new(output, move || {
        gone.store(true, Ordering::Relaxed);
        broken.notify_one();
    }));
    let caller = stdio::caller();
    let read_end = Arc::new(OnceLock::new());
    {
        let (server, end, caller, read_end) = (Arc::clone(server), Arc::clone(&end), caller.clone(), Arc::clone(&read_end));
        let answers: Arc<dyn ResponseSink> = Arc::new(OutboxSink::new(Arc::clone(&outbox), Arc::clone(server.scheduler())));
        let reader = std::thread::Builder::new().name("client".into()).spawn(move || {
            match stdio::serve(&server, input, &caller, &answers) {
                Ok(end) => drop(read_end.set(end)),
                Err(fault) => log::line(Level::Error, "standard input failed", &[("reason", &fault.to_string())]),
            }
            end.notify_one();
        });
        reader.map_err(|fault| format!("cannot start: {fault}"))?;
    }
    log::line(Level::Info, "serving", &[("deployment", deployment.name), ("catalog", deployment.catalog.digest)]);
    let ended = services.until(end.notified());
    // The reading thread may be blocked in a read forever. The process ends with this thread. Unanswered calls are answered as
    // cancelled, and later ones are refused.
    caller.calls.shut_down();
    caller.calls.stop_all();
    let until = Instant::now() + STDIO_DRAIN_TIMEOUT;
    while !caller.calls.is_idle() && Instant::now() < until {
        std::thread::sleep(POLL_INTERVAL);
    }
    outbox.settle(STDIO_DRAIN_TIMEOUT);
    services.shut_down();
    Ok(match ended {
        Ended::Done(()) if unread.load(Ordering::Relaxed) => "standard output is not read",
        Ended::Done(()) => read_end.get().copied().unwrap_or(stdio::End::Input).reason(),
        Ended::Signal(name) => name,
    })
}

/// Serves HTTP. Returns the reason of the end.
#[cfg(feature = "http-server")]
fn http(
    deployment: &'static Deployment,
    parts: &'static Parts,
    server: Arc<Server>,
    mut services: Services,
    generated: Option<&AuthToken>,
) -> Result<&'static str, String> {
    use crate::server::http::{HttpState, Listener};

    let settings = server.settings().http.clone();
    let pages = parts.viewer.zip(server.settings().traces_to_view()).map(|(viewer, folder)| viewer.pages(folder));
    #[cfg(feature = "http-oauth")]
    let verifier = services.token_verifier(parts.access_tokens, server.settings(), deployment);
    #[cfg(not(feature = "http-oauth"))]
    let verifier = Ok(None);
    let state = match verifier.and_then(|verifier| HttpState::new(server, pages, verifier)) {
        Ok(state) => state,
        Err(fault) => {
            services.shut_down();
            return Err(fault);
        }
    };
    let listener = match services.until(async { Listener::bind(Arc::clone(&state)) }) {
        Ended::Done(Ok(listener)) => listener,
        Ended::Done(Err(fault)) => {
            services.shut_down();
            return Err(fault);
        }
        Ended::Signal(name) => return Ok(name),
    };
    let unknown = |fault: std::io::Error| format!("cannot start: {fault}");
    let (base, admin) = (listener.url().map_err(unknown)?, listener.admin_url().map_err(unknown)?);
    if settings.disable_auth {
        log::line(Level::Warn, "every program on this machine may call: --http-disable-auth was given", &[]);
    }
    if let Some(token) = generated {
        let fields = [
            ("header", format!("Authorization: Bearer {}", token.text())),
            (
                "hint",
                "clients send this header until the server ends; choose a token with --http-auth-token-file or \
                 PTC_RUNNER_MCP_HTTP_AUTH_TOKEN, or let every program on this machine call with --http-disable-auth"
                    .to_owned(),
            ),
        ];
        log::generated_credential("token generated", &fields.each_ref().map(|(name, text)| (*name, text.as_str())));
    }
    let url = if settings.unix_socket.is_some() { base.clone() } else { format!("{base}{}", settings.path) };
    let mut fields = vec![("deployment", deployment.name), ("catalog", deployment.catalog.digest), ("url", &url)];
    fields.extend(admin.as_deref().map(|admin| ("admin_url", admin)));
    log::line(Level::Info, "serving", &fields);
    if let Some(viewer) = parts.viewer.filter(|_| settings.viewer) {
        log::line(Level::Info, "viewer", &[("url", &format!("{base}{}/", viewer.path()))]);
    }
    let mut hangups = services.take_hangups();
    let reload = async {
        loop {
            hangups.recv().await;
            state.reload();
            listener.reload();
        }
    };
    let Ended::Signal(name) = services.until(async {
        tokio::select! { never = listener.serve() => never, never = reload => never }
    });
    log::line(Level::Info, "draining", &[("reason", name)]);
    // A second signal ends the wait.
    services.until(listener.drain(settings.shutdown_grace));
    services.shut_down();
    Ok(name)
}

#[cfg(not(feature = "http-server"))]
fn http(
    _: &'static Deployment,
    _: &'static Parts,
    _: Arc<Server>,
    services: Services,
    _: Option<&AuthToken>,
) -> Result<&'static str, String> {
    // The settings have rejected `--http` before.
    services.shut_down();
    Err("--http: this binary was built without its HTTP server".into())
}
