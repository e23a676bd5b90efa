//! Hard-coded secrets (CWE-798): literals of a config in the arguments and variables of a child, in headers and URLs, and tokens
//! of a known form in variables whose names do not indicate a secret. The compiler warns of the former. Both are redacted in
//! every answer of an upstream.

use crate::heuristics::{self, SecretCandidate};
use percent_encoding::percent_decode_str;
use ptc_catalog::{EnvPart, Transport, Upstream};
use zeroize::Zeroizing;

type Found = Zeroizing<String>;

/// Returns every literal of an upstream that is likely a secret.
pub(super) fn in_upstream(upstream: &Upstream) -> Vec<Found> {
    let mut found = Vec::new();
    match &upstream.transport {
        Transport::McpStdio(stdio) => {
            let before = std::iter::once(&"").chain(stdio.args);
            for (arg, before) in stdio.args.iter().zip(before) {
                found.extend(part(arg, heuristics::scan_argument(before, arg)));
                found.extend(url(arg));
            }
            for (name, parts) in stdio.env {
                for part in *parts {
                    if let EnvPart::Text(text) = part {
                        found.extend(self::part(text, heuristics::scan_named(name, text)));
                    }
                }
            }
        }
        Transport::McpHttp(http) => {
            found.extend(url(http.url));
            found.extend(headers(http.static_headers));
        }
        Transport::OpenApi(api) => {
            found.extend(url(api.base_url));
            found.extend(headers(api.static_headers));
        }
    }
    found.extend(upstream.transport.proxy().iter().flat_map(|proxy| url(proxy.url)));
    found
}

/// Returns the secrets in a text that are recognised by their form: tokens of well-known services, and passwords in URLs.
pub(super) fn within(text: &str) -> Vec<Found> {
    part(text, heuristics::scan_token(text)).into_iter().chain(url(text)).collect()
}

/// Returns the secrets in the value of a variable. The name of the variable may indicate a secret.
pub(super) fn named(name: &str, text: &str) -> Vec<Found> {
    part(text, heuristics::scan_named(name, text)).into_iter().chain(within(text)).collect()
}

fn part(text: &str, suspect: Option<SecretCandidate>) -> Option<Found> {
    let value = text.get(suspect.filter(|suspect| suspect.likely)?.range)?;
    // The credential in `Authorization: Bearer x` is also redacted without the scheme.
    let bare = ["Bearer ", "Basic ", "bearer ", "basic "].iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(value);
    Some(Zeroizing::new(bare.to_owned()))
}

fn headers(headers: &[(&str, &str)]) -> impl Iterator<Item = Found> {
    headers.iter().filter_map(|(name, value)| part(value, heuristics::scan_named(name, value)))
}

/// Returns user and password of a URL, as written and decoded, and likely secrets in its query. The result is empty if the text
/// is not a URL.
fn url(url: &str) -> Vec<Found> {
    if !url.contains("://") {
        return Vec::new();
    }
    let mut found: Vec<Found> = heuristics::scan_query(url).into_iter().filter_map(|suspect| part(url, Some(suspect))).collect();
    if let Some((pair, user, password)) = heuristics::user_and_password(url) {
        // A password equal to the user's name is redacted only together with it: the name may be an ordinary word.
        let alone = (user != password).then_some(password);
        for text in [Some(pair), alone].into_iter().flatten() {
            found.push(Zeroizing::new(text.to_owned()));
            found.extend(percent_decode_str(text).decode_utf8().ok().map(|plain| Zeroizing::new(plain.into_owned())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{McpHttp, McpStdio, Proxy, Tools};

    use super::*;

    #[test]
    fn literal_secrets_are_reported_with_position() {
        let upstream = |transport| -> Vec<String> {
            let found = in_upstream(&Upstream { name: "u", description: "", transport, tools: Tools::NONE });
            found.iter().map(|text| text.to_string()).collect()
        };
        let stdio = McpStdio {
            args: &[
                "-y",
                "server",
                "--token",
                "hunter2-hunter2",
                "--header",
                "Authorization: Bearer abcdefghij",
                "--port",
                "8080",
            ],
            env: &[("API_KEY", &[EnvPart::Text("l1teral-l1teral")]), ("API_TOKEN", &[EnvPart::Text("l1teral-t0ken")])],
            ..McpStdio::new("npx")
        };
        assert_eq!(upstream(Transport::McpStdio(stdio)), ["hunter2-hunter2", "abcdefghij", "l1teral-l1teral", "l1teral-t0ken"]);
        let http = McpHttp {
            static_headers: &[("X-Tenant", "tenant-number-one"), ("X-Secret-Token", "0123456789")],
            proxy: Some(Proxy::new("http://me:pass-pass-pass@proxy:3128")),
            ..McpHttp::new("https://h/mcp?access_token=qwertyuiop&v=2")
        };
        assert_eq!(
            upstream(Transport::McpHttp(http)),
            ["qwertyuiop", "0123456789", "me:pass-pass-pass", "me:pass-pass-pass", "pass-pass-pass", "pass-pass-pass"]
        );
    }

    #[test]
    fn secrets_inside_values_are_recognised_by_format() {
        for (text, expected) in [
            ("postgres://app:p%40ss-w0rd@db/x", &["app:p%40ss-w0rd", "app:p@ss-w0rd", "p%40ss-w0rd", "p@ss-w0rd"][..]),
            ("postgres://postgres:postgres@db", &["postgres:postgres", "postgres:postgres"]),
            ("use ghp_0123456789abcdefghij", &["ghp_0123456789abcdefghij"]),
            ("https://h/?token=qwertyuiop", &["qwertyuiop"]),
            ("https://user@h/", &[]),
            ("eu-central-1", &[]),
            ("what?token=qwertyuiop", &[]),
        ] {
            assert_eq!(within(text).iter().map(|found| found.as_str()).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
