//! The configuration of tasks, validated before the server starts.

use std::path::Path;

use ptc_catalog::{Auth, Binding, Deployment};

use super::config::Config;
use super::model::{self, Model};
use crate::description::is_read_only;
use crate::settings::{AgenticSettings, Settings};

/// The configuration of tasks.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The operator's settings of `lisp_task`.
    pub settings: AgenticSettings,
    /// The operator's other settings.
    pub server: Settings,
    /// The model that writes the programs.
    pub model: Model,
    /// The source of its key. `None` if it needs none.
    pub key: Option<&'static Binding>,
    /// Maximum number of programs.
    pub max_turns: u32,
    /// Number of additional programs after an error.
    pub retry_turns: u32,
    /// The operator's text before the prompt.
    pub prefix: Option<String>,
    /// The operator's text after the prompt.
    pub suffix: Option<String>,
    /// The operator's capability summary.
    pub summary: Option<String>,
    /// Whether all tools are read-only.
    pub read_only: bool,
}

impl Plan {
    /// Makes the plan of a deployment.
    ///
    /// # Errors
    ///
    /// Returns a sentence for each fault: there are no upstreams, a tool may write although writes are not allowed, the config
    /// file or the summary cannot be used, the model or its credential is unknown, or the key would be sent unencrypted.
    pub fn new(deployment: &'static Deployment, settings: &Settings) -> Result<Plan, Vec<String>> {
        let agentic = &settings.agentic;
        let mut faults = Vec::new();
        let read_only = is_read_only(deployment, settings);
        if deployment.catalog.upstreams.is_empty() {
            faults.push(
                "--agentic: there are no upstreams, so that tasks could do nothing; name a config with upstreams".to_owned(),
            );
        } else if !read_only && !agentic.allow_writes {
            faults.push(
                "--agentic: not all tools are known to change nothing; give --aggregator-read-only if they do not, or \
                 --agentic-allow-writes if tasks may"
                    .to_owned(),
            );
        }
        let config = agentic.subagent_config.as_deref().map_or_else(|| Ok(Config::default()), Config::read);
        let config = config.unwrap_or_else(|why| {
            faults.extend(why);
            Config::default()
        });
        let summary = agentic
            .summary
            .as_deref()
            .and_then(|path| summary(path, agentic.summary_max_bytes).map_err(|why| faults.push(why)).ok());
        let planner = planner(deployment, agentic).map_err(|why| faults.push(why)).ok();
        match planner.filter(|_| faults.is_empty()) {
            None => Err(faults),
            Some((model, key)) => Ok(Plan {
                settings: agentic.clone(),
                server: settings.clone(),
                model,
                key,
                max_turns: agentic.max_turns.or(config.max_turns).unwrap_or(1),
                retry_turns: agentic.retry_turns.or(config.retry_turns).unwrap_or(0),
                prefix: config.prefix,
                suffix: config.suffix,
                summary,
                read_only,
            }),
        }
    }

    /// Whether the connection to the endpoint is encrypted or local.
    pub fn is_private(&self) -> bool {
        is_private(&self.model.base_url)
    }

    /// Returns the source of the planner's key. `None` without a planner, or if it needs no key.
    pub fn key_of(deployment: &'static Deployment, settings: &Settings) -> Option<&'static Binding> {
        settings.agentic.on.then(|| planner(deployment, &settings.agentic).ok()?.1).flatten()
    }

    /// Returns the authentication of requests to the endpoint.
    pub fn auth(&self) -> Vec<Auth> {
        self.key.map(|key| Auth::Bearer { binding: key.name }).into_iter().collect()
    }
}

fn planner(deployment: &'static Deployment, agentic: &AgenticSettings) -> Result<(Model, Option<&'static Binding>), String> {
    let (model, provider) = model::find(&agentic.model, agentic.base_url.as_deref()).map_err(|unknown| unknown.to_string())?;
    let key = match &agentic.credential {
        Some(name) => {
            let found = deployment.credentials.iter().find(|binding| binding.name == name);
            Some(found.ok_or_else(|| {
                let known: Vec<&str> = deployment.credentials.iter().map(|binding| binding.name).collect();
                let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
                format!("--agentic-credential: the config has no credential '{name}'; {known}")
            })?)
        }
        None => provider.and_then(|provider| provider.key.as_ref()),
    };
    if key.is_some() && !is_private(&model.base_url) {
        return Err(format!(
            "--agentic-base-url: {} would carry the key unencrypted; use https, or http to this machine",
            model.base_url
        ));
    }
    Ok((model, key))
}

/// Whether a URL uses TLS or refers to this machine.
fn is_private(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return true };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.strip_prefix('[').and_then(|v6| v6.split(']').next());
    let host = host.unwrap_or_else(|| authority.split(':').next().unwrap_or_default());
    host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn summary(path: &Path, most: usize) -> Result<String, String> {
    let say = |why: String| format!("--agentic-capability-summary {}: {why}", path.display());
    let text = std::fs::read_to_string(path).map_err(|why| say(why.to_string()))?;
    if text.len() > most {
        return Err(say(format!("{} bytes, {most} are allowed (--agentic-capability-summary-max-bytes)", text.len())));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sent_only_over_private_connections() {
        for (url, private) in [
            ("https://api.example/v1", true),
            ("http://api.example/v1", false),
            ("http://127.0.0.1:8080/v1", true),
            ("http://[::1]:8080/v1", true),
            ("http://localhost/v1", true),
            ("http://localhost.example/v1", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_private(url), private, "{url}");
        }
    }
}
