//! The client and the authorization server of a request: those of the config, or those that a login has found.

use std::sync::Arc;

use ptc_catalog::{ClientAuth, OAuth2};
use ptc_secrets::{Redactor, Secrets};
use reqwest::header::HeaderMap;
use url::{Url, form_urlencoded};

use crate::client_auth::{ClientCredential, learn};
use crate::proof::ProofKey;
use crate::store::Found;

/// A client with its authorization server. It deliberately has no `Debug`.
pub(crate) struct Party {
    /// How tokens are requested. What only a login finds is empty in that of the config.
    pub(crate) oauth: OAuth2<String>,
    credential: ClientCredential,
    /// The key to which tokens are bound. `None` for bearer tokens.
    pub(crate) proof_key: Option<Arc<ProofKey>>,
}

impl Party {
    /// Returns those of the config.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the credential, without any part of it.
    pub(crate) fn of_config(oauth: &OAuth2, secrets: &Secrets) -> Result<Party, &'static str> {
        let credential = ClientCredential::read(oauth, secrets)?;
        Ok(Party { oauth: oauth.map(|text| (*text).to_owned()), credential, proof_key: None })
    }

    /// Returns those that a login has found. The redactor knows the secret of a registered client before it is used.
    ///
    /// # Errors
    ///
    /// Returns why the client cannot prove its identity, or that it has the key of its tokens.
    pub(crate) fn of_found(config: &OAuth2<String>, found: &Found, redactor: &Redactor) -> Result<Party, &'static str> {
        if !found.client_secret.is_empty() {
            learn(redactor, &found.client_id, &found.client_secret);
        }
        let client_auth = ClientAuth::named(&found.client_auth).ok_or("has an unknown form")?;
        let credential = ClientCredential::of_secret(client_auth, &found.client_id, &found.client_secret, redactor)?;
        let oauth = OAuth2 {
            issuer: found.issuer.clone(),
            resource: found.resource.clone(),
            client_id: found.client_id.clone(),
            client_auth,
            ..config.clone()
        };
        Ok(Party { oauth, credential, proof_key: found.proof_key()? })
    }

    /// Returns the form of a request to `url`, and adds the client's proof of identity.
    ///
    /// # Errors
    ///
    /// The client cannot prove its identity.
    pub(crate) fn form(&self, pairs: &[(&str, &str)], url: &Url, headers: &mut HeaderMap) -> Result<String, &'static str> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
        self.credential.add(&self.oauth, url, headers, &mut form)?;
        Ok(form.finish())
    }

    /// Returns what to do after a refusal with this code.
    pub(crate) fn advice(&self, code: &str) -> String {
        let OAuth2 { binding, grant, subject, .. } = &self.oauth;
        match code {
            "invalid_client" if binding.is_empty() => "check `client_id`, and that this is a public client there".to_owned(),
            "invalid_client" => format!("check `client_id`, `client_auth` and the credential '{binding}'"),
            "invalid_scope" => "check `scopes`; `ptc-compile logout` forgets scopes that the upstream has asked for".to_owned(),
            "invalid_target" => "check `resource` and `audience`".to_owned(),
            "invalid_grant" | "invalid_request" if self.oauth.is_on_behalf() => {
                "it does not accept the access token with which the caller came, or this client may not exchange it".to_owned()
            }
            "invalid_grant" | "invalid_request" if !subject.is_empty() => {
                format!("it does not accept the token in the file of the credential '{subject}'")
            }
            "unauthorized_client" | "unsupported_grant_type" => {
                format!("permit the grant `{}` for this client at the authorization server", grant.name())
            }
            _ => "check the settings of this client at the authorization server".to_owned(),
        }
    }
}
