//! Drops the capabilities of a child whose user is root (`man 7 capabilities`). With them it could leave its sandbox.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Reading and writing files whatever their permissions are: the rules for paths apply nevertheless. They do not apply to the owner
/// and the mode of a file, so that the capabilities for these are dropped.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::DAC_READ_SEARCH);

/// Drops all capabilities except [`KEPT`]. With `no_new_privs` the program does not get them again. It is called between `fork` and
/// `exec`.
pub(super) fn drop_all_but_files() -> io::Result<()> {
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    let kept = CapabilitySets {
        effective: effective.intersection(KEPT),
        permitted: permitted.intersection(KEPT),
        inheritable: inheritable.intersection(KEPT),
    };
    Ok(set_capabilities(None, kept)?)
}
