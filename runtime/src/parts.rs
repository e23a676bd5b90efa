//! The optional parts of a server. Each is a crate above this one, so that a binary links only the parts that its `main` passes.

use std::sync::Arc;

use ptc_catalog::Deployment;

use crate::diagnostics::export::ExporterSource;
#[cfg(feature = "interception")]
use crate::recording::RecorderSource;
#[cfg(feature = "http-server")]
use crate::server::http::TraceViewer;
#[cfg(feature = "http-oauth")]
use crate::server::http::access_token::TokenVerifierSource;
use crate::session::store::SessionStores;
use crate::settings::LinkedParts;
use crate::upstream::access::{PolicyEvaluator, PolicySource};
#[cfg(feature = "http")]
use crate::upstream::http::access_token::TokenSourceFactory;

/// The optional parts that a binary links, which its `main` passes to [`main_with`](crate::main_with).
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    /// Opens the stores of `--session-store`: `ptc_session_redis::REDIS`.
    pub session_stores: Option<&'static dyn SessionStores>,
    /// The page of `--http-viewer`: `ptc_viewer::VIEWER`.
    #[cfg(feature = "http-server")]
    pub viewer: Option<&'static dyn TraceViewer>,
    /// Verifies the tokens of `--http-oauth-issuer`: `ptc_resource_server::ACCESS_TOKENS`.
    #[cfg(feature = "http-oauth")]
    pub access_tokens: Option<&'static dyn TokenVerifierSource>,
    /// Obtains access tokens for upstreams whose `auth` has the scheme `oauth2`: `ptc_oauth_client::OAUTH_CLIENT`.
    #[cfg(feature = "http")]
    pub oauth_client: Option<&'static dyn TokenSourceFactory>,
    /// The exporter of `--otlp-endpoint`: `ptc_otlp::OTLP`.
    pub exporter: Option<&'static dyn ExporterSource>,
    /// Records programs for `--record-dir`, and replays recordings for `--upstreams`: `ptc_cassette::RECORDER`.
    #[cfg(feature = "interception")]
    pub recorder: Option<&'static dyn RecorderSource>,
    /// Evaluates the policy of the deployment: `ptc_policy::POLICY`.
    pub policy: Option<&'static dyn PolicySource>,
}

impl Parts {
    /// No part.
    pub const NONE: Parts = Parts {
        session_stores: None,
        #[cfg(feature = "http-server")]
        viewer: None,
        #[cfg(feature = "http-oauth")]
        access_tokens: None,
        #[cfg(feature = "http")]
        oauth_client: None,
        exporter: None,
        #[cfg(feature = "interception")]
        recorder: None,
        policy: None,
    };

    /// Returns the evaluator of a deployment's policy. `None` if there is no policy, or if its evaluation is not linked.
    pub(crate) fn policy_of(&self, deployment: &Deployment) -> Option<Arc<dyn PolicyEvaluator>> {
        Some(self.policy?.evaluator(deployment.policy?))
    }

    /// Returns which parts there are.
    pub fn linked(&self) -> LinkedParts {
        #[cfg(feature = "http-server")]
        let viewer = self.viewer.is_some();
        #[cfg(not(feature = "http-server"))]
        let viewer = false;
        #[cfg(feature = "http-oauth")]
        let http_oauth = self.access_tokens.is_some();
        #[cfg(not(feature = "http-oauth"))]
        let http_oauth = false;
        #[cfg(feature = "http")]
        let (oauth_client, keyring) =
            (self.oauth_client.is_some(), self.oauth_client.is_some_and(<dyn TokenSourceFactory>::has_keyring));
        #[cfg(not(feature = "http"))]
        let (oauth_client, keyring) = (false, false);
        #[cfg(feature = "interception")]
        let recording = self.recorder.is_some();
        #[cfg(not(feature = "interception"))]
        let recording = false;
        LinkedParts {
            recording,
            viewer,
            http_oauth,
            oauth_client,
            keyring,
            otlp: self.exporter.is_some(),
            session_redis: self.session_stores.is_some(),
            session_redis_tls: self.session_stores.is_some_and(SessionStores::has_tls),
        }
    }
}
