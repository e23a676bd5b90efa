//! Renders the deployment model as the text of the generated crate.
//!
//! The templates are in the workspace's folder `templates/` and make no decisions; `view` decides every literal. Rust text is
//! parsed with `syn` and formatted with `prettyplease` before it is returned, so that a faulty template fails here and not in the
//! user's build. Equal deployments give equal bytes.

mod args;
mod base_images;
mod bundle;
mod bundle_check;
mod container;
mod container_check;
mod html;
mod image_names;
mod kubernetes;
mod literal;
mod manifest;
pub(crate) mod markdown;
mod needs;
mod policy;
mod readme;
mod registry_entry;
mod view;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

pub use args::args;
pub use base_images::{BaseImage, BaseImages, NoSuchStage, Stage};
pub use bundle::{Bundled, MAX_DESCRIPTION, OfferedTool, Release, asked_variables, bundle_manifest, program_in_bundle};
pub use bundle_check::check as check_bundle;
pub use container::{Context, base_images, dockerfile, dockerignore, image_reference};
pub use container_check::{check as check_container, check_base_images};
pub use html::html;
pub use kubernetes::kubernetes;
pub use manifest::{Abilities, DEPENDENCIES, Manifest, Serve, SessionStore, toml_string};
pub use policy::policy_sentences;
pub use registry_entry::{Package, registry_entry};

use crate::ir::Deployment;

/// A file of the generated crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path in the crate, with `/` as the separator.
    pub path: &'static str,
    /// The whole text of the file.
    pub text: String,
}

/// Why a text could not be rendered. The cause is always a fault of the compiler or its templates.
#[derive(Debug)]
pub struct RenderError(String);

impl std::fmt::Display for RenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the generated text is not valid, which is a fault of ptc-compile: {}", self.0)
    }
}

impl std::error::Error for RenderError {}

/// Renders all files of the generated crate except its `Cargo.lock`, in a fixed order.
///
/// # Errors
///
/// Returns [`RenderError`] if a template cannot be rendered, or its text is not valid Rust. Both are faults of the compiler.
pub fn files(deployment: &Deployment, manifest: &Manifest) -> Result<Vec<File>, RenderError> {
    Ok(vec![
        File {
            path: "Cargo.toml",
            text: template("Cargo.toml", include_str!("../../../templates/Cargo.toml.j2"), AutoEscape::None, manifest.view())?,
        },
        File { path: "README.md", text: readme::readme(deployment)? },
        File { path: "src/catalog.rs", text: catalog(deployment)? },
        File {
            path: "src/main.rs",
            text: rust(&template("main.rs", include_str!("../../../templates/main.rs.j2"), AutoEscape::None, manifest.view())?)?,
        },
    ])
}

/// Renders the catalog's tables as Rust items: `DEPLOYMENT`, `CATALOG`, and the items that these refer to. The text is
/// `src/catalog.rs` of the generated crate, and the expansion of the `catalog!` macro.
///
/// # Errors
///
/// Returns [`RenderError`] if a template cannot be rendered, or its text is not valid Rust. Both are faults of the compiler.
pub fn catalog(deployment: &Deployment) -> Result<String, RenderError> {
    rust(&tables(view::Catalog::new(deployment))?)
}

/// Renders the catalog's tables without formatting them.
fn tables(view: view::Catalog) -> Result<String, RenderError> {
    template("catalog.rs", include_str!("../../../templates/catalog.rs.j2"), AutoEscape::None, view)
}

/// Returns a digest of everything that the binary is built from: config, catalog, stored programs and compiler, but not the name
/// of the output file.
///
/// # Errors
///
/// Returns [`RenderError`] if a template cannot be rendered, which is a fault of the compiler.
pub fn build_digest(deployment: &Deployment) -> Result<String, RenderError> {
    let view = view::Catalog::new(deployment).without_name();
    Ok(crate::lock::sha256(tables(view)?.as_bytes()))
}

fn template(name: &'static str, source: &'static str, escape: AutoEscape, view: impl Serialize) -> Result<String, RenderError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Values arrive as complete literals of Rust, TOML or Markdown, so the template engine must not escape them again.
    environment.set_auto_escape_callback(move |_| escape.clone());
    let rendered = environment.add_template(name, source).and_then(|()| environment.get_template(name)?.render(Serde(view)));
    let mut text = rendered.map_err(|error| RenderError(format!("{error:#}")))?;
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(text)
}

/// Parses and formats Rust text, and puts a line above it that names the generator.
fn rust(text: &str) -> Result<String, RenderError> {
    let file = syn::parse_file(text).map_err(|error| RenderError(error.to_string()))?;
    Ok(format!(
        "// Generated by ptc-compile {}; changes are lost with the next build.\n\n{}",
        crate::VERSION,
        prettyplease::unparse(&file)
    ))
}
