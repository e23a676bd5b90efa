//! Constraints of arguments, and doubles that are encoded as integers.

use ptc_catalog::{Arg, Tool, Type, Types};
use ptc_check::argument;
use ptc_lisp::{Program, Run, Value, print};

/// Returns a tool with one argument `a` that has this schema.
fn tool(schema: &str) -> &'static Tool {
    const ANY: Types = Types::from_types(&[Type::Number, Type::String, Type::Array, Type::Object]);
    static ARGS: [Arg; 1] = [Arg { name: "a", required: false, types: ANY, label: "any", allowed: "" }];
    let defs = r#""$defs":{"page":{"type":"integer","minimum":1}}"#;
    let definition = format!(r#"{{"inputSchema":{{{defs},"properties":{{"a":{schema}}},"type":"object"}},"name":"t"}}"#);
    Box::leak(Box::new(Tool { name: "t", args: &ARGS, closed: true, definition: definition.leak(), ..Tool::EMPTY }))
}

fn value(source: &str) -> Value {
    let program = Program::compile(source).unwrap_or_else(|fault| panic!("{source}: {fault}"));
    Run::new(&program).execute_on_thread().result.unwrap_or_else(|fault| panic!("{source}: {fault}"))
}

/// A schema, accepted values, and rejected values with their messages.
type Row = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const ROWS: &[Row] = &[
    (
        r#"{"maximum":100,"minimum":1,"type":"integer"}"#,
        &["1", "100", "50.0"],
        &[
            ("0", "'a' must be at least 1, got 0"),
            ("101", "'a' must be at most 100, got 101"),
            ("-3.0", "'a' must be at least 1, got -3.0"),
        ],
    ),
    (
        r#"{"exclusiveMaximum":1,"exclusiveMinimum":0,"type":"number"}"#,
        &["0.5"],
        &[("0", "'a' must be greater than 0, got 0"), ("1.0", "'a' must be less than 1, got 1.0")],
    ),
    // The flags of draft 4.
    (
        r#"{"exclusiveMaximum":true,"exclusiveMinimum":false,"maximum":5,"minimum":2,"type":"number"}"#,
        &["2", "4.9"],
        &[("5", "'a' must be less than 5, got 5"), ("1", "'a' must be at least 2, got 1")],
    ),
    (r#"{"multipleOf":5,"type":"integer"}"#, &["0", "-10", "15"], &[("7", "'a' must be a multiple of 5, got 7")]),
    (r#"{"multipleOf":0.1,"type":"number"}"#, &["0.3", "7", "123456.7"], &[("0.35", "'a' must be a multiple of 0.1, got 0.35")]),
    (
        r#"{"maxLength":3,"minLength":1,"type":"string"}"#,
        &["\"äöü\"", ":abc"],
        &[
            ("\"\"", "'a' must have at least 1 character, got \"\""),
            ("\"abcd\"", "'a' must have at most 3 characters, got \"abcd\""),
        ],
    ),
    (
        r#"{"pattern":"^[A-Z]{2}-\\d+$","type":"string"}"#,
        &["\"AB-12\""],
        &[("\"ab-12\"", r#"'a' must match the pattern "^[A-Z]{2}-\\d+$", got "ab-12""#)],
    ),
    // An unsupported pattern is ignored.
    (r#"{"pattern":"^(?=x)y","type":"string"}"#, &["\"z\""], &[]),
    (
        r#"{"format":"date","type":"string"}"#,
        &["\"2024-02-29\"", "(java.time.LocalDate/parse \"2024-02-29\")"],
        &[
            ("\"2023-02-29\"", "'a' must be a date such as \"2026-01-31\", got \"2023-02-29\""),
            ("\"31.01.2026\"", "'a' must be a date such as \"2026-01-31\", got \"31.01.2026\""),
            ("\"2026-01-31T00:00:00Z\"", "'a' must be a date such as \"2026-01-31\", got \"2026-01-31T00:00:00Z\""),
        ],
    ),
    (
        r#"{"format":"date-time","type":"string"}"#,
        &["\"2026-01-31T09:30:00Z\"", "\"2026-01-31T09:30:00.123+02:00\"", "(java.time.Instant/parse \"2026-01-31T09:30:00Z\")"],
        &[
            ("\"2026-01-31\"", "'a' must be a date and time with an offset such as \"2026-01-31T09:30:00Z\", got \"2026-01-31\""),
            ("\"yesterday\"", "'a' must be a date and time with an offset such as \"2026-01-31T09:30:00Z\", got \"yesterday\""),
        ],
    ),
    // Other formats are ignored.
    (r#"{"format":"email","type":"string"}"#, &["\"x\""], &[]),
    (
        r##"{"items":{"$ref":"#/$defs/page"},"maxItems":3,"minItems":1,"type":"array"}"##,
        &["[1 2 3]", "#{4}"],
        &[
            ("[]", "'a' must have at least 1 item, got 0"),
            ("[1 2 3 4]", "'a' must have at most 3 items, got 4"),
            ("[1 0]", "'a[1]' must be at least 1, got 0"),
        ],
    ),
    (
        r#"{"additionalProperties":{"maxLength":1,"type":"string"},"properties":{"size":{"maximum":9,"type":"integer"}},"type":"object"}"#,
        &["{:size 9 :other \"x\"}", "{\"size\" nil}"],
        &[
            ("{:size 10}", "'a.size' must be at most 9, got 10"),
            ("{\"other\" \"xy\"}", "'a.other' must have at most 1 character, got \"xy\""),
        ],
    ),
    (
        r#"{"anyOf":[{"minimum":1,"type":"integer"},{"maxLength":2,"type":"string"},{"type":"null"}]}"#,
        &["1", "\"ab\"", "[0]"],
        &[("0", "'a' must be at least 1, got 0"), ("\"abc\"", "'a' must have at most 2 characters, got \"abc\"")],
    ),
    (
        r#"{"anyOf":[{"minimum":10,"type":"integer"},{"maximum":3,"type":"integer"}]}"#,
        &["3", "10"],
        &[("5", "'a' must be at least 10, got 5")],
    ),
    (
        r#"{"allOf":[{"minimum":1},{"maximum":3}],"type":"integer"}"#,
        &["2"],
        &[("0", "'a' must be at least 1, got 0"), ("4", "'a' must be at most 3, got 4")],
    ),
    // A schema that refers to itself terminates.
    (r##"{"allOf":[{"$ref":"#/properties/a"}],"minimum":1}"##, &["1"], &[("0", "'a' must be at least 1, got 0")]),
];

#[test]
fn values_outside_the_bounds_are_refused() {
    for (schema, taken, refused) in ROWS {
        let tool = tool(schema);
        let found = |source: &str| argument::fault(tool, &tool.args[0], &value(source));
        for source in *taken {
            assert_eq!(found(source), None, "{schema} {source}");
        }
        for (source, expected) in *refused {
            assert_eq!(found(source).as_deref(), Some(*expected), "{schema} {source}");
        }
    }
}

/// Schema, value, and the encoded value, or `None` if it is encoded unchanged.
const INTEGERS: &[(&str, &str, Option<&str>)] = &[
    (r#"{"type":"integer"}"#, "(/ 4 2)", Some("2")),
    (r#"{"type":["integer","null"]}"#, "-2.0", Some("-2")),
    (r#"{"type":"integer"}"#, "2", None),
    (r#"{"type":"integer"}"#, "1e300", None),
    (r#"{"type":"number"}"#, "2.0", None),
    (r#"{"type":["integer","number"]}"#, "2.0", None),
    ("{}", "2.0", None),
    (r#"{"items":{"type":"integer"},"type":"array"}"#, "[1 2.0 2.5]", Some("[1 2 2.5]")),
    (r#"{"items":{"type":"number"},"type":"array"}"#, "[1 2.0]", None),
    (
        r##"{"properties":{"page":{"$ref":"#/$defs/page"},"rate":{"type":"number"}},"type":"object"}"##,
        "{:page 3.0 :rate 3.0 :free 3.0}",
        Some("{:free 3.0 :page 3 :rate 3.0}"),
    ),
    (r#"{"anyOf":[{"type":"integer"},{"type":"string"}]}"#, "7.0", Some("7")),
    (r#"{"anyOf":[{"type":"integer"},{"type":"number"}]}"#, "7.0", None),
];

#[test]
fn doubles_without_fraction_become_integers_if_the_schema_needs_them() {
    for (schema, source, expected) in INTEGERS {
        let tool = tool(schema);
        let sent = argument::with_integers(tool, &tool.args[0], &value(source));
        assert_eq!(sent.as_ref().map(print::readable).as_deref(), *expected, "{schema} {source}");
    }
}

#[test]
fn values_with_shared_parts_are_checked_in_bounded_time() {
    // There are 2^40 paths to one double.
    let shared = value("(reduce (fn [v _] [v v]) 2.5 (range 40))");
    let list = tool(r##"{"items":{"$ref":"#/properties/a"},"minimum":3}"##);
    argument::fault(list, &list.args[0], &shared);
    assert!(argument::with_integers(list, &list.args[0], &shared).is_none());
}
