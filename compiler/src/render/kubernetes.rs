//! Renders the Kubernetes manifests that run replicas of a deployment's image behind one service.

use minijinja::AutoEscape;
use serde::Serialize;

use super::container::{PORT, USER, comment, image_reference, quoted};
use super::image_names::label;
use super::needs::Needs;
use super::{RenderError, build_digest, template};
use crate::ir::Deployment;

/// Maximum length of the deployment's name in characters. Names derived from it must be valid labels too.
const MAX_LEN: usize = 50;

#[derive(Debug, Serialize)]
struct View {
    title: String,
    compiler: &'static str,
    name: String,
    image: String,
    catalog_digest: String,
    build_digest: String,
    variables: Vec<Variable>,
    files: Vec<File>,
    port: u16,
    user: u32,
}

#[derive(Debug, Serialize)]
struct Variable {
    /// The name for a comment, on one line.
    shown: String,
    /// The name as a JSON string, which is valid YAML.
    quoted: String,
    optional: &'static str,
}

#[derive(Debug, Serialize)]
struct File {
    key: String,
    place: String,
}

/// Renders the manifests: deployment, service, autoscaler, disruption budget, and the session store that the replicas share.
///
/// # Errors
///
/// Returns [`RenderError`] if a template cannot be rendered, which is a fault of the compiler.
pub fn kubernetes(deployment: &Deployment) -> Result<String, RenderError> {
    let (needs, build_digest) = (Needs::from_deployment(deployment), build_digest(deployment)?);
    let view = View {
        title: comment(&deployment.name),
        compiler: crate::VERSION,
        name: label(&deployment.name, MAX_LEN),
        image: quoted(&image_reference(&deployment.name, &build_digest)),
        build_digest: quoted(&build_digest),
        catalog_digest: quoted(&deployment.catalog_digest),
        variables: needs
            .variables
            .into_iter()
            .map(|(name, variable)| Variable {
                quoted: quoted(&name),
                optional: if variable.is_required { "false" } else { "true" },
                shown: comment(&name),
            })
            .collect(),
        files: needs.files.into_iter().map(|(key, place)| File { key, place: quoted(&place) }).collect(),
        port: PORT,
        user: USER,
    };
    template("kubernetes.yaml", include_str!("../../../templates/kubernetes.yaml.j2"), AutoEscape::None, view)
}
