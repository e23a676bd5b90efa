//! Checks that a deployment was built from the packages of the runtime's lock file only.
//!
//! Cargo edits the lock file of a generated crate: it removes the packages that the crate does not use. `cargo --locked` would
//! reject this, and without it cargo may also add packages.

use std::collections::HashSet;

/// Returns the name and version of a package that `lock` has and `origin` does not, or not with the same source and checksum.
pub(crate) fn foreign_package(lock: &str, origin: &str) -> Option<String> {
    let known: HashSet<Package<'_>> = packages(origin).collect();
    packages(lock).find(|package| !known.contains(package)).map(|package| format!("{} {}", package.name, package.version))
}

#[derive(PartialEq, Eq, Hash)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    source: &'a str,
    checksum: &'a str,
}

/// Iterates over the packages of a lock file that come from elsewhere than this machine.
fn packages(lock: &str) -> impl Iterator<Item = Package<'_>> {
    lock.split("[[package]]").skip(1).filter_map(|block| {
        let field = |name: &str| {
            let value = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            value.map(|value| value.trim_matches('"'))
        };
        let (name, version, source) = (field("name")?, field("version")?, field("source")?);
        Some(Package { name, version, source, checksum: field("checksum").unwrap_or_default() })
    })
}

#[cfg(test)]
mod tests {
    use super::foreign_package;

    const ORIGIN: &str = include_str!("../../../Cargo.lock");

    #[test]
    fn subset_of_the_packages_is_accepted_and_others_are_named() {
        assert_eq!(foreign_package(ORIGIN, ORIGIN), None);
        let one = ORIGIN.split_inclusive("[[package]]").take(20).collect::<String>();
        assert_eq!(foreign_package(&one, ORIGIN), None);
        let own = "[[package]]\nname = \"own\"\nversion = \"1.0.0\"\n";
        assert_eq!(foreign_package(own, ORIGIN), None, "the generated crate has no source");
        let (name, version) = ("serde", "0.0.1");
        let other =
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"registry+x\"\nchecksum = \"00\"\n");
        assert_eq!(foreign_package(&other, ORIGIN).as_deref(), Some("serde 0.0.1"));
        let checksum = ORIGIN.find("checksum = \"").expect("a checksum") + "checksum = \"".len();
        let mut altered = ORIGIN.to_owned();
        altered.replace_range(checksum..=checksum, if ORIGIN[checksum..].starts_with('0') { "1" } else { "0" });
        assert!(foreign_package(&altered, ORIGIN).is_some(), "another checksum");
    }
}
