//! Secrets that a config holds in plain sight: literal texts in the arguments and variables of a child, in headers and URLs. The
//! compiler warns of them; what is certain is that they must not come back from an upstream.

use ptc_catalog::suspect::{self, Suspect};
use ptc_catalog::{EnvPart, Transport, Upstream};

/// Every literal of an upstream that is likely a secret.
pub(super) fn of(upstream: &'static Upstream) -> Vec<&'static str> {
    let mut found = Vec::new();
    match &upstream.transport {
        Transport::McpStdio(stdio) => {
            let before = std::iter::once(&"").chain(stdio.args);
            for (arg, before) in stdio.args.iter().zip(before) {
                found.extend(part(arg, suspect::argument(before, arg)));
            }
            for (name, parts) in stdio.env {
                for part in *parts {
                    if let EnvPart::Text(text) = part {
                        found.extend(self::part(text, suspect::setting(name, text)));
                    }
                }
            }
        }
        Transport::McpHttp(http) => {
            found.extend(url(http.url));
            found.extend(http.proxy.into_iter().flat_map(url));
            found.extend(headers(http.static_headers));
        }
        Transport::OpenApi(api) => {
            found.extend(url(api.base_url));
            found.extend(headers(api.static_headers));
        }
    }
    found
}

fn part(text: &'static str, suspect: Option<Suspect>) -> Option<&'static str> {
    let value = text.get(suspect.filter(|suspect| suspect.likely)?.range)?;
    // `Authorization: Bearer x` is known by its credential alone, too.
    Some(["Bearer ", "Basic ", "bearer ", "basic "].iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(value))
}

fn headers(headers: &'static [(&'static str, &'static str)]) -> impl Iterator<Item = &'static str> {
    headers.iter().filter_map(|(name, value)| part(value, suspect::setting(name, value)))
}

/// The password of a URL, and what in its query is likely a secret.
fn url(url: &'static str) -> Vec<&'static str> {
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
    let values = suspect::query(url).into_iter().filter_map(|suspect| part(url, Some(suspect)));
    password.into_iter().chain(values).collect()
}

#[cfg(test)]
mod tests {
    use ptc_catalog::{McpHttp, McpStdio};

    use super::*;

    #[test]
    fn literals_are_found_where_they_stand() {
        let upstream = |transport| of(Box::leak(Box::new(Upstream { name: "u", description: "", transport, tools: &[] })));
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
            proxy: Some("http://me:pass-pass-pass@proxy:3128"),
            ..McpHttp::new("https://h/mcp?access_token=qwertyuiop&v=2")
        };
        assert_eq!(upstream(Transport::McpHttp(http)), ["qwertyuiop", "pass-pass-pass", "0123456789"]);
    }
}
