//! Tests across crates, with real processes.

mod auth;
mod bundle;
mod canary;
mod ci;
mod container;
mod dependencies;
mod drift;
mod embedding;
mod first_deployment;
mod fleet;
mod guides;
mod http;
mod http_sse;
mod init;
mod json_schema;
mod keyring;
mod listing;
mod mock;
mod oauth_clients;
mod observe;
mod oidc;
mod oidc_assertions;
mod openapi;
mod otlp;
mod output_schemas;
mod packages;
mod page;
mod pages;
mod peers;
mod planner;
mod prebuilt;
mod programs;
mod progress;
#[path = "../../runtime/tests/server/pty.rs"]
mod pty;
mod queue;
mod quickstart;
mod readme;
mod recall;
mod redis;
mod repl;
mod rmcp;
mod run;
mod sandbox;
mod sarif;
mod sbom;
mod schema_url;
mod sealed_sessions;
mod sessions;
mod upgrades;
mod upstreams;
mod viewer;
#[path = "../../runtime/tests/upstreams/web.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "the module is test code of another crate, which uses all of it")]
mod web;
mod writes;
