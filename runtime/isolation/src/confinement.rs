//! Confines a worker: the kernel denies it files, the network and other processes, and bounds its memory.
//!
//! Landlock (`man 7 landlock`) denies every file and port. A filter of system calls (`man 2 seccomp`) permits those that an
//! evaluation needs, and nothing that could open, connect, start or read something.
//!
//! Both hold for all threads. The rules of Landlock hold for the calling thread and those that it starts later, so that they come
//! first. The filter permits no new thread, so that it comes when all threads run, and the kernel applies it to all of them at
//! once (`SECCOMP_FILTER_FLAG_TSYNC`).

use std::fmt;
use std::io;

/// Why a worker cannot be confined.
#[derive(Debug)]
pub enum Error {
    /// The kernel has no Landlock, or denies it.
    Landlock(String),
    /// The kernel or the processor has no filter of system calls.
    Filter(String),
    /// A limit cannot be set.
    Limit(io::Error),
    /// The threads of the worker cannot be started.
    Threads(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Landlock(why) => write!(
                f,
                "this kernel does not deny files to a process, which needs Landlock with ABI 3: Linux 6.2 or newer, with `landlock` \
                 among the security modules that are enabled at boot ({why})"
            ),
            Error::Filter(why) => write!(f, "system calls cannot be denied on this kernel or processor ({why})"),
            Error::Limit(why) => write!(f, "a limit of resources cannot be set: {why}"),
            Error::Threads(why) => write!(f, "its threads cannot be started: {why}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub use linux::{apply, check, close_inherited};
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
pub use other::{apply, check, close_inherited};

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
mod other {
    use super::Error;

    fn unsupported() -> Error {
        Error::Filter(format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH))
    }

    /// Returns what the kernel lacks.
    ///
    /// # Errors
    ///
    /// Always returns an error, since workers cannot be confined on this system.
    pub fn check() -> Result<(), Error> {
        Err(unsupported())
    }

    /// Confines the process.
    ///
    /// # Errors
    ///
    /// Always returns an error, since workers cannot be confined on this system.
    pub fn apply<T>(_: u64, _: impl FnOnce() -> std::io::Result<T>) -> Result<T, Error> {
        Err(unsupported())
    }

    /// Does nothing. Descriptors are closed by `exec`.
    ///
    /// # Errors
    ///
    /// Returns no error.
    pub fn close_inherited() -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod linux {
    use std::io;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
        RulesetError, RulesetStatus, Scope,
    };
    use rustix::process::{Resource, Rlimit, setrlimit};
    use seccompiler::SeccompCmpArgLen::Qword;
    use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};

    use super::Error;

    /// The first version of Landlock that covers every change of a file.
    const NEEDED: ABI = ABI::V3;
    /// The newest version whose rules are used.
    const USED: ABI = ABI::V6;

    /// Address space that a worker may map for writing beyond the values of its program: stacks of up to 51 fibers, of 18 MB each, and
    /// the arenas that the allocator reserves, of 1 GiB each. Most of it is never touched. The server watches what is.
    const SLACK_BYTES: u64 = 4 * 1024 * 1024 * 1024;

    /// Address space beyond that which a worker may map without writing: its program and libraries, and the guards of stacks. Page
    /// tables of untouched memory count nowhere else.
    const ADDRESS_SPACE_BYTES: u64 = 4 * 1024 * 1024 * 1024;

    /// Descriptors that a worker may have: the standard ones, its socket, and one for the rules of Landlock while they are made.
    const MAX_DESCRIPTORS: u64 = 16;

    /// The descriptor of standard error.
    const LAST_STANDARD: libc::c_uint = 2;

    /// System calls that an evaluation needs: input and output on open descriptors, memory, synchronisation of threads, clocks,
    /// random bytes, signals of the process itself, and its end. Those that start a thread (`clone`, `clone3`), those that a thread
    /// makes when it starts (`rseq`, `set_robust_list`) and `prctl`, which could clear the parent-death signal, are not among them.
    const PERMITTED: &[libc::c_long] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_recvfrom,
        libc::SYS_sendto,
        libc::SYS_recvmsg,
        libc::SYS_sendmsg,
        libc::SYS_ppoll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        libc::SYS_close,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_membarrier,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// Returns what the kernel lacks to confine a worker.
    ///
    /// # Errors
    ///
    /// Returns an error if Landlock is missing, or if no filter can be made for this processor.
    pub fn check() -> Result<(), Error> {
        ruleset().map_err(|why| Error::Landlock(why.to_string()))?;
        filter().map(drop).map_err(Error::Filter)
    }

    /// Confines the process. `memory_bytes` is the memory of a program's values. `start` starts the threads of the process, which
    /// has only one before. Each must run when `start` returns: the C library ends the process if a thread that is just starting
    /// may not make its first system calls. Returns what `start` returns.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not enforce all of it, or if `start` fails. The process may then be confined in part.
    pub fn apply<T>(memory_bytes: u64, start: impl FnOnce() -> io::Result<T>) -> Result<T, Error> {
        let data = memory_bytes.saturating_mul(2).saturating_add(SLACK_BYTES);
        limit(Resource::Data, data)?;
        limit(Resource::As, data.saturating_add(ADDRESS_SPACE_BYTES))?;
        limit(Resource::Fsize, 0)?;
        limit(Resource::Core, 0)?;
        limit(Resource::Nofile, MAX_DESCRIPTORS)?;
        let refused = |why: String| Error::Landlock(why);
        match ruleset().and_then(RulesetCreated::restrict_self).map_err(|why| refused(why.to_string()))? {
            RestrictionStatus {
                ruleset: RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
                no_new_privs: true,
                ..
            } => {}
            _ => return Err(refused("it is not enforced".to_owned())),
        }
        let started = start().map_err(Error::Threads)?;
        let filter = filter().map_err(Error::Filter)?;
        seccompiler::apply_filter_all_threads(&filter).map_err(|why| Error::Filter(why.to_string()))?;
        Ok(started)
    }

    /// Closes all descriptors but those of standard input, output and error.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn close_inherited() -> io::Result<()> {
        #[expect(unsafe_code, reason = "the process has just begun, so that nothing uses another descriptor")]
        let closed = unsafe { libc::syscall(libc::SYS_close_range, LAST_STANDARD + 1, libc::c_uint::MAX, 0) };
        if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn limit(resource: Resource, value: u64) -> Result<(), Error> {
        let limit = Rlimit { current: Some(value), maximum: Some(value) };
        setrlimit(resource, limit).map_err(|why| Error::Limit(why.into()))
    }

    /// Returns rules that deny every file, port, signal and abstract socket that the kernel knows rules for.
    fn ruleset() -> Result<RulesetCreated, RulesetError> {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(NEEDED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(USED))?
            .handle_access(AccessNet::from_all(USED))?
            .scope(Scope::from_all(USED))?
            .create()
    }

    /// Returns the filter of system calls. Signals go to the process itself.
    fn filter() -> Result<BpfProgram, String> {
        let build = || -> Result<BpfProgram, BackendError> {
            let only = |argument: u8, comparison: SeccompCmpOp, value: u64| {
                Ok::<_, BackendError>(vec![SeccompRule::new(vec![SeccompCondition::new(argument, Qword, comparison, value)?])?])
            };
            let shared = u64::from(libc::MAP_SHARED.cast_unsigned());
            let own = u64::from(std::process::id());
            let mut rules: std::collections::BTreeMap<_, _> = PERMITTED.iter().map(|number| (*number, Vec::new())).collect();
            // Shared memory counts neither as data of the process nor as its private memory.
            rules.insert(libc::SYS_mmap, only(3, SeccompCmpOp::MaskedEq(shared), 0)?);
            rules.insert(libc::SYS_tgkill, only(0, SeccompCmpOp::Eq, own)?);
            let denied = SeccompAction::Errno(rustix::io::Errno::PERM.raw_os_error().cast_unsigned());
            SeccompFilter::new(rules, denied, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?.try_into()
        };
        build().map_err(|why| why.to_string())
    }
}
