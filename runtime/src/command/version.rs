//! `version` prints what the binary was built from.

use std::collections::BTreeMap;

use ptc_catalog::Deployment;
use serde::Serialize;

use crate::build_info::{Digests, compiler, digests};
use crate::schedule::ScheduleLimits;
use crate::settings::{FEATURES, LinkedParts};

use super::Linker;

/// The output of `version --json` of a pinned binary.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct BinaryVersion {
    /// The name of the deployment.
    name: &'static str,
    /// The version of the runtime.
    version: &'static str,
    /// The version of the compiler.
    compiler: &'static str,
    /// The linker that put the deployment into the binary: `rust` or `prebuilt`.
    linker: &'static str,
    /// Number of upstreams.
    upstreams: usize,
    /// Number of tools.
    tools: usize,
    /// The features of this binary.
    abilities: Vec<&'static str>,
    /// The limits of a server that is started in the same way.
    limits: BTreeMap<&'static str, LimitInForce>,
    #[serde(flatten)]
    digests: Digests,
}

/// A limit with its source.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
struct LimitInForce {
    value: u64,
    /// Where the value comes from, such as a flag or the default.
    source: String,
}

/// Formats the version as one line or as a JSON object.
pub(super) fn render(
    deployment: &'static Deployment,
    linker: Linker,
    limits: &ScheduleLimits,
    linked: LinkedParts,
    json: bool,
) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if !json {
        return format!("{} {version}\n", deployment.name);
    }
    let limits = limits.in_force().into_iter().map(|(name, value, source)| (name, LimitInForce { value, source }));
    let version = BinaryVersion {
        name: deployment.name,
        version,
        compiler: compiler(deployment).0,
        linker: linker.name(),
        upstreams: deployment.catalog.upstreams.len(),
        tools: deployment.catalog.tool_count(),
        abilities: features(linked).collect(),
        limits: limits.collect(),
        digests: digests(deployment),
    };
    format!("{}\n", serde_json::json!(version))
}

/// Iterates over the features of a binary that links these parts.
fn features(linked: LinkedParts) -> impl Iterator<Item = &'static str> {
    FEATURES.iter().filter(move |feature| feature.is_built(linked)).map(|feature| feature.name)
}
