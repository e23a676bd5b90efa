//! The names that package managers have for this platform.

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, FileKind};

use crate::error::Error;

/// A platform on which the packages can be installed.
#[derive(Debug)]
pub(super) struct Platform {
    /// The name that Rust has for it.
    pub(super) triple: String,
    pub(super) debian: &'static str,
    /// `os` and `cpu` of npm.
    pub(super) npm: (&'static str, &'static str),
    /// The name of the processor in the tags of wheels.
    pub(super) python: &'static str,
    /// The oldest version of the GNU C Library that has every function that the programs use.
    pub(super) glibc: (u32, u32),
}

impl Platform {
    /// Returns the platform of the programs.
    ///
    /// # Errors
    ///
    /// If packages for it are not supported, or a program is not one of Linux.
    pub(super) fn new(triple: &str, programs: [&[u8]; 2]) -> Result<Platform, Error> {
        let (debian, npm, python) = match triple {
            "x86_64-unknown-linux-gnu" => ("amd64", ("linux", "x64"), "x86_64"),
            "aarch64-unknown-linux-gnu" => ("arm64", ("linux", "arm64"), "aarch64"),
            other => {
                return Err(Error::new(format!(
                    "packages are made for x86_64-unknown-linux-gnu and aarch64-unknown-linux-gnu, not for {other}"
                )));
            }
        };
        let mut glibc = (2, 17);
        for program in programs {
            glibc = glibc.max(needed_glibc(program)?);
        }
        Ok(Platform { triple: triple.to_owned(), debian, npm, python, glibc })
    }
}

/// Returns the highest version of the GNU C Library among the symbols that an executable needs.
fn needed_glibc(program: &[u8]) -> Result<(u32, u32), Error> {
    let damaged = |error: object::Error| Error::new(format!("cannot read a program: {error}"));
    if FileKind::parse(program).map_err(damaged)? != FileKind::Elf64 {
        return Err(Error::new("a program is not an executable of 64-bit Linux"));
    }
    let header = FileHeader64::<Endianness>::parse(program).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    let sections = header.sections(endian, program).map_err(damaged)?;
    let mut highest = (0, 0);
    for section in sections.iter() {
        let Some((mut needed, strings)) = section.gnu_verneed(endian, program).map_err(damaged)? else { continue };
        let strings = sections.strings(endian, program, strings).map_err(damaged)?;
        while let Some((_, mut versions)) = needed.next().map_err(damaged)? {
            while let Some(version) = versions.next().map_err(damaged)? {
                let name = version.name(endian, strings).map_err(damaged)?;
                highest = highest.max(glibc_version(&String::from_utf8_lossy(name)).unwrap_or((0, 0)));
            }
        }
    }
    Ok(highest)
}

/// Parses `GLIBC_2.34`.
fn glibc_version(name: &str) -> Option<(u32, u32)> {
    let mut parts = name.strip_prefix("GLIBC_")?.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_c_library_are_read_from_symbols() {
        assert_eq!(glibc_version("GLIBC_2.34"), Some((2, 34)));
        assert_eq!(glibc_version("GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc_version("GCC_3.0"), None);
    }
}
