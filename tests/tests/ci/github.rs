//! Runs the steps of the action as the runner of GitHub does. Steps that use an action of others are noted and not run.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ptc_tests::deployment::workspace;
use ptc_tests::process::run;
use serde_json::Value;
use tempfile::TempDir;

use super::checkout::{Checkout, HOSTILE};
use super::{file, findings, pipelines_of_the_guide, yaml};

/// The folder of the action.
const ACTION: &str = ".github/actions/ptc-compile";

/// The result of a run of the action.
struct Outcome {
    /// The name of the first step that failed, with its exit code.
    failed: Option<(String, i32)>,
    /// What the steps printed.
    log: String,
    /// The summary of the job.
    summary: String,
    outputs: BTreeMap<String, String>,
    /// Steps that use an action: the action and its inputs.
    used: Vec<(String, BTreeMap<String, String>)>,
    /// `RUNNER_TEMP`, which has the files that the outputs name.
    runner_temp: TempDir,
}

impl Outcome {
    #[track_caller]
    fn expect(&self, failed: Option<(&str, i32)>) {
        let found = self.failed.as_ref().map(|(name, code)| (name.as_str(), *code));
        assert_eq!(found, failed, "{}\n{}", self.log, self.summary);
    }

    /// Returns the inputs of a step that uses an action.
    fn used(&self, action: &str) -> Vec<&BTreeMap<String, String>> {
        self.used.iter().filter(|(name, _)| name.split('@').next() == Some(action)).map(|(_, with)| with).collect()
    }

    /// Returns the findings in the uploaded log of that category.
    fn uploaded(&self, category: &str) -> Vec<Value> {
        let uploads = self.used("github/codeql-action/upload-sarif");
        let of_category = uploads.iter().find(|with| with["category"] == category);
        let with = of_category.unwrap_or_else(|| panic!("no upload of {category}: {uploads:?}\n{}", self.log));
        findings(Path::new(&with["sarif_file"]))
    }
}

/// The values that expressions can name.
struct Contexts(BTreeMap<String, String>);

impl Contexts {
    fn get(&self, path: &str) -> String {
        let is_known = self.0.contains_key(path) || path.starts_with("steps.");
        assert!(is_known, "an expression names `{path}`, which does not exist");
        self.0.get(path).cloned().unwrap_or_default()
    }

    /// Replaces the expressions in a text.
    fn fill(&self, text: &str) -> String {
        let mut parts = text.split("${{");
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (path, rest) = part.split_once("}}").expect("an expression ends");
            filled.extend([&self.get(path.trim()), rest]);
        }
        filled
    }

    /// Whether a step runs. The action needs only comparisons with a text that are joined by `&&`.
    fn permits(&self, condition: &str, has_failed: bool) -> bool {
        let condition = condition.trim().trim_start_matches("${{").trim_end_matches("}}");
        let (mut holds, mut runs_after_failure) = (true, false);
        for term in condition.split("&&").map(str::trim).filter(|term| !term.is_empty()) {
            if term == "!cancelled()" {
                runs_after_failure = true;
                continue;
            }
            let (path, equal, text) = match (term.split_once(" == "), term.split_once(" != ")) {
                (Some((path, text)), None) => (path, true, text),
                (None, Some((path, text))) => (path, false, text),
                _ => panic!("`{term}` is not a comparison"),
            };
            holds &= (self.get(path) == text.trim_matches('\'')) == equal;
        }
        holds && (runs_after_failure || !has_failed)
    }
}

/// Returns the texts of a map of YAML, whose values may contain expressions.
fn texts(map: &Value, contexts: &Contexts) -> BTreeMap<String, String> {
    let members = map.as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), |text| contexts.fill(text));
    members.map(|(name, value)| (name.clone(), text(value))).collect()
}

/// Runs the action in a checkout. `bin` is a folder with further programs.
fn act(checkout: &Checkout, with: &[(&str, &str)], bin: Option<&Path>) -> Outcome {
    let action = yaml(&file(&format!("{ACTION}/action.yml")));
    let inputs = action["inputs"].as_object().expect("inputs");
    for (name, _) in with {
        assert!(inputs.contains_key(*name), "the action has no input `{name}`");
    }
    let value = |name: &str| with.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
    let default = |input: &Value| input["default"].as_str().expect("each input has a default").to_owned();
    let inputs =
        inputs.iter().map(|(name, input)| (format!("inputs.{name}"), value(name).map_or_else(|| default(input), str::to_owned)));
    let mut contexts = Contexts(inputs.collect());

    let temporary = tempfile::tempdir().expect("a folder");
    let runner_file = |name: &str| {
        let path = temporary.path().join(name);
        std::fs::write(&path, "").expect("it can be written");
        path
    };
    let [summary, added_path] = ["summary", "path"].map(runner_file);
    let mut outcome = Outcome {
        failed: None,
        log: String::new(),
        summary: String::new(),
        outputs: BTreeMap::new(),
        used: Vec::new(),
        runner_temp: tempfile::tempdir().expect("a folder"),
    };
    for step in action["runs"]["steps"].as_array().expect("steps") {
        let name = step["name"].as_str().expect("a step has a name");
        if !contexts.permits(step["if"].as_str().unwrap_or_default(), outcome.failed.is_some()) {
            continue;
        }
        if let Some(action) = step["uses"].as_str() {
            outcome.used.push((action.to_owned(), texts(&step["with"], &contexts)));
            continue;
        }
        let output = runner_file("output");
        let script = runner_file("script.sh");
        std::fs::write(&script, step["run"].as_str().expect("a step runs or uses something")).expect("a script");
        assert_eq!(step["shell"], "bash", "{name}");
        let mut command = checkout.command("bash");
        let path = command.get_envs().find_map(|(name, value)| (name == "PATH").then_some(value?.to_str()?.to_owned()));
        let added = std::fs::read_to_string(&added_path).expect("a file");
        let folders = added.lines().map(str::to_owned).chain(bin.map(|bin| bin.display().to_string())).chain(path);
        command.env("PATH", folders.collect::<Vec<_>>().join(":"));
        command.args(["--noprofile", "--norc", "-e", "-o", "pipefail"]).arg(&script);
        command.env("GITHUB_ACTION_PATH", workspace().join(ACTION)).env("GITHUB_WORKSPACE", checkout.path());
        command.env("GITHUB_OUTPUT", &output).env("GITHUB_PATH", &added_path).env("GITHUB_STEP_SUMMARY", &summary);
        command.env("RUNNER_TEMP", outcome.runner_temp.path()).envs(texts(&step["env"], &contexts));
        let done = run(&mut command);
        outcome.log.extend(["\n# ", name, "\n", &done.stdout, &done.stderr]);
        if done.code != Some(0) && outcome.failed.is_none() {
            outcome.failed = Some((name.to_owned(), done.code.unwrap_or(-1)));
        }
        let output = std::fs::read_to_string(output).expect("outputs of a step");
        for (key, value) in output.lines().map(|line| line.split_once('=').expect("name=value")) {
            let id = step["id"].as_str().expect("a step with outputs has an id");
            contexts.0.insert(format!("steps.{id}.outputs.{key}"), value.to_owned());
        }
    }
    outcome.summary = std::fs::read_to_string(summary).expect("the summary");
    for (name, output) in action["outputs"].as_object().expect("outputs") {
        outcome.outputs.insert(name.clone(), contexts.fill(output["value"].as_str().expect("a value")));
    }
    outcome
}

/// The inputs of a run that uses the built `ptc-compile`.
fn installed<'a>(config: &'a str, what: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![("install", "none"), ("config", config), ("run", what)]
}

#[test]
fn shell_text_of_the_action_has_no_expressions_and_other_actions_are_pinned() {
    let action = yaml(&file(&format!("{ACTION}/action.yml")));
    assert_eq!(action["runs"]["using"], "composite");
    for step in action["runs"]["steps"].as_array().expect("steps") {
        assert!(!step["run"].as_str().unwrap_or_default().contains("${{"), "{step}");
        if let Some(action) = step["uses"].as_str() {
            let (action, version) = action.split_once('@').expect("action@version");
            let is_version = version.strip_prefix('v').is_some_and(|version| version.parse::<u32>().is_ok());
            assert!(action.split('/').count() >= 2 && is_version, "{action}@{version}");
        }
    }
}

#[test]
#[ignore = "slow: builds a binary"]
fn action_checks_builds_and_compares_a_good_config_of_any_name() {
    let checkout = Checkout::new(HOSTILE);
    let output = "out $(touch pasted)/'gate' \"x\"";
    let mut with = installed(HOSTILE, "check build\ndrift");
    with.extend([("output", output), ("build-options", "--max-prompt-bytes\n100000\n\n")]);
    let done = act(&checkout, &with, None);
    done.expect(None);
    assert!(!checkout.has_run_its_name());
    for step in ["check", "drift"] {
        assert_eq!(done.uploaded(&format!("ptc-compile/{step}/{HOSTILE}")), [] as [Value; 0]);
    }
    assert!(
        done.summary.contains("## ptc-compile: check\n\n    ") && done.summary.contains("no faults in 2 upstreams"),
        "{}",
        done.summary
    );
    assert!(done.summary.contains("## ptc-compile: build\n\n    "), "{}", done.summary);
    assert!(done.log.contains(" 0.1.0\n2\n"), "the binary is asked: {}", done.log);
    let binary = std::fs::canonicalize(checkout.file(output)).expect("the binary");
    assert_eq!(done.outputs["binary"], binary.display().to_string());
    assert!(checkout.file(&format!("{output}.cdx.json")).exists() && checkout.file(&format!("{output}.NOTICES")).exists());
    let [restored, saved] = ["restore", "save"].map(|what| done.used(&format!("actions/cache/{what}")));
    assert_eq!(restored, saved, "without a cache it is saved");
    assert_eq!(restored.len(), 1);
    assert!(restored[0]["key"].len() > 40 && restored[0]["path"].ends_with("/ptc-compile/runtime"), "{restored:?}");
}

#[test]
fn action_fails_on_a_faulty_config_and_uploads_its_findings() {
    let checkout = Checkout::new("servers.json");
    checkout.break_config();
    let done = act(&checkout, &installed("servers.json", "check build drift"), None);
    done.expect(Some(("Check", 1)));
    let found = done.uploaded("ptc-compile/check/servers.json");
    assert!(found.iter().any(|finding| finding["level"] == "error" && finding.to_string().contains("getPat")), "{found:?}");
    assert!(done.log.contains("::error file=servers.json,"), "{}", done.log);
    assert!(done.summary.contains("    servers.json:1:") && done.summary.contains("getPat"), "{}", done.summary);
    assert!(!done.log.contains("# Build") && done.outputs["binary"].is_empty() && done.outputs["drift-sarif"].is_empty());

    let missing = act(&checkout, &installed("missing.json", "check"), None);
    missing.expect(Some(("Check", 2)));
    assert!(missing.used.is_empty() && missing.log.contains("missing.json"), "{}", missing.log);

    let mut silent = installed("servers.json", "check");
    silent.push(("upload-sarif", "false"));
    let silent = act(&checkout, &silent, None);
    silent.expect(Some(("Check", 1)));
    assert!(silent.used.is_empty() && Path::new(&silent.outputs["check-sarif"]).exists());
}

#[test]
fn action_reports_drift_in_the_log_the_sarif_file_and_the_summary() {
    let checkout = Checkout::new(HOSTILE);
    checkout.drift();
    checkout.starts();
    let done = act(&checkout, &installed(HOSTILE, "drift"), None);
    done.expect(Some(("Compare the upstreams with the lock file", 1)));
    assert_eq!(checkout.starts(), 1, "the upstreams are contacted once");
    let found = done.uploaded(&format!("ptc-compile/drift/{HOSTILE}"));
    let removed = found.iter().find(|finding| finding["level"] == "error").expect("an error");
    assert!(removed["ruleId"] == "PTC0611" && removed.to_string().contains("read_note"), "{removed}");
    assert!(done.log.contains("::error file="), "{}", done.log);
    assert!(done.summary.contains("read_note") && done.summary.contains("show_note"), "{}", done.summary);

    for (fail_on, code) in [("never", None), ("error", Some(("Compare the upstreams with the lock file", 1)))] {
        let mut with = installed(HOSTILE, "drift");
        with.push(("fail-on", fail_on));
        act(&checkout, &with, None).expect(code);
    }
    // A server that does not answer fails the step also if changes do not.
    std::fs::write(checkout.file("notes.sh"), "exit 1\n").expect("a script");
    let mut with = installed(HOSTILE, "drift");
    with.push(("fail-on", "never"));
    act(&checkout, &with, None).expect(Some(("Compare the upstreams with the lock file", 1)));
    assert!(!checkout.has_run_its_name());
}

#[test]
fn action_refuses_unknown_values_of_its_inputs() {
    let checkout = Checkout::new("upstreams.json");
    for (input, value) in [
        ("run", "check; touch pasted"),
        ("run", "*"),
        ("run", ""),
        ("install", "$(touch pasted)"),
        ("fail-on", "warnings"),
        ("output", "gate\nbinary=/bin/sh"),
        ("config", ""),
        ("upload-sarif", "yes"),
    ] {
        let mut with = installed("upstreams.json", "check");
        with.retain(|(name, _)| *name != input);
        with.push((input, value));
        let done = act(&checkout, &with, None);
        done.expect(Some(("Read the inputs", 2)));
        assert!(done.log.contains(&format!("\n::error::input {input}: expected ")), "{}", done.log);
    }
    assert!(!checkout.has_run_its_name());
}

/// A `cargo` replaces the real one, because the installation takes minutes. It notes its arguments and installs a program.
#[test]
fn action_installs_its_own_revision_and_puts_it_on_path() {
    let checkout = Checkout::new("upstreams.json");
    let bin = tempfile::tempdir().expect("a folder");
    let cargo = bin.path().join("cargo");
    let script = "#!/bin/sh\necho \"cargo $*\"\nmkdir -p \"$6/bin\"\nprintf '#!/bin/sh\\necho ours\\n' > \"$6/bin/ptc-compile\"\nchmod +x \"$6/bin/ptc-compile\"\n";
    std::fs::write(&cargo, script).expect("a program");
    std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).expect("it can be made executable");
    let done = act(&checkout, &[], Some(bin.path()));
    done.expect(None);
    let program = done.runner_temp.path().join("ptc-compile/program");
    let command =
        format!("cargo install --locked --path {} --root {}\n", workspace().join("compiler").display(), program.display());
    assert!(done.log.contains(&command), "{}", done.log);
    assert!(done.log.contains("# Check\nours\n") && done.summary.contains("    ours\n"), "{}", done.log);
    let [restored, saved] = ["restore", "save"].map(|what| done.used(&format!("actions/cache/{what}")));
    assert_eq!(restored, saved);
    assert_eq!(restored[0]["path"], program.display().to_string());
    assert!(restored[0]["key"].len() > 40, "{restored:?}");
}

#[test]
#[ignore = "slow: builds a binary"]
fn workflow_of_the_guide_runs_and_its_drift_job_fails_on_drift() {
    let workflow = pipelines_of_the_guide().into_iter().find(|pipeline| !pipeline["jobs"].is_null()).expect("a workflow");
    let checkout = Checkout::new("upstreams.json");
    let mut runs = 0;
    for (job, steps) in workflow["jobs"].as_object().expect("jobs").iter().map(|(name, job)| (name, &job["steps"])) {
        for step in steps.as_array().expect("steps") {
            let (action, version) = step["uses"].as_str().and_then(|action| action.split_once('@')).expect("action@version");
            assert!(action.split('/').count() >= 2 && version.starts_with('v'), "{action}@{version}");
            if !action.ends_with(ACTION) {
                continue;
            }
            runs += 1;
            let mut with: Vec<(&str, &str)> = vec![("install", "none")];
            with.extend(
                step["with"]
                    .as_object()
                    .expect("inputs")
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str().expect("a text"))),
            );
            let done = act(&checkout, &with, None);
            done.expect(None);
            if job == "build" {
                let kept = steps.as_array().and_then(|steps| steps.last()).and_then(|step| step["with"]["path"].as_str());
                for path in kept.expect("the workflow keeps the binary").lines() {
                    assert!(checkout.file(path).exists(), "{path}");
                }
            } else {
                checkout.drift();
                assert_eq!(act(&checkout, &with, None).failed.map(|(_, code)| code), Some(1));
            }
        }
    }
    assert_eq!(runs, 2);
}
