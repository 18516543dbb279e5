//! How much memory this process may use.

use std::fs;
use std::path::Path;

use crate::syscall::syscall;

/// The smallest of the host's memory (`MemTotal`, proc_meminfo(5)), the limits of the control groups this process is in
/// (`memory.max`, cgroups(7), version 2) and its own (`RLIMIT_DATA`, getrlimit(2)), bytes; `None` where none of them can
/// be read.
#[must_use]
pub fn limit_bytes() -> Option<u64> {
    let host = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let own = fs::read_to_string("/proc/self/cgroup").ok();
    let group = own.as_deref().and_then(group_path).and_then(|path| {
        let root = Path::new("/sys/fs/cgroup");
        let folders = Path::new(path).ancestors();
        let limits = folders.filter_map(|folder| {
            let file = root.join(folder.strip_prefix("/").unwrap_or(folder)).join("memory.max");
            fs::read_to_string(file).ok()?.trim().parse().ok()
        });
        limits.min()
    });
    [host, group, data_limit()].into_iter().flatten().min()
}

fn data_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is writable during the call.
    syscall(unsafe { libc::getrlimit(libc::RLIMIT_DATA, &raw mut limit) }).ok()?;
    Some(limit.rlim_cur).filter(|bytes| *bytes != libc::RLIM_INFINITY)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The line of version 2 has the number 0 and names no controller.
fn group_path(cgroup: &str) -> Option<&str> {
    cgroup.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_and_the_group_are_read() {
        assert_eq!(total("MemFree: 7 kB\nMemTotal:     2048 kB\n"), Some(2 << 20));
        assert_eq!(total("MemTotal: x kB\n"), None);
        assert_eq!(group_path("12:cpu:/a\n0::/b/c\n"), Some("/b/c"));
        assert_eq!(group_path("12:memory:/a\n"), None);
        assert!(limit_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
