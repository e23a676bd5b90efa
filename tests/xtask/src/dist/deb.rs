//! `ptc-compile_VERSION_ARCHITECTURE.deb`: an `ar` archive with the format's version, a control file and the files.

use super::tree::{DOCUMENTS, Tree};
use super::{Package, Release, archive};
use crate::error::Error;

/// The file that Debian expects about licences.
const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ptc-compile

Files: *
Copyright: the authors of ptc-compile
License: MIT or Apache-2.0
Comment: The texts are in LICENSE-MIT and LICENSE-APACHE in this folder. Those of linked software are in
 ptc-compile.notices and in /usr/lib/ptc-compile/ptc-runtime.notices.
";

pub(super) fn package(release: &Release) -> Result<Package, Error> {
    let (version, platform) = (&release.version, &release.platform);
    let name = format!("ptc-compile_{version}_{}.deb", platform.debian);
    let mut data = release.tree.below("./usr/");
    data.file(&format!("./usr/{DOCUMENTS}/copyright"), COPYRIGHT.into());
    let kibibytes = data.0.values().map(|file| file.bytes.len()).sum::<usize>().div_ceil(1024);
    let mut control = Tree::default();
    let text = format!(
        "Package: ptc-compile\nVersion: {version}\nArchitecture: {}\nMaintainer: the authors of ptc-compile <ptc-compile@example.invalid>\n\
         Installed-Size: {kibibytes}\nDepends: libc6 (>= {}.{}), libgcc-s1\nSection: devel\nPriority: optional\n\
         Description: compiler of pinned MCP servers\n Compiles a list of tool servers into one MCP server whose tools are fixed.\n",
        platform.debian, platform.glibc.0, platform.glibc.1
    );
    control.file("./control", text.into_bytes());
    let bytes = members(&control, &data).map_err(Error::writing(&name))?;
    Ok(Package { name, bytes })
}

fn members(control: &Tree, data: &Tree) -> std::io::Result<Vec<u8>> {
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive::tar_gz(control, true)?),
        ("data.tar.gz", archive::tar_gz(data, true)?),
    ];
    let mut out = ar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mode(0o100_644);
        out.append(&header, bytes.as_slice())?;
    }
    out.into_inner()
}
