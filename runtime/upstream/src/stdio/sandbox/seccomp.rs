//! Denies sockets. Landlock's rules for ports do not cover UDP, sockets in the file system, and others.

use std::io;

use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter, apply_filter};

/// System calls that make a socket, or a queue of requests that may contain that call. `socketpair` is permitted: it connects
/// processes of the child.
const DENIED: [i64; 2] = [libc::SYS_socket, libc::SYS_io_uring_setup];

/// Bit in the numbers of the system calls that x86-64 kernels accept from programs with 32-bit pointers.
const X32: i64 = 0x4000_0000;

/// A filter of system calls for this processor.
pub(super) struct Filter(BpfProgram);

/// Returns a filter that denies sockets with `EACCES`, like Landlock. A process that makes system calls of another processor's mode
/// is killed.
pub(super) fn without_sockets() -> Result<Filter, String> {
    let filter = || -> Result<BpfProgram, BackendError> {
        let numbers = DENIED.into_iter().flat_map(|number| [number, number | X32]);
        let denied = SeccompAction::Errno(rustix::io::Errno::ACCESS.raw_os_error().cast_unsigned());
        let rules = numbers.map(|number| (number, Vec::new())).collect();
        SeccompFilter::new(rules, SeccompAction::Allow, denied, std::env::consts::ARCH.try_into()?)?.try_into()
    };
    filter().map(Filter).map_err(|why| why.to_string())
}

impl Filter {
    /// Applies the filter to the calling thread. It is called between `fork` and `exec`.
    pub(super) fn apply(&self) -> io::Result<()> {
        apply_filter(&self.0).map_err(|why| match why {
            seccompiler::Error::Prctl(why) | seccompiler::Error::Seccomp(why) => why,
            _ => io::ErrorKind::InvalidInput.into(),
        })
    }
}
