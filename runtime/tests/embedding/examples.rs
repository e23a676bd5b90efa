//! Runs the example and checks its behaviour.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::service;

/// Sends one request over a new connection and returns the body of the answer.
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
fn example_service_replies_to_its_agent() {
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
