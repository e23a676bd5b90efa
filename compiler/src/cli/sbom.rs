//! `--sbom`: writes the software bill of materials of a deployment as a CycloneDX 1.6 document. Packages come from cargo, upstreams
//! from the frozen catalog.

use ptc_catalog::Transport;
use ptc_compiler::leak::StaticDeployment;
use ptc_packages::sbom::{self, Subject, property};
use ptc_secrets::heuristics;
use serde_json::{Value, json};

use crate::Failure;

/// Returns the document. `metadata` is the output of `cargo metadata` for the generated crate, `cargo_lock` its lock file.
pub(crate) fn document(deployment: &StaticDeployment, metadata: &Value, cargo_lock: &str) -> Result<String, Failure> {
    let StaticDeployment { model, tables, .. } = deployment;
    let subject = Subject {
        name: &model.name,
        reference: "deployment",
        properties: vec![
            property("ptc:catalog-digest", &model.catalog_digest),
            property("ptc:compiler", &model.compiler),
            property("ptc:config-digest", &model.config_digest),
        ],
        services: tables.catalog.upstreams.iter().map(service).collect(),
        tool_version: ptc_compiler::VERSION,
    };
    sbom::document(&subject, metadata, cargo_lock).map_err(|error| Failure::new(error.to_string()))
}

/// Describes an upstream as a service: a third party across a trust boundary.
fn service(upstream: &ptc_catalog::Upstream) -> Value {
    let mut properties =
        vec![property("ptc:tools", &upstream.tools.len().to_string()), property("ptc:transport", upstream.transport.name())];
    let endpoint = match &upstream.transport {
        Transport::McpStdio(stdio) => {
            properties.push(property("ptc:command", stdio.command));
            None
        }
        Transport::McpHttp(http) => Some(http.url),
        Transport::OpenApi(api) => Some(api.base_url),
    };
    let (auth, proxy) = (upstream.transport.auth(), upstream.transport.proxy());
    let bindings = auth.iter().flat_map(ptc_catalog::Auth::bindings).copied().chain(proxy.and_then(|proxy| proxy.auth));
    let bindings = bindings.filter(|binding| !binding.is_empty());
    properties.extend(bindings.map(|binding| property("ptc:credential", binding)));
    let servers = auth.iter().filter_map(|auth| auth.oauth()).flat_map(|oauth| {
        let provider = oauth.identity_provider.as_ref().map(ptc_catalog::IdentityProvider::server);
        std::iter::once(oauth.server()).chain(provider).map(heuristics::without_query)
    });
    // The authorization server that an upstream names is not part of the build.
    let servers = servers.filter(|url| !url.is_empty());
    properties.extend(servers.map(|url| property("ptc:authorization_server", url)));
    properties.extend(proxy.map(|proxy| property("ptc:proxy", heuristics::without_query(proxy.url))));
    properties.sort_by_key(|property| (property["name"].to_string(), property["value"].to_string()));
    let mut out = json!({
        "bom-ref": format!("upstream/{}", upstream.name),
        "name": upstream.name,
        "x-trust-boundary": true,
        "properties": properties,
    });
    if let Some(members) = out.as_object_mut() {
        if !upstream.description.is_empty() {
            members.insert("description".to_owned(), upstream.description.into());
        }
        if let Some(url) = endpoint {
            members.insert("endpoints".to_owned(), json!([heuristics::without_query(url)]));
            members.insert("authenticated".to_owned(), (!auth.is_empty()).into());
        }
    }
    out
}
