//! Tests the files that other repositories use in their pipelines: the action for GitHub, the include for GitLab, and the hooks of
//! pre-commit. Their steps run as shell commands, in a folder and an environment like those of the service.

#![expect(clippy::indexing_slicing, reason = "a test stops where an answer lacks what it looks at")]

mod checkout;
mod github;
mod gitlab;
mod hooks;

use saphyr::LoadableYamlNode as _;
use serde_json::Value;

use ptc_tests::deployment::workspace;

/// Returns the text of a file of the repository.
fn file(path: &str) -> String {
    let path = workspace().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Parses a YAML document.
fn yaml(text: &str) -> Value {
    let documents = saphyr::Yaml::load_from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    json(documents.first().expect("a document"))
}

fn json(node: &saphyr::Yaml<'_>) -> Value {
    if let Some(map) = node.as_mapping() {
        let key = |key: &saphyr::Yaml<'_>| key.as_str().expect("a key is a text").to_owned();
        return Value::Object(map.iter().map(|(name, value)| (key(name), json(value))).collect());
    }
    if let Some(items) = node.as_vec() {
        return items.iter().map(json).collect();
    }
    let number = || node.as_integer().map(Value::from);
    node.as_str().map(Value::from).or_else(|| node.as_bool().map(Value::from)).or_else(number).unwrap_or_default()
}

/// Returns the blocks of YAML on the guide's page.
fn pipelines_of_the_guide() -> Vec<Value> {
    let page = file("compiler/guide/ci.md");
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
    blocks.map(yaml).collect()
}

/// Returns the findings in a SARIF log.
fn findings(sarif: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(sarif).unwrap_or_else(|error| panic!("{}: {error}", sarif.display()));
    let log: Value = serde_json::from_str(&text).expect("a SARIF log is JSON");
    assert_eq!(log["version"], "2.1.0");
    log["runs"][0]["results"].as_array().expect("results").clone()
}
