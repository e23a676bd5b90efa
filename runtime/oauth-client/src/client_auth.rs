//! The forms in which a client proves its identity to a token endpoint.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ptc_catalog::{ClientAuth, OAuth2};
use ptc_secrets::{Redactor, Secrets};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use url::Url;
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
    /// The key that signs the parameter `client_assertion`. The redactor learns each assertion before it is sent.
    Key(Box<SigningKey>, Redactor),
    /// The file with the parameter `client_assertion`, which is read for each request. The redactor learns each assertion before it is sent.
    File(AssertionFile, Redactor),
    /// Nothing but the parameter `client_id`.
    Public,
}

/// A file whose content the platform replaces from time to time.
pub(crate) struct AssertionFile {
    path: PathBuf,
}

impl AssertionFile {
    /// Finds the file of a credential binding.
    ///
    /// # Errors
    ///
    /// The credential is not a file.
    pub(crate) fn new(binding: &str, secrets: &Secrets) -> Result<AssertionFile, &'static str> {
        Ok(AssertionFile { path: secrets.file_of(binding).ok_or("is not read from a file")?.to_owned() })
    }

    /// Returns the current content.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the file.
    pub(crate) fn read(&self) -> Result<String, &'static str> {
        let bytes = ptc_secrets::read_file(&self.path).map_err(|_| "cannot be read from its file")?;
        let assertion = std::str::from_utf8(&bytes).map_err(|_| "is not UTF-8 text")?.trim();
        if assertion.is_empty() {
            return Err("is an empty file");
        }
        Ok(assertion.to_owned())
    }
}

impl ClientCredential {
    /// Reads a client's credential.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the value, without any part of it.
    pub(crate) fn read(oauth: &OAuth2, secrets: &Secrets) -> Result<ClientCredential, &'static str> {
        if oauth.client_auth == ClientAuth::None {
            return Ok(ClientCredential::Public);
        }
        let secret = secrets.binding(oauth.binding).ok_or("has no value")?;
        match oauth.client_auth {
            ClientAuth::SecretBasic | ClientAuth::SecretPost => {
                ClientCredential::of_secret(oauth.client_auth, oauth.client_id, secret, &secrets.redactor())
            }
            ClientAuth::PrivateKeyJwt => {
                SigningKey::parse(secret).map(|key| ClientCredential::Key(Box::new(key), secrets.redactor()))
            }
            ClientAuth::AssertionFile => {
                Ok(ClientCredential::File(AssertionFile::new(oauth.binding, secrets)?, secrets.redactor()))
            }
            ClientAuth::None => Ok(ClientCredential::Public),
        }
    }

    /// Returns the credential of a client with a secret.
    ///
    /// # Errors
    ///
    /// The secret cannot be sent in this form.
    pub(crate) fn of_secret(
        client_auth: ClientAuth,
        client_id: &str,
        secret: &str,
        redactor: &Redactor,
    ) -> Result<ClientCredential, &'static str> {
        match client_auth {
            ClientAuth::SecretBasic => {
                // RFC 6749, section 2.3.1: both parts are encoded as in a form.
                let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let encoded = encode(secret);
                if encoded != secret {
                    // The server may repeat the header, in which base64 hides the escapes of the secret.
                    learn(redactor, client_id, &encoded);
                }
                let pair = STANDARD.encode(format!("{}:{encoded}", encode(client_id)));
                let mut header = HeaderValue::from_str(&format!("Basic {pair}")).map_err(|_| "cannot be sent in a header")?;
                header.set_sensitive(true);
                Ok(ClientCredential::Basic(header))
            }
            ClientAuth::SecretPost => Ok(ClientCredential::Post(secret.to_owned())),
            ClientAuth::None => Ok(ClientCredential::Public),
            ClientAuth::PrivateKeyJwt | ClientAuth::AssertionFile => Err("is not a secret that is sent"),
        }
    }

    /// Adds the proof to the headers and the form of a request to `url`.
    ///
    /// # Errors
    ///
    /// The key cannot sign, or the file cannot be read.
    pub(crate) fn add(
        &self,
        oauth: &OAuth2<String>,
        url: &Url,
        headers: &mut HeaderMap,
        form: &mut Serializer<'_, String>,
    ) -> Result<(), &'static str> {
        match self {
            ClientCredential::Basic(header) => {
                headers.insert(AUTHORIZATION, header.clone());
            }
            ClientCredential::Post(secret) => {
                form.append_pair("client_id", &oauth.client_id).append_pair("client_secret", secret);
            }
            ClientCredential::Key(key, redactor) => {
                // The audience is what the config has, since servers compare it as a text.
                let audience =
                    [&*oauth.issuer, &oauth.token_url].into_iter().find(|text| !text.is_empty()).unwrap_or(url.as_str());
                let assertion = key.assertion(&oauth.client_id, audience, &oauth.key_id)?;
                learn(redactor, &oauth.client_id, &assertion);
                add_assertion(oauth, &assertion, form);
            }
            ClientCredential::Public => {
                if !oauth.client_id.is_empty() {
                    form.append_pair("client_id", &oauth.client_id);
                }
            }
            ClientCredential::File(file, redactor) => {
                let assertion = file.read()?;
                learn(redactor, &oauth.client_id, &assertion);
                add_assertion(oauth, &assertion, form);
            }
        }
        Ok(())
    }
}

/// Makes a redactor know a secret of a client.
pub(crate) fn learn(redactor: &Redactor, client_id: &str, secret: &str) {
    redactor.add_issued(&format!("client {client_id}"), secret);
}

fn add_assertion(oauth: &OAuth2<String>, assertion: &str, form: &mut Serializer<'_, String>) {
    form.append_pair("client_id", &oauth.client_id)
        .append_pair("client_assertion_type", JWT_BEARER)
        .append_pair("client_assertion", assertion);
}
