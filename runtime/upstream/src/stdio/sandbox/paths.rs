//! The paths that a child may read although its entry does not list them.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs, libraries and settings of the system. Files that often contain secrets are not among them.
const SYSTEM: [&str; 38] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    // The dynamic linker.
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/alternatives",
    // Names, users and time.
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/timezone",
    // Certificates of authorities, without private keys.
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    // What the kernel reports about the machine and its processes. Landlock denies environment and memory of other processes.
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
];

/// Returns the paths of the system, and the folders `/etc/python3…` in which Debian has settings of Python.
pub(super) fn of_system() -> impl Iterator<Item = PathBuf> {
    let settings = std::fs::read_dir("/etc").into_iter().flatten().flatten().filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(b"python3")
    });
    SYSTEM.iter().map(PathBuf::from).chain(settings.map(|entry| entry.path()))
}

/// Devices that a child may read and write.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Entries beside a folder `bin` that programs in it load.
const BESIDE_BIN: [&str; 4] = ["lib", "lib64", "libexec", "pyvenv.cfg"];

/// Returns the files of the program that a command starts: its file and, if that is in a folder `bin`, this folder and the
/// libraries beside it. For a symbolic link these are the files at the link and at its target.
pub(super) fn of_program(command: &Command) -> Vec<PathBuf> {
    let Some(found) = find(command) else { return Vec::new() };
    let target = found.canonicalize().ok();
    [Some(found), target].into_iter().flatten().flat_map(installation).collect()
}

fn installation(program: PathBuf) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Some(bin) = program.parent().filter(|folder| folder.file_name() == Some(OsStr::new("bin")))
        && let Some(prefix) = bin.parent()
    {
        paths.extend(BESIDE_BIN.iter().map(|name| prefix.join(name)));
        paths.push(bin.to_owned());
    }
    paths.push(program);
    paths
}

/// Returns the program that `execvp` would start: the path itself, or the first match in the child's `PATH`.
fn find(command: &Command) -> Option<PathBuf> {
    let program = Path::new(command.get_program());
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Some(program.to_owned());
    }
    let path = command.get_envs().find(|(name, _)| *name == "PATH")?.1?;
    std::env::split_paths(path).map(|folder| folder.join(program)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
