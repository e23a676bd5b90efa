//! Compares the authorization server that a login has found with the one that the lock file has.
//!
//! An upstream can name another authorization server at any time, and then gets the tokens that this one issues. A person reviews the
//! change in the lock file before a login there is accepted.

use ptc_catalog::OAuth2;

/// Describes how a found issuer or resource differs from the pinned one, or that tokens are no longer bound to a key. `None` if nothing
/// differs, or if nothing is pinned.
pub(crate) fn difference(oauth: &OAuth2<String>, issuer: &str, resource: &str, has_proof: bool) -> Option<String> {
    let OAuth2 { pinned_issuer, pinned_resource, pinned_proof, .. } = oauth;
    if pinned_issuer.is_empty() {
        return None;
    }
    let (what, found, pinned) = if pinned_issuer != issuer {
        ("authorization server", issuer, pinned_issuer)
    } else if pinned_resource != resource {
        ("resource", resource, pinned_resource)
    } else if *pinned_proof && !has_proof {
        return Some(format!(
            "the authorization server {issuer} with tokens that are not bound to a key (DPoP), and the lock file requires this"
        ));
    } else {
        return None;
    };
    Some(format!("the {what} {found}, and the lock file has {pinned}"))
}
