//! Settings that contradict each other are faults, and settings without effect cause warnings.

use ptc_engine::response::Profile;

use super::feature::how_to_enable;
use super::flag::Group;
use super::flags::flags;
use super::read::{Fault, LIMITS, SettingsParser};
#[cfg(feature = "interception")]
use super::{Settings, SnapshotMode};
use crate::schedule::Source;
#[cfg(feature = "http")]
use crate::upstream::http::access_token::KEYRING;

impl SettingsParser {
    /// Records contradictions between settings of replay and recording.
    #[cfg(feature = "interception")]
    pub(super) fn contradictions_of_interception(&mut self) {
        let Settings { interception, plain, catalog_snapshot_mode, .. } = &self.settings;
        if interception.cassette.is_some() && (*plain || *catalog_snapshot_mode == Some(SnapshotMode::Live)) {
            let why = "--upstreams replays the answers of a config with the catalog of its lock file, and does not go with --plain or \
                       --catalog-snapshot-mode live: leave one of them out";
            self.faults.push(Fault::Refused(why.to_owned()));
        }
        let needs_part = [(interception.record_dir.is_some(), "--record-dir"), (interception.cassette.is_some(), "--upstreams")];
        if let Some((_, flag)) = needs_part.into_iter().find(|(is_given, _)| *is_given)
            && let Some(how_to_enable) = how_to_enable("recording", self.linked)
        {
            self.faults.push(Fault::Unbuilt { flag: flag.into(), how_to_enable });
        }
        let contradictions = interception.contradictions().into_iter().map(|why| Fault::Refused(why.to_owned()));
        self.faults.extend(contradictions.collect::<Vec<_>>());
    }

    /// Records contradictions between settings of a server.
    pub(super) fn contradictions(&mut self) {
        self.faults.extend(self.settings.http.contradictions(self.linked).into_iter().map(Fault::Refused));
        for (text, file) in [
            ("http-auth-token", "http-auth-token-file"),
            ("http-oauth-client-secret", "http-oauth-client-secret-file"),
            ("session-store", "session-store-file"),
            ("session-key", "session-key-file"),
            ("proxy", "proxy-file"),
        ] {
            if let (Some(text), Some(file)) = (self.given.get(text), self.given.get(file)) {
                self.faults.push(Fault::Refused(format!("{file} does not go with {text}: give one of them")));
            }
        }
        let http = &self.settings.http;
        if http.on && http.unix_socket.is_some() {
            if http.admin_port.is_some() && self.settings.diagnostics.counted && !http.has_credentials() {
                let why = "--http-admin-port with --http-unix-socket and --http-metrics needs a credential, such as --http-auth-token or --http-tokens-file: other users of this \
                           machine reach that port";
                self.faults.push(Fault::Refused(why.into()));
            }
            let port = self.given.get("http-port");
            self.warnings.extend(port.map(|place| format!("{place} has no effect with --http-unix-socket")));
        }
        if let Some(url) = &self.settings.session_store {
            if let Some(how_to_enable) = how_to_enable("session-redis", self.linked) {
                let why = format!("--session-store: this binary keeps sessions in its memory only; {how_to_enable}");
                self.faults.push(Fault::Refused(why));
            } else if let Err(why) = url.check(self.linked) {
                self.faults.push(Fault::Refused(format!("--session-store: {why}")));
            } else if !self.settings.sessions {
                self.warnings.push("--session-store has no effect without --sessions".into());
            } else if self.settings.sealing_keys().is_none() {
                let why = "--session-store: sessions in a store are sealed with a key that all replicas share, and there is none; \
                           give --session-key-file or PTC_RUNNER_MCP_SESSION_KEY, for example 32 random bytes of `openssl rand \
                           -hex 32`, or --http-auth-token-file, from which the key is derived";
                self.faults.push(Fault::Refused(why.into()));
            }
        } else {
            let keys = ["session-key", "session-key-file"].into_iter().find_map(|name| self.given.get(name));
            self.warnings.extend(keys.map(|place| format!("{place} has no effect without --session-store")));
        }
        if self.settings.http.viewer && self.settings.diagnostics.trace_dir.is_none() {
            self.faults.push(Fault::Refused("--http-viewer: without --trace-dir there is nothing to look at".into()));
        }
        if self.settings.diagnostics.otlp_endpoint.is_some()
            && let Some(how_to_enable) = how_to_enable("otlp", self.linked)
        {
            self.faults.push(Fault::Unbuilt { flag: "--otlp-endpoint".into(), how_to_enable });
        }
        // A binary without logins does not use the store.
        #[cfg(feature = "http")]
        if self.linked.oauth_client
            && self.settings.token_store.as_ref().is_some_and(|store| store.as_os_str() == KEYRING)
            && let Some(how_to_enable) = how_to_enable("keyring", self.linked)
        {
            self.faults.push(Fault::Unbuilt { flag: "--token-store keyring".into(), how_to_enable });
        }
        if self.settings.diagnostics.tool && !self.given.contains_key("response-profile") {
            self.settings.response_profile = Profile::Debug;
        }
        let schedule = &mut self.settings.schedule;
        let sources = [
            Some(&mut schedule.in_flight.source),
            Some(&mut schedule.queue_timeout_ms.source),
            Some(&mut schedule.memory_budget_bytes.source),
            schedule.in_flight_per_session.as_mut().map(|limit| &mut limit.source),
        ];
        for (name, source) in LIMITS.into_iter().zip(sources) {
            if let (Some(place), Some(source)) = (self.given.get(name), source) {
                *source = Source::Set(place.clone());
            }
        }
        self.idle(Group::Http, "http", self.settings.http.on);
        #[cfg(feature = "proxy")]
        self.idle_proxy();
        #[cfg(feature = "agentic")]
        {
            self.faults.extend(self.settings.agentic.contradictions().into_iter().map(Fault::Refused));
            self.idle(Group::Agentic, "agentic", self.settings.agentic.on);
        }
    }

    /// Warns of a proxy that no request would use, and of exceptions without a proxy.
    #[cfg(feature = "proxy")]
    fn idle_proxy(&mut self) {
        #[cfg(feature = "agentic")]
        let has_planner = self.settings.agentic.on;
        #[cfg(not(feature = "agentic"))]
        let has_planner = false;
        let given = |name| self.given.get(name).map(String::as_str);
        let warning = match (given("proxy").or(given("proxy-file")), given("no-proxy")) {
            (Some(place), _) if !has_planner && !self.has_parts => {
                format!("{place} has no effect without --agentic or --otlp-endpoint; upstreams have `proxy` in the config")
            }
            (None, Some(place)) => format!("{place} has no effect without --proxy"),
            _ => return,
        };
        self.warnings.push(warning);
    }

    /// Warns of settings in a group that is switched off.
    fn idle(&mut self, group: Group, switch: &str, on: bool) {
        let idle = flags().filter(|flag| !on && flag.group == group && flag.name != switch);
        let idle = idle.filter_map(|flag| self.given.get(flag.name));
        self.warnings.extend(idle.map(|place| format!("{place} has no effect without --{switch}")));
    }
}
