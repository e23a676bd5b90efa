//! `version`: what the binary was built from.

use ptc_catalog::Deployment;

/// One line for people, or one JSON object.
pub(super) fn render(deployment: &'static Deployment, json: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if !json {
        return format!("{} {version}\n", deployment.name);
    }
    let object = serde_json::json!({
        "name": deployment.name,
        "version": version,
        "compiler": deployment.compiler,
        "config_digest": deployment.config_digest,
        "catalog_digest": deployment.catalog.digest,
        "upstreams": deployment.catalog.upstreams.len(),
        "tools": deployment.catalog.tool_count(),
    });
    format!("{object}\n")
}
