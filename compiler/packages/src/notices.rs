//! Writes the licence texts of everything that is linked into a program, which must accompany it when it is passed on.
//!
//! The packages are those of the bill of materials that are linked. Their texts come from cargo's copies of their sources. Equal
//! texts are written once. The document contains no path and no time, so that equal programs give equal bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::graph::{self, Error, Package};

/// Beginnings of the names of files with licence texts, in lower case.
const NAMES: [&str; 6] = ["copying", "copyright", "licence", "license", "notice", "unlicense"];

/// The part of every binary that is not a package. It is used under the Apache licence.
const STANDARD_LIBRARY: &str = "Rust standard library";

/// The licence texts of the runtime's own packages. The first is the Apache licence.
const OWN: [&str; 2] = [include_str!("../../../LICENSE-APACHE"), include_str!("../../../LICENSE-MIT")];

const RULE: &str = "--------------------------------------------------------------------------------";

/// Returns the document. `metadata` is the output of `cargo metadata` for the package of the program.
///
/// # Errors
///
/// If `metadata` is incomplete, or a file with a licence text cannot be read.
pub fn document(program: &str, metadata: &Value) -> Result<String, Error> {
    let packages = graph::packages(metadata)?;
    let root = graph::root(metadata);
    let mut listed = BTreeSet::new();
    // Packages by the text of a licence. The order of texts is that of their first packages.
    let mut holders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages.iter().filter(|(id, package)| package.linked && **id != root).map(|(_, package)| package) {
        let name = package.name();
        let licence = package.licence().unwrap_or_else(|| "unknown licence".to_owned());
        let source = package.facts.get("repository").and_then(Value::as_str).unwrap_or_default();
        listed.insert(format!("{name}: {licence} {source}").trim_end().to_owned());
        for text in texts(package)? {
            holders.entry(text).or_default().insert(name.clone());
        }
    }
    listed.insert(format!("{STANDARD_LIBRARY}: MIT OR Apache-2.0 https://github.com/rust-lang/rust"));
    holders.entry(normalized(OWN[0])).or_default().insert(STANDARD_LIBRARY.to_owned());
    let mut texts: Vec<(BTreeSet<String>, String)> = holders.into_iter().map(|(text, names)| (names, text)).collect();
    texts.sort();
    let mut out = format!("Software that is linked into {program}, with its licences\n\n");
    for line in listed {
        out.extend([&*line, "\n"]);
    }
    for (names, text) in texts {
        let names: Vec<String> = names.into_iter().collect();
        out.extend(["\n", RULE, "\n", &names.join(", "), "\n", RULE, "\n\n", text.trim_end(), "\n"]);
    }
    Ok(out)
}

/// Returns the licence texts of a package, without duplicates.
fn texts(package: &Package<'_>) -> Result<BTreeSet<String>, Error> {
    if package.facts.get("source").is_none_or(Value::is_null) {
        return Ok(OWN.map(normalized).into());
    }
    let mut found = BTreeSet::new();
    let manifest = package.facts.get("manifest_path").and_then(Value::as_str).unwrap_or_default();
    if let Some(folder) = Path::new(manifest).parent() {
        collect(folder, &mut found).map_err(|error| {
            let name = package.name();
            let folder = folder.display();
            Error(format!(
                "cannot read the licences of {name} in `{folder}`: {error}; remove that folder, and cargo fetches it again"
            ))
        })?;
    }
    Ok(found)
}

/// Collects the licence texts of a folder and of the folders in it: packages contain the sources of other software.
fn collect(folder: &Path, into: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), into)?;
        } else if is_notice(&entry.file_name().to_string_lossy()) {
            into.insert(normalized(&String::from_utf8_lossy(&std::fs::read(entry.path())?)));
        }
    }
    Ok(())
}

/// Whether a file name is that of a licence text, such as `LICENSE-MIT` and `COPYING.txt`, but not `license.rs`.
fn is_notice(name: &str) -> bool {
    let name = name.to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    NAMES.iter().any(|known| name.starts_with(known)) && !["c", "h", "json", "rs", "toml"].contains(&extension)
}

/// Returns a text with the line ends of Unix and without white space at the ends of lines, so that equal texts are found equal.
fn normalized(text: &str) -> String {
    let lines: Vec<&str> = text.trim_matches('\u{feff}').lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_texts_are_recognised_by_file_name() {
        for name in
            ["LICENSE", "LICENSE-MIT", "LICENCE.txt", "license.md", "COPYING", "UNLICENSE", "NOTICE", "LICENSE-APACHE-2.0"]
        {
            assert!(is_notice(name), "{name}");
        }
        for name in ["license.rs", "README.md", "notice.h", "Cargo.toml"] {
            assert!(!is_notice(name), "{name}");
        }
    }

    #[test]
    fn texts_that_differ_in_line_ends_are_equal() {
        assert_eq!(normalized("MIT \r\n\r\nyes\r\n\r\n"), normalized("\nMIT\n\nyes"));
    }
}
