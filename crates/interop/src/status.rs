//! What the kernel knows about a process.

use std::fs;

/// Resources of a process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Open file descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Resident memory in KiB.
    pub resident_kib: usize,
}

impl Status {
    /// Looks at a process (proc_pid_status(5), proc_pid_fd(5)).
    ///
    /// # Panics
    /// When it is gone.
    #[track_caller]
    #[must_use]
    pub fn of(process_id: u32) -> Self {
        let folder = format!("/proc/{process_id}");
        let status = fs::read_to_string(format!("{folder}/status")).expect("the process runs");
        let descriptors = fs::read_dir(format!("{folder}/fd")).expect("the process runs").count();
        Self {
            descriptors,
            threads: field(&status, "Threads:"),
            resident_kib: field(&status, "VmRSS:"),
        }
    }
}

fn field(status: &str, key: &str) -> usize {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let number = line
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|word| word.parse().ok());
    number.unwrap_or_else(|| panic!("no {key} in {status}"))
}
