//! State of a process, as the kernel shows it.

use std::fs;
use std::time::Duration;

/// Resources of a process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Open file descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Resident memory in KiB.
    pub resident_kib: usize,
    /// The part of it that is no file: without the code of the program, which is five times as
    /// large in a debug build.
    pub anonymous_kib: usize,
}

impl Status {
    /// Reads the status of a process (proc_pid_status(5), proc_pid_fd(5)).
    ///
    /// # Panics
    /// If it has ended.
    #[track_caller]
    pub fn of(process_id: u32) -> Self {
        Self::while_it_runs(process_id).expect("the process runs")
    }

    /// Reads the status of a process; `None` once it has ended, waited for or not: it has no memory
    /// then.
    pub fn while_it_runs(process_id: u32) -> Option<Self> {
        let folder = format!("/proc/{process_id}");
        let status = fs::read_to_string(format!("{folder}/status")).ok()?;
        Some(Self {
            descriptors: fs::read_dir(format!("{folder}/fd")).ok()?.count(),
            threads: field(&status, "Threads:")?,
            resident_kib: field(&status, "VmRSS:")?,
            anonymous_kib: field(&status, "RssAnon:")?,
        })
    }
}

/// CPU time of a process so far, in steps of 10 ms (proc_pid_stat(5), fields `utime` and `stime`).
#[track_caller]
pub fn cpu_time(process_id: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process_id}/stat")).expect("the process runs");
    // The name in parentheses may hold anything; what follows it begins with field 3.
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let ticks = |number: usize| -> u64 {
        let word = fields.split_whitespace().nth(number - 3);
        word.and_then(|word| word.parse().ok())
            .expect("a number of ticks")
    };

    Duration::from_millis((ticks(14) + ticks(15)) * MS_PER_TICK)
}

/// The kernel's `USER_HZ` is 100 on every architecture Debian runs on.
const MS_PER_TICK: u64 = 10;

fn field(status: &str, key: &str) -> Option<usize> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}
