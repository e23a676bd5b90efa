//! Compares the authorization server that an upstream names with the lock file, and with the config where the lock file has none.

use ptc_catalog::OAuth2;

use crate::config::model::{Auth, Transport, Upstream};
use crate::diag::{Code, quoted};
use crate::lock::{Authorization, LockedUpstream};

/// What a person does about a server of the config that an upstream does not name.
const ADVICE: &str = "ask the operator of the upstream, then write the new value into the config; `update` does not change it";

/// Describes changes of the authorization server that an upstream names, as codes and parts of sentences.
///
/// The lock file has what the upstream named when it was pinned, also if the config has an `issuer`: then a difference that a person has
/// accepted is not reported again. Without a pin the config is what a person has reviewed.
pub(super) fn changes(entry: &Upstream, old: &LockedUpstream, new: &LockedUpstream) -> Vec<(Code, String)> {
    let Some(now) = &new.authorization else { return Vec::new() };
    let known = Known::of_config(entry);
    let pinned = old.authorization.as_ref();
    let mut found: Vec<(Code, String)> = Vec::new();
    let mut add = |code, what: &str, key: &str, pinned: Option<&str>, configured: &str, now: &str| {
        // A value that the config has is reviewed there.
        if pinned == Some(now) || configured == now || pinned.is_none() && configured.is_empty() {
            return;
        }
        let was = pinned.filter(|pinned| *pinned != configured).map(|pinned| format!(", which was {}", quoted(pinned)));
        let was = was.unwrap_or_default();
        let other = match configured {
            "" => String::new(),
            configured => format!(", and not {}, the `{key}` of the config: {ADVICE}", quoted(configured)),
        };
        found.push((code, format!("{what} {}{was}{other}", quoted(now))));
    };
    let code = Code::AuthorizationServerChanged;
    let issuer = pinned.map(|pinned| &*pinned.issuer);
    add(code, "names the authorization server", "issuer", issuer, &known.issuer, &now.issuer);
    let resource = pinned.map(|pinned| &*pinned.resource);
    add(code, "has tokens issued for the resource", "resource", resource, &known.resource, &now.resource);
    let scopes = |of: &Authorization| of.scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    add(Code::ScopesChanged, "asks for the scopes", "", pinned.map(scopes).as_deref(), "", &scopes(now));
    // The opposite is a stricter requirement, which a login meets by itself.
    if pinned.is_some_and(|pinned| pinned.needs_proof) && !now.needs_proof {
        found.push((code, "accepts tokens that are not bound to a key (DPoP), which it required".to_owned()));
    }
    found
}

/// Describes, as the end of a sentence about an upstream, what its config says otherwise than the lock file about its authorization server.
/// `None` if both agree, or if one of them says nothing. A person has accepted such a difference in the lock file.
pub(crate) fn config_difference(entry: &Upstream, locked: &LockedUpstream) -> Option<String> {
    let pinned = locked.authorization.as_ref()?;
    let known = Known::of_config(entry);
    let parts = [("issuer", &known.issuer, &pinned.issuer), ("resource", &known.resource, &pinned.resource)];
    let differs = |(key, configured, pinned): (&str, &String, &String)| {
        let is_other = !configured.is_empty() && configured != pinned;
        is_other.then(|| format!("the `{key}` {}, and the lock file has {}", quoted(configured), quoted(pinned)))
    };
    let found: Vec<String> = parts.into_iter().filter_map(differs).collect();
    (!found.is_empty()).then(|| found.join("; "))
}

/// What the config says about an authorization server. Each part is empty if the config leaves it open.
#[derive(Default)]
struct Known {
    issuer: String,
    resource: String,
}

impl Known {
    fn of_config(entry: &Upstream) -> Known {
        let Transport::McpHttp(http) = &entry.transport else { return Known::default() };
        let Some(oauth) = http.http.auth.iter().find_map(Auth::oauth).filter(|oauth| !oauth.is_discovered()) else {
            return Known::default();
        };
        let OAuth2 { issuer, token_url, resource, .. } = oauth;
        Known {
            // Beside `token_url` it is the audience of an assertion, which may be any text.
            issuer: if token_url.is_empty() { issuer.clone() } else { String::new() },
            // The URL of the upstream is the resource of an entry that has none, and metadata may name a part of it.
            resource: if http.is_own_resource(resource) { String::new() } else { resource.clone() },
        }
    }
}
