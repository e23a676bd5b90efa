//! Writes a software bill of materials as a CycloneDX 1.6 document, from cargo's own resolution of a program's packages.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest;
use crate::graph::{Error, Package, packages, reference, root, text};
use serde_json::{Map, Value, json};

/// The program that a bill of materials describes, without its packages.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The name of the program.
    pub name: &'a str,
    /// The identifier of the program in the document (`bom-ref`).
    pub reference: &'a str,
    /// Properties of the program, each made by [`property`].
    pub properties: Vec<Value>,
    /// The services that it uses, each with the member `bom-ref`.
    pub services: Vec<Value>,
    /// The version of the tool that writes the document.
    pub tool_version: &'a str,
}

/// Returns the document. `metadata` is the output of `cargo metadata` for the program's package, `cargo_lock` its lock file.
///
/// # Errors
///
/// If `metadata` is incomplete.
pub fn document(subject: &Subject<'_>, metadata: &Value, cargo_lock: &str) -> Result<String, Error> {
    let packages = packages(metadata)?;
    let root = root(metadata);
    let checksums = checksums(cargo_lock);
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (id, package) in &packages {
        let mut depends_on: BTreeSet<String> = package.depends_on.clone();
        let reference = if *id == root {
            depends_on.extend(subject.services.iter().map(|service| text(service.get("bom-ref")).to_owned()));
            subject.reference.to_owned()
        } else {
            components.push(component(package, &checksums));
            reference(package.facts)
        };
        dependencies.push(json!({ "ref": reference, "dependsOn": depends_on }));
    }
    components.sort_by(|a, b| text(a.get("bom-ref")).cmp(text(b.get("bom-ref"))));
    dependencies.sort_by(|a, b| text(a.get("ref")).cmp(text(b.get("ref"))));
    let mut document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "ptc-compile", "version": subject.tool_version }] },
            "component": {
                "type": "application",
                "bom-ref": subject.reference,
                "name": subject.name,
                "properties": subject.properties,
            },
        },
        "components": components,
        "services": subject.services,
        "dependencies": dependencies,
    });
    // Every document needs a serial number; this one is derived from the content.
    let number = serial(&document.to_string());
    if let Some(members) = document.as_object_mut() {
        members.insert("serialNumber".to_owned(), number.into());
    }
    Ok(format!("{document:#}\n"))
}

fn component(package: &Package<'_>, checksums: &BTreeMap<(&str, &str), &str>) -> Value {
    let facts = package.facts;
    let (name, version) = (text(facts.get("name")), text(facts.get("version")));
    let mut out = Map::new();
    out.insert("type".to_owned(), "library".into());
    out.insert("bom-ref".to_owned(), reference(facts).into());
    out.insert("name".to_owned(), name.into());
    out.insert("version".to_owned(), version.into());
    out.insert("scope".to_owned(), if package.linked { "required" } else { "excluded" }.into());
    out.insert("purl".to_owned(), reference(facts).into());
    if let Some(licence) = package.licence() {
        out.insert("licenses".to_owned(), json!([{ "expression": licence }]));
    }
    if let Some(checksum) = checksums.get(&(name, version)) {
        out.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
    }
    if let Some(url) = facts.get("repository").and_then(Value::as_str) {
        out.insert("externalReferences".to_owned(), json!([{ "type": "vcs", "url": url }]));
    }
    Value::Object(out)
}

/// Returns a property of a component or a service.
#[must_use]
pub fn property(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

/// Returns the checksums of a `Cargo.lock` by name and version. Local packages have none.
fn checksums(cargo_lock: &str) -> BTreeMap<(&str, &str), &str> {
    let mut found = BTreeMap::new();
    for section in cargo_lock.split("[[package]]").skip(1) {
        let field = |key: &str| {
            let line = section.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
            Some(line.trim_matches('"'))
        };
        if let (Some(name), Some(version), Some(checksum)) = (field("name"), field("version"), field("checksum")) {
            found.insert((name, version), checksum);
        }
    }
    found
}

/// Derives a UUID from a digest of the text. Its version is 8, whose content RFC 9562 leaves to the application.
fn serial(content: &str) -> String {
    let hex = digest::sha256(content.as_bytes());
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_read_from_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry\"\nchecksum = \"00ff\"\n\n\
                    [[package]]\nname = \"own\"\nversion = \"0.1.0\"\ndependencies = [\n \"a\",\n]\n";
        assert_eq!(checksums(lock), BTreeMap::from([(("a", "1.0.0"), "00ff")]));
    }

    #[test]
    fn serial_numbers_have_the_form_of_a_uuid() {
        let number = serial("x");
        assert_eq!(number.len(), "urn:uuid:".len() + 36);
        assert_eq!((serial("x") == number, serial("y") == number), (true, false));
    }
}
