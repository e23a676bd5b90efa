//! `--sbom`: writes the software bill of materials of a deployment as a CycloneDX 1.6 document.
//!
//! Packages come from cargo's own resolution of the generated crate, upstreams from the frozen catalog. The document contains no
//! time and no random number, so that equal deployments give equal bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ptc_catalog::Transport;
use ptc_compiler::lock;
use ptc_secrets::heuristics;
use serde_json::{Map, Value, json};

use crate::Failure;
use ptc_compiler::leak::StaticDeployment;

/// The reference of the deployment itself.
const DEPLOYMENT: &str = "deployment";

/// Cargo's facts about a package that is linked, or that runs while others are built.
pub(crate) struct Package<'a> {
    pub(crate) facts: &'a Value,
    /// References of its dependencies.
    depends_on: BTreeSet<String>,
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

/// Returns the document. `metadata` is the output of `cargo metadata` for the generated crate, `cargo_lock` its lock file.
pub(crate) fn document(deployment: &StaticDeployment, metadata: &Value, cargo_lock: &str) -> Result<String, Failure> {
    let packages = packages(metadata).ok_or_else(|| Failure::new("cargo does not say what the deployment is made of"))?;
    let root = root(metadata);
    let checksums = checksums(cargo_lock);
    let StaticDeployment { model: deployment, tables, .. } = deployment;
    let catalog = tables.catalog;
    let services: Vec<Value> = catalog.upstreams.iter().map(service).collect();
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (id, package) in &packages {
        let mut depends_on: BTreeSet<String> = package.depends_on.clone();
        let reference = if *id == root {
            depends_on.extend(catalog.upstreams.iter().map(|upstream| upstream_ref(upstream.name)));
            DEPLOYMENT.to_owned()
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
            "tools": { "components": [{ "type": "application", "name": "ptc-compile", "version": ptc_compiler::VERSION }] },
            "component": {
                "type": "application",
                "bom-ref": DEPLOYMENT,
                "name": deployment.name,
                "properties": [
                    property("ptc:catalog-digest", &deployment.catalog_digest),
                    property("ptc:compiler", &deployment.compiler),
                    property("ptc:config-digest", &deployment.config_digest),
                ],
            },
        },
        "components": components,
        "services": services,
        "dependencies": dependencies,
    });
    // Every document needs a serial number; this one is derived from the content.
    let number = serial(&document.to_string());
    if let Some(members) = document.as_object_mut() {
        members.insert("serialNumber".to_owned(), number.into());
    }
    Ok(format!("{document:#}\n"))
}

/// Returns cargo's id of the generated crate.
pub(crate) fn root(metadata: &Value) -> &str {
    text(metadata.get("resolve").and_then(|resolve| resolve.get("root")))
}

/// Returns every package that the root depends on, by cargo's id. Dependencies of tests and benchmarks are left out.
pub(crate) fn packages(metadata: &Value) -> Option<BTreeMap<&str, Package<'_>>> {
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

/// Describes an upstream as a service: a third party across a trust boundary.
fn service(upstream: &ptc_catalog::Upstream) -> Value {
    let mut properties =
        vec![property("ptc:tools", &upstream.tools.len().to_string()), property("ptc:transport", upstream.transport.name())];
    let endpoint = match &upstream.transport {
        Transport::McpStdio(stdio) => {
            properties.push(property("ptc:command", stdio.command));
            None
        }
        Transport::McpHttp(http) => Some(http.url),
        Transport::OpenApi(api) => Some(api.base_url),
    };
    let (auth, proxy) = (upstream.transport.auth(), upstream.transport.proxy());
    let bindings = auth.iter().map(|auth| *auth.binding()).chain(proxy.and_then(|proxy| proxy.auth));
    properties.extend(bindings.map(|binding| property("ptc:credential", binding)));
    properties.extend(proxy.map(|proxy| property("ptc:proxy", heuristics::without_query(proxy.url))));
    properties.sort_by_key(|property| (text(property.get("name")).to_owned(), text(property.get("value")).to_owned()));
    let mut out = json!({
        "bom-ref": upstream_ref(upstream.name),
        "name": upstream.name,
        "x-trust-boundary": true,
        "properties": properties,
    });
    if let Some(members) = out.as_object_mut() {
        if !upstream.description.is_empty() {
            members.insert("description".to_owned(), upstream.description.into());
        }
        if let Some(url) = endpoint {
            members.insert("endpoints".to_owned(), json!([heuristics::without_query(url)]));
            members.insert("authenticated".to_owned(), (!auth.is_empty()).into());
        }
    }
    out
}

fn upstream_ref(name: &str) -> String {
    format!("upstream/{name}")
}

/// Returns the package URL, which is also the reference.
fn reference(facts: &Value) -> String {
    format!("pkg:cargo/{}@{}", text(facts.get("name")), text(facts.get("version")).replace('+', "%2B"))
}

fn property(name: &str, value: &str) -> Value {
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
    let digest = lock::sha256(content.as_bytes());
    let hex = digest.trim_start_matches("sha256:");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
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
        let lib = component(found.get("lib").expect("lib"), &BTreeMap::from([(("lib", "1.0.0"), "00ff")]));
        assert_eq!(lib["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!((&lib["purl"], &lib["hashes"][0]["content"]), (&"pkg:cargo/lib@1.0.0".into(), &"00ff".into()));
    }

    #[test]
    fn serial_numbers_have_the_form_of_a_uuid() {
        let number = serial("x");
        assert_eq!(number.len(), "urn:uuid:".len() + 36);
        assert_eq!((serial("x") == number, serial("y") == number), (true, false));
    }
}
