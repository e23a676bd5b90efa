//! Tests request bodies and operations that write, from the OpenAPI document to the requests that a service receives.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where anything is wrong")]

mod bodies;
mod outcomes;
mod query;
mod served;
mod service;
#[path = "../../../runtime/tests/upstreams/web.rs"]
#[expect(dead_code, reason = "these tests use a part of the server")]
mod web;
mod writes;
