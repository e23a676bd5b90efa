//! Formats a lock as text.

use super::{Lock, LockedUpstream, VERSION};
use crate::json::Json;
use crate::paging;

/// Returns the text of the lock file, which ends in a line break.
pub fn write(lock: &Lock) -> String {
    let upstreams = lock.upstreams.iter().map(|(name, upstream)| (name.clone(), self::upstream(upstream)));
    let mut file = Json::object()
        .with("lock_version", Json::Number(VERSION.to_string()))
        .with("catalog_digest", Json::string(lock.catalog_digest()))
        .with("upstreams", Json::Object(upstreams.collect()));
    if let Some(digest) = &lock.policy_digest {
        file.set("policy_digest", Json::string(&**digest));
    }
    let mut text = file.pretty();
    text.push('\n');
    text
}

fn upstream(upstream: &LockedUpstream) -> Json {
    let tools = upstream.tools.iter().map(|(name, tool)| {
        let mut entry = Json::object().with("digest", Json::string(&*tool.digest)).with("definition", tool.definition.clone());
        if let Some(paging) = &tool.paging {
            entry.set("paging", paging::json(paging));
        }
        if let Some(security) = &tool.security {
            entry.set("security", security.to_json());
        }
        if let Some(observed) = &tool.observed {
            entry.set("observed", observed.to_json());
        }
        if let Some(example) = &tool.example {
            entry.set("example", example.clone());
        }
        (name.clone(), entry)
    });
    let mut entry =
        Json::object().with("transport", Json::string(&*upstream.transport)).with("tools", Json::Object(tools.collect()));
    if let Some(era) = upstream.era {
        entry.set("era", Json::string(era.name()));
    }
    if let Some(http_transport) = upstream.http_transport {
        entry.set("http_transport", Json::string(http_transport.name()));
    }
    if let Some(address) = &upstream.address {
        entry.set("address", address.to_json());
    }
    if let Some(authorization) = &upstream.authorization {
        entry.set("authorization", authorization.to_json());
    }
    if let Some(server) = &upstream.server {
        entry.set(
            "server",
            Json::object().with("name", Json::string(&*server.name)).with("version", Json::string(&*server.version)),
        );
    }
    if let Some(instructions) = &upstream.instructions {
        entry.set("instructions", Json::string(&**instructions));
    }
    match &upstream.document {
        Some(document) => {
            let mut pinned = Json::object()
                .with("source", Json::string(&*document.source))
                .with("digest", Json::string(&*document.digest))
                .with("selection", Json::string(&*document.selection));
            if !document.files.is_empty() {
                let files = document.files.iter().map(|(name, digest)| (name.clone(), Json::string(&**digest)));
                pinned.set("files", Json::Object(files.collect()));
            }
            entry.set("document", pinned);
        }
        None => entry.set("grants", Json::string(if upstream.all_tools { "all" } else { "listed" })),
    }
    entry
}
