//! Prevents other processes from reading the memory of this one, which contains secrets.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Disables core dumps of this process and of the children that it starts. On Linux it also prevents other processes of the same
/// user from reading its memory. Failures are ignored, since they are not a reason to refuse to serve.
pub fn seal() {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // A core pattern that starts with a pipe ignores the limit.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
