//! `--link prebuilt`: adds the catalog to a prebuilt runtime.

use libsui::{Elf, Macho, PortableExecutable, utils};
use ptc_catalog::{Catalog, Deployment};
use ptc_compiler::leak::StaticDeployment;

use super::Outputs;
use super::runtimes::Runtime;
use crate::{Failure, files, sbom};

/// Writes the binary and the documents about it. Returns the size of the binary.
///
/// # Errors
///
/// If the runtime has an unknown format, or a file cannot be read or written.
pub(super) fn link(runtime: &Runtime, deployment: &StaticDeployment, outputs: &Outputs<'_>) -> Result<u64, Failure> {
    let tables = deployment.tables;
    let search_index = ptc_search::index_of(tables.catalog).leak();
    let catalog: &'static Catalog = Box::leak(Box::new(Catalog { search_index, ..*tables.catalog }));
    let image = ptc_image::encode(&Deployment { catalog, ..*tables }, &runtime.stamp.digest);
    let binary = with_section(runtime, image)
        .map_err(|error| Failure::new(format!("cannot add a catalog to `{}`: {error}", runtime.path.display())))?;
    if let Some(path) = outputs.sbom {
        let metadata = serde_json::from_str(&runtime.document("packages.json")?)
            .map_err(|error| Failure::new(format!("the list of packages of the prebuilt runtime cannot be read: {error}")))?;
        files::write_if_changed(path, sbom::document(deployment, &metadata, crate::source::lock())?.as_bytes())?;
    }
    if let Some(path) = outputs.notices {
        files::write_if_changed(path, runtime.document("notices")?.as_bytes())?;
    }
    files::write_program(outputs.binary, &binary)?;
    Ok(binary.len() as u64)
}

/// Returns the executable with the image as a section. Executables of macOS are signed again, without a certificate.
fn with_section(runtime: &Runtime, image: Vec<u8>) -> Result<Vec<u8>, libsui::Error> {
    let executable = &runtime.executable;
    let mut binary = Vec::with_capacity(executable.len() + image.len() + (1 << 16));
    if utils::is_elf(executable) {
        Elf::new(executable).append(ptc_image::SECTION, &image, &mut binary)?;
    } else if utils::is_macho(executable) {
        Macho::from(executable.clone())?.write_section(ptc_image::SECTION, image)?.build_and_sign(&mut binary)?;
    } else {
        PortableExecutable::from(executable)?.write_resource(ptc_image::SECTION, image)?.build(&mut binary)?;
    }
    Ok(binary)
}
