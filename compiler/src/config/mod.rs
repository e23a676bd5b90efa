//! `upstreams.json`: from tree to checked model.
pub mod model;
