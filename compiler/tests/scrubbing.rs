//! Tests cassettes in which `--scrub` and `--scrub-pattern` have replaced values, by counters and with the key of `--scrub-key-env`.

#![expect(clippy::unwrap_used, reason = "a test stops where anything is wrong")]

use std::fs;

use crate::cassette::{Finished, Folder, server};
use crate::recording::{serve, serve_with};

/// Answers with texts and numbers that identify people.
const CALLS: &str = r#"
    *'"name":"people"'*) result='{"content":[],"structuredContent":{"rows":['$(person 41 ann)','$(person 42 bob)']}}' ;;
    *'"key":41'*) result='{"content":[{"type":"text","text":"ann <ann@example.com> owes 7"}]}' ;;
    *'"key":42'*) result='{"content":[{"type":"text","text":"bob <bob@example.com> owes 8"}]}' ;;
    *'"to":"ann"'*) result='{"content":[{"type":"text","text":"good morning"}]}' ;;
    *'"to":"bob"'*) result='{"content":[{"type":"text","text":"good evening"}]}' ;;
    *'"name":"guests"'*) result='{"content":[],"structuredContent":{"names":["bob","ann"]}}' ;;
"#;

/// A program whose calls depend on what earlier calls answered.
const PROGRAM: &str = r#"
(let [call (fn [tool args] (tool/value {:server "s" :tool tool :args args}))]
  (mapv (fn [{:keys [id name mail]}] [id name mail (call "note" {:key id}) (call "greet" {:to name})])
        (:rows (call "people" {}))))
"#;

const RULES: [&str; 6] =
    ["--scrub", "s/people:rows[].id", "--scrub", "s/people:rows[].name", "--scrub-pattern", "[a-z]+@[a-z.]+"];

/// Returns a folder with the server of `CALLS`.
fn people() -> Folder {
    let folder = Folder::new();
    let person = r#"person() { printf '{"id":%s,"name":"%s","mail":"%s@example.com"}' "$1" "$2" "$2"; }"#;
    folder.write("server.sh", &server(person, "{}", &["people", "note", "greet", "guests"], CALLS));
    folder.write("people.clj", PROGRAM);
    std::fs::remove_file(folder.0.path().join("upstreams.lock.json")).unwrap();
    folder.run(&["update", "upstreams.json"], true).success();
    folder
}

#[test]
fn scrubbed_cassette_replays_the_program_with_the_replacements() {
    let folder = people();
    let plain = r#"[[41 "ann" "ann@example.com" "ann <ann@example.com> owes 7" "good morning"] [42 "bob" "bob@example.com" "bob <bob@example.com> owes 8" "good evening"]]"#;
    assert_eq!(folder.run(&["repl", "upstreams.json", "people.clj"], true).success(), format!("{plain}\n"));
    let rules = RULES;
    folder.run(&[&["record", "upstreams.json", "people.clj", "-o", "c.json"][..], &rules].concat(), true).success();
    serve(&folder, &[&["--record-dir", "rec"][..], &rules].concat(), &[PROGRAM]);
    std::fs::remove_file(folder.0.path().join("server.sh")).unwrap();

    let scrubbed = r#"[[1 "scrubbed-1" "scrubbed-3" "scrubbed-1 <scrubbed-3> owes 7" "good morning"] [2 "scrubbed-2" "scrubbed-4" "scrubbed-2 <scrubbed-4> owes 8" "good evening"]]"#;
    let replay = ["repl", "--upstreams", "cassette:c.json", "upstreams.json", "people.clj"];
    assert_eq!(folder.run(&replay, false).success(), format!("{scrubbed}\n"));
    let (answers, log) = serve(&folder, &["--upstreams", "cassette:c.json"], &[PROGRAM]);
    let answer: serde_json::Value = serde_json::from_str(answers.first().unwrap()).unwrap();
    let text = answer.pointer("/result/content/0/text").and_then(serde_json::Value::as_str).unwrap();
    assert!(text.contains(scrubbed), "{text}: {log}");
    // A recording of a server has the same content.
    let recorded: Vec<_> = std::fs::read_dir(folder.0.path().join("rec")).unwrap().collect();
    let [Ok(recorded)] = &recorded[..] else { panic!("one recording: {recorded:?}") };
    assert_eq!(std::fs::read_to_string(recorded.path()).unwrap(), folder.read("c.json"));
}

#[test]
fn rule_that_merges_requests_is_an_error_or_a_warning() {
    let folder = Folder::new();
    // `A` is the first replacement and `J` the tenth, so that both `A0` and `J` become `scrubbed-10`.
    let program = r#"(mapv (fn [a] (:n (tool/value {:server "s" :tool "count" :args {:a a}})))
                      ["A0" "B" "C" "D" "E" "F" "G" "H" "I" "J"])"#;
    folder.write("letters.clj", program);
    let record = folder.run(&["record", "upstreams.json", "letters.clj", "-o", "c.json", "--scrub-pattern", "[A-J]"], true);
    assert_eq!(record.code, Some(2), "{record:?}");
    let sentence = "the rule [A-J] makes two requests of s/count equal that got different answers";
    assert!(record.stderr.contains(sentence) && record.stderr.contains(r#"both became {"a":"scrubbed-10"}"#), "{record:?}");
    assert!(!folder.0.path().join("c.json").exists());
    let (_, log) = serve(&folder, &["--record-dir", "rec", "--scrub-pattern", "[A-J]"], &[program]);
    assert!(log.contains("a recording does not replay its program") && log.contains(sentence), "{log}");
}

#[test]
fn places_that_keep_a_scrubbed_text_are_named_without_the_text() {
    let folder = Folder::new();
    folder
        .write("names.clj", r#"(mapv (fn [a] (:value (tool/call {:server "s" :tool "echo" :args {:a a}}))) ["anna" "annabel"])"#);
    let record = folder.run(&["record", "upstreams.json", "names.clj", "-o", "c.json", "--scrub-pattern", r"\banna\b"], true);
    assert!(record.stderr.contains("still have scrubbed texts") && record.stderr.contains("s/echo: requests[0]"), "{record:?}");
    assert!(!record.stderr.contains("annabel"), "{record:?}");
    record.success();
    let record = folder.run(&["record", "upstreams.json", "names.clj", "-o", "d.json", "--scrub-pattern", "anna(bel)?"], true);
    assert!(!record.stderr.contains("warning"), "{record:?}");
    record.success();
}

const KEY: &str = "not-a-secret-key-of-any-recording-01";
const KEYED: [&str; 2] = ["--scrub-key-env", "SCRUB_KEY"];

/// Runs `ptc-compile` with a key in the environment.
fn run_with(folder: &Folder, key: &str, args: &[&str]) -> Finished {
    folder.run_under(&["env", &format!("SCRUB_KEY={key}"), env!("CARGO_BIN_EXE_ptc-compile")], args, true)
}

/// Returns the names and numbers of the people in a cassette, sorted.
fn people_of(cassette: &str) -> Vec<String> {
    let cassette: serde_json::Value = serde_json::from_str(cassette).unwrap();
    let rows = cassette.pointer("/tools/s~1people/requests/0/replies/0/value/rows").unwrap().as_array().unwrap();
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{} {}", row["id"], row["name"])).collect();
    rows.sort();
    rows
}

#[test]
fn replacements_with_a_key_are_the_same_in_all_recordings() {
    let folder = people();
    let rules = [&RULES[..], &KEYED].concat();
    let record = |key: &str, file: &str| {
        let finished = run_with(&folder, key, &[&["record", "upstreams.json", "people.clj", "-o", file], &rules[..]].concat());
        assert!(finished.stderr.contains("scrubbed 6 values") && !finished.stderr.contains(key), "{finished:?}");
        finished.success();
        folder.read(file)
    };
    let first = record(KEY, "c.json");
    let people = people_of(&first);
    for text in [": 41", ": 42", "\"ann\"", "\"bob\"", "@example.com", "scrubbed-1", KEY] {
        assert!(!first.contains(text), "{text}: {first}");
    }
    // Another order of the records, and the recording of a server, in which each program has a file.
    let script = folder.read("server.sh");
    let turned = script.replace("'$(person 41 ann)','$(person 42 bob)'", "'$(person 42 bob)','$(person 41 ann)'");
    assert_ne!(script, turned);
    folder.write("server.sh", &turned);
    let second = record(KEY, "d.json");
    assert_eq!(people_of(&second), people);
    assert_ne!(first, second);
    let one = r#"(tool/value {:server "s" :tool "people"})"#;
    let (_, log) = serve_with(&folder, &[("SCRUB_KEY", KEY)], &[&["--record-dir", "rec"], &rules[..]].concat(), &[PROGRAM, one]);
    assert!(!log.contains(KEY), "{log}");
    let recorded: Vec<_> = fs::read_dir(folder.0.path().join("rec")).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(recorded.len(), 2, "{log}");
    let texts: Vec<String> = recorded.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(texts.iter().all(|text| people_of(text) == people) && texts.contains(&second), "{texts:?}");
    let other = people_of(&record(&KEY.replace("01", "02"), "e.json"));
    assert!(other.iter().all(|person| !people.contains(person)), "another key makes other replacements");
}

#[test]
fn new_episodes_with_the_same_key_replay_together_with_the_older_part() {
    let folder = people();
    let rules = [&RULES[..], &KEYED].concat();
    run_with(&folder, KEY, &[&["record", "upstreams.json", "people.clj", "-o", "c.json"], &rules[..]].concat()).success();
    let before = folder.read("c.json");
    // The answer of the upstream has the names, and no rule selects them there.
    let guests = r#"(:names (tool/value {:server "s" :tool "guests"}))"#;
    let extend = ["repl", "--upstreams", "cassette:c.json", "--cassette-mode", "new-episodes", "upstreams.json", "-e", guests];
    let extended = run_with(&folder, KEY, &[&extend[..], &rules].concat());
    assert!(!extended.stderr.contains("does not replay"), "{extended:?}");
    assert_eq!(extended.success(), "[\"bob\" \"ann\"]\n");
    let cassette = folder.read("c.json");
    assert!(cassette.contains("s/guests") && !cassette.contains("\"ann\"") && !cassette.contains("\"bob\""), "{cassette}");
    assert!(!before.contains("s/guests"));
    fs::remove_file(folder.0.path().join("server.sh")).unwrap();
    let program = format!(
        r#"(let [guests (set {guests})]
          (mapv (fn [{{:keys [name]}}] [(contains? guests name) (tool/value {{:server "s" :tool "greet" :args {{:to name}}}})])
                (:rows (tool/value {{:server "s" :tool "people" :args {{}}}}))))"#
    );
    let replayed = folder.run(&["repl", "--upstreams", "cassette:c.json", "upstreams.json", "-e", &program], false);
    assert_eq!(replayed.success(), "[[true \"good morning\"] [true \"good evening\"]]\n");
}

#[test]
fn new_request_that_a_key_makes_equal_to_a_recorded_one_is_reported() {
    let folder = Folder::new();
    // The cassette has the replacement, so that `ann` goes to the upstream again, which counts.
    let count = r#"(:n (tool/value {:server "s" :tool "count" :args {:a "ann"}}))"#;
    let extend = ["repl", "--upstreams", "cassette:c.json", "--cassette-mode", "new-episodes", "upstreams.json"];
    let rules = ["--scrub-pattern", "an+", "--scrub-key-env", "SCRUB_KEY"];
    let once = run_with(&folder, KEY, &[&extend[..], &rules, &["-e", count]].concat());
    assert!(!once.stderr.contains("does not replay"), "{once:?}");
    let before = folder.read("c.json");
    let twice = run_with(&folder, KEY, &[&extend[..], &rules, &["-e", count, "-e", count]].concat());
    let sentence = "a rule makes a request of s/count equal to one of the file that got different answers";
    assert!(twice.stderr.contains(sentence), "{twice:?}");
    assert_eq!((twice.success(), folder.read("c.json")), ("1\n2\n".to_owned(), before), "the recorded answer stays");
}

#[test]
fn key_that_cannot_be_used_is_an_error_without_the_key() {
    let folder = Folder::new();
    let record = ["record", "upstreams.json", "program.clj", "-o", "c.json"];
    let extend = ["repl", "--upstreams", "cassette:c.json", "--cassette-mode", "new-episodes", "upstreams.json", "-e", "1"];
    let inherits =
        |rule: &str| folder.read("upstreams.json").replace("\"transport\"", &format!("\"inherit_env\":{rule},\"transport\""));
    let [listed, all] = [r#"["SCRUB_KEY"]"#, "true"].map(inherits);
    folder.write("listed.json", &listed);
    folder.write("all.json", &all);
    fs::copy(folder.0.path().join("upstreams.lock.json"), folder.0.path().join("listed.lock.json")).unwrap();
    fs::copy(folder.0.path().join("upstreams.lock.json"), folder.0.path().join("all.lock.json")).unwrap();
    let pattern = ["--scrub-pattern", "an+"];
    for (config, key, variable, rules, expected) in [
        ("upstreams.json", "", "SCRUB_KEY", &pattern[..], "is not set, or empty"),
        ("upstreams.json", KEY, "NO_SUCH_VARIABLE", &pattern, "is not set, or empty"),
        // The key in the place of the variable's name.
        ("upstreams.json", "x", KEY, &pattern, "is not set, or empty"),
        ("upstreams.json", &KEY[..31], "SCRUB_KEY", &pattern, "expected a key of at least 32 printable ASCII characters"),
        ("upstreams.json", "a key with spaces in it, but a long one", "SCRUB_KEY", &pattern, "without spaces"),
        ("listed.json", KEY, "SCRUB_KEY", &pattern, "the process of the upstream `s` gets this variable"),
        ("all.json", KEY, "SCRUB_KEY", &pattern, "the process of the upstream `s` gets this variable"),
        ("upstreams.json", KEY, "SCRUB_KEY", &[], "give --scrub or --scrub-pattern"),
    ] {
        for command in [&record[..], &extend] {
            let command: Vec<&str> = command.iter().map(|arg| if *arg == "upstreams.json" { config } else { arg }).collect();
            let refused = run_with(&folder, key, &[&command[..], rules, &["--scrub-key-env", variable]].concat());
            assert_eq!(refused.code, Some(2), "{refused:?}");
            assert!(refused.stderr.contains("--scrub-key-env: ") && refused.stderr.contains(expected), "{expected}: {refused:?}");
            assert!(!refused.stderr.contains(&KEY[..31]), "{refused:?}");
        }
    }
    assert!(!folder.0.path().join("c.json").exists());
    // No process inherits a variable of this prefix.
    let variable = format!("PTC_RUNNER_SCRUB_KEY={KEY}");
    let command = [
        "record",
        "all.json",
        "program.clj",
        "-o",
        "c.json",
        "--scrub-pattern",
        "an+",
        "--scrub-key-env",
        "PTC_RUNNER_SCRUB_KEY",
    ];
    folder.run_under(&["env", &variable, env!("CARGO_BIN_EXE_ptc-compile")], &command, true).success();
    assert!(folder.read("c.json").contains("to scrubbed-0"));
}
