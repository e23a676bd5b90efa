//! Signatures: grammar, coercion, validation, names at the boundary, and conversion from and to JSON Schema.

use std::time::Duration;

use arbitrary::Unstructured;
use ptc_lisp::signature::{self, Field, Mode, PRIMITIVES, Signature, Type, to_property_names};
use ptc_lisp::{Limits, Program, Run, Value, json, print};

fn parsed(text: &str) -> Signature {
    Signature::parse(text).unwrap_or_else(|error| panic!("{}", error.render(text)))
}

/// Returns the value of a program.
fn value(source: &str) -> Value {
    let program = Program::compile(source).unwrap_or_else(|error| panic!("{}", error.render(source)));
    let limits = Limits::default().wall_clock(Duration::from_secs(20));
    Run::new(&program).limits(limits).execute_on_thread().result.unwrap_or_else(|error| panic!("{}", error.render(source)))
}

#[test]
fn valid_signatures_parse_and_render() {
    for (text, rendered) in [
        (":string", "() -> :string"),
        ("() -> :string", "() -> :string"),
        (":int?", "() -> :int?"),
        (":boolean", "() -> :bool"),
        ("{ok :boolean?}", "() -> {ok :bool?}"),
        (":datetime", "() -> :datetime"),
        ("{at :datetime?}", "() -> {at :datetime?}"),
        ("{}", "() -> {}"),
        ("[{}]", "() -> [{}]"),
        ("[:any]", "() -> [:any]"),
        ("[[:int]?]?", "() -> [[:int]?]?"),
        ("[:string?]", "() -> [:string?]"),
        ("{id :int, email :string?}", "() -> {id :int, email :string?}"),
        ("{ id :int , name :string }", "() -> {id :int, name :string}"),
        ("{id:int,name:string}", "() -> {id :int, name :string}"),
        ("{user {id :int}?}", "() -> {user {id :int}?}"),
        ("{user-id :int, _raw_data [:map]}", "() -> {user-id :int, _raw_data [:map]}"),
        ("  (\n  id :int\n) -> :string  ", "(id :int) -> :string"),
        ("(query :string, limit :int) -> [{id :int}]", "(query :string, limit :int) -> [{id :int}]"),
        (
            "(query :string, options {limit :int?, sort :string?}) ->\n{results [{id :int, score :float, metadata :map}], total :int}",
            "(query :string, options {limit :int?, sort :string?}) -> {results [{id :int, score :float, metadata :map}], total :int}",
        ),
        (
            "{user {profile {settings {theme {colors {primary :string}}}}}}",
            "() -> {user {profile {settings {theme {colors {primary :string}}}}}}",
        ),
    ] {
        let signature = parsed(text);
        assert_eq!(signature.to_string(), rendered, "{text}");
        assert_eq!(parsed(rendered), signature, "{text}");
    }
    assert_eq!(parsed("{count :int}"), parsed("() -> {count :int}"));
}

#[test]
fn invalid_signatures_are_refused_with_position() {
    for (text, column, message, hint) in [
        ("", 1, "expected a signature, got the end of the signature", "(name :type) -> :type"),
        ("   ", 4, "expected a signature, got the end of the signature", "the type of the result"),
        ("invalid syntax here", 1, "expected a type, got 'invalid'", "types are :string"),
        ("int", 1, "expected a type, got 'int'", "types begin with a colon: :int"),
        (":", 2, "expected the name of a type after ':', got the end of the signature", "types are"),
        ("(id :)", 6, "expected the name of a type after ':', got ')'", "types are"),
        (":unknown", 1, "there is no type :unknown", "types are"),
        (":strin", 1, "there is no type :strin", "did you mean :string?"),
        (":intx", 1, "there is no type :intx", "did you mean :int?"),
        ("(items :list) -> :bool", 8, "there is no type :list", "[:int]"),
        ("{a :array}", 4, "there is no type :array", "[:any]"),
        (":tuple", 1, "there is no type :tuple", "{x :int, y :int}"),
        ("{o :object}", 4, "there is no type :object", "{field :type}"),
        (":integer", 1, "there is no type :integer", "write :int"),
        ("[]", 2, "expected the type of the list's items, got ']'", "[:any]"),
        ("[:int, :string]", 6, "expected ']', got ','", "one type"),
        ("[:int", 6, "expected ']', got the end of the signature", "one type"),
        ("(id :int -> :string", 10, "expected ',' or ')', got '-'", "brackets"),
        ("(id :int)", 10, "expected '->', got the end of the signature", "write ->"),
        ("-> :int", 1, "expected a signature, got '-'", "() -> :type"),
        (":int -> :int", 6, "expected the end of the signature, got '-'", "round brackets"),
        ("(id :int) -> :string extra", 22, "expected the end of the signature, got 'e'", "map with named fields"),
        ("{id :int name :string}", 10, "expected ',' or '}', got 'n'", "separated by commas"),
        ("{id :int,}", 10, "expected a name, got '}'", "a name and a type"),
        ("{:id :int}", 2, "expected a name, got ':'", "has no colon"),
        ("{1st :int}", 2, "expected a name, got '1'", "do not begin with a digit"),
        ("{\"a\" :int}", 2, "expected a name, got '\"'", "letters"),
        ("{a :int, a :string}", 10, "'a' is repeated: 'a' is declared before it", "of its own"),
        (
            "(a-b :int, a_b :int) -> :any",
            12,
            "'a_b' is repeated: 'a-b' is declared before it",
            "hyphens and underscores are the same",
        ),
        (":int??", 6, "expected no second '?', got '?'", "one ?"),
        (":int ?", 6, "expected the end of the signature, got '?'", "one ?"),
        ("{a :int ?}", 9, "expected ',' or '}', got '?'", "without a space"),
        ("{a}", 3, "expected a type, got '}'", "types are"),
        ("{größe :int}", 4, "expected a type, got 'ö'", "types are"),
    ] {
        let error = Signature::parse(text).expect_err(text);
        assert_eq!(error.message, message, "{text}");
        let found = error.position.map(|at| at.column);
        assert_eq!(found, Some(column), "{text}: {message}");
        assert!(error.hint.as_deref().is_some_and(|found| found.contains(hint)), "{text}: {:?}", error.hint);
    }
    let text = "{count :int,\n items [:strng]}";
    let rendered = Signature::parse(text).expect_err(text).render(text);
    let expected = "parse_error: there is no type :strng\n at line 2, column 9\n 2 |  items [:strng]}\n   |         ^^^^^^\nhint: did you mean :string?";
    assert!(rendered.starts_with(expected), "{rendered}");
}

#[test]
fn nesting_beyond_maximum_is_refused() {
    let nested = |levels: usize| format!("{}:int{}", "[".repeat(levels), "]".repeat(levels));
    assert!(Signature::parse(&nested(200)).is_ok());
    let error = Signature::parse(&nested(100_000)).expect_err("too deep");
    assert_eq!(error.message, "types are nested more than 256 deep");
    let deep = value("(reduce (fn [v _] [v]) [] (range 1000))");
    assert!(signature::arguments(&deep).expect_err("too deep").to_string().contains("nested more than 256 deep"));
    let mut schema = Value::map([]);
    for _ in 0..1000 {
        schema = Value::map([("type".into(), "array".into()), ("items".into(), schema)]);
    }
    assert!(Type::from_json_schema(&schema).expect_err("too deep").message.contains("nested"));
}

/// Checks arguments. Returns the value with the warnings, or the mismatches.
fn arguments(signature: &str, args: &str, mode: Mode) -> String {
    match parsed(signature).check_arguments(&value(args), mode) {
        Ok(checked) if checked.warnings.is_empty() => print::readable(&checked.value),
        Ok(checked) => format!("{}\n{}", print::readable(&checked.value), checked.warnings),
        Err(mismatches) => mismatches.to_string(),
    }
}

#[test]
fn arguments_are_coerced_to_declared_types() {
    for (signature, args, expected) in [
        ("(id :int) -> :any", "{:id \"42\"}", "{\"id\" 42}\n- id: coerced string \"42\" to int"),
        ("(id :int) -> :any", "{:id \" -5 \"}", "{\"id\" -5}\n- id: coerced string \" -5 \" to int"),
        (
            "(id :int) -> :any",
            "{:id \"12345678901234567890\"}",
            "{\"id\" 12345678901234567890}\n- id: coerced string \"12345678901234567890\" to int",
        ),
        ("(id :int) -> :any", "{:id \"4.2\"}", "- id: expected int, got string \"4.2\""),
        ("(id :int) -> :any", "{:id \"\"}", "- id: expected int, got string \"\""),
        ("(id :int) -> :any", "{:id 42.0}", "- id: expected int, got float 42.0"),
        ("(id :int) -> :any", "{:id true}", "- id: expected int, got bool true"),
        ("(x :float) -> :any", "{:x 42}", "{\"x\" 42.0}"),
        ("(x :float) -> :any", "{:x \"3.14\"}", "{\"x\" 3.14}\n- x: coerced string \"3.14\" to float"),
        ("(x :float) -> :any", "{:x \"1e3\"}", "{\"x\" 1000.0}\n- x: coerced string \"1e3\" to float"),
        ("(x :float) -> :any", "{:x \"inf\"}", "- x: expected float, got string \"inf\""),
        ("(x :float) -> :any", "{:x \"1e999\"}", "- x: expected float, got string \"1e999\""),
        ("(x :float) -> :any", "{:x \".5\"}", "- x: expected float, got string \".5\""),
        ("(b :bool) -> :any", "{:b \"true\"}", "{\"b\" true}\n- b: coerced string \"true\" to bool"),
        ("(b :bool) -> :any", "{:b \"yes\"}", "- b: expected bool, got string \"yes\""),
        ("(b :bool) -> :any", "{:b 1}", "- b: expected bool, got int 1"),
        ("(s :string) -> :any", "{:s :open}", "{\"s\" \"open\"}\n- s: coerced keyword :open to string"),
        ("(s :string) -> :any", "{:s 1}", "- s: expected string, got int 1"),
        (
            "(s :string) -> :any",
            "{:s (LocalDate/parse \"2026-05-03\")}",
            "{\"s\" \"2026-05-03\"}\n- s: coerced a date 2026-05-03 to string",
        ),
        ("(k :keyword) -> :any", "{:k \"open\"}", "{\"k\" :open}\n- k: coerced string \"open\" to keyword"),
        ("(k :keyword) -> :any", "{:k \"not a keyword\"}", "- k: expected keyword, got string \"not a keyword\""),
        ("(m :map) -> :any", "{:m {:a-b {:c-d 1}}}", "{\"m\" {\"a_b\" {\"c_d\" 1}}}"),
        ("(m :map) -> :any", "{:m [1]}", "- m: expected map, got list"),
        ("(ids [:int]) -> :any", "{:ids [1 \"2\" :x]}", "- ids[2]: expected int, got keyword :x"),
        ("(ids [:int]) -> :any", "{:ids #{3 1}}", "{\"ids\" [1 3]}"),
        (
            "(rows [{id :int, name :string}]) -> :any",
            "{:rows [{:id \"42\" :name \"Alice\"} {:id 7 :name \"Bob\"}]}",
            "{\"rows\" [{\"id\" 42 \"name\" \"Alice\"} {\"id\" 7 \"name\" \"Bob\"}]}\n- rows[0].id: coerced string \"42\" to int",
        ),
        ("(a :int?, b :int?) -> :any", "{:a nil}", "{\"a\" nil}"),
        ("(a :int, b {c :string}) -> :any", "{}", "- a: expected int, got nil\n- b: expected map, got nil"),
        ("() -> :any", "nil", "{}"),
        ("() -> :any", "{:extra 1}", "{\"extra\" 1}"),
        ("(a :any) -> :any", "5", "- expected map, got int 5"),
        ("(user_id :int) -> :any", "{:user-id 1 \"created-at\" 2}", "{\"created_at\" 2 \"user_id\" 1}"),
        ("(user-id :int) -> :any", "{:user_id 1}", "{\"user_id\" 1}"),
        ("(m :any) -> :any", "{:m {1 :one true 2}}", "{\"m\" {\"1\" :one \"true\" 2}}"),
        (
            "(m :any) -> :any",
            "{:m {:a-b 1 \"a_b\" 2}}",
            "- m: two keys are the same once hyphens are underscores and keywords are strings",
        ),
        ("(m :any) -> :any", "{:m {[1] 2}}", "- m: a vector cannot be the key of an argument: use a keyword or a string"),
        ("(m :any) -> :any", "{:m [1 inc]}", "- m[1]: expected data, got a function"),
        ("(at :datetime) -> :any", "{:at \"2026-05-03T09:14:00.5Z\"}", "{\"at\" \"2026-05-03T09:14:00.500Z\"}"),
        ("(at :datetime) -> :any", "{:at \"2026-05-03T09:14:00+00:00\"}", "{\"at\" \"2026-05-03T09:14:00Z\"}"),
        (
            "(at :datetime) -> :any",
            "{:at \"2026-05-03T11:14:00+02:00\"}",
            "{\"at\" \"2026-05-03T09:14:00Z\"}\n- at: non-UTC offset in \"2026-05-03T11:14:00+02:00\", normalized to UTC",
        ),
        (
            "(at :datetime) -> :any",
            "{:at \"2026-05-03T09:14:00\"}",
            "- at: expected datetime, got string \"2026-05-03T09:14:00\" without an offset: add Z, or one such as +02:00",
        ),
        (
            "(at :datetime) -> :any",
            "{:at \"tomorrow\"}",
            "- at: expected datetime, got string \"tomorrow\": write ISO 8601 with an offset, such as 2026-05-03T09:14:00Z",
        ),
        ("(at :datetime) -> :any", "{:at 42}", "- at: expected datetime, got int 42"),
    ] {
        let found = arguments(signature, args, Mode::Enabled);
        assert_eq!(found, expected, "{signature} {args}");
    }
}

#[test]
fn validation_modes_differ_in_strictness() {
    let signature = "(id :int) -> :any";
    for (mode, args, expected) in [
        (Mode::Strict, "{:id \"42\"}", "- id: expected int, got string \"42\""),
        (Mode::Strict, "{:id 1 :x-y 2}", "- x_y: unexpected field: no other fields than the declared ones are allowed"),
        (Mode::Strict, "{:id 1}", "{\"id\" 1}"),
        (Mode::WarnOnly, "{:id \"x\"}", "{\"id\" \"x\"}\n- id: expected int, got string \"x\""),
        (Mode::WarnOnly, "{:id \"7\"}", "{\"id\" 7}\n- id: coerced string \"7\" to int"),
        (Mode::Disabled, "{:id \"x\" :a-b 1}", "{\"a_b\" 1 \"id\" \"x\"}"),
    ] {
        assert_eq!(arguments(signature, args, mode), expected, "{mode:?} {args}");
    }
    let extra = value("{:count 5 :more {:deep 1}}");
    let output = parsed("{count :int, more {}}");
    assert!(output.check_result(&extra, Mode::Enabled).is_ok());
    let mismatches = output.check_result(&extra, Mode::Strict).expect_err("more.deep is not declared");
    assert_eq!(mismatches.to_string(), "- more.deep: unexpected field: no other fields than the declared ones are allowed");
}

#[test]
fn results_are_not_coerced() {
    for (signature, result, expected) in [
        ("{order_count :int, is_active :bool}", "{:order-count 5 :is-active true}", ""),
        ("{order_count :int}", "{\"order_count\" 5}", ""),
        ("{order-count :int}", "{:order_count 5}", ""),
        ("{count :int}", "{:count \"5\"}", "- count: expected int, got string \"5\""),
        (":float", "42", ""),
        (":float", "\"4.2\"", "- expected float, got string \"4.2\""),
        (":int", "4.0", "- expected int, got float 4.0"),
        (":string", ":open", "- expected string, got keyword :open"),
        (":keyword", "\"high-priority\"", ""),
        (":keyword", "\"ok?\"", ""),
        (":keyword", "\"foo/bar\"", "- expected keyword, got string \"foo/bar\""),
        (":keyword", "\"\"", "- expected keyword, got string \"\""),
        (":datetime", "(java.util.Date. 0)", ""),
        (":datetime", "(LocalDate/parse \"2026-05-03\")", "- expected datetime, got a date 2026-05-03"),
        ("[:int]", "[1 \"two\" 3.0]", "- [1]: expected int, got string \"two\"\n- [2]: expected int, got float 3.0"),
        ("[:int]", "#{1}", "- expected list, got set"),
        ("[:int]", "nil", "- expected list, got nil"),
        (":any", "nil", ""),
        (":string?", "nil", ""),
        (":string?", "1", "- expected string, got int 1"),
        ("{email :string?}", "{}", ""),
        ("{}", "{:a 1}", ""),
        ("{}", "[]", "- expected map, got list"),
        (
            "{results [{customer {id :int}, amount :float}]}",
            "{:results [{:customer {:id \"abc\"} :amount 1} {:customer {:id 1} :amount 2} {:customer {:id 1} :amount nil}]}",
            "- results[0].customer.id: expected int, got string \"abc\"\n- results[2].amount: expected float, got nil",
        ),
        (":int", "(apply str (repeat 1000 \"x\"))", "- expected int, got string \"xxxxxxx"),
    ] {
        let found = parsed(signature).check_result(&value(result), Mode::Enabled);
        let found = found.map_or_else(|mismatches| mismatches.to_string(), |_| String::new());
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{signature} {result}: {found}");
        assert!(found.len() < 300, "{found}");
    }
}

#[test]
fn further_mismatches_are_counted() {
    let mismatches = parsed("[:int]").check_result(&value("(repeat 1000 nil)"), Mode::Enabled).expect_err("all of them");
    assert_eq!((mismatches.len(), mismatches.iter().count()), (1000, 20));
    assert!(mismatches.to_string().ends_with("- [19]: expected int, got nil\n… and 980 more"));
}

#[test]
fn json_is_converted_to_declared_type() {
    let output = parsed("{state :keyword, at :datetime, rows [{tag :keyword?, n :int}], note :string}").output;
    let wire = json::decode(
        br#"{"state": "open", "at": "2026-05-03T11:14:00+02:00", "rows": [{"tag": "x", "n": 1}, {"n": "2"}], "note": "open"}"#,
    );
    let typed = output.from_wire(&wire.expect("JSON"));
    assert_eq!(typed.get("state"), Some(&Value::keyword("open")));
    assert_eq!(typed.get("note"), Some(&Value::string("open")));
    let instant = typed.get("at").and_then(Value::as_temporal).expect("an instant");
    assert_eq!(instant.to_string(), "2026-05-03T09:14:00Z");
    // A value that does not fit stays unchanged, and validation reports it.
    let mismatches = output.validate(&typed).expect_err("rows[1].n is text");
    assert_eq!(mismatches.to_string(), "- rows[1].n: expected int, got string \"2\"");
}

#[test]
fn json_schemas_convert_to_types() {
    for (schema, expected) in [
        (r#"{"type": "integer", "description": "how many"}"#, ":int"),
        (r#"{"type": "number"}"#, ":float"),
        (r#"{"type": "string", "format": "date-time"}"#, ":datetime"),
        (r#"{"type": ["boolean", "null"]}"#, ":bool?"),
        (r#"{"type": ["string"]}"#, ":string"),
        ("{}", ":any"),
        ("true", ":any"),
        (r#"{"type": "array"}"#, "[:any]"),
        (r#"{"type": "array", "items": {"type": "string"}}"#, "[:string]"),
        (r#"{"type": "object"}"#, ":map"),
        (r#"{"type": "object", "additionalProperties": false}"#, "{}"),
        (r#"{"type": "object", "properties": {"b": {"type": "integer"}, "a": {}}, "required": ["b"]}"#, "{a :any?, b :int}"),
        (r#"{"type": "string", "enum": ["a"]}"#, "! a signature cannot say enum of string"),
        (r#"{"type": "integer", "minimum": 1, "maximum": 2}"#, "! a signature cannot say maximum, minimum of integer"),
        (r##"{"$ref": "#/$defs/a"}"##, "! a signature cannot say $ref of a schema without a type"),
        (r#"{"anyOf": []}"#, "! a signature cannot say anyOf of a schema without a type"),
        (r#"{"type": ["string", "integer"]}"#, "! a signature has no unions: \"type\" is one type, or one and \"null\""),
        (r#"{"type": "null"}"#, "! there is no signature type for \"null\""),
        (r#"{"type": 5}"#, "! \"type\" must be a string or a list, got 5"),
        ("5", "! expected a schema, an object, got 5"),
        (r#"{"type": "object", "required": ["missing"]}"#, "! \"missing\" is required and no property"),
        (r#"{"type": "object", "required": [1]}"#, "! required must be a list of names, got [1]"),
        (r#"{"type": "object", "additionalProperties": {}}"#, "! additionalProperties must be true or false, got {}"),
        (r#"{"type": "object", "properties": {"a b": {}}}"#, "! the property \"a b\" is not a valid field name"),
        (
            r#"{"type": "object", "properties": {"a-b": {}, "a_b": {}}}"#,
            "! the property \"a_b\" is repeated: hyphens and underscores are the same",
        ),
        (
            r#"{"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "string", "pattern": "x"}}}}"#,
            "! properties.rows.items: a signature cannot say pattern of string",
        ),
    ] {
        let found = Type::from_json_schema(&json::decode(schema.as_bytes()).expect("JSON"));
        let found = found.map_or_else(|error| format!("! {error}"), |of| of.to_string());
        assert_eq!(found, expected, "{schema}");
    }
}

#[test]
fn generated_schemas_convert_to_types_without_their_constraints() {
    for (schema, expected) in [
        (r#"{"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255}"#, ":int"),
        (r#"{"type": "number", "format": "double"}"#, ":float"),
        (r#"{"type": "string", "format": "date-time"}"#, ":datetime"),
        (r#"{"type": "string", "format": "uuid"}"#, ":string"),
        (r#"{"type": ["string", "null"], "enum": ["a", "b", null]}"#, ":string?"),
        (r#"{"enum": ["a", "b"]}"#, ":string"),
        (r#"{"enum": ["a", 1]}"#, ":any"),
        (r#"{"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "enum": ["b"]}]}"#, ":string"),
        (r#"{"anyOf": [{"type": "integer"}, {"type": "null"}]}"#, ":int?"),
        (r#"{"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}"#, ":any?"),
        (r#"{"oneOf": [{"type": "object", "properties": {"a": true}}, {"type": "object", "properties": {"b": true}}]}"#, ":map"),
        (r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#, ":map"),
        (r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#, "[:string]"),
        (r#"{"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "maxItems": 1}"#, ":any"),
        (r#"{"type": "null"}"#, ":any"),
        (r#"{"type": "array", "items": {"type": "object", "properties": {"a b": {}}}}"#, "[:any]"),
        (r##"{"$ref": "#/$defs/A", "$defs": {"A": {"type": "boolean"}}}"##, ":bool"),
        (r##"{"$ref": "#/$defs/A"}"##, ":any"),
        (
            r##"{"type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#"}}}, "required": ["of"]}"##,
            "{of [:any]}",
        ),
        (
            r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "string"}},
                "required": ["c", "b"], "additionalProperties": false}"#,
            "{c :string, b :string, a :int?}",
        ),
    ] {
        let schema = json::decode(schema.as_bytes()).expect("JSON");
        let found = Signature::from_json_schemas_lossy(&parsed("() -> :any").input_schema(), &schema);
        assert_eq!(found.map(|found| found.output.to_string()).as_deref(), Ok(expected), "{}", print::readable(&schema));
    }
}

#[test]
fn generated_schema_with_a_name_that_no_argument_can_have_is_refused() {
    let refused = |schema: &str| {
        let schema = json::decode(schema.as_bytes()).expect("JSON");
        Signature::from_json_schemas_lossy(&schema, &Value::True).expect_err("it is refused").to_string()
    };
    assert_eq!(refused(r#"{"type": "object", "properties": {"@id": {}}}"#), "the property \"@id\" is not a valid field name");
    assert_eq!(refused(r#"{"type": "string"}"#), "the arguments of a tool are an object, got the schema of :string");
}

#[test]
fn arguments_take_the_names_of_properties_at_any_depth() {
    let schema = r##"{
        "type": "object",
        "properties": {
            "max-rows": {"type": "integer"},
            "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
            "pair": {"prefixItems": [{"$ref": "#/$defs/Row"}, {"type": "integer"}]},
            "by-name": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Row"}},
            "order": {"type": "string"},
            "limit": {"type": ["integer", "null"]}
        },
        "$defs": {
            "Row": {"anyOf": [{"type": "null"}, {"type": "object", "properties": {
                "row-id": {"type": "integer"},
                "next-row": {"$ref": "#/$defs/Row"}
            }}]}
        }
    }"##;
    let schema = json::decode(schema.as_bytes()).expect("JSON");
    for (given, expected) in [
        (r#"{"max_rows": 1, "other_name": 2}"#, r#"{"max-rows":1,"other_name":2}"#),
        (r#"{"rows": [{"row_id": 1, "next_row": {"row_id": 2}}]}"#, r#"{"rows":[{"next-row":{"row-id":2},"row-id":1}]}"#),
        (r#"{"pair": [{"row_id": 1}, 2]}"#, r#"{"pair":[{"row-id":1},2]}"#),
        (r#"{"by_name": {"row_id": {"row_id": 1}}}"#, r#"{"by-name":{"row_id":{"row-id":1}}}"#),
        (r#"{"order": null, "limit": null, "rows": [null]}"#, r#"{"limit":null,"rows":[null]}"#),
    ] {
        let converted = to_property_names(json::decode(given.as_bytes()).expect("JSON"), &schema);
        assert_eq!(json::encode(&converted, 1000).expect("JSON"), expected);
    }
}

#[test]
fn signatures_round_trip_through_json_schema() {
    let text = "(at :datetime, limit :int?, tags [:keyword]) -> [{id :int}]";
    let signature = parsed(text);
    let shown = |schema: Value| json::encode(&schema, 10_000).expect("JSON");
    assert_eq!(
        shown(signature.input_schema()),
        r#"{"properties":{"at":{"format":"date-time","type":"string"},"limit":{"type":["integer","null"]},"tags":{"items":{"type":"string"},"type":"array"}},"required":["at","tags"],"type":"object"}"#
    );
    assert_eq!(
        shown(signature.provider_schema()),
        r#"{"additionalProperties":false,"properties":{"items":{"items":{"additionalProperties":false,"properties":{"id":{"type":"integer"}},"required":["id"],"type":"object"},"type":"array"}},"required":["items"],"type":"object"}"#
    );
    assert_eq!(
        shown(parsed("{at :datetime, x :any?}").provider_schema()),
        r#"{"additionalProperties":false,"properties":{"at":{"type":"string"},"x":{"type":"object"}},"required":["at"],"type":"object"}"#
    );
    let back = Signature::from_json_schemas(&signature.input_schema(), Some(&signature.output_schema())).expect("a signature");
    // JSON has no keywords.
    assert_eq!(back.to_string(), "(at :datetime, limit :int?, tags [:string]) -> [{id :int}]");
    let error = Signature::from_json_schemas(&parsed(":int").output_schema(), None).expect_err("no object");
    assert_eq!(error.to_string(), "the arguments of a tool are an object, got the schema of :int");
}

/// Generates a type from arbitrary bytes.
fn some_type(u: &mut Unstructured<'_>, depth: u32) -> arbitrary::Result<Type> {
    let of = match u.int_in_range(0..=if depth == 0 { 0 } else { 2 })? {
        0 => u.choose(PRIMITIVES)?.1.clone(),
        1 => some_type(u, depth - 1)?.listed(),
        _ => Type::Fields { fields: some_fields(u, depth - 1)?, closed: false },
    };
    Ok(if u.ratio(1, 4)? { of.optional() } else { of })
}

fn some_fields(u: &mut Unstructured<'_>, depth: u32) -> arbitrary::Result<Vec<Field>> {
    const NAMES: &[&str] = &["a", "b_c", "d-e", "_f", "G9", "h_i_j", "k"];
    let count = u.int_in_range(0..=NAMES.len())?;
    NAMES.iter().take(count).map(|name| Ok(Field { name: (*name).to_owned(), of: some_type(u, depth)? })).collect()
}

/// Generates a value of the type.
fn some_value(u: &mut Unstructured<'_>, of: &Type) -> arbitrary::Result<Value> {
    Ok(match of {
        Type::String => Value::string(*u.choose(&["", "x", "größe", "7", "true"])?),
        Type::Int => value("12345678901234567890").min(Value::int(u.arbitrary()?)),
        Type::Float => Value::double(f64::from(u.arbitrary::<i16>()?) / 4.0),
        Type::Bool => Value::bool(u.arbitrary()?),
        Type::Keyword => Value::keyword(*u.choose(&["a", "b-c", "ok?"])?),
        Type::Datetime => value("(java.util.Date. 1777777777000)"),
        Type::Any => Value::string("any"),
        Type::Map => Value::map([(Value::string("k"), Value::Nil)]),
        Type::List(item) => {
            let count = u.int_in_range(0..=3)?;
            Value::vector((0..count).map(|_| some_value(u, item)).collect::<arbitrary::Result<_>>()?)
        }
        Type::Fields { fields, .. } => {
            let mut entries = Vec::new();
            for field in fields {
                if !field.of.is_optional() || u.arbitrary()? {
                    entries.push((Value::string(&field.name), some_value(u, &field.of)?));
                }
            }
            Value::map(entries)
        }
        Type::Optional(inner) => {
            if u.arbitrary()? {
                Value::Nil
            } else {
                some_value(u, inner)?
            }
        }
    })
}

/// Returns the type after a round trip through JSON Schema: without keywords, and with fields sorted by name.
fn in_json(of: &Type) -> Type {
    match of {
        Type::Keyword => Type::String,
        Type::List(item) => in_json(item).listed(),
        Type::Optional(inner) if matches!(**inner, Type::Any) => Type::Any,
        Type::Optional(inner) => in_json(inner).optional(),
        Type::Fields { fields, closed } => {
            let mut fields: Vec<Field> = fields
                .iter()
                .map(|field| {
                    let of = in_json(&field.of);
                    Field { name: field.name.clone(), of: if field.of.is_optional() { of.optional() } else { of } }
                })
                .collect();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            Type::Fields { fields, closed: *closed }
        }
        other => other.clone(),
    }
}

#[test]
fn random_signatures_round_trip_and_accept_generated_values() {
    let mut longest = 0;
    for seed in 0..600_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .take(600)
        .collect();
        let u = &mut Unstructured::new(&bytes);
        let signature = Signature { params: some_fields(u, 2).unwrap(), output: some_type(u, 3).unwrap() };
        let text = signature.to_string();
        longest = longest.max(text.len());
        assert_eq!(parsed(&text), signature, "seed {seed}");
        let output = &signature.output;
        assert_eq!(Type::from_json_schema(&output.to_json_schema()).unwrap(), in_json(output), "seed {seed}: {text}");

        let made = some_value(u, output).unwrap();
        assert_eq!(output.validate(&made), Ok(()), "seed {seed}: {text} {made:?}");
        assert_eq!(output.coerce(&made).map(|checked| checked.value), Ok(made.clone()), "seed {seed}: {text}");
        let wire = json::decode(json::encode(&made, 100_000).unwrap().as_bytes()).unwrap();
        assert_eq!(output.validate(&output.from_wire(&wire)), Ok(()), "seed {seed}: {text} {wire:?}");
    }
    assert!(longest > 300, "{longest}");
}
