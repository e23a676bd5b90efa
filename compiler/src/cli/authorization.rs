//! Asks upstreams for the authorization servers that they name, when their tools are pinned. `ptc-compile login` asks in the same way.

use std::collections::BTreeMap;
use std::time::Duration;

use ptc_compiler::config::Config;
use ptc_compiler::diag::{Code, Diagnostic, Diagnostics, Severity};
use ptc_compiler::lock::{Authorization, LockedUpstream};
use ptc_compiler::resolve::MissingPin;
use ptc_compiler::serve::ask::Asker;
use ptc_oauth_client::login::{AuthorizationServer, LoginClient};
use ptc_oauth_client::probe::UpstreamProbe;
use ptc_runtime::upstream::http::access_token::TokenSourceConfig;
use ptc_runtime::upstream::{self, UpstreamError};

use crate::login;

/// Time limit for all upstreams. Each has a shorter one of its own.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The authorization servers of upstreams by name, or why there is none, as a clause.
pub(crate) type Found = BTreeMap<String, Result<Authorization, String>>;

/// Asks the upstreams that may name an authorization server. One whose config has a server may name none, and is then left out. Must run
/// inside a tokio runtime.
pub(crate) async fn ask(asker: &Asker, config: &Config, missing_pins: &[MissingPin]) -> Found {
    let is_pinned =
        |pin: &&MissingPin| config.upstreams.get(&pin.upstream).is_some_and(|entry| Authorization::is_pinned(&entry.transport));
    let asked: Vec<_> = missing_pins.iter().filter(is_pinned).filter_map(|pin| asker.upstream(&pin.upstream)).collect();
    let replies = upstream::attempt_all(&asked, TIMEOUT, |upstream| {
        let config = TokenSourceConfig::of_upstream(upstream, login::store_of_environment(), asker.secrets());
        let config =
            config.and_then(|config| config.ok_or_else(|| UpstreamError::unavailable("its requests carry no access tokens")));
        let client = config.and_then(|config| {
            Ok(if config.oauth.is_discovered() {
                (Some(LoginClient::new(&config)?), None)
            } else {
                (None, UpstreamProbe::new(&config)?)
            })
        });
        async move {
            match client? {
                (Some(client), _) => client.authorization_server().await.map(Some),
                (None, Some(probe)) => Ok(probe.named_server().await),
                (None, None) => Ok(None),
            }
        }
    });
    let redactor = asker.secrets().redactor();
    let replies = asked.iter().zip(replies.await).filter_map(|(upstream, reply)| {
        let is_found = config.upstreams.get(upstream.name).is_some_and(|entry| Authorization::is_found(&entry.transport));
        let reply = match reply {
            Ok(Some(AuthorizationServer { issuer, resource, scope, needs_proof })) => {
                let scopes = scope.split(' ').filter(|scope| !scope.is_empty()).map(str::to_owned).collect();
                Ok(Authorization { issuer, resource, scopes, needs_proof })
            }
            Ok(None) => return None,
            // The config has the server, so that nothing is missing.
            Err(_) if !is_found => return None,
            Err(fault) => Err(redactor.redact_str(&fault.message).into_owned()),
        };
        Some((upstream.name.to_owned(), reply))
    });
    replies.collect()
}

/// Adds authorization servers to the entries of a lock. An upstream without one is reported and left out: its move would go unnoticed.
pub(crate) fn add(config: &Config, found: Found, locked: &mut BTreeMap<String, LockedUpstream>, diagnostics: &mut Diagnostics) {
    for (name, found) in found {
        let Some(entry) = locked.get_mut(&name) else { continue };
        match found {
            Ok(authorization) => entry.authorization = Some(authorization),
            Err(why) => {
                locked.remove(&name);
                let message = format!("the upstream `{name}` could not be asked for its authorization server: {why}");
                diagnostics.push(unreachable(config, &name, message));
            }
        }
    }
}

/// Returns the warning for an upstream whose authorization server is pinned anew, and whose tools could not be listed.
pub(crate) fn not_listed(config: &Config, name: &str, reason: &str) -> Diagnostic {
    let message = format!("the upstream `{name}` could not be asked for its tools: {reason}");
    let is_found = config.upstreams.get(name).is_none_or(|entry| Authorization::is_found(&entry.transport));
    let hint = if is_found {
        "its authorization server changed: review the change, log in there with `ptc-compile login`, and run `ptc-compile update` again"
    } else {
        "its authorization server changed: review the change, write it into the config, and run `ptc-compile update` again"
    };
    Diagnostic { severity: Severity::Warning, ..unreachable(config, name, message).hint(hint) }
}

fn unreachable(config: &Config, name: &str, message: String) -> Diagnostic {
    let finding = Diagnostic::new(Code::UpstreamUnreachable, message);
    match config.upstreams.get(name) {
        Some(entry) => finding.at(entry.place.clone(), ""),
        None => finding,
    }
}
