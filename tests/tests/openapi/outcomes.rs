//! What an answer says about the writes of its program.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::json;

use super::service::{Outcome, Service, eval};
use crate::web::{Answer, Asked};

/// A service whose operation `write` answers with the status that the call passes, or hangs.
fn service() -> Service {
    let parameter = json!([{ "name": "code", "in": "path", "required": true, "schema": { "type": "integer" } }]);
    let responses = json!({ "200": { "description": "ok", "content": { "application/json": {} } } });
    let operation = |id: &str| json!({ "operationId": id, "parameters": parameter, "responses": responses });
    let paths = json!({ "/{code}": { "post": operation("write"), "delete": operation("remove"), "get": operation("read") } });
    let answer = |asked: &Asked| match asked.target.trim_start_matches("/v1/") {
        "0" => Answer::Hang,
        "1" => Answer::Close,
        code => Answer::json(code.parse().unwrap(), "{}"),
    };
    Service::start(&json!({ "include_operations": ["write", "remove", "read"] }), &paths, answer)
}

fn call(tool: &str, code: u16) -> String {
    format!(r#"(:reason (tool/call {{:server "api" :tool "{tool}" :args {{:code {code}}}}}))"#)
}

/// Returns the notes about writes.
fn notes(outcome: &Outcome) -> Vec<&str> {
    outcome.notes.iter().map(String::as_str).filter(|note| note.contains("writ")).collect()
}

const ADVICE: &str = "read the data before you repeat a write";

/// Calls as tool and status, and the notes.
type Case = (&'static [(&'static str, u16)], Vec<String>);

#[test]
fn response_reports_the_number_of_writes() {
    let service = service();
    let engine = service.engine();
    let unknown = |names: &str| format!("{names}; {ADVICE}");
    let cases: [Case; 8] = [
        (&[], vec![]),
        (&[("read", 200)], vec![]),
        (&[("write", 200)], vec!["1 write was made".into()]),
        (&[("write", 201), ("remove", 204), ("read", 200)], vec!["2 writes were made".into()]),
        (&[("write", 303)], vec!["1 write was made".into()]),
        (&[("write", 200), ("write", 409)], vec!["1 write was made, and 1 write was rejected by the upstream".into()]),
        // A server may have failed after the write.
        (&[("write", 500)], vec![unknown("1 write was sent with unknown outcome: api/write")]),
        (
            &[("write", 200), ("write", 503), ("write", 1), ("remove", 1)],
            vec!["1 write was made".into(), unknown("3 more writes were sent with unknown outcome: 2 × api/write, api/remove")],
        ),
    ];
    for (calls, expected) in cases {
        let program = format!("[{}]", calls.iter().map(|(tool, code)| call(tool, *code)).collect::<String>());
        let outcome = eval(&engine, &program);
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        assert_eq!(notes(&outcome), expected, "{program}");
    }
}

#[test]
fn failed_program_reports_its_writes() {
    let service = service();
    let engine = service.engine();
    let nothing = "the program failed, and nothing was written";
    for (program, expected) in [
        (format!("(do {} (fail \"no\"))", call("read", 200)), nothing),
        // Faults that are found before the run, too.
        (format!("(do {} (tool/call {{:server \"api\" :tool \"wrte\"}}))", call("write", 200)), nothing),
        ("(".to_owned(), nothing),
        (format!("(do {} (/ 1 0))", call("write", 200)), "1 write was made"),
    ] {
        let outcome = eval(&engine, &program);
        assert!(outcome.result.is_err());
        assert_eq!(notes(&outcome), [expected], "{program}");
    }
    assert_eq!(service.web.requests().iter().filter(|asked| asked.method == "POST").count(), 1);
}

#[test]
fn write_that_could_not_be_sent_is_not_counted() {
    let service = service();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let unreachable = json!({ "include_operations": ["write"], "base_url": format!("http://127.0.0.1:{port}") });
    service.configure(&unreachable, &json!({}));
    let outcome = eval(&service.engine(), &format!("(fail {})", call("write", 200)));
    assert_eq!(outcome.result, Err(":upstream_unavailable".into()));
    assert_eq!(notes(&outcome), ["the program failed, and nothing was written"]);
}

#[test]
fn timed_out_program_names_the_write_in_flight() {
    let service = service();
    let served = ptc_compiler::serve::Source::file(service.folder().join("upstreams.json")).open_blocking().unwrap();
    let limits = ptc_lisp::Limits::default().wall_clock(Duration::from_millis(300));
    let engine = served.engine().limits(limits).build().unwrap();
    let outcome = eval(&engine, &format!("[{} {}]", call("write", 200), call("remove", 0)));
    assert!(outcome.result.is_err());
    let unknown = format!("1 more write was sent with unknown outcome: api/remove; {ADVICE}");
    assert_eq!(notes(&outcome), ["1 write was made", &unknown]);
}

#[test]
fn write_without_a_response_in_time_is_named() {
    let service = service();
    let outcome = eval(&service.engine(), &call("write", 0));
    assert_eq!(outcome.result, Ok(":timeout".into()));
    let unknown = format!("1 write was sent with unknown outcome: api/write; {ADVICE}");
    assert_eq!(notes(&outcome), [unknown]);
}

/// A service that reads one request, closes the connection without an answer, and takes no further connection: it refuses them,
/// or leaves them without an answer because its queue is full.
fn lost_after_one_request(refuses: bool) -> (std::net::SocketAddr, std::thread::JoinHandle<Vec<TcpStream>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut read = [0; 4096];
        let received = stream.read(&mut read).unwrap();
        assert!(read[..received].starts_with(b"DELETE /200"));
        let mut waiting = Vec::new();
        if !refuses {
            while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
                waiting.push(stream);
            }
            std::mem::forget(listener);
        }
        waiting
    });
    (address, served)
}

#[test]
fn write_whose_retry_cannot_connect_is_named() {
    for refuses in [true, false] {
        let service = service();
        let (address, served) = lost_after_one_request(refuses);
        // The time for the request ends while the repetition connects.
        let entry = json!({ "include_operations": ["remove"], "base_url": format!("http://{address}"),
            "connect_timeout_ms": 60_000, "request_timeout_ms": 3_000 });
        service.configure(&entry, &json!({}));
        let outcome = eval(&service.engine(), &format!("(fail {})", call("remove", 200)));
        drop(served.join().unwrap());
        assert!(outcome.result.is_err());
        let unknown = format!("1 write was sent with unknown outcome: api/remove; {ADVICE}");
        assert_eq!(notes(&outcome), [unknown], "refuses: {refuses}");
    }
}

#[test]
fn writes_beyond_the_budget_are_not_sent() {
    let service = service();
    let engine = service.open(|settings| settings.max_writes_per_program = 2).unwrap();
    let writes = (0..3).map(|_| call("write", 200)).collect::<String>();
    let outcome = eval(&engine, &format!("[{writes} {}]", call("read", 200)));
    assert_eq!(outcome.result, Ok("[nil nil :cap_exhausted nil]".into()));
    assert_eq!(service.web.requests().len(), 3);
    let notes = notes(&outcome);
    assert_eq!(notes.first(), Some(&"2 writes were made"));
    assert!(notes.iter().any(|note| note.starts_with("budget of writes: 2 for each program, 1 was refused")), "{notes:?}");
    let message = format!("(:message (last [{}]))", writes.replace("(:reason ", "(identity "));
    let message = eval(&engine, &message).result.unwrap();
    assert!(message.contains("this program has made its 2 writes (--max-writes-per-program)"), "{message}");
}

#[test]
fn parallel_writes_share_the_budget() {
    let service = service();
    let engine = service.engine();
    let outcome = eval(&engine, &format!("(frequencies (pmap (fn [n] {}) (range 30)))", call("write", 200)));
    assert_eq!(outcome.result, Ok("{nil 10 :cap_exhausted 20}".into()));
    assert_eq!(service.web.requests().len(), 10);
}
