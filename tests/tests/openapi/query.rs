//! Operations of OpenAPI 3.2: `QUERY`, methods under `additionalOperations`, and parameters that are the whole query string.

use serde_json::json;

use super::service::{Service, eval};
use crate::web::Answer;

fn service(entry: &serde_json::Value) -> Service {
    let responses = json!({ "200": { "description": "ok", "content": { "application/json": {} } } });
    let search = json!({ "schema": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } } });
    let body = json!({ "required": true, "content": { "application/json": { "$ref": "#/components/mediaTypes/Search" } } });
    let destination = json!({ "name": "Destination", "in": "header", "required": true, "schema": { "type": "string" } });
    let members = json!({ "type": "object", "properties": { "state": { "type": "string" }, "page": { "type": "integer" } } });
    let form = json!({ "application/x-www-form-urlencoded": { "schema": members } });
    let paths = json!({
        "/orders": {
            "query": { "operationId": "search", "requestBody": body, "responses": responses },
            "additionalOperations": {
                "COPY": { "operationId": "copy", "parameters": [destination], "responses": responses },
                "TRACE": { "operationId": "trace", "responses": responses },
            },
        },
        "/filtered": {
            "get": { "operationId": "filter", "responses": responses,
                "parameters": [{ "name": "filter", "in": "querystring", "content": form }] },
        },
        "/selected": {
            "get": { "operationId": "select", "responses": responses,
                "parameters": [{ "name": "selector", "in": "querystring", "content": { "application/json": {} } }] },
        },
    });
    let service = Service::start(&json!({}), &json!({}), |_| Answer::json(200, "{\"found\": 1}"));
    let components = json!({ "mediaTypes": { "Search": search } });
    service.write(
        "api.json",
        &json!({ "openapi": "3.2.0", "info": { "title": "t", "version": "1" }, "paths": paths, "components": components }),
    );
    service.configure(entry, &json!({}));
    service
}

#[test]
fn query_method_is_an_included_read_with_a_body() {
    let service = service(&json!({ "include_operations": ["*"], "allow_writes": false }));
    let engine = service.engine();
    let outcome = eval(&engine, r#"(tool/value {:server "api" :tool "search" :args {:text "late"}})"#);
    assert_eq!(outcome.result, Ok("{\"found\" 1}".to_owned()));
    assert!(outcome.notes.iter().all(|note| !note.contains("write")), "{:?}", outcome.notes);
    let sent = service.last();
    assert_eq!((&*sent.method, &*sent.target, sent.json()), ("QUERY", "/v1/orders", json!({ "text": "late" })));
    let outcome = eval(&engine, r#"(tool/call {:server "api" :tool "copy" :args {:Destination "x"}})"#);
    assert!(outcome.result.is_err(), "a pattern includes no write: {:?}", outcome.result);
}

#[test]
fn additional_methods_are_writes_and_sent_unchanged() {
    let service = service(&json!({ "include_operations": ["copy"] }));
    let outcome = eval(&service.engine(), r#"(:ok (tool/call {:server "api" :tool "copy" :args {:Destination "/v1/old"}}))"#);
    assert_eq!(outcome.result, Ok("true".to_owned()));
    assert!(outcome.notes.iter().any(|note| note.contains("1 write was made")), "{:?}", outcome.notes);
    let sent = service.last();
    assert_eq!((&*sent.method, sent.header("destination")), ("COPY", Some("/v1/old")));
    service.configure(&json!({ "include_operations": ["trace"] }), &json!({}));
    let findings = service.open(|_| {}).err().unwrap();
    assert!(findings.contains("`trace` is a TRACE operation, which cannot be included"), "{findings}");
}

#[test]
fn parameter_in_querystring_is_the_complete_query() {
    let service = service(&json!({ "include_operations": ["filter", "select"] }));
    let engine = service.engine();
    for (tool, args, expected) in [
        ("filter", r#"{:state "a&b"}"#, "/v1/filtered?state=a%26b"),
        ("filter", "{}", "/v1/filtered"),
        ("select", "{:selector {:a [1]}}", "/v1/selected?%7B%22a%22%3A%5B1%5D%7D"),
    ] {
        let outcome = eval(&engine, &format!(r#"(:ok (tool/call {{:server "api" :tool "{tool}" :args {args}}}))"#));
        assert_eq!(outcome.result, Ok("true".to_owned()), "{tool}");
        assert_eq!(service.last().target, expected, "{tool}");
    }
}
