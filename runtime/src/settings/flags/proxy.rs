//! Settings of the proxy of the server's own requests.

use super::super::flag::{Default, Flag, Group, Kind};
use super::super::proxy::{ProxyUrl, exceptions};
use super::file_text;

/// The rows of these settings.
pub(super) static ROWS: &[Flag] = &[
    Flag {
        name: "proxy",
        env: "PTC_RUNNER_MCP_PROXY",
        kind: Kind::Secret {
            shape: "<http[s]://…>",
            expected: "http[s]://[user:password@]host[:port], with a password of at least 8 characters",
            set: |s, text| ProxyUrl::parse(text).map(|url| s.proxy.url = Some(url)),
        },
        default: Default::Unset("no proxy"),
        group: Group::Server,
        help: "Proxy of the requests to the model of `lisp_task`, the collector and the issuer of access tokens; upstreams have `proxy` in the config",
    },
    Flag {
        name: "proxy-file",
        env: "PTC_RUNNER_MCP_PROXY_FILE",
        kind: Kind::Text {
            shape: "<file>",
            expected: "a readable file that holds http[s]://[user:password@]host[:port], with a password of at least 8 characters",
            set: |s, path| ProxyUrl::parse(&file_text(path)?).map(|url| s.proxy.url = Some(url)),
        },
        default: Default::Unset("--proxy"),
        group: Group::Server,
        help: "File that holds the URL of that proxy, password included",
    },
    Flag {
        name: "no-proxy",
        env: "PTC_RUNNER_MCP_NO_PROXY",
        kind: Kind::Text {
            shape: "<host,…>",
            expected: "hosts, addresses or blocks such as 10.0.0.0/8, between commas",
            set: |s, text| exceptions(text).map(|hosts| s.proxy.no_proxy = hosts),
        },
        default: Default::Unset("none"),
        group: Group::Server,
        help: "Hosts that --proxy is not used for, between commas; a name includes all names below it",
    },
];
