//! Request bodies of every kind.

use serde_json::{Value, json};

use super::service::{Service, accept, eval, with_body};

/// Makes a service with the operation `post`, whose body has this type and schema, and calls it with `args`. Returns the result,
/// and `Content-Type` and body of the request, if there was one.
fn post(entry: &Value, media_type: &str, schema: &Value, args: &str) -> (Result<String, String>, Option<(String, String)>) {
    let mut entry = entry.clone();
    entry["include_operations"] = json!(["post"]);
    let paths = json!({ "/x": { "post": with_body("post", media_type, schema) } });
    let service = Service::start(&entry, &paths, accept);
    let outcome = eval(&service.engine(), &format!(r#"(:value (tool/value {{:server "api" :tool "post" :args {args}}}))"#));
    let request = service.web.requests().pop().map(|asked| {
        assert_eq!((asked.method.as_str(), asked.target.as_str()), ("POST", "/v1/x"));
        (asked.header("content-type").unwrap().to_owned(), asked.body)
    });
    (outcome.result, request)
}

/// Returns the request that a call sends.
fn sent(media_type: &str, schema: &Value, args: &str) -> (String, String) {
    let (result, request) = post(&json!({}), media_type, schema, args);
    request.unwrap_or_else(|| panic!("{result:?}"))
}

/// Returns the message of a call for which nothing is sent.
fn refused(media_type: &str, schema: &Value, args: &str) -> String {
    let (result, request) = post(&json!({}), media_type, schema, args);
    assert_eq!(request, None, "{args}");
    result.unwrap_err()
}

fn object(properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

fn order() -> Value {
    let line = json!({ "type": "object", "required": ["sku", "count"], "properties": {
        "sku": { "type": "string" }, "count": { "type": "integer", "minimum": 1 } } });
    json!({ "type": "object", "required": ["customer", "id", "lines"], "properties": {
        "id": { "type": "integer", "readOnly": true },
        "customer": { "type": "string", "minLength": 2 },
        "lines": { "type": "array", "items": line },
        "note": { "type": ["string", "null"] },
        "discount": { "type": "number" },
        "extra": {} } })
}

#[test]
fn json_members_are_arguments() {
    let json = |args: &str| {
        let (content_type, body) = sent("application/json", &order(), args);
        assert_eq!(content_type, "application/json");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let lines = json!([{ "sku": "a", "count": 2 }]);
    assert_eq!(
        json(r#"{:customer "Ann" :lines [{:sku "a" :count 2}] :discount 0.5}"#),
        json!({ "customer": "Ann", "lines": lines, "discount": 0.5 })
    );
    // Null is sent where the schema admits it, and otherwise leaves a member out.
    assert_eq!(
        json(r#"{:customer "Ann" :lines [{:sku "a" :count 2}] :note nil :discount nil :extra nil}"#),
        json!({ "customer": "Ann", "lines": lines, "note": null })
    );
    assert_eq!(
        sent("application/vnd.shop+json; version=2", &order(), r#"{:customer "Ann" :lines []}"#).0,
        "application/vnd.shop+json; version=2"
    );
}

#[test]
fn required_and_nested_members_are_checked_before_anything_is_sent() {
    for (args, expected) in [
        (r#"{:customer "Ann"}"#, "missing required args lines"),
        (r#"{:customer "A" :lines []}"#, "'customer' must have at least 2 characters"),
        (r#"{:customer "Ann" :lines [{:sku "a"}]}"#, "'lines[0].count' is missing"),
        (r#"{:customer "Ann" :lines [{:sku "a" :count 0}]}"#, "'lines[0].count' must be at least 1, got 0"),
        (r#"{:customer "Ann" :lines [] :id 5}"#, "unknown arg 'id'"),
        (r#"{:customer "Ann" :lines [] :nots "x"}"#, "unknown arg 'nots'"),
        // These values are not literals, so that only the run can check them.
        (r#"{:customer (str "A") :lines []}"#, "'customer' must have at least 2 characters"),
        (r#"(merge {:customer "Ann"} {})"#, "missing required args lines"),
        (r#"{:customer "Ann" :lines (mapv (fn [n] {:sku "a" :count n}) [1 0])}"#, "'lines[1].count' must be at least 1, got 0"),
    ] {
        let message = refused("application/json", &order(), args);
        assert!(message.contains(expected), "{args}: {message}");
    }
}

#[test]
fn member_with_the_name_of_a_parameter_gets_a_prefix() {
    let mut operation = with_body("move", "application/json", &object(&json!({ "id": { "type": "string" } })));
    operation["parameters"] = json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } },
        { "name": "id", "in": "query", "schema": { "type": "string" } },
        { "name": "X-Trace", "in": "header", "schema": { "type": "string" } }]);
    let service =
        Service::start(&json!({ "include_operations": ["POST /x/{id}"] }), &json!({ "/x/{id}": { "post": operation } }), accept);
    let call = r#"(tool/value {:server "api" :tool "move" :args {:id "1" :id_query "2" :body_id "3" :X-Trace "t"}})"#;
    eval(&service.engine(), call).result.unwrap();
    let asked = service.last();
    assert_eq!((asked.target.as_str(), asked.body.as_str()), ("/v1/x/1?id=2", r#"{"id":"3"}"#));
    assert_eq!(asked.header("x-trace"), Some("t"));
}

#[test]
fn body_with_alternatives_or_open_members_is_one_argument() {
    let alternatives = json!({ "oneOf": [object(&json!({ "a": { "type": "integer" } })), { "type": "array" }] });
    assert_eq!(sent("application/json", &alternatives, "{:body [1 2]}").1, "[1,2]");
    let open = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "additionalProperties": true });
    assert_eq!(sent("application/json", &open, "{:body {:a 1 :b 2}}").1, r#"{"a":1,"b":2}"#);
    assert_eq!(sent("application/json", &json!({ "type": ["string", "null"] }), "{:body nil}").1, "null");
    let message = refused("application/json", &open, r#"{:body {:a "x"}}"#);
    assert!(message.contains("'body.a' must be integer"), "{message}");
    let message = refused("application/json", &open, "{}");
    assert!(message.contains("missing required args body"), "{message}");
}

#[test]
fn form_members_are_written_in_their_styles() {
    let schema = object(&json!({ "name": { "type": "string" }, "tags": { "type": "array", "items": { "type": "string" } },
        "address": { "type": "object", "properties": { "city": { "type": "string" } } } }));
    let args = r#"{:name "a b&c" :tags ["x" "y"] :address {:city "Bern"}}"#;
    let (content_type, body) = sent("application/x-www-form-urlencoded", &schema, args);
    assert_eq!(content_type, "application/x-www-form-urlencoded");
    assert_eq!(decoded(&body), [r#"address={"city":"Bern"}"#, "name=a b&c", "tags=x", "tags=y"]);

    let encoding = json!({ "address": { "style": "deepObject", "explode": true }, "tags": { "explode": false } });
    let mut operation = with_body("post", "application/x-www-form-urlencoded", &schema);
    operation["requestBody"]["content"]["application/x-www-form-urlencoded"]["encoding"] = encoding;
    let paths = json!({ "/x": { "post": operation } });
    let service = Service::start(&json!({ "include_operations": ["post"] }), &paths, accept);
    eval(&service.engine(), &format!(r#"(tool/value {{:server "api" :tool "post" :args {args}}})"#)).result.unwrap();
    assert_eq!(decoded(&service.last().body), ["address[city]=Bern", "name=a b&c", "tags=x,y"]);

    let open = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    assert_eq!(decoded(&sent("application/x-www-form-urlencoded", &open, r#"{:body {:a "1"}}"#).1), ["a=1"]);
}

/// Returns the decoded pairs of a form, sorted.
fn decoded(form: &str) -> Vec<String> {
    let text = |pair: &str| percent_encoding::percent_decode_str(pair).decode_utf8().unwrap().into_owned();
    let mut pairs: Vec<String> = form.split('&').map(text).collect();
    pairs.sort();
    pairs
}

#[test]
fn multipart_has_text_json_and_base64_parts() {
    let schema = json!({ "type": "object", "required": ["file"], "properties": {
        "file": { "type": "string", "format": "binary" },
        "pages": { "type": "array", "items": { "type": "string", "contentMediaType": "image/png" } },
        "caption": { "type": "string" }, "labels": { "type": "array", "items": { "type": "string" } },
        "meta": { "type": "object", "properties": { "n": { "type": "integer" } } } } });
    let args = r#"{:file "AP/+" :pages ["AQ==" "Ag=="] :caption "a\r\nb é" :labels ["x" "y"] :meta {:n 1}}"#;
    let mut operation = with_body("post", "multipart/form-data", &schema);
    operation["requestBody"]["content"]["multipart/form-data"]["encoding"] = json!({
        "pages": { "contentType": "image/png" }, "caption": { "contentType": "text/csv; charset=iso-8859-1" },
        "file": { "contentType": "image/png, image/jpeg" }, "meta": { "contentType": "application/vnd.x+json" } });
    let paths = json!({ "/x": { "post": operation } });
    let service = Service::start(&json!({ "include_operations": ["post"] }), &paths, accept);
    let engine = service.engine();
    eval(&engine, &format!(r#"(tool/value {{:server "api" :tool "post" :args {args}}})"#)).result.unwrap();
    let asked = service.last();
    let boundary = asked.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let head = |name: &str, more: &str| format!("Content-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
    let file = |name: &str, of: &str| head(name, &format!("; filename=\"{name}\"\r\nContent-Type: {of}"));
    let caption = head("caption", "\r\nContent-Type: text/csv; charset=iso-8859-1");
    let mut expected: Vec<Vec<u8>> = vec![
        [file("file", "image/png").as_bytes(), b"\x00\xff\xfe"].concat(),
        [file("pages", "image/png").as_bytes(), b"\x01"].concat(),
        [file("pages", "image/png").as_bytes(), b"\x02"].concat(),
        [caption.as_bytes(), b"a\r\nb \xe9"].concat(),
        format!("{}x", head("labels", "")).into_bytes(),
        format!("{}y", head("labels", "")).into_bytes(),
        format!("{}{{\"n\":1}}", head("meta", "\r\nContent-Type: application/vnd.x+json")).into_bytes(),
    ];
    let mut parts = parts(&asked.bytes, boundary);
    expected.sort();
    parts.sort();
    assert_eq!(parts, expected);

    let call = r#"(tool/value {:server "api" :tool "post" :args {:file "no base64!"}})"#;
    let message = eval(&engine, call).result.unwrap_err();
    assert!(message.contains("'file' must be base64"), "{message}");
    assert_eq!(service.web.requests().len(), 1);
}

/// Splits a multipart body.
fn parts(body: &[u8], boundary: &str) -> Vec<Vec<u8>> {
    let (first, separator, last) =
        (format!("--{boundary}\r\n"), format!("\r\n--{boundary}\r\n"), format!("\r\n--{boundary}--\r\n"));
    let mut rest = body.strip_prefix(first.as_bytes()).unwrap().strip_suffix(last.as_bytes()).unwrap();
    let mut parts = Vec::new();
    while let Some(at) = rest.windows(separator.len()).position(|window| window == separator.as_bytes()) {
        parts.push(rest[..at].to_vec());
        rest = &rest[at + separator.len()..];
    }
    parts.push(rest.to_vec());
    parts
}

#[test]
fn text_xml_and_bytes_are_one_argument() {
    let anything = json!({ "type": "string" });
    assert_eq!(sent("text/plain", &anything, r#"{:body "a\nb é"}"#), ("text/plain".into(), "a\nb é".into()));
    assert_eq!(sent("text/*", &anything, r#"{:body "a"}"#).0, "text/plain");
    let element = object(&json!({ "a": { "type": "string" } }));
    assert_eq!(sent("application/xml", &element, r#"{:body "<a/>"}"#), ("application/xml".into(), "<a/>".into()));
    assert_eq!(sent("image/png", &anything, r#"{:body "iVBORw=="}"#).0, "image/png");
    let message = refused("text/plain; charset=iso-8859-1", &anything, r#"{:body "日"}"#);
    assert!(message.contains("'body' cannot be sent as text/plain; charset=iso-8859-1"), "{message}");

    let paths = json!({ "/x": { "put": with_body("put", "application/octet-stream", &json!({})) } });
    let service = Service::start(&json!({ "include_operations": ["put"] }), &paths, accept);
    let engine = service.engine();
    eval(&engine, r#"(tool/value {:server "api" :tool "put" :args {:body "AP/+"}})"#).result.unwrap();
    assert_eq!(service.last().bytes, b"\x00\xff\xfe");
    for (body, expected) in [(r#""?""#, "'body' must be base64"), ("7", "'body' must be string, got integer 7")] {
        let message = eval(&engine, &format!(r#"(tool/value {{:server "api" :tool "put" :args {{:body {body}}}}})"#));
        assert!(message.result.as_ref().unwrap_err().contains(expected), "{:?}", message.result);
    }
    assert_eq!(service.web.requests().len(), 1);
    let doc = eval(&engine, r#"(doc "api/put")"#).result.unwrap();
    assert!(doc.contains(":body string") && doc.contains("base64"), "{doc}");
}

#[test]
fn preferred_type_is_sent_unless_overridden() {
    let schema = object(&json!({ "a": { "type": "string" } }));
    let mut operation = with_body("post", "text/plain", &schema);
    for media_type in ["multipart/form-data", "application/x-www-form-urlencoded", "application/json"] {
        operation["requestBody"]["content"][media_type] = json!({ "schema": schema });
    }
    let call = |entry: &Value, args: &str| {
        let mut entry = entry.clone();
        entry["include_operations"] = json!(["post"]);
        let service = Service::start(&entry, &json!({ "/x": { "post": operation } }), accept);
        let engine = service.open(|_| {})?;
        let program = format!(r#"(tool/value {{:server "api" :tool "post" :args {args}}})"#);
        eval(&engine, &program).result.unwrap();
        Ok::<_, String>((service.last().header("content-type").unwrap().to_owned(), service.last().body))
    };
    let chosen = |media_type: &str| json!({ "operation_overrides": { "post": { "content_type": media_type } } });
    assert_eq!(call(&json!({}), r#"{:a "1"}"#).unwrap(), ("application/json".into(), r#"{"a":"1"}"#.into()));
    let form = chosen("application/x-www-form-urlencoded");
    assert_eq!(call(&form, r#"{:a "1"}"#).unwrap(), ("application/x-www-form-urlencoded".into(), "a=1".into()));
    assert_eq!(call(&chosen("text/plain"), r#"{:body "1"}"#).unwrap(), ("text/plain".into(), "1".into()));
    // A type within a declared range.
    let image = json!({ "operation_overrides": { "put": { "content_type": "image/png" } }, "include_operations": ["put"] });
    let paths = json!({ "/x": { "put": with_body("put", "image/*", &json!({})) } });
    let service = Service::start(&image, &paths, accept);
    eval(&service.engine(), r#"(tool/value {:server "api" :tool "put" :args {:body "AQ=="}})"#).result.unwrap();
    assert_eq!(service.last().header("content-type"), Some("image/png"));

    let findings = call(&chosen("text/csv"), "{}").unwrap_err();
    assert!(findings.contains("PTC0515") && findings.contains("takes no body of the type `text/csv`"), "{findings}");
}

#[test]
fn optional_body_needs_required_members_if_any_member_is_given() {
    let schema = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "color": { "type": "string" } } });
    let mut operation = with_body("patch", "application/json", &schema);
    operation["requestBody"]["required"] = json!(false);
    let paths = json!({ "/x": { "patch": operation } });
    let service = Service::start(&json!({ "include_operations": ["patch"] }), &paths, accept);
    let engine = service.engine();
    let call = |args: &str| eval(&engine, &format!(r#"(tool/value {{:server "api" :tool "patch" :args {args}}})"#)).result;
    call("{}").unwrap();
    assert_eq!((service.last().header("content-type"), service.last().body.as_str()), (None, ""));
    call(r#"{:name "n"}"#).unwrap();
    assert_eq!(service.last().body, r#"{"name":"n"}"#);
    for args in [r#"{:color "red"}"#, r#"(merge {:color "red"} {})"#] {
        let message = call(args).unwrap_err();
        assert!(message.contains("missing required args name"), "{message}");
    }
    assert_eq!(service.web.requests().len(), 2);
}

#[test]
fn required_body_without_members_is_sent_empty() {
    assert_eq!(sent("application/json", &object(&json!({ "a": { "type": "string" } })), "{}").1, "{}");
}

#[test]
fn get_body_is_sent_only_if_required_and_operation_is_named() {
    let schema = object(&json!({ "q": { "type": "string" } }));
    let mut optional = with_body("find", "application/json", &schema);
    optional["requestBody"]["required"] = json!(false);
    let paths =
        json!({ "/optional": { "get": optional }, "/required": { "get": with_body("search", "application/json", &schema) } });
    let service = Service::start(&json!({ "include_operations": ["*"] }), &paths, accept);
    let engine = service.engine();
    eval(&engine, r#"(tool/value {:server "api" :tool "find"})"#).result.unwrap();
    assert_eq!(service.last().body, "");
    assert_eq!(eval(&engine, r#"(dir "api")"#).result.unwrap(), r#"["api/find"]"#);
    service.configure(&json!({ "include_operations": ["search"], "allow_writes": false }), &json!({}));
    eval(&service.engine(), r#"(tool/value {:server "api" :tool "search" :args {:q "x"}})"#).result.unwrap();
    let asked = service.last();
    assert_eq!((asked.method.as_str(), asked.body.as_str()), ("GET", r#"{"q":"x"}"#));
}

#[test]
fn body_is_at_most_max_request_bytes() {
    let large = "(apply str (repeat 60 \"x\"))";
    let member = object(&json!({ "a": { "type": "string" } }));
    for (media_type, schema, args, is_small) in [
        ("application/json", &member, format!("{{:a {large}}}"), true),
        ("application/x-www-form-urlencoded", &member, format!("{{:a {large}}}"), true),
        ("multipart/form-data", &member, format!("{{:a {large}}}"), false),
        ("text/plain", &member, format!("{{:body {large}}}"), true),
        ("application/octet-stream", &member, "{:body (apply str (repeat 30 \"AAAA\"))}".to_owned(), false),
    ] {
        let with = |most: u64| post(&json!({ "max_request_bytes": most }), media_type, schema, &args);
        let (result, request) = with(50);
        let message = result.unwrap_err();
        assert!(message.contains("than 50 bytes (max_request_bytes of the upstream)"), "{media_type}: {message}");
        assert_eq!(request, None);
        assert!(with(if is_small { 70 } else { 500 }).1.is_some(), "{media_type}");
    }
}

#[test]
fn write_only_members_of_results_are_not_documented() {
    let schema = json!({ "type": "object", "required": ["id", "secret"], "properties": {
        "id": { "type": "integer", "readOnly": true }, "secret": { "type": "string", "writeOnly": true } } });
    let mut operation = with_body("create", "application/json", &schema);
    operation["responses"]["200"]["content"]["application/json"]["schema"] = schema;
    let service = Service::start(&json!({ "include_operations": ["create"] }), &json!({ "/x": { "post": operation } }), accept);
    let doc = eval(&service.engine(), r#"(doc "api/create")"#).result.unwrap();
    assert!(doc.contains("args: {:secret string}") && doc.contains("returns: Result<{:id integer}>"), "{doc}");
}
