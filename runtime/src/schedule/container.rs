//! What the machine or its container allows: memory and threads.
//!
//! The files of a cgroup are read here because the crates that do so bring far more and leave `pids.max` out. A group is limited by those
//! around it as well; inside a container only its own group can be seen, at the root.

use std::path::{Path, PathBuf};

use super::limits::Source;

/// From here on a limit of version 1 means none: it is the largest number of whole pages.
const UNLIMITED: u64 = 1 << 62;

/// A controller: its name in version 1, and the files that hold its limit in version 2 and version 1.
struct Controller {
    name: &'static str,
    v2: &'static str,
    v1: &'static str,
}

const MEMORY: Controller = Controller { name: "memory", v2: "memory.max", v1: "memory.limit_in_bytes" };
const PIDS: Controller = Controller { name: "pids", v2: "pids.max", v1: "pids.max" };

/// Bytes of memory that the process may use, and what says so: the smaller of the container's limit and the machine's memory.
pub fn memory_bytes() -> (u64, Source) {
    let machine = rustix::system::sysinfo();
    let machine = machine.totalram.saturating_mul(u64::from(machine.mem_unit.max(1)));
    match limit(&MEMORY, Path::new("/")) {
        Some((bytes, file)) if bytes < machine => (bytes, Source::Cgroup(file)),
        _ => (machine, Source::Machine),
    }
}

/// Threads that the container may have, and the file that says so.
pub fn max_threads() -> Option<(usize, &'static str)> {
    let (threads, file) = limit(&PIDS, Path::new("/"))?;
    Some((usize::try_from(threads).unwrap_or(usize::MAX), file))
}

/// The lowest limit of the process's group and of those around it.
fn limit(controller: &Controller, root: &Path) -> Option<(u64, &'static str)> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = root.join("sys/fs/cgroup");
    let mut found: Option<(u64, &'static str)> = None;
    for line in groups.lines() {
        // `hierarchy:controllers:path`; version 2 has no controllers.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (mount, file) = if controllers.is_empty() {
            (mounts.clone(), controller.v2)
        } else if controllers.split(',').any(|name| name == controller.name) {
            (mounts.join(controllers), controller.v1)
        } else {
            continue;
        };
        let group = mount.join(path.trim_start_matches('/'));
        for folder in group.ancestors().take_while(|folder| folder.starts_with(&mount)).map(PathBuf::from) {
            let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            if let Ok(value) = text.trim().parse::<u64>()
                && value < found.map_or(UNLIMITED, |(lowest, _)| lowest)
            {
                found = Some((value, file));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with these files.
    fn root(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("ptc-container-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            std::fs::write(path, text).expect("it can be written");
        }
        root
    }

    #[test]
    fn version_2_has_the_lowest_limit_of_all_groups_around() {
        let files = [
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "1000000\n"),
            ("sys/fs/cgroup/memory.max", "2000000\n"),
            ("sys/fs/cgroup/a/b/pids.max", "100\n"),
        ];
        let root = root("v2", &files);
        assert_eq!(limit(&MEMORY, &root), Some((1_000_000, "memory.max")));
        assert_eq!(limit(&PIDS, &root), Some((100, "pids.max")));
        std::fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        let files = [
            ("proc/self/cgroup", "4:memory:/x\n3:pids:/x\n0::/\n"),
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n"),
        ];
        let root = root("v1", &files);
        assert_eq!(limit(&MEMORY, &root), Some((500_000, "memory.limit_in_bytes")));
        assert_eq!(limit(&PIDS, &root), None);
        std::fs::remove_dir_all(&root).expect("it is there");
        assert_eq!(limit(&MEMORY, &root), None);
    }
}
