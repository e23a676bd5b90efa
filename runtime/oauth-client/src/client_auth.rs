//! The forms in which a client proves its identity to a token endpoint.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_catalog::{ClientAuth, OAuth2};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::assertion::SigningKey;

/// The parameter `client_assertion_type` of a JWT (RFC 7523, section 2.2).
const JWT_BEARER: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// What a client adds to its requests. It deliberately has no `Debug`.
pub(crate) enum ClientCredential {
    /// The value of the header `Authorization`.
    Basic(HeaderValue),
    /// The parameter `client_secret`.
    Post(String),
    /// The key that signs the parameter `client_assertion`.
    Key(SigningKey),
}

impl ClientCredential {
    /// Reads the value of a client's credential.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the value, without any part of it.
    pub(crate) fn read(oauth: &OAuth2, secret: &str) -> Result<ClientCredential, &'static str> {
        match oauth.client_auth {
            ClientAuth::SecretBasic => {
                // RFC 6749, section 2.3.1: both parts are encoded as in a form.
                let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = STANDARD.encode(format!("{}:{}", encode(oauth.client_id), encode(secret)));
                let mut header = HeaderValue::from_str(&format!("Basic {pair}")).map_err(|_| "cannot be sent in a header")?;
                header.set_sensitive(true);
                Ok(ClientCredential::Basic(header))
            }
            ClientAuth::SecretPost => Ok(ClientCredential::Post(secret.to_owned())),
            ClientAuth::PrivateKeyJwt => SigningKey::parse(secret).map(ClientCredential::Key),
        }
    }

    /// Adds the proof to the headers and the form of a request.
    ///
    /// # Errors
    ///
    /// The key cannot sign.
    pub(crate) fn add(
        &self,
        oauth: &OAuth2,
        headers: &mut HeaderMap,
        form: &mut Serializer<'_, String>,
    ) -> Result<(), &'static str> {
        match self {
            ClientCredential::Basic(header) => {
                headers.insert(AUTHORIZATION, header.clone());
            }
            ClientCredential::Post(secret) => {
                form.append_pair("client_id", oauth.client_id).append_pair("client_secret", secret);
            }
            ClientCredential::Key(key) => {
                let audience = if oauth.issuer.is_empty() { oauth.token_url } else { oauth.issuer };
                let assertion = key.assertion(oauth.client_id, audience, oauth.key_id)?;
                form.append_pair("client_id", oauth.client_id)
                    .append_pair("client_assertion_type", JWT_BEARER)
                    .append_pair("client_assertion", &assertion);
            }
        }
        Ok(())
    }
}
