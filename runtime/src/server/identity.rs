//! The identity of a client.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::digest::owner_hash;
use crate::upstream::caller_token::CallerToken;

/// The owner of sessions, calls and traces. Two owners see nothing of each other.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The internal name. It begins with the kind of credential, so that owners of two kinds are never equal.
    pub id: Arc<str>,
    /// The name in log lines and traces.
    pub hash: Arc<str>,
}

impl Owner {
    /// Creates an owner from its internal name.
    pub fn new(id: &str) -> Owner {
        Owner { id: id.into(), hash: owner_hash(id).into() }
    }

    /// Creates the owner of an access token from its issuer and its subject. An issuer is a URL, which has no space, so that no two
    /// pairs have the same name.
    pub fn of_access_token(issuer: &str, subject: &str) -> Owner {
        Owner::new(&format!("oauth:{issuer} {subject}"))
    }
}

/// A client that was authenticated: its owner, and what its credential says about it.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The owner of its sessions, calls and traces.
    pub owner: Owner,
    /// The scopes of its access token. Empty for other credentials.
    pub scopes: Vec<String>,
    /// The verified claims of its access token. Empty for other credentials.
    pub claims: Map<String, Value>,
    /// Its access token, for upstreams that are called on its behalf. `None` for other credentials.
    pub token: Option<CallerToken>,
}

impl Identity {
    /// Creates an identity that consists of an owner only.
    pub fn of_owner(id: &str) -> Arc<Identity> {
        Arc::new(Identity { owner: Owner::new(id), scopes: Vec::new(), claims: Map::new(), token: None })
    }
}
