//! Tests that `tool/value` and `tool/all` make programs shorter, compared with the corpus of correct programs and with Python.
//!
//! `tests/programs/both` has pairs of files, `NAME.clj` and `NAME.py`. Each title is that of a program of the corpus, which
//! checks each call and reads pages by hand. The Python text is the body of a function, as `execute` of FastMCP's `CodeMode`
//! expects it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::python::Python;
use super::{corpus, world};

/// Minimum number of programs that exist in both languages.
const MIN_BOTH: usize = 40;
/// Minimum percentage of bytes that the two functions save.
const MIN_SAVED_PERCENT: usize = 25;

/// Returns the texts of programs by their titles.
fn by_title(corpus: &str) -> BTreeMap<String, String> {
    let programs = corpus::read(corpus).into_iter();
    programs
        .map(|program| {
            let (_, title) = program.place.split_once(".clj:").expect("file and line");
            let (_, title) = title.split_once(' ').expect("a line number");
            (title.to_owned(), program.text.trim().to_owned())
        })
        .collect()
}

/// Returns the bodies in Python by their titles.
fn python() -> BTreeMap<String, String> {
    let mut bodies = BTreeMap::new();
    for name in ["pages", "values"] {
        let path = corpus::folder().join("both").join(name).with_extension("py");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for program in text.split("\n\n").map(str::trim).filter(|program| !program.is_empty()) {
            let (title, body) = program.split_once('\n').expect("a title and a body");
            bodies.insert(title.trim_start_matches("# ").to_owned(), body.to_owned());
        }
    }
    bodies
}

#[test]
fn programs_with_the_two_functions_are_shorter_with_equal_values() {
    let (long, short, python) = (by_title("correct"), by_title("both"), python());
    assert_eq!(short.keys().collect::<Vec<_>>(), python.keys().collect::<Vec<_>>(), "each program is there in both languages");
    assert!(short.len() >= MIN_BOTH, "{} programs", short.len());
    // Some programs write, so each variant uses separate upstreams with the same initial data.
    let (checked, direct) = (world::World::start(), world::World::start());
    let mut bytes = [0, 0, 0];
    for (title, program) in &short {
        let original = long.get(title).unwrap_or_else(|| panic!("no correct program has the title {title:?}"));
        let [before, now] = [checked.run(original), direct.run(program)]
            .map(|outcome| (outcome.value, outcome.prints, outcome.failure, outcome.note));
        assert_eq!(before, now, "{title}");
        let texts = [Some(original), Some(program), python.get(title)];
        for (sum, text) in bytes.iter_mut().zip(texts) {
            *sum += text.map_or(0, String::len);
        }
    }
    let [before, now, python] = bytes;
    println!("{} programs: {before} bytes with checks and loops, {now} with the two functions, {python} in Python", short.len());
    assert!(now * 100 <= before * (100 - MIN_SAVED_PERCENT), "{now} of {before} bytes");
    assert!(now < python, "{now} bytes, {python} in Python");
}

/// Makes numbers comparable: `2.0` and `2` are the same number.
fn normalized(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, |number| json!((number * 1e6).round() / 1e6)),
        Value::Array(items) => items.iter().map(normalized).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), normalized(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn programs_in_python_give_the_same_values() {
    let (short, python) = (by_title("both"), python());
    let (direct, remote) = (world::World::start(), world::World::start());
    let mut interpreter = Python::start(&remote);
    let differing: Vec<String> = short
        .iter()
        .filter_map(|(title, program)| {
            let expected = direct.json(program, &json!({})).map(|value| normalized(&value));
            let found = interpreter.run(&python[title], &remote).map(|value| normalized(&value));
            (expected != found).then(|| format!("{title}: {expected:?}, in Python {found:?}"))
        })
        .collect();
    assert!(differing.is_empty(), "{} of {}:\n{}", differing.len(), short.len(), differing.join("\n"));
}
