//! `version` prints what the binary was built from.

use ptc_catalog::Deployment;
use serde_json::{Map, Value, json};

use crate::schedule::ScheduleLimits;
use crate::settings::FEATURES;

/// The key of [`digests`] in `_meta` of an answer.
pub(crate) const META_KEY: &str = "ptc-compile/build";

/// Formats the version as one line or as a JSON object.
pub(super) fn render(deployment: &'static Deployment, limits: &ScheduleLimits, json: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if !json {
        return format!("{} {version}\n", deployment.name);
    }
    let mut object = json!({
        "name": deployment.name,
        "version": version,
        "compiler": compiler(deployment).0,
        "upstreams": deployment.catalog.upstreams.len(),
        "tools": deployment.catalog.tool_count(),
        "abilities": features().collect::<Vec<_>>(),
        "limits": limits_in_force(limits),
    });
    if let (Some(object), Value::Object(digests)) = (object.as_object_mut(), digests(deployment)) {
        object.extend(digests);
    }
    format!("{object}\n")
}

/// Returns the limits of a server that is started in the same way, each with its source.
fn limits_in_force(limits: &ScheduleLimits) -> Value {
    let row = |(name, value, source): (&str, u64, String)| (name.to_owned(), json!({ "value": value, "source": source }));
    let mut told = Map::new();
    told.extend(limits.in_force().into_iter().map(row));
    told.into()
}

/// Iterates over the features of the runtime in this binary.
fn features() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().filter(|feature| feature.is_built).map(|feature| feature.name)
}

/// Returns the digests of the parts of the binary. A part without a digest is omitted, such as tables that were not made by
/// `ptc-compile`.
pub(crate) fn digests(deployment: &'static Deployment) -> Value {
    let parts = [
        ("config_digest", deployment.config_digest.to_owned()),
        ("catalog_digest", deployment.catalog.digest.to_owned()),
        ("compiler_digest", compiler(deployment).1.map(|digest| format!("sha256:{digest}")).unwrap_or_default()),
        ("runtime_digest", crate::DIGEST.to_owned()),
    ];
    let mut told = Map::new();
    for (name, digest) in parts {
        if !digest.is_empty() {
            told.insert(name.to_owned(), digest.into());
        }
    }
    told.into()
}

/// Splits the compiler's version from the digest in its build metadata.
fn compiler(deployment: &'static Deployment) -> (&'static str, Option<&'static str>) {
    match deployment.compiler.split_once('+') {
        Some((version, digest)) => (version, Some(digest)),
        None => (deployment.compiler, None),
    }
}
