//! The sandbox of a child process: the files and resources that the process may use.

/// Confines a child process and everything that it starts. Files that are not listed are denied, apart from those of the system
/// and of the program itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound(deserialize = "'de: 'static")))]
pub struct Sandbox {
    /// Files and folders that it may read and execute, absolute or relative to `--config-dir`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub read: &'static [&'static str],
    /// Files and folders that it may change, and also read and execute.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::leaked::list"))]
    pub write: &'static [&'static str],
    /// Whether the child may open sockets.
    pub network: bool,
    /// Maximum private writable memory of each process, in mebibytes.
    pub memory_mb: Option<u64>,
    /// Maximum processes and threads of its user, also those outside of the sandbox.
    pub processes: Option<u64>,
    /// Maximum open file descriptors of each process.
    pub open_files: Option<u64>,
    /// Maximum processor time of each process, in seconds.
    pub cpu_seconds: Option<u64>,
}
