//! Confines a child by the `sandbox` of its entry.
//!
//! - [`paths`]: the files that every program needs, and those of this program.
//! - [`landlock`]: the files that the child may read and change, by Landlock (`man 7 landlock`).
//! - [`seccomp`]: without `network` the child opens no socket, by a filter of system calls (`man 2 seccomp`).
//! - [`limits`]: limits of resources (`man 2 setrlimit`).
//! - [`capabilities`]: what root may do beyond the permissions of files.
//!
//! All that allocates or can fail with a message happens before `fork`. Between `fork` and `exec` the child makes only system
//! calls. The restrictions hold for everything that the child starts. A child is not started if one of them cannot be applied.

#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod seccomp;
#[cfg(all(target_os = "linux", not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
#[path = "no_seccomp.rs"]
mod seccomp;

use std::fmt;
use std::io;
use std::path::Path;

use ptc_catalog::Sandbox;
use tokio::process::Command;

/// Why a child cannot be confined.
#[derive(Debug)]
pub(super) enum Error {
    /// A listed path cannot be opened.
    #[cfg(target_os = "linux")]
    Path(std::path::PathBuf, io::Error),
    /// The kernel does not enforce what the sandbox needs.
    #[cfg(target_os = "linux")]
    Landlock(::landlock::RulesetError),
    /// No filter of system calls can be made for this processor.
    #[cfg(target_os = "linux")]
    Filter(String),
    /// The system is not Linux.
    #[cfg(not(target_os = "linux"))]
    NotLinux,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(target_os = "linux")]
            Error::Path(path, why) => write!(f, "its sandbox lists {}, which cannot be opened: {why}", path.display()),
            #[cfg(target_os = "linux")]
            Error::Landlock(why) => write!(
                f,
                "this kernel cannot enforce its sandbox, which needs Landlock with ABI 3: Linux 6.2 or newer, with `landlock` among \
                 the security modules that are enabled at boot ({why})"
            ),
            #[cfg(target_os = "linux")]
            Error::Filter(why) => write!(f, "its sandbox denies the network, which cannot be enforced on this processor: {why}"),
            #[cfg(not(target_os = "linux"))]
            Error::NotLinux => f.write_str("its sandbox needs Linux, whose kernel enforces it"),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::other(error.to_string())
    }
}

/// Makes the child of `command` confine itself before `exec`.
#[cfg(target_os = "linux")]
pub(super) fn confine(command: &mut Command, sandbox: &Sandbox, config_dir: &Path) -> Result<(), Error> {
    let mut ruleset = Some(landlock::ruleset(sandbox, &paths::of_program(command.as_std()), config_dir)?);
    let filter = if sandbox.network { None } else { Some(seccomp::without_sockets().map_err(Error::Filter)?) };
    let sandbox = *sandbox;
    let restrict = move || {
        limits::apply(&sandbox)?;
        capabilities::drop_all_but_files()?;
        // A second `exec` of the same command finds no ruleset, and fails.
        landlock::restrict(ruleset.take().ok_or(io::ErrorKind::PermissionDenied)?)?;
        match &filter {
            Some(filter) => filter.apply(),
            None => Ok(()),
        }
    };
    #[expect(unsafe_code, reason = "runs between fork and exec; makes system calls and allocates nothing")]
    unsafe {
        command.pre_exec(restrict);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn confine(_: &mut Command, _: &Sandbox, _: &Path) -> Result<(), Error> {
    Err(Error::NotLinux)
}
