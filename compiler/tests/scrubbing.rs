//! Tests cassettes in which `--scrub` and `--scrub-pattern` have replaced values.

use crate::cassette::{Folder, server};
use crate::recording::serve;

/// Answers with texts and numbers that identify people.
const CALLS: &str = r#"
    *'"name":"people"'*) result='{"content":[],"structuredContent":{"rows":['$(person 41 ann)','$(person 42 bob)']}}' ;;
    *'"key":41'*) result='{"content":[{"type":"text","text":"ann <ann@example.com> owes 7"}]}' ;;
    *'"key":42'*) result='{"content":[{"type":"text","text":"bob <bob@example.com> owes 8"}]}' ;;
    *'"to":"ann"'*) result='{"content":[{"type":"text","text":"good morning"}]}' ;;
    *'"to":"bob"'*) result='{"content":[{"type":"text","text":"good evening"}]}' ;;
"#;

/// A program whose calls depend on what earlier calls answered.
const PROGRAM: &str = r#"
(let [call (fn [tool args] (tool/value {:server "s" :tool tool :args args}))]
  (mapv (fn [{:keys [id name mail]}] [id name mail (call "note" {:key id}) (call "greet" {:to name})])
        (:rows (call "people" {}))))
"#;

#[test]
fn scrubbed_cassette_replays_the_program_with_the_replacements() {
    let folder = Folder::new();
    let person = r#"person() { printf '{"id":%s,"name":"%s","mail":"%s@example.com"}' "$1" "$2" "$2"; }"#;
    folder.write("server.sh", &server(person, "{}", &["people", "note", "greet"], CALLS));
    folder.write("people.clj", PROGRAM);
    std::fs::remove_file(folder.0.path().join("upstreams.lock.json")).unwrap();
    folder.run(&["update", "upstreams.json"], true).success();
    let plain = r#"[[41 "ann" "ann@example.com" "ann <ann@example.com> owes 7" "good morning"] [42 "bob" "bob@example.com" "bob <bob@example.com> owes 8" "good evening"]]"#;
    assert_eq!(folder.run(&["repl", "upstreams.json", "people.clj"], true).success(), format!("{plain}\n"));
    let rules = ["--scrub", "s/people:rows[].id", "--scrub", "s/people:rows[].name", "--scrub-pattern", "[a-z]+@[a-z.]+"];
    folder.run(&[&["record", "upstreams.json", "people.clj", "-o", "c.json"][..], &rules].concat(), true).success();
    serve(&folder, &[&["--record-dir", "rec"][..], &rules].concat(), &[PROGRAM]);
    std::fs::remove_file(folder.0.path().join("server.sh")).unwrap();

    let scrubbed = r#"[[1 "scrubbed-1" "scrubbed-3" "ann <scrubbed-3> owes 7" "good morning"] [2 "scrubbed-2" "scrubbed-4" "bob <scrubbed-4> owes 8" "good evening"]]"#;
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
