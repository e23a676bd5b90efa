//! Texts and schemas that describe tools to models.
//!
//! - [`catalog`]: upstreams and tools, inline or lazy.
//! - [`output`]: the schemas of answers.
//! - [`text`]: how to write a program.

pub mod catalog;
pub mod output;
pub mod text;

use ptc_catalog::{Catalog, Deployment, ToolFacts};

use crate::settings::Settings;

/// Whether the facts about the tools of every upstream satisfy `says`. The tools of an upstream without tools may not have been
/// fetched yet.
fn all_upstreams(catalog: &Catalog, says: fn(ToolFacts) -> bool) -> bool {
    catalog.upstreams.iter().all(|upstream| !upstream.tools.is_empty() && says(upstream.tools.facts()))
}

/// Whether programs cannot change anything, because every granted tool or the operator declares that.
pub(crate) fn is_read_only(deployment: &Deployment, settings: &Settings) -> bool {
    settings.aggregator_read_only || all_upstreams(deployment.catalog, |facts| facts.only_reads)
}

/// Whether a program may destroy data outside this server.
pub(crate) fn is_destructive(deployment: &Deployment, settings: &Settings) -> bool {
    !is_read_only(deployment, settings) && !all_upstreams(deployment.catalog, |facts| !facts.may_destroy)
}
