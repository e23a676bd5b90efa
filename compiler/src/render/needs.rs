//! Collects the variables and files that a deployment needs where it starts.

use std::collections::{BTreeMap, BTreeSet};

use ptc_secrets::heuristics::names_a_secret;

use super::image_names::{label, path_in_image, unused_name};
use crate::config::model::{CredentialSource, EnvPart, InheritEnv, Transport};
use crate::ir::Deployment;
use crate::lower::bindings;

/// Environment of a deployment: what it needs where it starts.
pub(super) struct Needs {
    /// Environment variables by name.
    pub(super) variables: BTreeMap<String, Variable>,
    /// Files with secrets: the key of each in the Kubernetes secret, and its path in the image.
    pub(super) files: BTreeMap<String, String>,
}

/// An environment variable that a deployment reads.
#[derive(Debug, Default)]
pub(super) struct Variable {
    /// Whether the server refuses to start without the variable.
    pub(super) is_required: bool,
    /// Whether its value is a secret: that of a credential, or one that the name indicates.
    pub(super) is_secret: bool,
    /// The upstreams that get its value.
    pub(super) upstreams: BTreeSet<String>,
}

impl Needs {
    pub(super) fn from_deployment(deployment: &Deployment) -> Needs {
        let mut needs = Needs { variables: BTreeMap::new(), files: BTreeMap::new() };
        for credential in &deployment.credentials {
            match &credential.source {
                CredentialSource::Env { var } => {
                    let variable = needs.variables.entry(var.clone()).or_default();
                    (variable.is_required, variable.is_secret) = (true, true);
                    let users = deployment
                        .upstreams
                        .iter()
                        .filter(|upstream| bindings(&upstream.transport).any(|binding| binding == credential.name));
                    variable.upstreams.extend(users.map(|upstream| upstream.name.clone()));
                }
                CredentialSource::File { path } => {
                    let key = unused_name(&needs.files, &label(&credential.name, 60));
                    needs.files.insert(key, path_in_image(path));
                }
                CredentialSource::Literal { .. } => {}
            }
        }
        for upstream in &deployment.upstreams {
            let Transport::McpStdio(stdio) = &upstream.transport else { continue };
            let mut add = |name: &String, of_child: &str, is_required: bool| {
                let variable = needs.variables.entry(name.clone()).or_default();
                variable.is_required |= is_required;
                variable.is_secret |= names_a_secret(name) || names_a_secret(of_child);
                variable.upstreams.insert(upstream.name.clone());
            };
            for (of_child, parts) in &stdio.env {
                for part in parts {
                    if let EnvPart::Var(name) = part {
                        add(name, of_child, true);
                    }
                }
            }
            if let InheritEnv::Names(names) = &stdio.inherit_env {
                for name in names {
                    add(name, name, false);
                }
            }
        }
        needs.variables.retain(|name, _| !is_always_set(name));
        needs
    }
}

/// Whether images and desktop clients set a variable themselves.
pub(super) fn is_always_set(name: &str) -> bool {
    matches!(name, "PATH" | "HOME")
}
