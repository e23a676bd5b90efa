//! Limits of resources, each for a process and not for all processes of a child together.

use std::io;

use ptc_catalog::Sandbox;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const MEBIBYTE: u64 = 1024 * 1024;

/// Sets the limits of a child. It is called between `fork` and `exec`.
pub(super) fn apply(sandbox: &Sandbox) -> io::Result<()> {
    // The address space does not measure memory: `node` reserves far more than it uses. `RLIMIT_DATA` counts what can be written.
    limit(Resource::Data, sandbox.memory_mb.map(|size| size.saturating_mul(MEBIBYTE)), 0)?;
    limit(Resource::Nproc, sandbox.processes, 0)?;
    limit(Resource::Nofile, sandbox.open_files, 0)?;
    // At the soft limit the process gets SIGXCPU, which names the cause. A second later it is killed.
    limit(Resource::Cpu, sandbox.cpu_seconds, 1)
}

/// Sets a soft limit, and a hard limit that is larger by `margin`. Neither is raised above the present hard limit.
fn limit(resource: Resource, value: Option<u64>, margin: u64) -> io::Result<()> {
    let Some(value) = value else { return Ok(()) };
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(value.min(most)), maximum: Some(value.saturating_add(margin).min(most)) };
    Ok(setrlimit(resource, limit)?)
}
