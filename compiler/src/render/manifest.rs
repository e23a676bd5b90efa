//! `Cargo.toml` of the generated crate.

use serde::Serialize;

use crate::ir::Deployment;

/// Where the generated crate finds the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A folder that holds the workspace, or an unpacked copy of its runtime part.
    Path(String),
    /// The package registry, exactly this version.
    Registry(String),
}

/// What the manifest needs to know.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Package and binary name.
    pub package: String,
    /// Where the runtime is.
    pub origin: Origin,
    /// Whether the runtime gets its HTTP client.
    pub http: bool,
    /// The `[profile.release]` section, the same for every deployment.
    pub profile: String,
}

impl Manifest {
    /// The manifest of a deployment.
    pub fn new(package: impl Into<String>, deployment: &Deployment, origin: Origin, profile: impl Into<String>) -> Self {
        Manifest { package: package.into(), origin, http: deployment.needs_http(), profile: profile.into() }
    }

    pub(super) fn view(&self) -> View {
        let dependency = |folder: &str| match &self.origin {
            Origin::Path(root) => format!("path = {}", toml_string(&format!("{root}/{folder}"))),
            Origin::Registry(version) => format!("version = {}", toml_string(&format!("={version}"))),
        };
        View {
            compiler: crate::VERSION,
            package: toml_string(&self.package),
            catalog_source: dependency("runtime/catalog"),
            runtime_source: dependency("runtime"),
            features: if self.http { "\"http\"" } else { "" },
            profile: self.profile.trim().to_owned(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct View {
    compiler: &'static str,
    package: String,
    catalog_source: String,
    runtime_source: String,
    features: &'static str,
    profile: String,
}

/// A TOML string that means `text`: literal, since paths of Windows are full of backslashes, or basic where a quote is inside.
fn toml_string(text: &str) -> String {
    if text.contains('\'') || text.chars().any(char::is_control) {
        let mut out = String::new();
        crate::ir::json::quote(text, &mut out);
        out
    } else if text.contains('\\') {
        format!("'{text}'")
    } else {
        format!("\"{text}\"")
    }
}
