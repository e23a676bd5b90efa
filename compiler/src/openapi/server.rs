//! Checks `servers` of a document and of its operations against the config's `base_url`.

use ptc_catalog::matches_wildcard;
use url::Url;

use super::candidate::Candidate;
use super::context::Context;
use super::faults::Faults;
use super::reference::References;
use crate::config::model::Spanned;
use crate::diag::{Code, Diagnostic, Diagnostics, quoted_list};
use crate::source::FileId;
use crate::tree::Node;

/// Returns the path template to append to `base_url`, with a leading slash and without its fragment, which is never sent. If the
/// operation or its path item has servers, one of them must have the origin of `base_url` or an origin that the entry lists. If
/// its path starts with that of `base_url`, the rest of it precedes the template; otherwise the result is a whole URL.
///
/// Servers of the whole document are ignored, since `base_url` replaces them; [`check`] notes a `base_url` that is not one of
/// them.
///
/// # Errors
///
/// Returns a diagnostic if no server of the operation matches.
pub(super) fn path(context: Context<'_, '_>, candidate: &Candidate<'_>, faults: &mut Faults) -> Result<String, Diagnostic> {
    let Context { references: References { file, .. }, base_url, .. } = context;
    let template = candidate.path;
    let servers = candidate.operation.get("servers").or_else(|| candidate.item.get("servers"));
    let Some(servers) = servers else { return Ok(sent(template)) };
    let Some(listed) = servers.elements() else {
        faults.note(servers.place(file), || no_list(servers));
        return Ok(sent(template));
    };
    if listed.is_empty() {
        return Ok(sent(template));
    }
    // An invalid `base_url` has already been reported.
    let Ok(base) = Url::parse(base_url) else { return Ok(sent(template)) };
    let urls: Vec<String> = listed.iter().filter_map(url).collect();
    // A variable without a default has no value.
    let servers_of: Vec<Url> = urls.iter().filter(|url| !url.contains('{')).filter_map(|url| base.join(url).ok()).collect();
    for url in servers_of.iter().filter(|url| url.origin() == base.origin()) {
        let own = decoded(url);
        if let Some(rest) = own.strip_prefix(&decoded(&base)).filter(|r| r.is_empty() || r.starts_with('/')) {
            return Ok(format!("{rest}{}", sent(template)));
        }
    }
    let listed = |url: &Url| {
        let origins = context.server_origins.iter().filter_map(|origin| Url::parse(&origin.value).ok());
        origins.map(|listed| listed.origin()).chain([base.origin()]).any(|listed| listed == url.origin())
    };
    if let Some(url) = servers_of.iter().find(|url| listed(url)) {
        return Ok(format!("{}{}{}", url.origin().ascii_serialization(), decoded(url), sent(template)));
    }
    let message =
        format!("the operation is served at {}, base_url is `{base_url}`", quoted_list(urls.iter().map(String::as_str)));
    Err(Diagnostic::new(Code::ForeignServer, message)
        .at(servers.place(file), "these servers")
        .hint("list its origin in `server_origins`, if it may get the credentials of this entry"))
}

/// Notes a `base_url` that is not one of the document's servers: likely a part of its path is missing.
pub(super) fn check(file: FileId, base_url: &Spanned<String>, root: &Node, diagnostics: &mut Diagnostics) {
    let Some(servers) = root.get("servers") else { return };
    let Some(listed) = servers.elements() else {
        diagnostics.push(Diagnostic::new(Code::DocumentSlip, no_list(servers)).at(servers.place(file), ""));
        return;
    };
    let Ok(base) = Url::parse(&base_url.value) else { return };
    let names: Vec<&str> = listed.iter().filter_map(|server| server.get("url").and_then(Node::as_str)).collect();
    if names.is_empty() || names.iter().any(|name| is_server(name, &base)) {
        return;
    }
    let message = format!("`base_url` is `{}`, the document is served at {}", base_url.value, quoted_list(names.iter().copied()));
    diagnostics.push(
        Diagnostic::new(Code::OtherServer, message)
            .at(base_url.place.clone(), "calls go here")
            .also(servers.place(file), "the document's own servers")
            .hint("if calls are meant to go there, `\"silence\": [\"PTC0531\"]` in this entry hides this note"),
    );
}

fn no_list(servers: &Node) -> String {
    format!("`servers` is a list, found {}", servers.kind())
}

/// Whether a server of a document may be `base` for some values of its variables. The scheme is ignored, since many documents
/// still have `http`. A URL relative to the document's own location matches any `base`.
fn is_server(name: &str, base: &Url) -> bool {
    let mut pattern = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('{') {
        pattern.push_str(before);
        pattern.push('*');
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    pattern.push_str(rest);
    let authority = base.authority();
    let here = match pattern.split_once("://") {
        Some((_, place)) => {
            pattern = place.to_lowercase();
            format!("{authority}{}", base.path())
        }
        None if pattern.starts_with("//") => format!("//{authority}{}", base.path()),
        None if pattern.len() > 1 && pattern.starts_with('/') => base.path().to_owned(),
        None => return true,
    };
    matches_wildcard(pattern.trim_end_matches('/'), here.to_lowercase().trim_end_matches('/'))
}

/// Adds a leading slash if it is missing; without it, the path would continue the host name. Removes the fragment.
fn sent(template: &str) -> String {
    let path = template.split('#').next().unwrap_or_default();
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

fn decoded(url: &Url) -> String {
    url.path().trim_end_matches('/').to_owned()
}

/// Returns the server's URL with the defaults of its variables.
pub(super) fn url(server: &Node) -> Option<String> {
    let mut url = server.get("url")?.as_str()?.to_owned();
    for variable in server.get("variables").map(Node::members).unwrap_or_default() {
        if let Some(default) = variable.value.get("default").and_then(Node::as_str) {
            url = url.replace(&format!("{{{}}}", variable.key), default);
        }
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_urls_match_with_any_values_of_variables() {
        for (name, base, expected) in [
            ("https://api.example.com/v2", "https://api.example.com/v2", true),
            ("http://API.example.com/v2/", "https://api.example.com/v2", true),
            ("https://api.example.com/v2", "https://api.example.com", false),
            ("https://api.example.com", "https://api.example.com/v2", false),
            ("https://api.example.com", "https://api.example.org", false),
            ("https://api.example.com:8443", "https://api.example.com", false),
            ("https://{region}.example.com/{version}", "https://eu.example.com/v2", true),
            ("{scheme}://api.example.com/v2", "https://api.example.com/v2", true),
            ("{server}", "https://api.example.com/v2", true),
            ("/v2", "https://anywhere.example.com/v2", true),
            ("/v2", "https://anywhere.example.com", false),
            ("/", "https://anywhere.example.com/v2", true),
            ("v2", "https://anywhere.example.com/", true),
            ("//api.example.com/v2", "https://api.example.com/v2", true),
            ("", "https://api.example.com", true),
        ] {
            assert_eq!(is_server(name, &Url::parse(base).unwrap()), expected, "{name} {base}");
        }
    }
}
