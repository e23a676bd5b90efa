//! `ptc-compile-VERSION-TRIPLE.tar.gz`: to be unpacked anywhere.

use super::{Package, Release, archive};
use crate::error::Error;

pub(super) fn package(release: &Release) -> Result<Package, Error> {
    let name = format!("ptc-compile-{}-{}", release.version, release.platform.triple);
    let bytes = archive::tar_gz(&release.tree.below(&format!("{name}/")), false).map_err(Error::writing(&name))?;
    Ok(Package { name: format!("{name}.tar.gz"), bytes })
}
