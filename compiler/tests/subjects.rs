//! Tests that findings of every fixture say what they are about: the upstream, the tool and the operation, as fields of JSON and
//! SARIF and in their messages, and that they keep to the schema that `ptc-compile schema findings` prints.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use ptc_compiler::diag::Diagnostics;
use ptc_compiler::source::Sources;
use ptc_compiler::tree;
use serde_json::Value;

fn folders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/check");
    let mut folders: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn stdout(folder: &Path, args: &[&str]) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_ptc-compile"));
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("PATH", program.parent().unwrap());
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Returns the output for a fixture in a format.
fn output(folder: &Path, format: &str) -> String {
    let options = fs::read_to_string(folder.join("options")).unwrap_or_default();
    let command = fs::read_to_string(folder.join("command")).unwrap_or_else(|_| "--check upstreams.json".to_owned());
    let args: Vec<&str> = command.split_whitespace().chain(["--format", format]).chain(options.split_whitespace()).collect();
    stdout(folder, &args)
}

fn findings(folder: &Path) -> Vec<Value> {
    output(folder, "json").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the names and byte ranges of the entries of `upstreams`, or none if two have the same name.
fn entries(folder: &Path) -> Vec<(String, Range<u64>)> {
    let mut sources = Sources::default();
    let text = fs::read(folder.join("upstreams.json")).unwrap();
    let file = sources.add("upstreams.json", String::from_utf8_lossy(&text).into_owned());
    let Some(root) = tree::parse(&sources, file, &mut Diagnostics::default()) else { return Vec::new() };
    let members = root.get("upstreams").map(|upstreams| upstreams.members().to_vec()).unwrap_or_default();
    let range = |member: &tree::Member| u64::from(member.key_range.start)..u64::from(member.value.range.end);
    members.iter().map(|member| (member.key.to_string(), range(member))).collect()
}

#[test]
fn findings_match_the_printed_schema() {
    let schema: Value = serde_json::from_str(&stdout(Path::new("."), &["schema", "findings"])).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut seen = [("upstream", 0), ("tool", 0), ("operation", 0), ("change", 0)];
    for finding in folders().iter().flat_map(|folder| findings(folder)) {
        let faults: Vec<String> = validator.iter_errors(&finding).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{finding}: {faults:?}");
        for (name, count) in &mut seen {
            *count += usize::from(finding.get(*name).is_some());
        }
    }
    assert!(seen.iter().all(|(_, count)| *count > 5), "{seen:?}");
    assert!(!validator.is_valid(&serde_json::json!({ "code": "PTC0101", "tool": 1 })));
}

#[test]
fn finding_in_an_entry_names_its_upstream() {
    let mut count = 0;
    for folder in folders() {
        let entries = entries(&folder);
        for finding in findings(&folder).iter().filter(|finding| finding["at"]["path"] == "upstreams.json") {
            let at = finding["at"]["start_byte"].as_u64().unwrap();
            let Some((name, _)) = entries.iter().find(|(_, range)| range.contains(&at)) else { continue };
            // Without a readable config there are no entries, and two entries of one name are one upstream.
            if finding["code"].as_str().unwrap() < "PTC0200" {
                continue;
            }
            assert_eq!(finding["upstream"].as_str(), Some(name.as_str()), "{}: {finding}", folder.display());
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
}

/// Codes of faults of a single operation.
const OF_AN_OPERATION: [&str; 13] = [
    "PTC0502", "PTC0512", "PTC0513", "PTC0514", "PTC0515", "PTC0516", "PTC0517", "PTC0518", "PTC0519", "PTC0520", "PTC0523",
    "PTC0525", "PTC0529",
];

/// Codes of changes of a tool.
const OF_A_TOOL: [&str; 11] =
    ["PTC0611", "PTC0612", "PTC0613", "PTC0614", "PTC0615", "PTC0617", "PTC0618", "PTC0619", "PTC0620", "PTC0632", "PTC0633"];

#[test]
fn messages_name_their_tool_or_operation() {
    for folder in folders() {
        for finding in findings(&folder) {
            let (code, message) = (finding["code"].as_str().unwrap(), finding["message"].as_str().unwrap());
            let (tool, operation) = (finding["tool"].as_str(), finding["operation"].as_str());
            let is_of_path = message.starts_with("what `");
            if OF_AN_OPERATION.contains(&code) && !is_of_path {
                assert!(operation.is_some(), "{}: {finding}", folder.display());
            }
            if OF_A_TOOL.contains(&code) {
                assert!(tool.is_some() && finding["change"].is_string(), "{}: {finding}", folder.display());
            }
            if let Some(name) = tool.or(operation) {
                let name: String = name.chars().take_while(|c| !c.is_control()).collect();
                assert!(message.contains(&name), "{}: {finding}", folder.display());
            }
        }
    }
}

#[test]
fn sarif_has_the_same_fields_as_json() {
    for folder in folders() {
        let log: Value = serde_json::from_str(&output(&folder, "sarif")).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap();
        let findings = findings(&folder);
        assert_eq!(results.len(), findings.len(), "{}", folder.display());
        for (result, finding) in results.iter().zip(&findings) {
            for name in ["upstream", "tool", "operation", "severity", "change"] {
                assert_eq!(result["properties"].get(name), finding.get(name), "{}: {result}", folder.display());
            }
            if let (Some(tool), Some(upstream), true) =
                (finding["tool"].as_str(), finding["upstream"].as_str(), finding["at"].is_object())
            {
                let place = &result["locations"][0]["logicalLocations"][0];
                assert_eq!(place["fullyQualifiedName"], format!("{upstream}/{tool}"), "{result}");
            }
        }
    }
}
