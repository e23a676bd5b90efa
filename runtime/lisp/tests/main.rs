//! Tests of the language. `bombs`, `sweep` and `complexity` are programs of their own: each observes its whole process.

mod builtins;
mod cases;
mod counting;
#[cfg(feature = "coverage")]
mod coverage;
mod differential;
mod divergences;
mod embedding;
mod errors;
mod failed_calls;
mod generate;
mod hostile;
mod http_answers;
mod image;
mod json;
mod keys;
mod names;
mod properties;
mod reference;
mod replies;
mod signatures;
mod tools;
mod values;
