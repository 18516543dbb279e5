//! Memory limit of this process.

use std::fs;
use std::path::Path;

use crate::syscall::{syscall, wide};

/// The type of a resource's name differs between C libraries.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// The smallest of the host's memory (`MemTotal`, proc_meminfo(5)), the limits of the control
/// groups this process is in (cgroups(7): `memory.max` of version 2, `memory.limit_in_bytes` of
/// version 1) and its own (`RLIMIT_DATA`, `RLIMIT_AS`, getrlimit(2)), bytes; `None` where none of
/// them can be read.
pub fn limit_bytes() -> Option<u64> {
    let host = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group_folders(&groups)
        .filter_map(|(root, path, file)| smallest(Path::new(root), path, file));
    let own = [libc::RLIMIT_DATA, libc::RLIMIT_AS].map(resource_limit);

    host.into_iter()
        .chain(group)
        .chain(own.into_iter().flatten())
        .min()
}

/// The smallest limit of a group and those it is in. A container sees its own group as the root.
fn smallest(root: &Path, path: &str, file: &str) -> Option<u64> {
    let limits = Path::new(path).ancestors().filter_map(|folder| {
        let folder = root.join(folder.strip_prefix("/").unwrap_or(folder));
        fs::read_to_string(folder.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    });
    limits.min()
}

fn resource_limit(resource: Resource) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is writable during the call.
    syscall(unsafe { libc::getrlimit(resource, &raw mut limit) }).ok()?;
    let bytes = Some(limit.rlim_cur).filter(|bytes| *bytes != libc::RLIM_INFINITY);
    bytes.map(wide)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// Where groups with a limit on memory are: mount point, path, and the file with the limit. The
/// line of version 2 has the number 0 and names no controller.
fn group_folders(cgroups: &str) -> impl Iterator<Item = (&'static str, &str, &'static str)> {
    cgroups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        if controllers.split(',').any(|name| name == "memory") {
            Some(("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"))
        } else {
            (number == "0" && controllers.is_empty()).then_some((
                "/sys/fs/cgroup",
                path,
                "memory.max",
            ))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_on_the_way_to_the_root_counts() {
        let root = std::env::temp_dir().join(format!("linerate-groups-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).expect("a folder");

        for (folder, text) in [("", "max\n"), ("a", "1000\n"), ("a/b", "3000\n")] {
            fs::write(root.join(folder).join("limit"), text).expect("a file");
        }

        let limit = smallest(&root, "/a/b", "limit");
        fs::remove_dir_all(&root).expect("the folder is ours");
        assert_eq!(limit, Some(1000));
    }

    #[test]
    fn the_total_and_the_group_are_read() {
        assert_eq!(
            total("MemFree: 7 kB\nMemTotal:     2048 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(total("MemTotal: x kB\n"), None);
        let folders: Vec<_> = group_folders("12:cpu:/a\n4:cpu,memory:/d:e\n0::/b/c\nx\n").collect();
        let expected = [
            ("/sys/fs/cgroup/memory", "/d:e", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "/b/c", "memory.max"),
        ];
        assert_eq!(folders, expected);
        assert!(limit_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
