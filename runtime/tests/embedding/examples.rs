//! The examples do what they say.

use std::fs;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{batch, service};

/// One request over a connection of its own; the body of the answer.
async fn ask(address: std::net::SocketAddr, method: &str, path: &str, body: &str) -> serde_json::Value {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n");
    stream.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).unwrap()
}

#[test]
fn the_service_answers_its_agent() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = service::router(service::engine().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });

        let tool = ask(address, "GET", "/tool", "").await;
        let description = tool["description"].as_str().unwrap();
        assert!(description.contains("rate(currency :string) -> :float\n  What one euro is worth."), "{description}");

        let call = |arguments: serde_json::Value| async move { ask(address, "POST", "/lisp_eval", &arguments.to_string()).await };
        let program = "(* (sum-by :total (tool/orders {:status :open})) (tool/rate {:currency data/currency}))";
        let answer = call(json!({ "program": program, "context": { "currency": "USD" } })).await;
        assert_eq!(answer, json!({"status": "ok", "result": "user=> 65.625", "prints": [], "feedback": "", "truncated": false}));
        let answer = call(json!({ "program": "(tool/rate {:currency \"XXX\"})" })).await;
        assert_eq!(answer["message"], "tool_error: tool/rate: there is no rate for XXX");
        let answer = call(json!({ "context": {} })).await;
        assert_eq!(answer["reason"], "args_error");
    });
}

#[test]
fn the_batch_writes_a_line_for_each_file() {
    let folder = std::env::temp_dir().join(format!("ptc-batch-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("total.clj");
    for (name, text) in [
        ("total.clj", "{:file data/file :total (sum-by :amount (:rows data/input))}"),
        ("b.json", r#"{"rows": [{"amount": 12345678901234567890}, {"amount": 1}]}"#),
        ("a.json", r#"{"rows": [{"amount": 1}, {"amount": 2.5}]}"#),
        ("c.json", "{"),
        ("d.json", r#"{"rows": 5}"#),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    let mut out = Vec::new();
    let failed = batch::run(&program, &folder, &mut out).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(failed, 2);
    assert_eq!(lines[0], r#"{"file":"a.json","result":{"file":"a.json","total":3.5}}"#);
    assert_eq!(lines[1], r#"{"file":"b.json","result":{"file":"b.json","total":12345678901234567891}}"#);
    assert!(lines[2].starts_with(r#"{"file":"c.json","error":"EOF while parsing"#), "{}", lines[2]);
    assert!(lines[3].starts_with(r#"{"file":"d.json","error":"runtime_error: type_error"#), "{}", lines[3]);
}
