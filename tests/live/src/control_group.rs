//! Control groups of our own that bound memory or CPU time (cgroups(7)).

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::wait_for;

/// A control group; removed when its last process is gone.
pub struct ControlGroup(PathBuf);

/// Mount point of a controller, and the files of a group with what is written into them.
type Limits<'a> = &'a [(&'a str, &'a [(&'a str, &'a str)])];

impl ControlGroup {
    /// Bounds memory; `None` where no such group can be made (root is needed).
    pub fn with_memory(bytes: u64) -> Option<Self> {
        let bytes = &*bytes.to_string();
        Self::new(&[
            ("/sys/fs/cgroup/memory", &[("memory.limit_in_bytes", bytes)]),
            ("/sys/fs/cgroup", &[("memory.max", bytes)]),
        ])
    }

    /// A fifth of one CPU; `None` where no such group can be made (root is needed).
    pub fn with_fifth_of_a_cpu() -> Option<Self> {
        Self::new(&[
            (
                "/sys/fs/cgroup/cpu",
                &[
                    ("cpu.cfs_period_us", "100000"),
                    ("cpu.cfs_quota_us", "20000"),
                ],
            ),
            ("/sys/fs/cgroup", &[("cpu.max", "20000 100000")]),
        ])
    }

    fn new(limits: Limits<'_>) -> Option<Self> {
        let name = format!("linerate-test-{}", std::process::id());
        limits.iter().find_map(|(root, files)| {
            let folder = PathBuf::from(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = Self(folder);

            // The kernel makes the files; a folder without them belongs to no such controller.
            let set = |(file, value): &(&str, &str)| {
                let file = group.0.join(file);
                file.exists() && fs::write(file, value).is_ok()
            };
            files.iter().all(set).then_some(group)
        })
    }

    /// File that takes the numbers of processes.
    pub fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // A group that still has a process stays; nothing depends on it.
        let _ = wait_for(Duration::from_secs(5), || fs::remove_dir(&self.0).ok());
    }
}
