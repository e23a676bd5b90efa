//! Decoding and encoding of JSON.

use ptc_lisp::json::{self, EncodeError};
use ptc_lisp::{Value, print};

fn decoded(text: &str) -> String {
    match json::decode(text.as_bytes()) {
        Ok(value) => print::readable(&value),
        Err(fault) => format!("{}: {}", fault.offset, fault.expected),
    }
}

#[test]
fn decoding_gives_expected_values_and_errors() {
    let cases = [
        ("null", "nil"),
        (" [1, -2, 3.5, 1e3, -0, 0.0] ", "[1 -2 3.5 1000.0 0 0.0]"),
        (r#"{"b": {"x": []}, "a": "t", "a": "u"}"#, r#"{"a" "u" "b" {"x" []}}"#),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        (r#""\u00e9\n\"\/\ud83d\ude00""#, r#""é\n\"/😀""#),
        (r#""\ud83d""#, "\"\u{FFFD}\""),
        ("\u{FEFF}[true,false]", "[true false]"),
        (
            "[0.1,2.5,-0.5,123456.789,0.000001,1.5e3,99999999999999.9]",
            "[0.1 2.5 -0.5 123456.789 1.0E-6 1500.0 9.99999999999999E13]",
        ),
        (r#"[{"a\"":1,"\\":2},{"a\"":3,"\\":4},{"a":5}]"#, r#"[{"\\" 2 "a\"" 1} {"\\" 4 "a\"" 3} {"a" 5}]"#),
        (
            r#"[{"k":{"x":1}},{"k":{"x":2}},{"k" :3},{"kk":4},{"k":5,"k":6}]"#,
            r#"[{"k" {"x" 1}} {"k" {"x" 2}} {"k" 3} {"kk" 4} {"k" 6}]"#,
        ),
        (r#"[{"a\"":1},{"a"":2}]"#, "15: ':'"),
        (
            r#"[{"id":1,"n":"x"},{"id":2,"n":"y"},{"n":"z","id":3},{"id":4}]"#,
            r#"[{"id" 1 "n" "x"} {"id" 2 "n" "y"} {"id" 3 "n" "z"} {"id" 4}]"#,
        ),
        ("", "0: a value"),
        ("[1,]", "3: a value"),
        ("{\"a\":1,}", "7: a key in double quotes"),
        ("{\"a\" 1}", "5: ':'"),
        ("[1 2]", "3: ',' or ']'"),
        ("01", "1: no digit after a leading zero"),
        ("1.", "2: a digit"),
        ("-", "1: a digit"),
        ("+1", "0: a value"),
        ("nul", "0: a value"),
        ("NaN", "0: a value"),
        ("1 2", "2: the end of the text"),
        ("\"a\nb\"", "2: no control character in a string"),
        ("\"abc", "4: '\"' at the end of the string"),
        (r#""\x""#, "2: an escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"),
        (r#""\u12g4""#, "3: four hexadecimal digits"),
        ("[[[", "3: a value"),
    ];
    for (text, expected) in cases {
        assert_eq!(decoded(text), expected, "{text}");
    }
    assert_eq!(json::decode(b"\"\xFF\"").unwrap_err().expected, "valid UTF-8");
    for (text, offset) in [(r#"["a\ud83d"]"#, 3), (r#"{"\ude00\ud83d":1}"#, 2), ("[1, 1e400]", 4), ("-1e309", 0)] {
        assert!(json::decode(text.as_bytes()).is_ok(), "{text}");
        assert_eq!(json::decode_exact(text.as_bytes()).unwrap_err().offset, offset, "{text}");
    }
    let held = r#"["\ud83d\ude00", 1e308, 123456789012345678901234567890, 1e-400]"#.as_bytes();
    assert_eq!(json::decode_exact(held), json::decode(held));
}

#[test]
fn nested_objects_of_other_shape_keep_their_names() {
    let rows = r#"{"a":1,"b":2},{"a":{"x":1,"b":2},"b":3},{"a":{"b":4,"a":5}},{"a":6,"b":7,"a":8}"#;
    let values = r#"{"a" 1 "b" 2} {"a" {"b" 2 "x" 1} "b" 3} {"a" {"a" 5 "b" 4}} {"a" 8 "b" 7}"#;
    for depth in 1..40 {
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(decoded(&nested(rows)), nested(values));
    }
}

/// Walks over a text, and returns the error with its offset and the expected syntax.
fn walked(text: &str) -> Result<(), json::DecodeError> {
    let mut walk = json::Walk::new(text);
    walk.pass()?;
    walk.end()
}

#[test]
fn walk_refuses_the_same_texts_as_decode() {
    let whole = " {\"a\": [1, -0.5e+3, {}, [] , true,false,null], \"é\\n\\u00e9\":\"\\\"\\ud83d\", \"b\":{\"c\":[[{\"d\":0}]]}} ";
    let mut texts = vec![whole.to_owned()];
    for (at, found) in whole.char_indices() {
        let (before, after) = (&whole[..at], &whole[at + found.len_utf8()..]);
        texts.push(before.to_owned());
        texts.push(format!("{before}{after}"));
        for other in ['"', '\\', '{', '}', '[', ']', ',', ':', '0', '-', '.', 'e', 'u', 't', ' ', '\t', '\u{1}', 'é'] {
            texts.push(format!("{before}{other}{after}"));
            texts.push(format!("{before}{other}{found}{after}"));
        }
    }
    let refused = texts.iter().filter(|text| walked(text).is_err()).count();
    assert!(refused > 1_000 && refused + 100 < texts.len(), "{refused} of {}", texts.len());
    for text in texts {
        assert_eq!(walked(&text), json::decode(text.as_bytes()).map(drop), "{text}");
    }
    assert_eq!(walked(&format!("{}1{}", "[{\"a\":".repeat(200_000), "}]".repeat(200_000))), Ok(()));
}

#[test]
fn walk_returns_raw_members() {
    let text = r#" { "a" : [1 , 2] ,"b\u0061\"":{"c":{}}, "a":"x" , "o": {} } "#;
    let (mut found, mut inner) = (Vec::new(), Vec::new());
    let mut walk = json::Walk::new(text);
    let mut each = |walk: &mut json::Walk<'_>, name: std::borrow::Cow<'_, str>| {
        if name == "ba\"" {
            return walk.object(|walk, name| {
                inner.push((name.into_owned(), walk.pass()?.to_owned()));
                Ok(())
            });
        }
        found.push((name.into_owned(), walk.pass()?.to_owned()));
        Ok(())
    };
    walk.object(&mut each).and_then(|()| walk.end()).unwrap();
    let pairs = |all: &[(&str, &str)]| all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    assert_eq!(found, pairs(&[("a", "[1 , 2]"), ("a", "\"x\""), ("o", "{}")]));
    assert_eq!(inner, pairs(&[("c", "{}")]));
    for (text, offset, expected) in [
        ("[1]", 0, "an object"),
        ("{\"a\":1 2}", 7, "',' or '}'"),
        ("{\"a\":1,}", 7, "a key in double quotes"),
        ("{} x", 3, "the end of the text"),
    ] {
        let mut walk = json::Walk::new(text);
        let refused = walk.object(|walk, _| walk.pass().map(drop)).and_then(|()| walk.end()).unwrap_err();
        assert_eq!((refused.offset, refused.expected), (offset, expected), "{text}");
    }
}

#[test]
fn encoded_values_decode_to_equal_values() {
    let texts =
        ["null", "[1,-2,3.5,1e300,true,\"a\\nb\"]", r#"{"a":[{"b":{}},[]],"c":"é\"\\\u0001"}"#, "123456789012345678901234567890"];
    for text in texts {
        let value = json::decode(text.as_bytes()).unwrap();
        let encoded = json::encode(&value, 1_000).unwrap();
        assert_eq!(json::decode(encoded.as_bytes()).unwrap(), value, "{encoded}");
    }
    let value =
        Value::map([(Value::keyword("k"), Value::keyword("v")), (Value::int(1), Value::set([Value::int(2), Value::int(1)]))]);
    assert_eq!(json::encode(&value, 1_000).unwrap(), r#"{"1":[1,2],"k":"v"}"#);
}

#[test]
fn unencodable_value_is_reported_with_its_path() {
    let infinite = Value::double(f64::INFINITY);
    let value =
        Value::map([(Value::keyword("a"), Value::vector(vec![Value::nil(), Value::map([(Value::string("b"), infinite)])]))]);
    let fault = json::encode(&value, 1_000).unwrap_err();
    assert_eq!(fault, EncodeError::Unsupported { path: "a[1].b".into(), found: "an infinite number" });
    assert_eq!(fault.to_string(), "an infinite number at a[1].b has no JSON form");
    let keyed = Value::vector(vec![Value::map([(Value::vector(vec![]), Value::nil())])]);
    assert_eq!(json::encode(&keyed, 1_000).unwrap_err().to_string(), "a vector as a key at [0] has no JSON form");
    let long = Value::vector(vec![Value::int(1); 100]);
    assert_eq!(json::encode(&long, 50).unwrap_err(), EncodeError::TooLarge { max_bytes: 50 });
}

#[test]
fn keys_with_the_same_json_text_are_refused() {
    let refused = |source: &str| {
        let program = ptc_lisp::Program::compile(source).unwrap();
        let value = ptc_lisp::Run::new(&program).execute_on_thread().result.unwrap();
        json::encode(&value, 1_000).unwrap_or_else(|fault| fault.to_string())
    };
    for (source, expected) in [
        (r#"{:a "x" "a" 1}"#, r#"the keys :a and "a" are one in JSON"#),
        (r#"{'a 1 :b 2 "a" 3}"#, r#"the keys a and "a" are one in JSON"#),
        (r"{'a 1 :a 2}", r"the keys :a and a are one in JSON"),
        (r#"[{:rows [{1 "x" "1" 1}]}]"#, r#"the keys 1 and "1" at [0].rows[0] are one in JSON"#),
        (r"{true 1 :true 2}", r"the keys true and :true are one in JSON"),
        (
            r#"{(java.time.LocalDate/parse "2024-01-02") 1 "2024-01-02" 2}"#,
            r#"the keys "2024-01-02" and "2024-01-02" are one in JSON"#,
        ),
        (r#"{:a 1 "b" 2 1 3 true 4}"#, r#"{"1":3,"true":4,"a":1,"b":2}"#),
    ] {
        assert_eq!(refused(source), expected, "{source}");
    }
    let nested =
        Value::map((0..3_000).flat_map(|i| [(Value::int(i), Value::nil()), (Value::string(format!("n{i}")), Value::nil())]));
    assert!(json::encode(&nested, 1 << 20).is_ok());
}

#[test]
fn previews_stay_within_budget_and_count_omitted_items() {
    let rows: Vec<Value> = (0..1_000)
        .map(|i| Value::map([(Value::keyword("id"), Value::int(i)), (Value::keyword("name"), Value::string("x".repeat(40)))]))
        .collect();
    let long = Value::string("word \"quoted\"\n".repeat(1_000));
    let values = [
        Value::vector(rows.clone()),
        Value::map([(Value::keyword("rows"), Value::vector(rows)), (Value::keyword("text"), long.clone())]),
        long,
    ];
    for value in &values {
        for budget in [256, 300, 500, 1_000, 8_192] {
            let preview = print::preview(value, budget);
            assert!(preview.truncated);
            assert!(preview.text.len() <= budget, "{budget}: {} bytes\n{}", preview.text.len(), preview.text);
            assert!(preview.text.contains("left out"), "{}", preview.text);
        }
        let whole = print::preview(value, 1 << 20);
        assert!(!whole.truncated);
        assert_eq!(whole.text, print::readable(value));
    }
    let number = json::decode("7".repeat(4_000).as_bytes()).expect("digits");
    let preview = print::preview(&number, 500);
    assert!(preview.text.ends_with("left out. Return less: (count (str n)), (mod n 1000000)"), "{}", preview.text);
}

#[test]
fn measured_length_equals_encoded_length() {
    let never = || false;
    for (source, exact) in [
        ("nil", true),
        ("[]", true),
        ("{}", true),
        ("[nil true false 0 -1 1.5 1e300 :k \"a\"]", true),
        ("{:a 1 \"b\" [] :c {} :d [[]] }", true),
        ("{1 2 true 3 -5 #{1 2 3}}", true),
        ("[\"\\\"\\\\\\n\\r\\t\" (str (char 1)) (str (char 31)) \"äöü€𝄞\" (str (char 8)) (str (char 12))]", true),
        ("(vec (range 1000))", true),
        ("(zipmap (map str (range 500)) (range 500))", true),
        ("(reduce (fn [v _] [v v]) 1 (range 12))", true),
        ("[(java.time.Instant/parse \"2026-05-03T11:14:00Z\")]", true),
        ("[123456789012345678901234567890 -99999999999999999999 {18446744073709551616 1}]", false),
    ] {
        let program = ptc_lisp::Program::compile(source).unwrap();
        let value = ptc_lisp::Run::new(&program).execute_on_thread().result.unwrap();
        let text = json::encode(&value, usize::MAX).unwrap();
        let size = json::measure(&value, usize::MAX, &never).unwrap();
        if exact {
            assert_eq!(size.bytes, text.len(), "{source}");
        } else {
            assert!((text.len()..text.len() + 9).contains(&size.bytes), "{source}: {} {}", size.bytes, text.len());
        }
        assert_eq!(json::measure(&value, size.bytes, &never), Ok(size), "{source}");
        assert_eq!(json::measure(&value, size.bytes - 1, &never), Err(json::Unmeasured::TooLarge), "{source}");
        let mut out = String::from("before ");
        json::encode_to(&mut out, &value, text.len(), &never).unwrap();
        assert_eq!(out, format!("before {text}"));
        assert!(json::encode_to(&mut out, &value, text.len() - 1, &never).is_err(), "{source}");
    }
}

#[test]
fn measuring_shared_values_ends_at_limit_and_on_interrupt() {
    let shared = (0..200).fold(Value::int(1), |value, _| Value::vector(vec![value.clone(), value]));
    assert_eq!(json::measure(&shared, 1 << 20, &|| false), Err(json::Unmeasured::TooLarge));
    assert_eq!(json::measure(&shared, usize::MAX, &|| true), Err(json::Unmeasured::Stopped));
}

#[test]
fn opened_containers_count_as_values() {
    // None of these texts makes a value before a megabyte of it has been read.
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        let text = open.repeat(1 << 20);
        let mut asked = 0;
        let refused = json::decode_exact_while(text.as_bytes(), &mut || {
            asked += 1;
            asked < 10
        });
        let fault = refused.expect_err("it is not complete");
        assert_eq!((asked, fault.expected), (10, "no more than the program may use"), "{open}");
        assert!(fault.offset < 100_000, "{open}: {}", fault.offset);
    }
}
