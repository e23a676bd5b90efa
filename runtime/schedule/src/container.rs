//! Limits of the machine or the container: processors, memory and threads.
//!
//! The files of cgroups are read here, since crates for this purpose are far larger and omit `pids.max` and cpusets. The limits
//! of enclosing groups apply too. Inside a container only its own group is visible, at the root.

use std::path::{Path, PathBuf};

use super::limits::Source;

/// Minimum value that means no limit in cgroup v1, where the default is the largest number of whole pages.
const UNLIMITED: u64 = 1 << 62;

/// A cgroup controller: its name in v1, and the files with its limit in v2 and v1.
struct Controller {
    name: &'static str,
    v2: &'static str,
    v1: &'static str,
}

const MEMORY: Controller = Controller { name: "memory", v2: "memory.max", v1: "memory.limit_in_bytes" };
const CPUSET: Controller = Controller { name: "cpuset", v2: "cpuset.cpus.effective", v1: "cpuset.cpus" };
const PIDS: Controller = Controller { name: "pids", v2: "pids.max", v1: "pids.max" };

/// Returns the bytes of memory that the process may use, and the source of the value. It is the smaller of the container's limit
/// and the machine's memory.
pub fn memory_bytes() -> (u64, Source) {
    let machine = rustix::system::sysinfo();
    let machine = machine.totalram.saturating_mul(u64::from(machine.mem_unit.max(1)));
    match limit(&MEMORY, Path::new("/"), number) {
        Some((bytes, file)) if bytes < machine => (bytes, Source::Cgroup(file)),
        _ => (machine, Source::Machine),
    }
}

/// Returns the number of processors that the process may use, and the source of the value. The standard library reads the quota
/// of the cgroup and the processors that the process may run on.
pub fn processors() -> (usize, Source) {
    let available = std::thread::available_parallelism().map_or(2, usize::from);
    let allowed = rustix::thread::sched_getaffinity(None).map_or(available, |set| set.count() as usize);
    (available, processors_source(available, allowed, Path::new("/")))
}

/// Returns the source of a number of processors where the process may run on `allowed` processors of the machine.
fn processors_source(available: usize, allowed: usize, root: &Path) -> Source {
    if available >= allowed {
        let online = std::fs::read_to_string(root.join("sys/devices/system/cpu/online")).unwrap_or_default();
        let allowed = allowed as u64;
        return match limit(&CPUSET, root, processors_in) {
            _ if processors_in(&online).is_none_or(|online| allowed >= online) => Source::Machine,
            Some((processors, file)) if processors == allowed => Source::Cgroup(file),
            _ => Source::Affinity,
        };
    }
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let controllers = groups.lines().filter_map(|line| line.split(':').nth(1));
    let is_v1 = controllers.flat_map(|controllers| controllers.split(',')).any(|controller| controller == "cpu");
    Source::Cgroup(if is_v1 { "cpu.cfs_quota_us" } else { "cpu.max" })
}

/// Returns the maximum number of threads of the container, and the file that contains it.
pub fn max_threads() -> Option<(usize, &'static str)> {
    let (threads, file) = limit(&PIDS, Path::new("/"), number)?;
    Some((usize::try_from(threads).unwrap_or(usize::MAX), file))
}

/// Parses a file that contains a number, or `max` if there is no limit.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Returns the number of processors in a list such as `0-3,8`.
fn processors_in(list: &str) -> Option<u64> {
    list.trim().split(',').try_fold(0, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(count + (last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)? + 1))
    })
}

/// Returns the lowest limit of the process's group and its enclosing groups. `parse` reads the content of a file.
fn limit(controller: &Controller, root: &Path, parse: fn(&str) -> Option<u64>) -> Option<(u64, &'static str)> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = root.join("sys/fs/cgroup");
    let mut found: Option<(u64, &'static str)> = None;
    for line in groups.lines() {
        // The format is `hierarchy:controllers:path`. In v2 the controllers are empty.
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
            if let Some(value) = parse(&text)
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

    /// Creates a root folder with these files.
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
    fn version_2_uses_the_lowest_limit_of_all_parent_groups() {
        let files = [
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "1000000\n"),
            ("sys/fs/cgroup/memory.max", "2000000\n"),
            ("sys/fs/cgroup/a/b/pids.max", "100\n"),
        ];
        let root = root("v2", &files);
        assert_eq!(limit(&MEMORY, &root, number), Some((1_000_000, "memory.max")));
        assert_eq!(limit(&PIDS, &root, number), Some((100, "pids.max")));
        std::fs::remove_dir_all(root).expect("it is there");
    }

    #[test]
    fn source_of_fewer_processors_is_the_quota() {
        for (name, groups, file) in
            [("cpu1", "4:memory:/x\n3:cpu,cpuacct:/x\n0::/\n", "cpu.cfs_quota_us"), ("cpu2", "0::/a\n", "cpu.max")]
        {
            let root = root(name, &[("proc/self/cgroup", groups)]);
            assert_eq!(processors_source(2, 8, &root), Source::Cgroup(file));
            assert_eq!(processors_source(8, 8, &root), Source::Machine);
            std::fs::remove_dir_all(root).expect("it is there");
        }
        let (available, source) = processors();
        assert_eq!(Ok(available), std::thread::available_parallelism().map(usize::from).map_err(|_| ()), "{source}");
    }

    #[test]
    fn source_of_processor_limit_is_the_cpuset_or_the_affinity() {
        let online = ("sys/devices/system/cpu/online", "0-5,8,9\n");
        let v1 = [("proc/self/cgroup", "3:cpuset:/x\n0::/\n"), ("sys/fs/cgroup/cpuset/x/cpuset.cpus", "1,4-5\n"), online];
        let v2 = [("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/cpuset.cpus.effective", "0-2\n"), online];
        for (name, files, file) in [("cpuset1", v1, "cpuset.cpus"), ("cpuset2", v2, "cpuset.cpus.effective")] {
            let root = root(name, &files);
            assert_eq!(processors_source(3, 3, &root), Source::Cgroup(file));
            assert_eq!(processors_source(2, 2, &root), Source::Affinity);
            assert_eq!(processors_source(8, 8, &root), Source::Machine);
            std::fs::remove_dir_all(root).expect("it is there");
        }
        assert_eq!((processors_in("7"), processors_in(""), processors_in("3-1")), (Some(1), None, None));
    }

    #[test]
    fn version_1_is_read_from_a_folder_for_each_controller() {
        let files = [
            ("proc/self/cgroup", "4:memory:/x\n3:pids:/x\n0::/\n"),
            ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n"),
        ];
        let root = root("v1", &files);
        assert_eq!(limit(&MEMORY, &root, number), Some((500_000, "memory.limit_in_bytes")));
        assert_eq!(limit(&PIDS, &root, number), None);
        std::fs::remove_dir_all(&root).expect("it is there");
        assert_eq!(limit(&MEMORY, &root, number), None);
    }
}
