//! How an upstream's access tokens are obtained from an authorization server (RFC 6749).

/// The element of `auth` with the scheme `oauth2`. `T` is the type of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OAuth2<T = &'static str> {
    /// How a token is requested.
    pub grant: Grant,
    /// The URL of the token endpoint.
    pub token_url: T,
    /// The identifier of the client.
    pub client_id: T,
    /// How the client proves its identity to the token endpoint.
    pub client_auth: ClientAuth,
    /// The credential binding with the client's secret, or with its private key as PEM.
    pub binding: T,
    /// The `kid` of a signed assertion. Empty if it has none.
    pub key_id: T,
    /// The issuer, which is the audience of a signed assertion. Empty if the token endpoint is the audience.
    pub issuer: T,
    /// The scopes, separated by spaces as in the parameter `scope`. Empty if none are requested.
    pub scope: T,
    /// The parameter `resource` (RFC 8707). Empty if it is not sent.
    pub resource: T,
}

impl<T> OAuth2<T> {
    /// Converts the texts.
    pub fn map<'t, U>(&'t self, text: impl Fn(&'t T) -> U) -> OAuth2<U> {
        OAuth2 {
            grant: self.grant,
            token_url: text(&self.token_url),
            client_id: text(&self.client_id),
            client_auth: self.client_auth,
            binding: text(&self.binding),
            key_id: text(&self.key_id),
            issuer: text(&self.issuer),
            scope: text(&self.scope),
            resource: text(&self.resource),
        }
    }
}

/// The grants by which a token is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Grant {
    /// The client acts for itself (RFC 6749, section 4.4).
    ClientCredentials,
}

impl Grant {
    /// Returns the name in `upstreams.json`, which is the value of `grant_type`.
    pub fn name(self) -> &'static str {
        match self {
            Grant::ClientCredentials => "client_credentials",
        }
    }
}

/// The forms of client authentication at a token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ClientAuth {
    /// Identifier and secret in the header `Authorization` (RFC 6749, section 2.3.1).
    SecretBasic,
    /// Identifier and secret in the body.
    SecretPost,
    /// An assertion that the client signs with its private key (RFC 7523).
    PrivateKeyJwt,
}

impl ClientAuth {
    /// Every form.
    pub const ALL: [ClientAuth; 3] = [ClientAuth::SecretBasic, ClientAuth::SecretPost, ClientAuth::PrivateKeyJwt];

    /// Returns the name in `upstreams.json`, as OpenID Connect registers it.
    pub fn name(self) -> &'static str {
        match self {
            ClientAuth::SecretBasic => "client_secret_basic",
            ClientAuth::SecretPost => "client_secret_post",
            ClientAuth::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Returns the form of a name.
    pub fn named(name: &str) -> Option<ClientAuth> {
        ClientAuth::ALL.into_iter().find(|form| form.name() == name)
    }
}
