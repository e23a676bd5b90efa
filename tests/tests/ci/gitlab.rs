//! Runs the jobs of the include as a runner of GitLab does.

use std::collections::BTreeMap;

use ptc_tests::process::{Finished, run};
use serde_json::Value;

use super::checkout::{Checkout, HOSTILE};
use super::{file, findings, pipelines_of_the_guide, yaml};

const INCLUDE: &str = ".gitlab/ptc-compile.yml";

/// Returns the jobs of the include. GitLab puts the inputs into the text before it parses the text.
fn included(with: &[(&str, &str)]) -> BTreeMap<String, Value> {
    let text = file(INCLUDE);
    let (header, body) = text.split_once("\n---\n").expect("a header and jobs");
    let inputs = yaml(header)["spec"]["inputs"].as_object().expect("inputs").clone();
    for (name, _) in with {
        assert!(inputs.contains_key(*name), "the include has no input `{name}`");
    }
    let mut body = body.to_owned();
    for (name, input) in inputs {
        let given = with.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
        let value = given.or(input["default"].as_str()).unwrap_or_else(|| panic!("the include needs the input `{name}`"));
        if let Some(options) = input["options"].as_array() {
            assert!(options.iter().any(|option| option == value), "{name}: {value}");
        }
        body = body.replace(&format!("$[[ inputs.{name} ]]"), value);
    }
    assert!(!body.contains("$[["), "an input is not declared: {body}");
    yaml(&body).as_object().expect("jobs by name").clone().into_iter().collect()
}

/// The results of the two scripts of a job.
struct Done {
    script: Finished,
    after: Finished,
    /// The artifacts that the job keeps.
    artifacts: Vec<String>,
}

fn job(checkout: &Checkout, name: &str, job: &Value) -> Done {
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    variables.insert("CI_PROJECT_DIR".into(), checkout.path().display().to_string());
    variables.insert("CI_JOB_NAME_SLUG".into(), name.to_owned());
    let expanded = |text: &str, variables: &BTreeMap<String, String>| {
        variables.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value))
    };
    for (name, value) in job["variables"].as_object().into_iter().flatten() {
        let value = if let Some(text) = value.as_str() {
            expanded(text, &variables)
        } else {
            assert_eq!(value["expand"], false, "{name}");
            value["value"].as_str().expect("a value").to_owned()
        };
        variables.insert(name.clone(), value);
    }
    let scripts = ["script", "after_script"].map(|which| {
        let lines = job[which].as_array().into_iter().flatten().map(|line| line.as_str().expect("a command"));
        let script: String = lines.flat_map(|line| [line, "\n"]).collect();
        // An image may have no bash.
        run(checkout.command("sh").args(["-ec", &script]).envs(&variables))
    });
    let artifacts = job["artifacts"]["paths"].as_array().expect("each job keeps something");
    let artifacts = artifacts.iter().map(|path| expanded(path.as_str().expect("a path"), &variables)).collect();
    let [script, after] = scripts;
    Done { script, after, artifacts }
}

/// Runs a job of the include. Returns the exit code, everything printed, and the artifacts.
fn ran(checkout: &Checkout, which: &str, with: &[(&str, &str)]) -> (Option<i32>, String, Vec<String>) {
    let mut inputs = vec![("image", "registry.example/ptc-compile:1")];
    inputs.extend(with);
    let jobs = included(&inputs);
    let (name, body) = jobs.iter().find(|(name, _)| name.ends_with(which)).expect("a job");
    let done = job(checkout, name, body);
    (done.script.code, format!("{}{}{}", done.script.stdout, done.script.stderr, done.after.stderr), done.artifacts)
}

#[test]
fn scripts_of_the_include_have_no_inputs() {
    let text = file(INCLUDE);
    let (_, body) = text.split_once("\n---\n").expect("a header and jobs");
    for (name, job) in yaml(body).as_object().expect("jobs") {
        for script in [&job["script"], &job["after_script"]] {
            assert!(!script.to_string().contains("$[["), "{name}: {script}");
        }
    }
}

#[test]
#[ignore = "slow: builds a binary"]
fn jobs_of_the_include_pass_with_a_good_config_of_any_name() {
    let checkout = Checkout::new(HOSTILE);
    for which in ["check", "build", "drift"] {
        let (code, printed, artifacts) = ran(&checkout, which, &[("config", HOSTILE)]);
        assert_eq!(code, Some(0), "{which}: {printed}");
        for path in artifacts {
            assert!(checkout.file(&path).exists(), "{which}: {path}");
            if which != "build" {
                assert_eq!(findings(&checkout.file(&path)), [] as [Value; 0]);
            }
        }
    }
    assert!(!checkout.has_run_its_name());
}

#[test]
fn jobs_of_the_include_fail_on_faults_and_on_drift() {
    let checkout = Checkout::new(HOSTILE);
    checkout.drift();
    checkout.starts();
    let (code, printed, artifacts) = ran(&checkout, "drift", &[("config", HOSTILE)]);
    assert_eq!(checkout.starts(), 1, "the upstreams are contacted once");
    assert!(code == Some(1) && printed.contains("read_note"), "{printed}");
    let found = findings(&checkout.file(&artifacts[0]));
    assert!(found.iter().any(|finding| finding["ruleId"] == "PTC0611"), "{found:?}");
    let (code, printed, _) = ran(&checkout, "drift", &[("config", HOSTILE), ("fail-on", "never")]);
    assert_eq!(code, Some(0), "{printed}");

    checkout.break_config();
    let (code, printed, artifacts) = ran(&checkout, "check", &[("config", HOSTILE)]);
    assert!(code == Some(1) && printed.contains("getPat"), "{printed}");
    assert!(!findings(&checkout.file(&artifacts[0])).is_empty());
    assert_eq!(ran(&checkout, "build", &[("config", HOSTILE)]).0, Some(1));
    assert_eq!(ran(&checkout, "check", &[("config", "missing.json")]).0, Some(2));
    assert!(!checkout.has_run_its_name());
}

#[test]
fn names_of_jobs_have_the_prefix_and_only_drift_is_scheduled() {
    let jobs = included(&[("image", "x"), ("job-prefix", "shop"), ("stage", "tools")]);
    let names: Vec<&str> = jobs.keys().map(String::as_str).collect();
    assert_eq!(names, ["shop-build", "shop-check", "shop-drift"]);
    for (name, job) in &jobs {
        let comparison = if name == "shop-drift" { "==" } else { "!=" };
        assert_eq!(job["rules"][0]["if"], format!("$CI_PIPELINE_SOURCE {comparison} \"schedule\""), "{name}");
        assert_eq!((&job["stage"], &job["image"]), (&"tools".into(), &"x".into()));
    }
}

#[test]
fn include_of_the_guide_names_the_file_and_inputs_that_exist() {
    let pipeline = pipelines_of_the_guide().into_iter().find(|pipeline| !pipeline["include"].is_null()).expect("a pipeline");
    let include = &pipeline["include"][0];
    assert!(include["remote"].as_str().expect("an address").ends_with(INCLUDE), "{include}");
    let given = include["inputs"].as_object().expect("inputs").iter();
    let inputs: Vec<(&str, &str)> = given.map(|(name, value)| (name.as_str(), value.as_str().expect("a text"))).collect();
    assert_eq!(included(&inputs).len(), 3);
}
