//! A service with an OpenAPI document, and an engine over it.

use ptc_compiler::serve::{OpenError, Source};
use ptc_runtime::embed::{Engine, Request};
use ptc_runtime::upstream::UpstreamSettings;
use serde_json::{Value, json};

use crate::web::{Answer, Asked, Web};

/// A config and a document in a folder of their own, and the service that the config names.
pub(crate) struct Service {
    pub(crate) web: Web,
    folder: tempfile::TempDir,
}

/// The result of a program.
pub(crate) struct Outcome {
    /// The preview of its value, or the message of its failure.
    pub(crate) result: Result<String, String>,
    pub(crate) notes: Vec<String>,
}

impl Service {
    /// Starts a service that answers each request with `answer`. `entry` is merged into the entry of the upstream `api`, and
    /// `paths` are those of its document.
    pub(crate) fn start(entry: &Value, paths: &Value, answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Service {
        let service = Service { web: Web::start(answer), folder: tempfile::tempdir().unwrap() };
        let document = json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" }, "paths": paths });
        service.write("api.json", &document);
        service.configure(entry, &json!({}));
        service
    }

    /// Writes the config: `entry` is merged into the entry of the upstream, and `more` into the config.
    pub(crate) fn configure(&self, entry: &Value, more: &Value) {
        let mut api = json!({ "transport": "openapi", "base_url": self.web.url("/v1"), "schema_file": "api.json",
            "allow_insecure_http": true, "allow_writes": true, "request_timeout_ms": 1000 });
        merge(&mut api, entry);
        let mut config = json!({ "upstreams": { "api": api } });
        merge(&mut config, more);
        self.write("upstreams.json", &config);
    }

    pub(crate) fn write(&self, name: &str, content: &Value) {
        std::fs::write(self.folder.path().join(name), content.to_string()).unwrap();
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Opens the config. Returns the text of the findings if it has faults.
    pub(crate) fn open(&self, change: fn(&mut UpstreamSettings)) -> Result<Engine, String> {
        let source = Source::file(self.folder.path().join("upstreams.json")).upstreams(change);
        match source.open_blocking() {
            Ok(served) => Ok(served.engine().build().unwrap()),
            Err(OpenError::Findings(findings)) => Err(findings.to_string()),
            Err(other) => panic!("{other}"),
        }
    }

    pub(crate) fn engine(&self) -> Engine {
        self.open(|_| {}).unwrap_or_else(|findings| panic!("{findings}"))
    }

    /// Returns the last request.
    pub(crate) fn last(&self) -> Asked {
        self.web.requests().pop().unwrap()
    }
}

/// Runs a program.
pub(crate) fn eval(engine: &Engine, program: &str) -> Outcome {
    let answer = engine.run(Request::new(program));
    let result = match &answer.evaluation.outcome {
        Ok(preview) => Ok(preview.text.clone()),
        Err(failure) => Err(failure.message.clone()),
    };
    Outcome { result, notes: answer.notes().to_vec() }
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        into[key] = value.clone();
    }
}

/// Returns an operation with a request body of one media type.
pub(crate) fn with_body(id: &str, media_type: &str, schema: &Value) -> Value {
    json!({ "operationId": id, "requestBody": { "required": true, "content": { (media_type): { "schema": schema } } },
        "responses": { "200": { "description": "ok", "content": { "application/json": {} } } } })
}

/// Answers every request with an empty object.
pub(crate) fn accept(_: &Asked) -> Answer {
    Answer::json(200, "{}")
}
