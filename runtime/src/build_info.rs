//! What the binary was built from.

use ptc_catalog::Deployment;
use serde::Serialize;

/// The key of [`digests`] in `_meta` of an answer.
pub(crate) const META_KEY: &str = "ptc-compile/build";

/// The digests of the parts of a binary. A part without a digest is omitted, such as tables that were not made by `ptc-compile`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[expect(clippy::struct_field_names, reason = "these are the names in the output")]
pub(crate) struct Digests {
    #[serde(skip_serializing_if = "String::is_empty")]
    config_digest: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    catalog_digest: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    compiler_digest: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    runtime_digest: String,
}

/// Returns the digests of the parts of the binary.
pub(crate) fn digests(deployment: &'static Deployment) -> Digests {
    Digests {
        config_digest: deployment.config_digest.to_owned(),
        catalog_digest: deployment.catalog.digest.to_owned(),
        compiler_digest: compiler(deployment).1.map(|digest| format!("sha256:{digest}")).unwrap_or_default(),
        runtime_digest: crate::DIGEST.to_owned(),
    }
}

/// Splits the compiler's version from the digest in its build metadata.
pub(crate) fn compiler(deployment: &'static Deployment) -> (&'static str, Option<&'static str>) {
    match deployment.compiler.split_once('+') {
        Some((version, digest)) => (version, Some(digest)),
        None => (deployment.compiler, None),
    }
}
