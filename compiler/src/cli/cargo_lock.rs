//! Checks that a deployment was built from the packages of the runtime's lock file only.
//!
//! Cargo edits the lock file of a generated crate: it removes the packages that the crate does not use. `cargo --locked` would
//! reject this, and without it cargo may also add packages.

use std::collections::HashSet;

/// Returns the name and version of a package that `lock` has and `origin` does not, or not with the same source and checksum.
/// `manifest` is that of the generated crate, which only `lock` has.
pub(crate) fn foreign_package(lock: &str, origin: &str, manifest: &str) -> Option<String> {
    let known: HashSet<Package<'_>> = packages(origin).collect();
    let is_generated = |package: &Package<'_>| package.source.is_empty() && field(manifest, "name") == Some(package.name);
    let mut foreign = packages(lock).filter(|package| !known.contains(package) && !is_generated(package));
    foreign.next().map(|package| format!("{} {}", package.name, package.version))
}

#[derive(PartialEq, Eq, Hash)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    source: &'a str,
    checksum: &'a str,
}

/// Iterates over the packages of a lock file. One in a folder of this machine has no source.
fn packages(lock: &str) -> impl Iterator<Item = Package<'_>> {
    lock.split("[[package]]").skip(1).filter_map(|block| {
        let or_none = |name| field(block, name).unwrap_or_default();
        Some(Package {
            name: field(block, "name")?,
            version: field(block, "version")?,
            source: or_none("source"),
            checksum: or_none("checksum"),
        })
    })
}

/// Returns the text of the first field with this name.
fn field<'a>(block: &'a str, name: &str) -> Option<&'a str> {
    let value = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    value.map(|value| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::foreign_package;

    const ORIGIN: &str = include_str!("../../../Cargo.lock");
    const MANIFEST: &str = "[package]\nname = \"own\"\nversion = \"1.0.0\"\n";

    fn foreign(lock: &str) -> Option<String> {
        foreign_package(lock, ORIGIN, MANIFEST)
    }

    #[test]
    fn subset_of_the_packages_is_accepted_and_others_are_named() {
        assert_eq!(foreign(ORIGIN), None);
        let one = ORIGIN.split_inclusive("[[package]]").take(20).collect::<String>();
        assert_eq!(foreign(&one), None);
        let own = "[[package]]\nname = \"own\"\nversion = \"1.0.0\"\n";
        assert_eq!(foreign(own), None, "the generated crate has no source");
        let replaced = "[[package]]\nname = \"serde\"\nversion = \"1.0.0\"\n";
        assert_eq!(foreign(replaced).as_deref(), Some("serde 1.0.0"), "a package in a folder");
        let (name, version) = ("serde", "0.0.1");
        let other =
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"registry+x\"\nchecksum = \"00\"\n");
        assert_eq!(foreign(&other).as_deref(), Some("serde 0.0.1"));
        let checksum = ORIGIN.find("checksum = \"").expect("a checksum") + "checksum = \"".len();
        let mut altered = ORIGIN.to_owned();
        altered.replace_range(checksum..=checksum, if ORIGIN[checksum..].starts_with('0') { "1" } else { "0" });
        assert!(foreign(&altered).is_some(), "another checksum");
    }
}
