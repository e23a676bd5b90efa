//! The keys of the entries of `credentials`, and of the elements of `auth` that send them.

use super::key;
use crate::config::table::Presence::{Optional, Required};
use crate::config::table::{Key, Kind, Table, Variants};
use crate::diag::Code;

const SCHEME_HINT: Key = key(
    "scheme_hint",
    Kind::Choice(&["bearer", "basic", "custom_header", "api_key", "mtls", "oauth2"]),
    Optional,
    "the scheme that the secret is meant for",
);
const SOURCE: Key = key("source", Kind::AnyText, Required, "where the secret comes from").or(&["type", "from"]);

/// The entries of `credentials`, by `source`.
pub static CREDENTIAL: Variants = Variants {
    tag: SOURCE,
    example: "a credential looks like `{ \"source\": \"env\", \"var\": \"NOTES_TOKEN\" }`",
    cases: &[
        Table {
            tag: "env",
            title: "an `env` credential",
            groups: &[&[
                SOURCE,
                key("var", Kind::Text, Required, "name of the environment variable").or(&["name", "variable", "env", "key"]),
                SCHEME_HINT,
            ]],
        },
        Table {
            tag: "file",
            title: "a `file` credential",
            groups: &[&[
                SOURCE,
                key("path", Kind::Text, Required, "path of the file; white space at its end is dropped")
                    .or(&["file", "filename"]),
                SCHEME_HINT,
            ]],
        },
        Table {
            tag: "literal",
            title: "a `literal` credential",
            groups: &[&[SOURCE, key("value", Kind::Secret, Required, "the secret itself").or(&["secret", "token"]), SCHEME_HINT]],
        },
    ],
};

const SCHEME: Key =
    key("scheme", Kind::AnyText, Required, "how the secret is sent").or(&["type"]).reported_as(Code::UnknownScheme);
const BINDING: Key =
    key("binding", Kind::Text, Required, "the entry of `credentials` that has the secret").or(&["credential", "secret"]);
const HEADER: Key = key("header", Kind::Text, Required, "the header that carries the secret").or(&["name", "header_name"]);

/// The elements of `auth`, by `scheme`.
pub static AUTH: Variants = Variants {
    tag: SCHEME,
    example: "an element of `auth` looks like `{ \"scheme\": \"bearer\", \"binding\": \"notes-token\" }`",
    cases: &[
        Table { tag: "bearer", title: "a `bearer` element of `auth`", groups: &[&[SCHEME, BINDING]] },
        Table { tag: "basic", title: "a `basic` element of `auth`", groups: &[&[SCHEME, BINDING]] },
        Table { tag: "custom_header", title: "a `custom_header` element of `auth`", groups: &[&[SCHEME, BINDING, HEADER]] },
        Table {
            tag: "api_key",
            title: "an `api_key` element of `auth`",
            groups: &[&[
                SCHEME,
                BINDING,
                key(
                    "in",
                    Kind::Choice(&["header", "query", "cookie"]),
                    Optional,
                    "where the secret is sent; in a header where left out",
                ),
                key("name", Kind::Text, Optional, "the header, query parameter or cookie that carries the secret").or(&[
                    "header_name",
                    "parameter",
                    "cookie",
                    "query",
                ]),
                key("header", Kind::Text, Optional, "another way to write the `name` of a header"),
            ]],
        },
        Table { tag: "mtls", title: "an `mtls` element of `auth`", groups: &[&[SCHEME, BINDING]] },
        Table {
            tag: "oauth2",
            title: "an `oauth2` element of `auth`",
            groups: &[&[
                SCHEME,
                key(
                    "grant",
                    Kind::Choice(&[
                        "client_credentials",
                        "refresh_token",
                        "authorization_code",
                        "device_code",
                        "token_exchange",
                        "jwt_bearer",
                    ]),
                    Required,
                    "how access tokens are requested; `refresh_token`, `authorization_code` and `device_code` need \
                     `ptc-compile login`",
                )
                .or(&["grant_type", "flow"])
                .reported_as(Code::OauthGrant),
                key(
                    "token_url",
                    Kind::Text,
                    Optional,
                    "the URL of the authorization server that issues tokens; needed without `issuer`, unless a person logs in \
                     to a server of MCP",
                )
                .or(&["token_endpoint", "tokenUrl", "token_uri"])
                .reported_as(Code::OauthTokenUrl),
                key(
                    "client_id",
                    Kind::Text,
                    Optional,
                    "the identifier of this client at the authorization server; where left out, `ptc-compile login` registers \
                     the client",
                )
                .or(&["client"])
                .reported_as(Code::OauthClientId),
                key(
                    "binding",
                    Kind::Text,
                    Optional,
                    "the entry of `credentials` that has the client's secret, its private key as PEM, or the file with its \
                     assertion; needed unless `client_auth` is `none`",
                )
                .or(&["credential", "secret", "client_secret"])
                .reported_as(Code::OauthBinding),
                key(
                    "client_auth",
                    Kind::Choice(&[
                        "client_secret_basic",
                        "client_secret_post",
                        "private_key_jwt",
                        "client_assertion_file",
                        "none",
                    ]),
                    Optional,
                    "how the client proves its identity; `client_secret_basic` where left out, `none` for clients that the \
                     server does not know in advance",
                )
                .or(&["auth_method", "token_endpoint_auth_method"])
                .reported_as(Code::OauthClientAuth),
                key("key_id", Kind::Text, Optional, "the `kid` of the key, with `private_key_jwt`")
                    .or(&["kid"])
                    .reported_as(Code::OauthKeyId),
                key(
                    "issuer",
                    Kind::Text,
                    Optional,
                    "the issuer whose metadata has the URL that issues tokens; with `token_url`, the audience of signed \
                     assertions",
                )
                .or(&["authority"])
                .reported_as(Code::OauthIssuer),
                key("scopes", Kind::Names, Optional, "the scopes that are requested")
                    .or(&["scope"])
                    .reported_as(Code::OauthScopes),
                key(
                    "resource",
                    Kind::AnyText,
                    Optional,
                    "the parameter `resource`; of MCP servers `url` where left out, and an empty text sends none",
                )
                .reported_as(Code::OauthResource),
                key(
                    "subject",
                    Kind::Text,
                    Optional,
                    "with `token_exchange` and `jwt_bearer`, the entry of `credentials` with the file of the token that is \
                     exchanged; where left out, the access token of the caller",
                )
                .or(&["subject_token", "assertion"])
                .reported_as(Code::OauthSubject),
                key(
                    "subject_token_type",
                    Kind::Choice(&["access_token", "id_token", "jwt"]),
                    Optional,
                    "the type of the token that is exchanged; `access_token` where left out",
                )
                .reported_as(Code::OauthSubjectTokenType),
                key(
                    "audience",
                    Kind::Text,
                    Optional,
                    "the parameter `audience` of a token exchange; with `identity_provider`, `issuer` where left out",
                )
                .reported_as(Code::OauthAudience),
                key(
                    "identity_provider",
                    Kind::Record(&IDENTITY_PROVIDER),
                    Optional,
                    "with `jwt_bearer`, where the assertion is requested by a token exchange",
                )
                .or(&["idp"])
                .reported_as(Code::OauthIdentityProvider),
            ]],
        },
    ],
};

/// The `identity_provider` of an element of `auth` with the scheme `oauth2`.
pub static IDENTITY_PROVIDER: Table = Table {
    tag: "",
    title: "an identity provider",
    groups: &[&[
        key("issuer", Kind::Text, Optional, "the issuer whose metadata has the URL that exchanges tokens")
            .or(&["authority"])
            .reported_as(Code::OauthIssuer),
        key("token_url", Kind::Text, Optional, "the URL that exchanges tokens; needed without `issuer`")
            .or(&["token_endpoint", "tokenUrl", "token_uri"])
            .reported_as(Code::OauthTokenUrl),
        key("client_id", Kind::Text, Required, "the identifier of this client at the identity provider")
            .or(&["client"])
            .reported_as(Code::OauthClientId),
        key("binding", Kind::Text, Optional, "the credential of this client; needed unless `client_auth` is `none`")
            .or(&["credential", "secret", "client_secret"])
            .reported_as(Code::OauthBinding),
        key(
            "client_auth",
            Kind::Choice(&["client_secret_basic", "client_secret_post", "private_key_jwt", "client_assertion_file", "none"]),
            Optional,
            "how the client proves its identity; `client_secret_basic` where left out",
        )
        .or(&["auth_method", "token_endpoint_auth_method"])
        .reported_as(Code::OauthClientAuth),
        key("key_id", Kind::Text, Optional, "the `kid` of the key, with `private_key_jwt`")
            .or(&["kid"])
            .reported_as(Code::OauthKeyId),
    ]],
};
