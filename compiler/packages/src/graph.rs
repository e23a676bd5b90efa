//! The packages of a program: what cargo says about each, and what depends on what.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use serde_json::{Map, Value, json};

/// The reason why a document cannot be written, as a sentence.
#[derive(Debug)]
pub struct Error(pub(crate) String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Cargo's facts about a package that is linked, or that runs while others are built.
pub(crate) struct Package<'a> {
    pub(crate) facts: &'a Value,
    /// References of its dependencies.
    pub(crate) depends_on: BTreeSet<String>,
    /// Whether it is linked into the binary, and not only used while the binary is built.
    pub(crate) linked: bool,
}

impl Package<'_> {
    /// Returns the name with the version.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", text(self.facts.get("name")), text(self.facts.get("version")))
    }

    /// Returns the licences as an SPDX expression.
    pub(crate) fn licence(&self) -> Option<String> {
        // Older manifests separate alternatives by a slash, which is not valid in SPDX expressions.
        self.facts.get("license").and_then(Value::as_str).map(|licence| {
            let alternatives: Vec<&str> = licence.split('/').map(str::trim).collect();
            alternatives.join(" OR ")
        })
    }
}

/// Returns cargo's id of the program's package.
pub(crate) fn root(metadata: &Value) -> &str {
    text(metadata.get("resolve").and_then(|resolve| resolve.get("root")))
}

/// Returns every package that the root depends on, by cargo's id. Dependencies of tests and benchmarks are left out.
///
/// # Errors
///
/// If a part that the packages need is missing.
pub(crate) fn packages(metadata: &Value) -> Result<BTreeMap<&str, Package<'_>>, Error> {
    walk(metadata).ok_or_else(|| Error("cargo does not say which packages the program is made of".to_owned()))
}

fn walk(metadata: &Value) -> Option<BTreeMap<&str, Package<'_>>> {
    let facts: BTreeMap<&str, &Value> =
        list(metadata, "packages").iter().map(|package| (text(package.get("id")), package)).collect();
    let resolve = metadata.get("resolve")?;
    let nodes: BTreeMap<&str, &Value> = list(resolve, "nodes").iter().map(|node| (text(node.get("id")), node)).collect();
    let mut found: BTreeMap<&str, Package<'_>> = BTreeMap::new();
    let mut waiting = VecDeque::from([(resolve.get("root")?.as_str()?, true)]);
    while let Some((id, linked)) = waiting.pop_front() {
        let package = facts.get(id).copied()?;
        let linked = linked && !is_macro(package);
        let known = found.get(id).map(|package| package.linked);
        if known == Some(true) || known == Some(linked) {
            continue;
        }
        let mut depends_on = BTreeSet::new();
        for dependency in list(nodes.get(id)?, "deps") {
            let target = dependency.get("pkg")?.as_str()?;
            let kinds: Vec<Option<&str>> = list(dependency, "dep_kinds").iter().map(|kind| kind.get("kind")?.as_str()).collect();
            if kinds.contains(&None) || kinds.contains(&Some("build")) {
                depends_on.insert(reference(facts.get(target)?));
                waiting.push_back((target, linked && kinds.contains(&None)));
            }
        }
        found.insert(id, Package { facts: package, depends_on, linked });
    }
    Some(found)
}

/// Whether a package is a procedural macro, which runs inside the compiler.
fn is_macro(package: &Value) -> bool {
    list(package, "targets").iter().any(|target| list(target, "kind").iter().any(|kind| kind == "proc-macro"))
}

/// Returns the parts of `cargo metadata` that bills of materials need, without paths of this machine.
///
/// # Errors
///
/// If `metadata` is incomplete.
pub fn portable(metadata: &Value) -> Result<Value, Error> {
    let found = packages(metadata)?;
    let folder = text(metadata.get("workspace_root"));
    let local = |id: &str| Value::from(id.replace(folder, ""));
    let facts = found.iter().map(|(id, package)| {
        let mut facts = Map::from_iter([("id".to_owned(), local(id))]);
        for key in ["name", "version", "license", "repository", "source"] {
            facts.insert(key.to_owned(), package.facts.get(key).cloned().unwrap_or(Value::Null));
        }
        let kinds = list(package.facts, "targets").iter().map(|target| json!({ "kind": target.get("kind") }));
        facts.insert("targets".to_owned(), kinds.collect());
        Value::Object(facts)
    });
    let resolve = metadata.get("resolve").unwrap_or(&Value::Null);
    let nodes = list(resolve, "nodes").iter().filter(|node| found.contains_key(text(node.get("id")))).map(|node| {
        let used = list(node, "deps").iter().filter(|dependency| found.contains_key(text(dependency.get("pkg"))));
        let deps: Vec<Value> = used
            .map(|dependency| json!({ "pkg": local(text(dependency.get("pkg"))), "dep_kinds": dependency.get("dep_kinds") }))
            .collect();
        json!({ "id": local(text(node.get("id"))), "deps": deps })
    });
    Ok(json!({
        "packages": facts.collect::<Vec<_>>(),
        "resolve": { "root": local(root(metadata)), "nodes": nodes.collect::<Vec<_>>() },
    }))
}

/// Returns the package URL, which is also the reference.
pub(crate) fn reference(facts: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(facts.get("name")), text(facts.get("version")).replace('+', "%2B"))
}

pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_dependencies_are_distinguished_from_linked_packages() {
        let package = |name: &str, kind: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "targets": [{ "kind": [kind] }] });
        let node = |id: &str, deps: &[(&str, Option<&str>)]| {
            let deps: Vec<Value> =
                deps.iter().map(|(pkg, kind)| json!({ "pkg": pkg, "dep_kinds": [{ "kind": kind }] })).collect();
            json!({ "id": id, "deps": deps })
        };
        let metadata = json!({
            "packages": [package("root", "bin"), package("lib", "lib"), package("derive", "proc-macro"), package("syn", "lib"),
                         package("cc", "lib"), package("test", "lib")],
            "resolve": { "root": "root", "nodes": [
                node("root", &[("lib", None)]),
                node("lib", &[("derive", None), ("cc", Some("build")), ("test", Some("dev"))]),
                node("derive", &[("syn", None)]), node("syn", &[]), node("cc", &[]), node("test", &[]),
            ] },
        });
        let found = packages(&metadata).expect("it is sound");
        let linked: Vec<(&str, bool)> = found.iter().map(|(id, package)| (*id, package.linked)).collect();
        assert_eq!(linked, [("cc", false), ("derive", false), ("lib", true), ("root", true), ("syn", false)]);
        assert_eq!(found.get("lib").and_then(Package::licence).as_deref(), Some("MIT OR Apache-2.0"));
    }
}
