//! Queries upstreams for missing pins, and shows the progress on the terminal.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ptc_compiler::config::Config;
use ptc_compiler::config::model::Transport;
use ptc_compiler::diag::Diagnostics;
use ptc_compiler::drift;
use ptc_compiler::lock::{Lock, LockedUpstream};
use ptc_compiler::resolve::{self, MissingPin};
use ptc_compiler::serve::ask::{self, Answer, Asker};
use ptc_compiler::source::Sources;
use ptc_runtime::command::{Preparation, ShutdownSignals};
use ptc_runtime::digest::sha256;
use ptc_runtime::secrets;
use ptc_runtime::upstream::caller_token::{self, CallerToken};
use ptc_runtime::upstream::http::access_token::AccessTokens;
use ptc_runtime::upstream::{Contacts, StartLimits, UpstreamSettings};

use crate::authorization;
use crate::children::CALLER_VARIABLE;
use crate::console::Console;
use crate::login;
use crate::parts::PARTS;
use crate::progress::QueryProgress;
use crate::shared_args::Connecting;
use crate::{Failure, defaults};

/// Time that running queries have to end after a signal.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// Prepares the upstreams of a config for [`ask()`], for a server that reuses their connections.
pub(crate) fn open(config: &Config, folder: &Path, preparation: Preparation<'_>) -> Result<Contacts, Failure> {
    secrets::seal();
    preparation.contacts(ask::bare(config, config), folder).map_err(|missing| without_secrets(&missing))
}

fn without_secrets(missing: &[String]) -> Failure {
    Failure::new(format!("the upstreams cannot be asked without their secrets:\n  {}", missing.join("\n  ")))
}

/// The connections over which upstreams are queried.
#[derive(Clone, Copy)]
pub(crate) enum Connections<'a> {
    /// Those of a server, if it made any. They stay open.
    Kept(Option<&'a Contacts>),
    /// Connections that are closed after the answers.
    Own(Connecting),
}

/// Queries all upstreams in parallel. An upstream that does not answer, or whose answer cannot be used, is reported as one
/// finding and does not stop the others.
pub(crate) fn ask(
    config: &Config,
    folder: &Path,
    missing_pins: &[MissingPin],
    connections: Connections<'_>,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
    console: &Console,
) -> Result<BTreeMap<String, LockedUpstream>, Failure> {
    Ok(answers(config, folder, missing_pins, connections, console)?.locked(config, sources, diagnostics))
}

/// Returns the token of the person for whom upstreams are asked, if there is one.
fn caller() -> Option<CallerToken> {
    let token = std::env::var(CALLER_VARIABLE).ok()?;
    CallerToken::new(token.trim(), sha256).filter(|token| !token.text().is_empty())
}

/// The answers of upstreams that were asked for their tools and for their authorization servers.
pub(crate) struct Answers {
    /// The answers as they came.
    pub(crate) answers: Vec<Answer>,
    authorization: authorization::Found,
}

impl Answers {
    /// Converts the answers to entries of the lock. An upstream that does not answer, or whose answer cannot be used, is reported.
    pub(crate) fn locked(
        self,
        config: &Config,
        sources: &mut Sources,
        diagnostics: &mut Diagnostics,
    ) -> BTreeMap<String, LockedUpstream> {
        let mut locked = ask::locked(config, self.answers, sources, diagnostics);
        authorization::add(config, self.authorization, &mut locked, diagnostics);
        for (name, locked) in &locked {
            if let Some(Transport::OpenApi(api)) = config.upstreams.get(name).map(|entry| &entry.transport) {
                defaults::check(api, locked, diagnostics);
            }
        }
        locked
    }

    /// Takes the upstreams that could not be asked for their tools and name another authorization server than in `known`: a person can
    /// log in there only after that is pinned, and the tools can be listed only after the login. They keep their pinned tools.
    pub(crate) fn take_moved(
        &mut self,
        config: &Config,
        known: &Lock,
        diagnostics: &mut Diagnostics,
    ) -> BTreeMap<String, LockedUpstream> {
        let stale: Vec<String> = resolve::missing_pins(config, known).into_iter().map(|pin| pin.upstream).collect();
        let mut moved = BTreeMap::new();
        self.answers.retain(|answer| {
            let Some((name, reason)) = answer.failure().filter(|(name, _)| stale.iter().all(|stale| stale != name)) else {
                return true;
            };
            let (Some(Ok(found)), Some(pinned)) = (self.authorization.get(name), known.upstreams.get(name)) else { return true };
            let now = LockedUpstream { authorization: Some(found.clone()), ..pinned.clone() };
            let differs_from_config = || {
                config.upstreams.get(name).is_some_and(|entry| !drift::changes(name, entry, Some(pinned), Some(&now)).is_empty())
            };
            if !pinned.authorization.as_ref().map_or_else(differs_from_config, |pinned| pinned != found) {
                return true;
            }
            diagnostics.push(authorization::not_listed(config, name, reason));
            moved.insert(name.to_owned(), now);
            false
        });
        moved
    }
}

/// Queries all upstreams in parallel.
pub(crate) fn answers(
    config: &Config,
    folder: &Path,
    missing_pins: &[MissingPin],
    connections: Connections<'_>,
    console: &Console,
) -> Result<Answers, Failure> {
    let own = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime that talks to upstreams: {error}")))?;
    secrets::seal();
    let mut settings = UpstreamSettings::new(folder, own.handle().clone());
    settings.access_tokens = AccessTokens::new(PARTS.oauth_client).with_store(login::store_of_environment());
    let kept = match connections {
        Connections::Kept(contacts) => contacts,
        Connections::Own(Connecting { connect_concurrency, connect_timeout_ms }) => {
            settings.start_limits = StartLimits::new(connect_concurrency.map(usize::from));
            settings.connect_timeout = Duration::from_millis(connect_timeout_ms);
            None
        }
    };
    let asker = Asker::new(config, missing_pins, folder, settings)
        .map_err(|missing| without_secrets(&missing.iter().map(ToString::to_string).collect::<Vec<_>>()))?
        .keeping(kept.and_then(Contacts::upstreams));
    let progress = QueryProgress::start(console, missing_pins.len());
    let mut started = |missing_pin: &MissingPin| -> ask::Done { progress.asked(&missing_pin.upstream) };
    // If a signal ended the process directly, a child that is starting, and processes that it started, would outlive it.
    let work = async {
        let mut signals = ShutdownSignals::listen(true, true)
            .map_err(|error| Failure::new(format!("cannot take over the signals that end a process: {error}")))?;
        tokio::select! {
            found = async {
                let authorization = async {
                    // A server with the connections writes no lock file.
                    if kept.is_some() { BTreeMap::new() } else { authorization::ask(&asker, config, missing_pins).await }
                };
                tokio::join!(caller_token::scope(caller(), asker.ask(config, missing_pins, &mut started)), authorization)
            } => Ok(found),
            name = signals.recv() => Err(Failure::new(format!("{name} came while upstreams were asked; nothing was written"))),
        }
    };
    let answers = match kept {
        Some(contacts) => contacts.block_on(work).unwrap_or_else(|| Ok((Vec::new(), BTreeMap::new()))),
        None => own.block_on(work),
    };
    if answers.is_err() {
        own.shutdown_timeout(SHUTDOWN);
    }
    drop(progress);
    answers.map(|(answers, authorization)| Answers { answers, authorization })
}
