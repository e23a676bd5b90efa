//! What cargo says about the packages of a program.
//!
//! - `graph`: the packages of a program and their dependencies, from the output of `cargo metadata`
//! - `sbom`: the software bill of materials, as a CycloneDX document
//! - `notices`: the licence texts of everything that is linked
//!
//! The documents contain no time, no random number and no path, so that equal programs give equal bytes.

#![forbid(unsafe_code)]

mod graph;
pub mod notices;
pub mod sbom;

pub use graph::{Error, portable};
