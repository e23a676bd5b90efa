//! How an upstream's access tokens are obtained from an authorization server (RFC 6749).

/// The element of `auth` with the scheme `oauth2`. `T` is the type of its texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OAuth2<T = &'static str> {
    /// How a token is requested.
    pub grant: GrantType,
    /// The URL of the token endpoint. Empty if the metadata of the issuer has it.
    pub token_url: T,
    /// The identifier of the client. Empty if a login registers the client (RFC 7591).
    pub client_id: T,
    /// How the client proves its identity to the token endpoint.
    pub client_auth: ClientAuth,
    /// The credential binding with the client's secret, its private key as PEM, or its assertion. Empty for a public client.
    pub binding: T,
    /// The `kid` of a signed assertion. Empty if it has none.
    pub key_id: T,
    /// The issuer whose metadata has the endpoints, and which is the audience of a signed assertion. Empty if `token_url` is both, or if
    /// the upstream names its issuer when a person logs in: see [`OAuth2::is_discovered`].
    pub issuer: T,
    /// The scopes, separated by spaces as in the parameter `scope`. Empty if none are requested.
    pub scope: T,
    /// The parameter `resource` (RFC 8707). Empty if it is not sent.
    pub resource: T,
    /// The issuer that the upstream named when the lock file was written: a login at another one is not used. Empty if the config has the
    /// authorization server, or if the lock file has none. No credential of the config is sent to it.
    pub pinned_issuer: T,
    /// The resource that the upstream had then. Empty with `pinned_issuer`.
    pub pinned_resource: T,
    /// Whether the upstream required tokens that are bound to a key (DPoP) then: a login with other tokens is not used.
    pub pinned_proof: bool,
    /// The parameter `audience` of a token exchange (RFC 8693). Empty if it is not sent.
    pub audience: T,
    /// The credential binding with the token that is exchanged, or that is the assertion of `jwt_bearer`: a file, which is read for each
    /// request. Empty for the access token of the caller, and for other grants.
    pub subject: T,
    /// The type of the token that is exchanged.
    pub subject_type: TokenType,
    /// Where the assertion of `jwt_bearer` is requested by a token exchange. `None` if the token itself is the assertion.
    pub identity_provider: Option<IdentityProvider<T>>,
}

/// The identity provider that issues an assertion for the authorization server of an upstream (Identity Assertion Authorization Grant), and
/// the client there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IdentityProvider<T = &'static str> {
    /// Like [`OAuth2::token_url`].
    pub token_url: T,
    /// Like [`OAuth2::client_id`].
    pub client_id: T,
    /// Like [`OAuth2::client_auth`].
    pub client_auth: ClientAuth,
    /// Like [`OAuth2::binding`].
    pub binding: T,
    /// Like [`OAuth2::key_id`].
    pub key_id: T,
    /// Like [`OAuth2::issuer`].
    pub issuer: T,
}

impl OAuth2 {
    /// Returns an element with this grant for a public client. All texts are empty.
    pub const fn new(grant: GrantType) -> OAuth2 {
        OAuth2 {
            grant,
            token_url: "",
            client_id: "",
            client_auth: ClientAuth::None,
            binding: "",
            key_id: "",
            issuer: "",
            scope: "",
            resource: "",
            pinned_issuer: "",
            pinned_resource: "",
            pinned_proof: false,
            audience: "",
            subject: "",
            subject_type: TokenType::AccessToken,
            identity_provider: None,
        }
    }
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
            pinned_issuer: text(&self.pinned_issuer),
            pinned_resource: text(&self.pinned_resource),
            pinned_proof: self.pinned_proof,
            audience: text(&self.audience),
            subject: text(&self.subject),
            subject_type: self.subject_type,
            identity_provider: self.identity_provider.as_ref().map(|provider| IdentityProvider {
                token_url: text(&provider.token_url),
                client_id: text(&provider.client_id),
                client_auth: provider.client_auth,
                binding: text(&provider.binding),
                key_id: text(&provider.key_id),
                issuer: text(&provider.issuer),
            }),
        }
    }

    /// Returns all credential bindings. Those that are not used are empty.
    pub fn bindings(&self) -> impl Iterator<Item = &T> {
        [&self.binding, &self.subject].into_iter().chain(self.identity_provider.as_ref().map(|provider| &provider.binding))
    }
}

impl<T: AsRef<str>> OAuth2<T> {
    /// Whether each caller has tokens of its own, for which the access token is exchanged with which it came.
    pub fn is_on_behalf(&self) -> bool {
        matches!(self.grant, GrantType::TokenExchange | GrantType::JwtBearer) && self.subject.as_ref().is_empty()
    }

    /// Whether the upstream names its authorization server when a person logs in, as the authorization chapter of MCP describes.
    pub fn is_discovered(&self) -> bool {
        self.token_url.as_ref().is_empty() && self.issuer.as_ref().is_empty()
    }

    /// Returns the URL of the authorization server that the config has: of its token endpoint, or of the issuer. Empty if the upstream
    /// names it.
    pub fn server(&self) -> &str {
        match self.token_url.as_ref() {
            "" => self.issuer.as_ref(),
            url => url,
        }
    }
}

impl<T: AsRef<str>> IdentityProvider<T> {
    /// Returns the URL of its token endpoint, or of the issuer.
    pub fn server(&self) -> &str {
        match self.token_url.as_ref() {
            "" => self.issuer.as_ref(),
            url => url,
        }
    }
}

/// The grants by which a token is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum GrantType {
    /// The client acts for itself (RFC 6749, section 4.4).
    ClientCredentials,
    /// A person has obtained a refresh token by other means (RFC 6749, section 6).
    RefreshToken,
    /// A person logs in with a browser on the same machine (RFC 6749, section 4.1, with RFC 7636).
    AuthorizationCode,
    /// A person logs in with a browser on any machine (RFC 8628).
    DeviceCode,
    /// The token of a caller or of a workload is exchanged (RFC 8693).
    TokenExchange,
    /// An assertion about a caller or a workload is the grant (RFC 7523, section 2.1).
    JwtBearer,
}

impl GrantType {
    /// Every grant.
    pub const ALL: [GrantType; 6] = [
        GrantType::ClientCredentials,
        GrantType::RefreshToken,
        GrantType::AuthorizationCode,
        GrantType::DeviceCode,
        GrantType::TokenExchange,
        GrantType::JwtBearer,
    ];

    /// Returns the name in `upstreams.json`.
    pub fn name(self) -> &'static str {
        match self {
            GrantType::ClientCredentials => "client_credentials",
            GrantType::RefreshToken => "refresh_token",
            GrantType::AuthorizationCode => "authorization_code",
            GrantType::DeviceCode => "device_code",
            GrantType::TokenExchange => "token_exchange",
            GrantType::JwtBearer => "jwt_bearer",
        }
    }

    /// Returns the grant of a name.
    pub fn named(name: &str) -> Option<GrantType> {
        GrantType::ALL.into_iter().find(|grant| grant.name() == name)
    }

    /// Whether a person logs in before the first token is requested. Later tokens are requested with a refresh token.
    pub fn needs_login(self) -> bool {
        matches!(self, GrantType::RefreshToken | GrantType::AuthorizationCode | GrantType::DeviceCode)
    }

    /// Whether a login needs endpoints that only the metadata of an issuer has.
    pub fn needs_metadata(self) -> bool {
        matches!(self, GrantType::AuthorizationCode | GrantType::DeviceCode)
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
    /// An assertion that the platform writes into a file and replaces from time to time (RFC 7523), such as the token of a Kubernetes
    /// service account.
    AssertionFile,
    /// Only its identifier: a public client, such as a program on a person's machine (RFC 8252, section 8.5).
    None,
}

impl ClientAuth {
    /// Every form.
    pub const ALL: [ClientAuth; 5] =
        [ClientAuth::SecretBasic, ClientAuth::SecretPost, ClientAuth::PrivateKeyJwt, ClientAuth::AssertionFile, ClientAuth::None];

    /// Returns the name in `upstreams.json`: that which OpenID Connect registers, if it does.
    pub fn name(self) -> &'static str {
        match self {
            ClientAuth::SecretBasic => "client_secret_basic",
            ClientAuth::SecretPost => "client_secret_post",
            ClientAuth::PrivateKeyJwt => "private_key_jwt",
            ClientAuth::AssertionFile => "client_assertion_file",
            ClientAuth::None => "none",
        }
    }

    /// Returns the form of a name.
    pub fn named(name: &str) -> Option<ClientAuth> {
        ClientAuth::ALL.into_iter().find(|form| form.name() == name)
    }
}

/// The types of tokens that are exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TokenType {
    /// An OAuth access token.
    AccessToken,
    /// An ID token of OpenID Connect.
    IdToken,
    /// Any other JWT.
    Jwt,
}

impl TokenType {
    /// Every type.
    pub const ALL: [TokenType; 3] = [TokenType::AccessToken, TokenType::IdToken, TokenType::Jwt];

    /// Returns the name in `upstreams.json`, which is the end of the type's identifier (RFC 8693, section 3).
    pub fn name(self) -> &'static str {
        match self {
            TokenType::AccessToken => "access_token",
            TokenType::IdToken => "id_token",
            TokenType::Jwt => "jwt",
        }
    }

    /// Returns the type of a name.
    pub fn named(name: &str) -> Option<TokenType> {
        TokenType::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
