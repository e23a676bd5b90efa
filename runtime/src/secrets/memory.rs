//! Keeping this process's memory, which holds the secrets, to itself.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Switches core dumps off, for this process and the children that it starts, and on Linux lets no other process of the same user
/// read its memory. A system that refuses is no reason not to serve.
pub fn seal() {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // A core pattern that is a pipe ignores the limit.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
