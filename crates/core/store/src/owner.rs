//! Which process writes a run, so that a run without its process is recognised.

use std::fs;

use linerate_model::record::RunId;

use crate::database::params;
use crate::{Store, StoreError};

/// The process that writes a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProcess {
    /// Name of its host.
    pub host: String,
    /// Its process id; `None` of another host, or when it has ended.
    pub pid: Option<u32>,
}

impl Store {
    /// The process that writes a run; `None` of a run that has ended.
    ///
    /// # Errors
    /// What the database reports.
    pub fn process_of(&self, run: RunId) -> Result<Option<RunProcess>, StoreError> {
        let query = "SELECT owner FROM run WHERE run_id = $1 AND state = 'running'";
        let owner: Option<Option<String>> =
            self.database.one(query, &params![run], |row| row.get(0))?;
        Ok(owner.flatten().map(|owner| {
            let host = owner.split(' ').next().unwrap_or_default().to_owned();
            // Host name, boot id, process id and start time.
            let pid = owner.split(' ').nth(2).and_then(|pid| pid.parse().ok());
            RunProcess {
                host,
                pid: pid.filter(|_| is_running_here(&owner)),
            }
        }))
    }
}

/// Host, boot, number and start time of this process.
pub(crate) fn this_process() -> String {
    let pid = std::process::id();
    format!("{} {pid} {}", boot(), start_time(pid).unwrap_or_default())
}

/// The process certainly ended. Processes of other hosts, which share a network file system, are
/// not known.
pub(crate) fn has_ended(owner: &str) -> bool {
    let here = boot();
    let host = here.split(' ').next();
    owner.split(' ').next() == host && !is_running_here(owner)
}

fn is_running_here(owner: &str) -> bool {
    let Some(process) = owner
        .strip_prefix(&boot())
        .and_then(|rest| rest.strip_prefix(' '))
    else {
        return false;
    };
    let Some((pid, started)) = process.split_once(' ') else {
        return false;
    };
    // A process id is used again: the start time shows the same process.
    pid.parse()
        .ok()
        .and_then(start_time)
        .is_some_and(|start| start == started)
}

/// Name of the host and identity of its boot.
fn boot() -> String {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!(
        "{} {}",
        read("hostname").trim(),
        read("random/boot_id").trim()
    )
}

/// Field 22 of /proc/PID/stat (proc(5)): numbers of processes are used again, start times are not.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace().nth(19)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_boot_or_start_time_is_another_process_and_another_host_is_unknown() {
        let this = this_process();
        assert!(!has_ended(&this));
        let words: Vec<&str> = this.split(' ').collect();
        let with = |at: usize, word: &str| {
            let mut other = words.clone();
            other[at] = word;
            other.join(" ")
        };
        assert!(has_ended(&with(1, "another-boot")));
        assert!(has_ended(&with(2, "4194305")));
        assert!(has_ended(&with(3, "1")));
        assert!(!has_ended(&with(0, "another-host")));
    }
}
