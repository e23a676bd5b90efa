//! Asks an upstream whose authorization server the config has what it says about its tokens: the server that its metadata names, the scopes,
//! and whether the tokens must be bound to a key.

use std::time::{Duration, Instant};

use ptc_upstream::UpstreamError;
use ptc_upstream::http::access_token::TokenSourceConfig;
use ptc_upstream::http::address::AddressLimits;
use ptc_upstream::http::client::HttpClient;
use url::Url;

use crate::discovery::{self, ProbeAnswer};
use crate::endpoint;
use crate::login::AuthorizationServer;
use crate::metadata::Fetcher;

/// Time limit for asking, with all requests. The config has what is necessary, so that an upstream without an answer delays little.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends requests without credentials to an upstream, within its own limits of addresses: it may be at others than the issuer of the config.
pub struct UpstreamProbe {
    http: HttpClient,
    limits: AddressLimits,
    upstream: Url,
    /// The issuer of the config. Empty if it has `token_url` alone.
    issuer: &'static str,
}

impl UpstreamProbe {
    /// Returns the probe of a login at the issuer of the config. `None` if the upstream is not an MCP server: other services do not answer
    /// requests of MCP.
    ///
    /// # Errors
    ///
    /// The HTTP client cannot be set up.
    pub(crate) fn of_login(config: &TokenSourceConfig<'_>) -> Result<Option<UpstreamProbe>, UpstreamError> {
        let Ok(mut plain) = Url::parse(config.url) else { return Ok(None) };
        plain.set_query(None);
        plain.set_fragment(None);
        // The resource of an MCP server is its URL, unless the config has another one.
        let is_mcp = Url::parse(config.oauth.resource).is_ok_and(|resource| resource == plain);
        if is_mcp && !config.oauth.is_discovered() { UpstreamProbe::new(config) } else { Ok(None) }
    }

    /// Returns the probe of an MCP server over HTTP. `None` if its URL is invalid. Nothing is sent.
    ///
    /// # Errors
    ///
    /// The HTTP client cannot be set up.
    pub fn new(config: &TokenSourceConfig<'_>) -> Result<Option<UpstreamProbe>, UpstreamError> {
        let Ok(upstream) = Url::parse(config.url) else { return Ok(None) };
        let limits = AddressLimits::new(upstream.clone());
        Ok(Some(UpstreamProbe {
            http: endpoint::client(config, config.url, Some(&limits))?,
            limits,
            upstream,
            issuer: config.oauth.issuer,
        }))
    }

    /// Asks the upstream. `None` if it cannot be asked.
    pub(crate) async fn ask(&self) -> Option<ProbeAnswer> {
        let fetcher = Fetcher { http: &self.http, limits: Some(&self.limits), deadline: Instant::now() + TIMEOUT };
        discovery::ask(&fetcher, &self.upstream, self.issuer).await
    }

    /// Asks the upstream for the authorization server that its protected-resource metadata (RFC 9728) names, although the config has one. If
    /// the metadata names several, that of the config has precedence. Returns `None` if there is no such metadata, or if the upstream cannot
    /// be asked for it: this is neither a match nor a difference.
    pub async fn named_server(&self) -> Option<AuthorizationServer> {
        let ProbeAnswer { named, scope, needs_proof, .. } = self.ask().await?;
        named.map(|(issuer, resource)| AuthorizationServer { issuer, resource, scope, needs_proof })
    }
}
