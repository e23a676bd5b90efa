//! Checks of a config together with its lock file.
//!
//! - [`mod@lint`]: texts of upstreams that may be attacks, and the other checks of a whole lock file.
//! - [`credentials`]: compares the credentials that operations need with those of the config.
//! - [`examples`]: `example` in overrides.
//! - [`paging`]: `paging` in overrides.
//! - [`policy`]: compares the policy with the tools that there are.
//! - [`read_only`]: enforces that every granted tool is a read.

pub mod credentials;
pub mod examples;
pub mod lint;
pub mod paging;
pub mod policy;
pub mod read_only;
