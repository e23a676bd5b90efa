//! The proxy of a client: of an upstream, of a document, of the planner or of the collector of spans.

use ptc_catalog::Proxy;
use ptc_secrets::{Secrets, basic_pair};
use reqwest::NoProxy;

use super::client::{innermost, refuse_user};
use crate::fault::{Reason, UpstreamError};

/// A proxy with its credentials. It deliberately has no `Debug`.
#[derive(Clone)]
pub struct ResolvedProxy {
    /// The URL without user and password.
    url: String,
    /// User and password.
    login: Option<(String, String)>,
    /// Hosts that are reached without the proxy, between commas.
    no_proxy: String,
}

impl ResolvedProxy {
    /// Creates a proxy. `login` has user and password, and `no_proxy` the hosts that are reached without it, in the forms that
    /// [`ptc_catalog::proxy::is_exception`] accepts.
    pub fn new(url: &str, login: Option<(&str, &str)>, no_proxy: &[impl AsRef<str>]) -> ResolvedProxy {
        // `reqwest` compares `*` with host names only.
        let every = |text| if text == "*" { "*,0.0.0.0/0,::/0" } else { text };
        let no_proxy: Vec<&str> = no_proxy.iter().map(AsRef::as_ref).map(every).collect();
        let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
        ResolvedProxy { url: url.to_owned(), login, no_proxy: no_proxy.join(",") }
    }

    /// Reads the credential of an upstream's proxy, if it has one.
    ///
    /// # Errors
    ///
    /// The credential has no value, or is not a user and a password.
    pub(crate) fn resolve(proxy: Option<Proxy>, secrets: &Secrets) -> Result<Option<ResolvedProxy>, UpstreamError> {
        let Some(proxy) = proxy else { return Ok(None) };
        let Some(binding) = proxy.auth else { return Ok(Some(ResolvedProxy::new(proxy.url, None, proxy.no_proxy))) };
        let fault = |what: &str| UpstreamError::new(Reason::AuthFailed, format!("credential binding '{binding}' {what}"));
        let secret = secrets.binding(binding).ok_or_else(|| fault("has no value"))?;
        let (user, password) = basic_pair(secret).ok_or_else(|| fault("is not user:pass"))?;
        Ok(Some(ResolvedProxy::new(proxy.url, Some((&user, &password)), proxy.no_proxy)))
    }

    /// Returns the URL of the proxy.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Makes the proxy of a `reqwest` client. Only destinations in `no_proxy` are reached without it.
    ///
    /// # Errors
    ///
    /// The URL is invalid, or contains a user or password.
    pub(super) fn to_reqwest(&self) -> Result<reqwest::Proxy, UpstreamError> {
        refuse_user(&self.url)?;
        let mut proxy = reqwest::Proxy::all(&self.url)
            .map_err(|why| UpstreamError::unavailable(format!("the proxy cannot be used: {}", innermost(&why))))?;
        if let Some((user, password)) = &self.login {
            // `reqwest` writes both into the URL and decodes them later. The characters that a URL cannot contain are encoded
            // there, but a percent sign is not.
            let escaped = |text: &str| text.replace('%', "%25");
            proxy = proxy.basic_auth(&escaped(user), &escaped(password));
        }
        Ok(proxy.no_proxy(NoProxy::from_string(&self.no_proxy)))
    }

    /// Creates the error for a proxy that answered with 407 (RFC 9110, 15.5.8). The request has not reached the upstream.
    pub(super) fn refusal(&self, upstream: Option<&str>) -> UpstreamError {
        let of = upstream.map(|name| format!(" of '{name}'")).unwrap_or_default();
        let why = match self.login {
            Some(_) => "refuses its credentials",
            None => "asks for credentials, and has none in the configuration",
        };
        UpstreamError::new(Reason::AuthFailed, format!("the proxy{of} {why} (407 Proxy Authentication Required)"))
    }
}
