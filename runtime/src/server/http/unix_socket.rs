//! A Unix socket that only its owner can connect to.

use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use tokio::net::UnixListener;

/// A bound socket. Its file is removed when it is dropped.
pub(super) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixSocket {
    /// Binds the socket with mode 0600. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the path is something other than a socket, or a socket on which a process listens, and for errors of the system.
    pub(super) fn bind(path: &Path) -> Result<UnixSocket> {
        remove_stale(path)?;
        // The mode is set by the umask, since the file must not be accessible to others between its creation and a change of its
        // mode.
        let before = rustix::process::umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(before);
        let socket = UnixSocket { listener: bound?, path: path.to_owned() };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(socket)
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes a socket that no process listens on: a server that was killed leaves its file behind.
fn remove_stale(path: &Path) -> Result<()> {
    let kind = match std::fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(fault) if fault.kind() == ErrorKind::NotFound => return Ok(()),
        Err(fault) => return Err(fault),
    };
    if !kind.is_socket() {
        return Err(Error::new(ErrorKind::AlreadyExists, "the path exists and is not a socket; choose another path"));
    }
    match UnixStream::connect(path) {
        Err(fault) if fault.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(fault) => Err(fault),
        Ok(_) => Err(Error::new(ErrorKind::AddrInUse, "another process listens on it")),
    }
}
