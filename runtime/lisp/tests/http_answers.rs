//! What a program sees of the answer of an HTTP service.

use std::sync::Arc;

use ptc_lisp::host::{Discovery, Fault, Host, HttpHead, PendingReply, Reply};
use ptc_lisp::{Program, Run, Value, print};

struct Service;

impl Host for Service {
    fn submit(&self, request: &Value) -> Result<PendingReply, Fault> {
        let head = |status, failed_body: Option<&[u8]>| {
            let headers = vec![("etag".to_owned(), "W/\"7\"".to_owned())];
            Box::new(HttpHead { status, headers, failed_body: failed_body.map(<[u8]>::to_vec) })
        };
        let failed = || Box::new(Reply::Failed { reason: "tool_error", message: "HTTP 409 Conflict".into() });
        Ok(PendingReply::ready(match request.get("tool").and_then(Value::as_name) {
            Some("json") => Reply::Http(head(201, None), Box::new(Reply::Json(b"[1]".to_vec()))),
            Some("text") => Reply::Http(head(200, None), Box::new(Reply::Plain("[1]".into()))),
            Some("empty") => Reply::Http(Box::new(HttpHead { status: 204, ..HttpHead::default() }), Box::new(Reply::None)),
            Some("conflict") => Reply::Http(head(409, Some(br#"{"code":"taken"}"#)), failed()),
            _ => Reply::Http(head(409, Some(b"<html>")), failed()),
        }))
    }

    fn discover(&self, _: Discovery<'_>) -> Result<Value, Fault> {
        Ok(Value::nil())
    }

    fn random(&self) -> u64 {
        4
    }
}

#[test]
fn http_results_have_status_headers_and_failure_body() {
    let call = |name: &str| format!(r#"(tool/call {{:server "s" :tool "{name}"}})"#);
    let cases = [
        (call("json"), r#"{:headers {"etag" "W/\"7\""} :ok true :status 201 :value [1] :value_kind :json}"#),
        (call("text"), r#"{:headers {"etag" "W/\"7\""} :ok true :status 200 :value "[1]" :value_kind :text}"#),
        (call("empty"), "{:ok true :status 204 :value nil :value_kind :none}"),
        (format!("(let [r {}] [(:status r) (get-in r [:body :code])])", call("conflict")), r#"[409 "taken"]"#),
        (
            format!("(dissoc {} :headers)", call("broken")),
            r#"{:message "HTTP 409 Conflict" :ok false :reason :tool_error :status 409}"#,
        ),
        (format!("(get-in {} [:headers :etag])", call("json")), r#""W/\"7\"""#),
        (r#"(tool/value {:server "s" :tool "json"})"#.to_owned(), "[1]"),
        (r#"(tool/value {:server "s" :tool "text"})"#.to_owned(), r#""[1]""#),
    ];
    for (source, expected) in cases {
        let program = Program::compile(&source).unwrap();
        let outcome = Run::new(&program).host(Arc::new(Service)).execute_on_thread();
        let is_branching = source.contains(":status r");
        assert!(!is_branching || outcome.failed_calls.unchecked().is_empty(), "the status was read: {source}");
        assert_eq!(
            outcome.result.map(|value| print::readable(&value)).map_err(|error| error.to_string()),
            Ok(expected.to_owned()),
            "{source}"
        );
    }
}
