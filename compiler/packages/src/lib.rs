//! The packages of a program as cargo resolves them, and documents about them.
//!
//! - `digest`: SHA-256 in hexadecimal digits
//! - `graph`: the packages of a program and their dependencies, from the output of `cargo metadata`
//! - `sbom`: the software bill of materials, as a CycloneDX document
//! - `notices`: the licence texts of everything that is linked
//!
//! The documents contain no time, no random number and no path, so that equal programs give equal bytes.

#![forbid(unsafe_code)]

mod digest;
mod graph;
pub mod notices;
pub mod sbom;

pub use digest::sha256;
pub use graph::{Error, portable};
