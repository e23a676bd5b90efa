//! Renders `server.json`, the entry of a server in the MCP registry.

use super::bundle::{Bundled, is_asked, purpose};
use super::needs::Needs;
use crate::ir::Deployment;
use crate::json::Json;

/// The newest released schema of entries.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";

/// A published bundle.
#[derive(Debug, Clone)]
pub struct Package {
    /// The URL where clients download it.
    pub url: String,
    /// SHA-256 of the file in lower-case hex.
    pub sha256: String,
    /// What its manifest says.
    pub bundled: Bundled,
}

/// Renders the entry of a deployment. `first` is a bundle of it, and `others` are bundles for other platforms. Version, title
/// and description are those of the first bundle.
pub fn registry_entry(deployment: &Deployment, name: &str, first: &Package, others: &[Package]) -> String {
    let variables = Needs::from_deployment(deployment).variables.into_iter().map(|(name, variable)| {
        Json::object()
            .with("name", Json::string(name))
            .with("description", Json::string(purpose(&variable)))
            .with("isRequired", Json::Bool(is_asked(&variable)))
            .with("isSecret", Json::Bool(variable.is_secret))
    });
    let variables = Json::Array(variables.collect());
    let packages = [first].into_iter().chain(others).map(|package| {
        let entry = Json::object()
            .with("registryType", Json::string("mcpb"))
            .with("identifier", Json::string(package.url.clone()))
            .with("version", Json::string(package.bundled.version.clone()))
            .with("fileSha256", Json::string(package.sha256.clone()))
            .with("transport", Json::object().with("type", Json::string("stdio")));
        if variables.elements().is_empty() { entry } else { entry.with("environmentVariables", variables.clone()) }
    });
    let entry = Json::object()
        .with("$schema", Json::string(SCHEMA))
        .with("name", Json::string(name))
        .with("title", Json::string(first.bundled.display_name.clone()))
        .with("description", Json::string(first.bundled.description.clone()))
        .with("version", Json::string(first.bundled.version.clone()))
        .with("packages", Json::Array(packages.collect()));
    entry.pretty() + "\n"
}
