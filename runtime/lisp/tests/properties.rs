//! Property tests: invariants of all values and programs, checked on random ones with fixed seeds.
//!
//! `CASES=100000 cargo test -p ptc-lisp properties::` runs more cases.

use std::cell::Cell;
use std::cmp::Ordering;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use arbitrary::Unstructured;
use ptc_lisp::collection::Map;
use ptc_lisp::{Bindings, ErrorKind, Limits, Program, Run, Value, json, print, reader};

/// Returns pseudo-random bytes, determined by the seed.
fn bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Calls `check` with `cases` sources of arbitrary data, and reports the seed of a failure.
pub(crate) fn each(cases: u64, size: usize, check: impl Fn(&mut Unstructured<'_>, u64)) {
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    for seed in 0..cases {
        let bytes = bytes(seed + 1, size);
        check(&mut Unstructured::new(&bytes), seed);
    }
}

fn values(u: &mut Unstructured<'_>, count: usize) -> Vec<Value> {
    (0..count).map(|_| crate::generate::value(u, 3).unwrap_or_default()).collect()
}

/// Reads a literal by running it as a program.
fn read(text: &str) -> Value {
    let program = Program::compile(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    let limits = Limits::default().wall_clock(Duration::from_secs(20));
    Run::new(&program).limits(limits).execute().result.unwrap_or_else(|error| panic!("{}", error.render(text)))
}

#[test]
fn printed_values_are_read_as_equal_values() {
    each(1500, 400, |u, seed| {
        let value = crate::generate::value(u, 4).unwrap_or_default();
        let text = print::readable(&value);
        // A map with equal keys, such as 1 and 1.0, is not a valid literal, and the printer never writes one.
        assert_eq!(read(&text), value, "seed {seed}: {text}");
        assert_eq!(print::readable(&read(&text)), text, "seed {seed}");
    });
}

#[test]
fn printed_maps_with_keywordized_keys_are_read_as_equal() {
    let program = Program::compile("(clojure.walk/keywordize-keys data/form)").unwrap();
    each(500, 400, |u, seed| {
        let form = crate::generate::value(u, 4).unwrap_or_default();
        let data = Value::map([(Value::keyword("form"), form)]);
        let made = Run::new(&program).context(data).execute().result.unwrap();
        let text = print::readable(&made);
        assert_eq!(read(&text), made, "seed {seed}: {text}");
    });
}

#[test]
fn reader_does_not_panic_on_random_text() {
    const PIECES: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "#{",
        "#(",
        "#\"",
        "\"",
        "\\",
        "'",
        "#_",
        "#'",
        ";",
        "\n",
        " ",
        ",",
        ":a",
        "a/b",
        "%",
        "%2",
        "&",
        "1",
        "-",
        ".5",
        "1e",
        "##",
        "##Inf",
        "nil",
        "\\u00e",
        "é",
        "🏳️‍🌈",
        "let",
        "fn",
        "recur",
        "case",
        "for",
        ":when",
        "->",
        "def",
        "defn",
        "loop",
        "cond",
        "if-let",
        ":keys",
        ":or",
        "data/x",
        "*1",
    ];
    each(4000, 300, |u, seed| {
        let text = if u.ratio(1, 3).unwrap_or(true) {
            String::from_utf8_lossy(u.bytes(u.len()).unwrap_or_default()).into_owned()
        } else {
            let mut text = String::new();
            while let (false, Ok(piece)) = (u.is_empty(), u.choose(PIECES)) {
                text.push_str(piece);
                if u.arbitrary().unwrap_or(true) {
                    text.push(' ');
                }
            }
            text
        };
        if let Err(error) = reader::read(&text) {
            assert!(error.position.is_some() && error.hint.is_some(), "seed {seed}: {text}\n{error}");
        }
        if let Err(error) = Program::compile_with(&text, &Bindings::default()) {
            assert_ne!(error.kind, ErrorKind::InternalError, "seed {seed}: {text}");
            assert!(error.position.is_some(), "seed {seed}: {text}");
            assert!(error.render(&text).len() < 4000, "seed {seed}: {text}");
        }
    });
}

#[test]
fn evaluator_does_not_panic_on_random_programs() {
    let (tried, compiled, gave) = (Cell::new(0), Cell::new(0), Cell::new(0));
    each(3000, 600, |u, seed| {
        tried.set(tried.get() + 1);
        let source = crate::generate::program(u).unwrap_or_default();
        let program = match Program::compile(&source) {
            Ok(program) => program,
            // Random quoting and patterns make some programs invalid, which must be reported as an error.
            Err(error) => return assert_ne!(error.kind, ErrorKind::InternalError, "seed {seed}: {source}"),
        };
        compiled.set(compiled.get() + 1);
        let limits = Limits::default().wall_clock(Duration::from_secs(2)).memory_bytes(16 << 20).steps(Some(300_000));
        let context =
            Value::map([(Value::keyword("items"), Value::vector(vec![Value::int(1), Value::nil(), Value::string("x")]))]);
        let outcome = Run::new(&program).limits(limits).context(context).gauge(crate::counting::gauge).execute_on_thread();
        match outcome.result {
            Ok(value) => {
                gave.set(gave.get() + 1);
                let _ = print::preview(&value, 1000);
                let _ = json::encode(&value, 100_000);
            }
            Err(error) => {
                assert_ne!(error.kind, ErrorKind::InternalError, "seed {seed}: {source}");
                assert!(error.position.is_some(), "seed {seed}: {source}\n{error}");
                assert!(error.render(&source).len() < 8000, "seed {seed}: {source}\n{}", error.render(&source));
            }
        }
    });
    let (tried, compiled, gave) = (tried.get(), compiled.get(), gave.get());
    // Programs that all fail would test little.
    assert!(compiled * 4 > tried * 3 && gave * 8 > tried, "of {tried} programs {compiled} compiled and {gave} gave a value");
}

#[test]
fn runs_are_deterministic() {
    each(300, 400, |u, seed| {
        let source = crate::generate::program(u).unwrap_or_default();
        let nondeterministic = ["rand", "shuffle", "now", "Instant", "Date", "currentTime", "nanoTime", "uuid", "#fn"];
        let Ok(program) = Program::compile(&source) else { return };
        if nondeterministic.iter().any(|part| source.contains(part)) {
            return;
        }
        let run = || {
            let limits = Limits::default().wall_clock(Duration::from_secs(20)).steps(Some(100_000));
            let outcome = Run::new(&program).limits(limits).execute_on_thread();
            outcome.result.map_or_else(|error| error.render(&source), |value| print::preview(&value, 2000).text)
        };
        assert_eq!(run(), run(), "seed {seed}: {source}");
    });
}

#[test]
fn order_of_values_is_total() {
    let hash = |value: &Value| BuildHasherDefault::<DefaultHasher>::default().hash_one(value);
    each(1500, 600, |u, seed| {
        let all = values(u, 6);
        for a in &all {
            assert_eq!(a.cmp(a), Ordering::Equal, "seed {seed}: {a:?}");
            for b in &all {
                assert_eq!(a.cmp(b), b.cmp(a).reverse(), "seed {seed}: {a:?} and {b:?}");
                if a == b {
                    assert_eq!(hash(a), hash(b), "seed {seed}: {a:?} and {b:?}");
                }
                for c in &all {
                    if a <= b && b <= c {
                        assert!(a <= c, "seed {seed}: {a:?}, {b:?}, {c:?}");
                    }
                }
            }
        }
    });
}

/// Whether JSON can represent the value exactly. Keywords become strings and sets become arrays.
fn is_json(value: &Value) -> bool {
    match value {
        Value::Nil | Value::False | Value::True | Value::Int(_) | Value::BigInt(_) | Value::Str(_) => true,
        Value::Double(d) => d.get().is_finite(),
        Value::Vector(_) => value.items().is_some_and(|mut items| items.all(is_json)),
        Value::Map(_) => {
            value.entries().is_some_and(|mut entries| entries.all(|(k, v)| matches!(k, Value::Str(_)) && is_json(v)))
        }
        _ => false,
    }
}

#[test]
fn json_round_trips_random_values() {
    each(4000, 300, |u, seed| {
        let value = crate::generate::value(u, 3).unwrap_or_default();
        match json::encode(&value, 1 << 20) {
            Ok(text) => {
                let back = json::decode(text.as_bytes()).unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}"));
                // Keys of other kinds become texts, which may sort differently or coincide.
                let again = json::encode(&back, 1 << 20).unwrap_or_default();
                assert_eq!(json::decode(again.as_bytes()).ok(), Some(back.clone()), "seed {seed}: {text}");
                if is_json(&value) {
                    assert_eq!(back, value, "seed {seed}: {text}");
                }
            }
            Err(_) => assert!(!is_json(&value), "seed {seed}: {value:?}"),
        }
    });
}

#[test]
fn preview_stays_within_budget_and_splits_no_token() {
    each(3000, 2000, |u, seed| {
        let items = values(u, 12);
        let value = Value::vector(items);
        let full = print::readable(&value);
        for budget in [256, 300, 500, 1000, 5000] {
            let shown = print::preview(&value, budget);
            assert!(shown.text.len() <= budget, "seed {seed}: {} bytes of {budget}\n{}", shown.text.len(), shown.text);
            assert_eq!(shown.truncated, shown.text != full, "seed {seed}");
            if !shown.truncated {
                continue;
            }
            // Every number and keyword in a truncated form occurs in the complete form, and the truncation is noted.
            let body = shown.text.split("\n; cut:").next().unwrap_or_default();
            assert!(shown.text.contains("\n; cut:") && body.contains('…'), "seed {seed}: {}", shown.text);
            let outside = |text: &str| text.split('"').step_by(2).collect::<Vec<_>>().join(" ");
            if full.contains('\\') {
                continue;
            }
            let split = |text: &str| -> Vec<String> {
                outside(text).split([' ', '[', ']', '{', '}', '#']).filter(|t| !t.is_empty()).map(str::to_owned).collect()
            };
            let whole = split(&full);
            for (at, token) in split(body).iter().enumerate() {
                let mark = token.contains('…') || token == "more" || split(body).get(at + 1).is_some_and(|next| next == "more");
                assert!(mark || whole.contains(token), "seed {seed}: {token} in\n{body}\nof\n{full}");
            }
        }
    });
}

/// Generates a JSON text with the value that it encodes.
fn document(u: &mut Unstructured<'_>, depth: usize) -> (String, Value) {
    let kind = if depth == 0 { 0 } else { u.int_in_range(0..=3).unwrap_or(0) };
    let parts = u.int_in_range(0..=4).unwrap_or(0);
    match kind {
        0 => (parts.to_string(), Value::int(parts)),
        1 => {
            let (texts, items): (Vec<_>, Vec<_>) = (0..parts).map(|_| document(u, depth - 1)).unzip();
            (format!("[{}]", texts.join(",")), Value::vector(items))
        }
        _ => {
            let entry = |_| {
                // Few distinct names, so that objects share all or some names with the previous one, have other names, or repeat
                // a name.
                let names = [("a", "a"), ("b", "b"), ("c", "c"), ("\\u0061", "a"), ("d\\\"", "d\""), ("é", "é")];
                let (written, name) = u.choose(&names).copied().unwrap_or_default();
                let (text, value) = document(u, depth - 1);
                (format!("\"{written}\" :{text}"), (Value::string(name), value))
            };
            let (texts, entries): (Vec<_>, Vec<_>) = (0..parts).map(entry).unzip();
            let text = format!("{{{}}}", texts.join(", "));
            (if parts % 2 == 0 { text.replace("\" :", "\":") } else { text }, Value::map(entries))
        }
    }
}

#[test]
fn random_json_text_decodes_to_its_value() {
    each(3_000, 600, |u, seed| {
        // Depths below and above the maximum at which objects are compared with the previous one.
        let wrapped = [0, 14, 15, 16, 30][(seed % 5) as usize];
        let (text, value) = document(u, 5);
        let (text, value) =
            (0..wrapped).fold((text, value), |(text, value), _| (format!("[{text}]"), Value::vector(vec![value])));
        let decoded = json::decode(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {text}"));
        assert_eq!(decoded, value, "seed {seed}: {text}");
        assert_eq!(print::readable(&decoded), print::readable(&value), "seed {seed}: {text}");
    });
}

#[test]
fn updated_rows_equal_updated_maps() {
    each(1_500, 400, |u, seed| {
        let names = ["a", "b", "c", "d", "e"];
        let row = |n: usize| format!("{{{}}}", names.map(|name| format!("\"{name}\":{n}")).join(","));
        let decoded = json::decode(format!("[{},{},{}]", row(0), row(1), row(2)).as_bytes()).unwrap();
        let Value::Vector(rows) = decoded else { panic!("rows") };
        // The last row shares its names with the second. It is updated in place or as a copy.
        let mut rows = rows.into_vec();
        let Some(Value::Map(mut row)) = rows.pop() else { panic!("a row") };
        let mut plain = names.map(|name| (Value::string(name), Value::int(2))).into_iter().collect::<Map>();
        for step in 0..6 {
            let held = u.arbitrary::<bool>().unwrap_or(false).then(|| (row.clone(), plain.clone()));
            let key = Value::string(u.choose(&["a", "c", "e", "f", "\u{0}"]).copied().unwrap_or_default());
            let key = if u.arbitrary().unwrap_or(false) { key } else { Value::keyword("b") };
            match u.int_in_range(0..=2).unwrap_or(0) {
                0 => assert_eq!(row.insert(key.clone(), Value::int(step)), plain.insert(key.clone(), Value::int(step))),
                1 => assert_eq!(row.remove(&key), plain.remove(&key)),
                _ => assert_eq!(row.take(&key), plain.take(&key)),
            }
            assert_eq!((row.get(&key), row.lookup(&key), row.len()), (plain.get(&key), plain.lookup(&key), plain.len()));
            assert_eq!(Value::Map(row.clone()), Value::Map(plain.clone()), "seed {seed}");
            if let Some((row, plain)) = held {
                assert_eq!(Value::Map(row), Value::Map(plain), "seed {seed}: what others hold");
            }
        }
        assert_eq!(row.into_entries(), plain.into_entries(), "seed {seed}");
        assert_eq!(print::readable(&Value::vector(rows)), r#"[{"a" 0 "b" 0 "c" 0 "d" 0 "e" 0} {"a" 1 "b" 1 "c" 1 "d" 1 "e" 1}]"#);
    });
}
