//! Tests programs in the style of language models over mock upstreams: mistakes must not pass for answers, and correct programs
//! must not cause warnings.
//!
//! `tests/programs` of this package has the upstreams and two corpora:
//!
//! - `mistakes/CLASS.clj`: each program has one deliberate mistake. It must end in a fault or a note that has the words of its
//!   `;!` line.
//! - `correct/*.clj`: each program must have a value, and neither a warning nor a note.
//!
//! `PTC_PROGRAMS=print` prints the answer of each program.

#![expect(clippy::print_stdout, clippy::panic, reason = "the report, and failed steps")]

mod corpus;
mod python;
mod shorter;
mod world;

use corpus::{Expectation, Program};
use world::Outcome;

/// Minimum number of programs in each corpus.
const MIN_PROGRAMS: usize = 300;
/// Maximum percentage of programs with a mistake that pass for correct ones.
const MAX_SILENT_PERCENT: usize = 3;
/// Maximum percentage of programs with a mistake that fail without a word about the mistake.
const MAX_UNNAMED_PERCENT: usize = 3;
/// Maximum percentage of programs with a mistake that are listed as not detectable.
const MAX_NOT_DETECTABLE_PERCENT: usize = 5;

/// The outcome of a program with a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// A fault or a note names the mistake.
    Named,
    /// The program fails, and nothing names the mistake.
    Unnamed,
    /// The program has a value, without a fault or a note.
    Silent,
    /// The mistake is listed as not detectable, and is not detected.
    NotDetectable,
    /// The mistake is listed as not detectable, but is detected.
    Listed,
}

fn verdict(program: &Program, outcome: &Outcome) -> Verdict {
    let texts: Vec<&str> = [&outcome.failure, &outcome.note].into_iter().flatten().map(String::as_str).collect();
    let said = (!texts.is_empty()).then(|| texts.join("\n"));
    match (&program.expectation, &said) {
        (Expectation::NotDetectable(_), None) => Verdict::NotDetectable,
        (Expectation::NotDetectable(_), Some(_)) => Verdict::Listed,
        (_, None) => Verdict::Silent,
        (Expectation::Says(words), Some(said)) if words.iter().all(|word| said.contains(word.as_str())) => Verdict::Named,
        (_, Some(_)) => Verdict::Unnamed,
    }
}

#[test]
fn faulty_programs_give_a_fault_or_note_that_names_the_mistake() {
    let programs = corpus::read("mistakes");
    let world = world::World::start();
    let mut bad = Vec::new();
    let mut counts = std::collections::BTreeMap::<(&str, Verdict), usize>::new();
    for program in &programs {
        let outcome = world.run(&program.text);
        let verdict = verdict(program, &outcome);
        *counts.entry((&program.class, verdict)).or_default() += 1;
        if !matches!(verdict, Verdict::Named | Verdict::NotDetectable) {
            bad.push(format!("{verdict:?} {}: {:?}\n  {outcome}", program.place, program.expectation));
        }
        world::report(program, &outcome);
    }
    for ((class, verdict), count) in &counts {
        println!("{class:16} {verdict:?}: {count}");
    }
    let of = |wanted| counts.iter().filter(|((_, verdict), _)| *verdict == wanted).map(|(_, count)| count).sum::<usize>();
    let total = programs.len();
    let report = format!(
        "of {total} programs {} are named, {} fail without a name, {} are silent, {} are not detectable, {} are listed so and are detected:\n{}",
        of(Verdict::Named),
        of(Verdict::Unnamed),
        of(Verdict::Silent),
        of(Verdict::NotDetectable),
        of(Verdict::Listed),
        bad.join("\n")
    );
    println!("{report}");
    assert!(total >= MIN_PROGRAMS, "{total} programs");
    assert!(of(Verdict::Silent) * 100 <= total * MAX_SILENT_PERCENT, "{report}");
    assert!(of(Verdict::Unnamed) * 100 <= total * MAX_UNNAMED_PERCENT, "{report}");
    assert!(of(Verdict::NotDetectable) * 100 <= total * MAX_NOT_DETECTABLE_PERCENT, "{report}");
    assert_eq!(of(Verdict::Listed), 0, "{report}");
}

#[test]
fn doc_shows_lines_and_a_call_that_the_tool_accepts() {
    let world = world::World::start();
    let tools = world.tools();
    assert!(tools.len() >= 40, "{tools:?}");
    let mut bad = Vec::new();
    for tool in &tools {
        let doc = world.run(&format!("(doc \"{tool}\")")).value;
        assert!(doc.starts_with(&format!("{tool}\n")) && !doc.contains("\\n"), "{doc}");
        let call = doc.lines().find_map(|line| line.strip_prefix("call: ")).unwrap_or_else(|| panic!("no call: {doc}"));
        let outcome = world.run(call);
        let refused = outcome.failure.filter(|failure| failure.contains("rejected args"));
        // `doc` does not generate strings that match a pattern, so these failures are expected.
        bad.extend(
            refused.filter(|refused| !refused.contains("must match the pattern")).map(|refused| format!("{call}: {refused}")),
        );
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn doc_shows_constraints_of_arguments() {
    let world = world::World::start();
    for (tool, lines) in [
        ("tickets/list-tickets", &["  :limit - 1 to 50; default 25", "  :state - one of \"open\" \"pending\" \"closed\""][..]),
        (
            "tickets/list-tickets",
            &["pages: items in data, next page by cursor from meta.next_cursor", "    :createdAt - format date-time"],
        ),
        ("tickets/search-tickets", &["  :q - at least 3 characters", "  :since - format date", "{:q \"...\"}"]),
        ("tickets/get-sla", &["  :plan - matches ^plan-[0-9]$"]),
    ] {
        let doc = world.run(&format!("(doc \"{tool}\")")).value;
        for line in lines {
            assert!(doc.contains(line), "{line:?} is not in\n{doc}");
        }
    }
}

#[test]
fn values_and_lists_work_in_the_embedding_api() {
    let world = world::World::start();
    let orders = world.run(r#"(count (tool/all {:server "shop" :tool "list_orders"}))"#);
    assert_eq!((orders.value.as_str(), orders.note), ("520", None));
    let total = world.run(r#"(:total (tool/value {:server "shop" :tool "list_orders"}))"#);
    assert_eq!((total.value.as_str(), total.note), ("520", None));
    let failed = world.run(r#"(tool/value {:server "shop" :tool "get_order" :args {:order_id 0}})"#).failure.expect("a fault");
    assert!(failed.contains("shop/get_order"), "{failed}");
}

#[test]
fn definitions_of_earlier_programs_retain_their_notes() {
    let world = world::World::start();
    let fetch = r#"(def v (tool/value {:server "shop" :tool "list_orders" :args {:limit 100}})) nil"#;
    // The answer is kept unread, so that later programs may take it for the whole list.
    let kept = world.session(&[fetch]).note.expect("a note");
    assert!(kept.contains("page 1 of 6"), "{kept}");
    let wrong = world.session(&[fetch, "(def rows (:items v))", "(map :statuss rows)"]).note.expect("a note");
    assert!(wrong.contains(":statuss") && wrong.contains("did you mean :status?"), "{wrong}");
    assert_eq!(world.session(&[fetch, "(count (keep :coupon (:items v)))"]).note, None, "a declared optional key");
    let copied = world.session(&[fetch, "(map #(-> % clojure.walk/keywordize-keys :statuss) (:items v))"]).note.expect("a note");
    assert!(copied.contains("did you mean :status?"), "{copied}");
}

#[test]
fn missing_keys_are_noted_in_earlier_results_and_in_lists() {
    let world = world::World::start();
    let fetch = r#"(:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 100}}))"#;
    for program in ["(map :statuss *1)", "(map #(-> % clojure.walk/keywordize-keys :statuss) *1)"] {
        let wrong = world.session(&[fetch, program]).note.expect("a note");
        assert!(wrong.contains("did you mean :status?"), "{program}: {wrong}");
    }
    assert_eq!(world.session(&[fetch, "(count (keep :coupon *1))"]).note, None, "a declared optional key");
    // The key is computed, so that it is not known before the program runs.
    let all = r#"(map (keyword (str "stat" "uss")) (tool/all {:server "shop" :tool "list_orders"}))"#;
    let note = world.run(all).note.expect("a note");
    assert!(note.contains("did you mean :status?"), "{note}");
}

#[test]
fn functions_of_a_session_are_noted_by_the_keys_they_read() {
    let world = world::World::start();
    let total = r"(defn total-of [v] (:total v)) (defn rows-of [v] (:items v))";
    let call = r#"(tool/value {:server "shop" :tool "list_orders" :args {:limit 100}})"#;
    assert_eq!(world.session(&[total, &format!("(total-of {call})")]).note, None);
    // The words of the program name only the total, and it reads the items.
    let note = world.session(&[total, &format!("(let [v {call}] [(:total v) (count (rows-of v))])")]).note.expect("a note");
    assert!(note.contains("page 1 of 6"), "{note}");
}

#[test]
fn comparisons_of_different_kinds_are_noted() {
    let world = world::World::start();
    let note = world.run(r#"(filter #(> % 5) ["12" 7 nil])"#).note.expect("a note");
    let wanted =
        "2 comparisons by <, <=, > or >= of values of different kinds, the first of a string with an integer (\"12\" with 5)";
    assert!(note.contains(wanted), "{note}");
    assert_eq!(world.run(r"(< 1 2.5 100000000000000000000)").note, None);
}

#[test]
fn correct_programs_give_a_value_and_neither_a_warning_nor_a_note() {
    let programs = corpus::read("correct");
    let world = world::World::start();
    let mut bad = Vec::new();
    for program in &programs {
        let outcome = world.run(&program.text);
        if outcome.failure.is_some() || outcome.note.is_some() || matches!(outcome.value.as_str(), "nil" | "[]" | "{}") {
            bad.push(format!("{}\n  {outcome}", program.place));
        }
        world::report(program, &outcome);
    }
    println!("{} of {} correct programs give a value without a note", programs.len() - bad.len(), programs.len());
    assert!(programs.len() >= MIN_PROGRAMS, "{} programs", programs.len());
    assert!(bad.is_empty(), "{} programs:\n{}", bad.len(), bad.join("\n"));
}
