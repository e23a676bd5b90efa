//! Registers a client at an authorization server (RFC 7591) that does not know it.

use ptc_catalog::{ClientAuth, GrantType};
use ptc_upstream::{Reason, UpstreamError};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::endpoint::{Post, TokenEndpoint};
use crate::login::DEVICE_GRANT;
use crate::metadata::Metadata;

/// What a person does if a client cannot be registered.
const ADVICE: &str =
    "register a client at the authorization server, and write `issuer`, `client_id` and `client_auth` in the config";
/// Maximum bytes of an identifier and of a secret.
const MAX_BYTES: usize = 4 * 1024;

/// A registered client. It deliberately has no `Debug`.
pub(crate) struct Registered {
    pub(crate) id: String,
    pub(crate) auth: ClientAuth,
    /// Empty for a public client.
    pub(crate) secret: String,
}

/// The answer (RFC 7591, section 3.2.1).
#[derive(Deserialize)]
struct Answer {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

/// Registers a native client (RFC 8252) for a grant.
///
/// # Errors
///
/// The authorization server registers no clients, or refuses this one.
pub(crate) async fn register(
    endpoint: &TokenEndpoint,
    metadata: &Metadata,
    grant: GrantType,
    redirect_uri: Option<&str>,
    scope: &str,
) -> Result<Registered, UpstreamError> {
    let refused = |why: &str| UpstreamError::new(Reason::AuthFailed, format!("no client is registered: {why}; {ADVICE}"));
    if !metadata.has("registration_endpoint") {
        return Err(refused("the authorization server has no `registration_endpoint`"));
    }
    let url = metadata.endpoint("registration_endpoint").map_err(|why| refused(&format!("its metadata {why}")))?;
    let client_auth = method(metadata);
    let grant = if grant == GrantType::DeviceCode { DEVICE_GRANT } else { "authorization_code" };
    let members = [
        ("client_name", Some(json!("ptc-compile"))),
        ("application_type", Some(json!("native"))),
        ("grant_types", Some(json!([grant, "refresh_token"]))),
        ("token_endpoint_auth_method", Some(json!(client_auth.name()))),
        ("redirect_uris", redirect_uri.map(|uri| json!([uri]))),
        ("response_types", redirect_uri.map(|_| json!(["code"]))),
        ("scope", Some(scope).filter(|scope| !scope.is_empty()).map(Value::from)),
    ];
    let client: Map<String, Value> = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let post = Post {
        name: "the registration endpoint",
        headers,
        body: Value::Object(client).to_string(),
        redactor: endpoint.redactor(),
        secrets: &[],
        proof_key: None,
    };
    let answer = endpoint.send(&url, post, |_| ADVICE.to_owned()).await;
    let answer: Answer = serde_json::from_slice(&answer.map_err(|error| error.fault)?)
        .map_err(|_| refused("the answer of the registration endpoint has no `client_id`"))?;
    let is_plain = |text: &str| !text.is_empty() && text.len() <= MAX_BYTES && !text.chars().any(char::is_control);
    let client_auth = match &answer.token_endpoint_auth_method {
        None => client_auth,
        Some(name) => ClientAuth::named(name)
            .filter(|form| is_supported(*form))
            .ok_or_else(|| refused("the registered form of client authentication is not supported"))?,
    };
    let client_secret = match client_auth {
        ClientAuth::None => String::new(),
        _ => answer.client_secret.unwrap_or_default(),
    };
    if !is_plain(&answer.client_id) || client_auth != ClientAuth::None && !is_plain(&client_secret) {
        return Err(refused("the answer of the registration endpoint has no usable identifier or secret"));
    }
    Ok(Registered { id: answer.client_id, auth: client_auth, secret: client_secret })
}

/// Whether a registered client can have this form: keys are made by persons.
fn is_supported(form: ClientAuth) -> bool {
    matches!(form, ClientAuth::None | ClientAuth::SecretBasic | ClientAuth::SecretPost)
}

/// Chooses how the client proves its identity: a program on a person's machine is a public client, if the server accepts those.
fn method(metadata: &Metadata) -> ClientAuth {
    let listed = |form: ClientAuth| metadata.lists("token_endpoint_auth_methods_supported", form.name());
    let forms = [ClientAuth::None, ClientAuth::SecretBasic, ClientAuth::SecretPost];
    // Without the list, `client_secret_basic` is supported (RFC 8414, section 2).
    forms.into_iter().find(|form| listed(*form) == Some(true)).unwrap_or(ClientAuth::SecretBasic)
}
