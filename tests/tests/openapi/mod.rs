//! Tests request bodies and operations that write, from the OpenAPI document to the requests that a service receives.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where anything is wrong")]

mod bodies;
mod outcomes;
mod query;
mod served;
mod service;
mod writes;
