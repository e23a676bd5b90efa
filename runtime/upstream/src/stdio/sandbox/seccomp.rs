//! Denies sockets. Landlock's rules for ports do not cover UDP, sockets in the file system, and others.

use std::io;

use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

/// System calls that make a socket, or a queue of requests that may contain that call.
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
        let pairs = [libc::SYS_socketpair, libc::SYS_socketpair | X32].into_iter().map(|number| Ok((number, foreign_pairs()?)));
        let rules = numbers.map(|number| Ok((number, Vec::new()))).chain(pairs).collect::<Result<_, BackendError>>()?;
        SeccompFilter::new(rules, SeccompAction::Allow, denied, std::env::consts::ARCH.try_into()?)?.try_into()
    };
    filter().map(Filter).map_err(|why| why.to_string())
}

/// Returns the pairs of sockets that are denied. A pair of local streams connects processes of the child. A local datagram socket
/// can also send to the named sockets of the machine, and sockets of other families to other machines.
fn foreign_pairs() -> Result<Vec<SeccompRule>, BackendError> {
    let is_type = |kind: libc::c_int| (1, SeccompCmpOp::MaskedEq(0xf), kind);
    [
        (0, SeccompCmpOp::Ne, libc::AF_UNIX),
        is_type(libc::SOCK_DGRAM),
        // For local sockets the kernel makes a datagram socket of it.
        is_type(libc::SOCK_RAW),
    ]
    .into_iter()
    .map(|(argument, comparison, value)| {
        SeccompRule::new(vec![SeccompCondition::new(argument, Dword, comparison, u64::from(value.cast_unsigned()))?])
    })
    .collect()
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
