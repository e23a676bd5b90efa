//! A web service that offers `lisp_eval` to an agent. The service's functions are tools that programs can call.
//!
//! `cargo run -p ptc-runtime --example service` listens on 127.0.0.1:8080. `GET /tool` returns the tool definitions for the
//! agent's model, and `POST /lisp_eval` handles its calls:
//!
//! ```text
//! curl -d '{"program": "(sum-by :total (tool/orders {:status \"open\"}))"}' -H 'Content-Type: application/json' \
//!     http://127.0.0.1:8080/lisp_eval
//! ```

use std::error::Error;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use ptc_runtime::embed::{Args, Engine, Request, Tool, ToolDefinitionError, ToolFailure};
use ptc_runtime::ptc_runner_compat::{self, ArgsFault, Capability, SuccessOptions};
use serde_json::{Value, json};
use tokio::sync::RwLock;

/// The service's data, which other requests may change: number, status, total.
type Orders = Arc<RwLock<Vec<(u32, &'static str, f64)>>>;

/// Builds the engine with the service's tools.
pub(crate) fn engine() -> Result<Engine, Box<dyn Error>> {
    let orders: Orders = Arc::new(RwLock::new(vec![(1, "open", 40.0), (2, "paid", 75.5), (3, "open", 12.5)]));
    Ok(Engine::builder().tool(orders_tool(orders)?).tool(rate_tool()?).build()?)
}

fn orders_tool(orders: Orders) -> Result<Tool, ToolDefinitionError> {
    let signature = "(status :keyword?) -> [{id :int, status :keyword, total :float}]";
    let tool = Tool::new_async("orders", signature, move |args: Args| {
        let orders = Arc::clone(&orders);
        async move {
            let wanted = args.get("status").and_then(|status| status.as_name());
            let orders = orders.read().await;
            let found = orders.iter().filter(|(_, status, _)| wanted.is_none_or(|wanted| wanted == *status));
            let found = found.map(|(id, status, total)| json!({ "id": id, "status": status, "total": total }));
            Ok(found.collect::<Vec<Value>>())
        }
    })?;
    Ok(tool.describe("The orders, or those of one status."))
}

fn rate_tool() -> Result<Tool, ToolDefinitionError> {
    #[derive(serde::Deserialize)]
    struct Input {
        currency: String,
    }
    let tool = Tool::new("rate", "(currency :string) -> :float", |args: Args| {
        let Input { currency } = args.parse()?;
        match currency.as_str() {
            "EUR" => Ok(1.0),
            "USD" => Ok(1.25),
            other => Err(ToolFailure::new(format!("there is no rate for {other}"))),
        }
    })?;
    Ok(tool.describe("What one euro is worth."))
}

/// Builds the routes of the service.
pub(crate) fn router(engine: Engine) -> Router {
    let routes = Router::new().route("/tool", get(describe)).route("/lisp_eval", post(evaluate));
    routes.with_state(Arc::new(engine))
}

/// Returns the tool definitions in the format that model providers accept.
async fn describe(State(engine): State<Arc<Engine>>) -> Json<Value> {
    let tools: Vec<String> = engine.tools().iter().map(ToString::to_string).collect();
    Json(json!({
        "name": "lisp_eval",
        "description": format!("{}\n\nTools:\n{}", Capability::InProcessWithAppTools.description(), tools.join("\n")),
        "parameters": {
            "type": "object",
            "properties": { "program": { "type": "string" }, "context": { "type": "object" } },
            "required": ["program"],
        },
    }))
}

/// Handles a call of the tool. The program is cancelled when the agent closes the connection.
async fn evaluate(State(engine): State<Arc<Engine>>, Json(arguments): Json<Value>) -> Response {
    let payload = match request(&arguments) {
        Ok(request) => ptc_runner_compat::render(&engine.run_async(request).await, &SuccessOptions::ONE_SHOT),
        Err(fault) => fault.render(),
    };
    ([(CONTENT_TYPE, "application/json")], payload).into_response()
}

fn request(arguments: &Value) -> Result<Request, ArgsFault> {
    let program = ptc_runner_compat::validate_program(arguments.get("program"))?;
    match arguments.get("context") {
        None | Some(Value::Null) => Ok(Request::new(program)),
        Some(context) => Request::new(program).context(context).map_err(|why| ArgsFault::new(why.to_string())),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, router(engine()?)).await?;
    Ok(())
}
