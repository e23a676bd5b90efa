//! Tests the software bill of materials with CycloneDX's own library and schema, and the notices of licences.

use std::path::Path;

use ptc_tests::deployment::{build, workspace};
use ptc_tests::peers::node_script;
use ptc_tests::process::run;
use serde_json::Value;

#[test]
#[ignore = "needs what .ci/peers installs"]
fn sbom_matches_the_official_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = workspace().join("fixtures/quickstart/upstreams.json");
    let notices = folder.path().join("NOTICES");
    let written = |name: &str| {
        let path = folder.path().join(name);
        let text = |path: &Path| path.to_str().expect("a path of plain text").to_owned();
        let (sbom, notices) = (text(&path), text(&notices));
        let options = ["--locked", "--offline", "--sbom", &sbom, "--notices", &notices];
        build(&config, &folder.path().join("pinned"), &options);
        path
    };
    let path = written("sbom.json");
    assert_eq!(run(node_script("sbom.mjs").arg(&path)).success().trim(), "valid");
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert_eq!(std::fs::read_to_string(written("again.json")).expect("it was written"), text, "the same bytes each time");

    let document: Value = serde_json::from_str(&text).expect("JSON");
    let list = |key: &str| document[key].as_array().cloned().unwrap_or_default();
    let component = |name: &str| list("components").into_iter().find(|component| component["name"] == name);
    let tokio = component("tokio").expect("the runtime depends on it");
    assert_eq!((&tokio["scope"], &tokio["hashes"][0]["alg"]), (&"required".into(), &"SHA-256".into()));
    assert_eq!(component("serde_derive").expect("a macro")["scope"], "excluded");
    assert!(component("ptc-runtime").is_some() && component("ptc-compiler").is_none() && component("criterion").is_none());
    let services: Vec<Value> = list("services");
    let names: Vec<&str> = services.iter().filter_map(|service| service["name"].as_str()).collect();
    assert_eq!(names, ["notes", "petstore", "visits"]);

    // Each linked package is listed with its licence, and has a text.
    let notices = std::fs::read_to_string(&notices).expect("it was written");
    for component in list("components").iter().filter(|component| component["scope"] == "required") {
        let part = |key: &str| component[key].as_str().unwrap_or_default();
        let name = format!("{} {}", part("name"), part("version"));
        let licence = component["licenses"][0]["expression"].as_str().unwrap_or_default();
        assert!(notices.contains(&format!("\n{name}: {licence}")), "{name}: {licence}");
        assert!(notices.matches(&name).count() > 1, "{name} has a licence text");
    }
    assert!(!notices.contains("criterion") && !notices.contains(env!("HOME")), "no other packages, and no paths");
}
