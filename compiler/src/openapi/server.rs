//! `servers` of an operation against the config's `base_url`.

use url::Url;

use crate::diag::{Code, Diagnostic};
use crate::source::FileId;
use crate::tree::Node;

/// The path template as it goes after `base_url`, with a slash before it and without a fragment, which is never sent. A server of the operation or of its path must be on the origin of
/// `base_url`; its own path counts where it goes on from that of `base_url`.
///
/// Servers of the whole document do not count: `base_url` stands in their place.
pub(super) fn path(file: FileId, base_url: &str, item: &Node, operation: &Node, template: &str) -> Result<String, Diagnostic> {
    let servers = operation.get("servers").or_else(|| item.get("servers"));
    let Some(servers) = servers.filter(|s| s.elements().is_some_and(|e| !e.is_empty())) else {
        return Ok(sent(template));
    };
    // A config without a usable one has been told so.
    let Ok(base) = Url::parse(base_url) else { return Ok(sent(template)) };
    let urls: Vec<String> = servers.elements().unwrap_or_default().iter().filter_map(url).collect();
    for url in &urls {
        let Ok(url) = base.join(url) else { continue };
        if url.origin() != base.origin() {
            continue;
        }
        let own = decoded(&url);
        if let Some(rest) = own.strip_prefix(&decoded(&base)).filter(|r| r.is_empty() || r.starts_with('/')) {
            return Ok(format!("{rest}{}", sent(template)));
        }
    }
    let message =
        format!("the operation is served at {}, base_url is `{base_url}`", super::quoted_list(urls.iter().map(String::as_str)));
    Err(Diagnostic::new(Code::ForeignServer, message)
        .at(servers.place(file), "these servers")
        .hint("give this operation an upstream of its own whose base_url is that server"))
}

/// Without its slash a path would go on with the name of the host.
fn sent(template: &str) -> String {
    let path = template.split('#').next().unwrap_or_default();
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

fn decoded(url: &Url) -> String {
    url.path().trim_end_matches('/').to_owned()
}

/// The server's URL with the defaults of its variables.
fn url(server: &Node) -> Option<String> {
    let mut url = server.get("url")?.as_str()?.to_owned();
    for variable in server.get("variables").map(Node::members).unwrap_or_default() {
        if let Some(default) = variable.value.get("default").and_then(Node::as_str) {
            url = url.replace(&format!("{{{}}}", variable.key), default);
        }
    }
    Some(url)
}
