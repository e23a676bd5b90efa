//! Settings of access tokens.

use std::time::Duration;

use super::super::flag::{Default, Flag, Group, Kind};
use super::super::oauth;
use super::{DAY_MS, file_text};

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    Flag {
        name: "http-oauth-issuer",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_ISSUER",
        kind: Kind::Text {
            shape: "<url>",
            expected: "a URL with https, or with http on this machine, without query and fragment",
            set: |s, text| oauth::server_url(text).map(|issuer| s.http.oauth.issuer = Some(issuer)),
        },
        default: Default::Unset("no access tokens"),
        group: Group::Http,
        help: "Accept access tokens (JWT) of this authorization server, written as in its tokens",
    },
    Flag {
        name: "http-oauth-audience",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_AUDIENCE",
        kind: Kind::Text {
            shape: "<audience>",
            expected: "an audience of printable characters without spaces",
            set: |s, text| oauth::audience(text).map(|audience| s.http.oauth.audience = Some(audience)),
        },
        default: Default::Unset("no access tokens"),
        group: Group::Http,
        help: "The audience of these tokens, usually the URL of this server's endpoint",
    },
    Flag {
        name: "http-oauth-scope",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_SCOPE",
        kind: Kind::Text {
            shape: "<scope …>",
            expected: "scopes between spaces",
            set: |s, text| oauth::scopes(text).map(|scopes| s.http.oauth.scopes = scopes),
        },
        default: Default::Unset("none"),
        group: Group::Http,
        help: "Scopes that an access token must have, between spaces",
    },
    Flag {
        name: "http-oauth-introspection-url",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_INTROSPECTION_URL",
        kind: Kind::Text {
            shape: "<url>",
            expected: "a URL with https, or with http on this machine, without query and fragment",
            set: |s, text| oauth::server_url(text).map(|url| s.http.oauth.introspection_url = Some(url)),
        },
        default: Default::Unset("only JWT"),
        group: Group::Http,
        help: "Accept opaque access tokens too, which this endpoint of the authorization server knows (RFC 7662)",
    },
    Flag {
        name: "http-oauth-client-id",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_CLIENT_ID",
        kind: Kind::Text {
            shape: "<id>",
            expected: "an id of printable characters without spaces",
            set: |s, text| oauth::audience(text).map(|id| s.http.oauth.client_id = Some(id)),
        },
        default: Default::Unset("only JWT"),
        group: Group::Http,
        help: "The id of this server at --http-oauth-introspection-url",
    },
    Flag {
        name: "http-oauth-client-secret",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_CLIENT_SECRET",
        kind: Kind::Secret {
            shape: "<secret>",
            expected: "a secret of at least 8 printable characters without spaces",
            set: |s, text| oauth::ClientSecret::parse(text).map(|secret| s.http.oauth.client_secret = Some(secret)),
        },
        default: Default::Unset("only JWT"),
        group: Group::Http,
        help: "The secret of this server at --http-oauth-introspection-url",
    },
    Flag {
        name: "http-oauth-client-secret-file",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_CLIENT_SECRET_FILE",
        kind: Kind::Text {
            shape: "<file>",
            expected: "a readable file that holds a secret of at least 8 printable characters without spaces",
            set: |s, path| oauth::ClientSecret::parse(&file_text(path)?).map(|secret| s.http.oauth.client_secret = Some(secret)),
        },
        default: Default::Unset("--http-oauth-client-secret"),
        group: Group::Http,
        help: "File that holds this secret",
    },
    Flag {
        name: "http-oauth-refetch-ms",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_REFETCH_MS",
        kind: Kind::Integer { unit: "ms", min: 100, max: DAY_MS, set: |s, n| s.http.oauth.refetch = Duration::from_millis(n) },
        default: Default::Fixed("30000"),
        group: Group::Http,
        help: "Minimum time between two fetches of the issuer's keys; they are refreshed after 20 times and used for at most 240 times of it",
    },
    Flag {
        name: "http-oauth-resource",
        env: "PTC_RUNNER_MCP_HTTP_OAUTH_RESOURCE",
        kind: Kind::Text {
            shape: "<url>",
            expected: "a URL with https, or with http on this machine, without query and fragment",
            set: |s, text| oauth::server_url(text).map(|url| s.http.oauth.resource_url = Some(url)),
        },
        default: Default::Unset("--http-oauth-audience, if it is a URL"),
        group: Group::Http,
        help: "URL at which clients reach the endpoint, for the metadata of --http-oauth-issuer",
    },
];
