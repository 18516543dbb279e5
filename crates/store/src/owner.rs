//! Which process writes a run, so that a run without its process is recognised.

use std::fs;

/// Host, boot, number and start time of this process.
pub(crate) fn this_process() -> String {
    let pid = std::process::id();
    format!("{} {pid} {}", boot(), start_time(pid).unwrap_or_default())
}

/// Whether the process certainly ended. Processes of other hosts, which share a network file system, are not known.
pub(crate) fn has_ended(owner: &str) -> bool {
    let mut words = owner.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let (host, boot_id, pid, started) = (next(), next(), next(), next());
    let here = boot();
    let Some((this_host, this_boot)) = here.split_once(' ') else {
        return false;
    };
    let is_running = || pid.parse().ok().and_then(start_time).is_some_and(|start| start == started);
    host == this_host && (boot_id != this_boot || !is_running())
}

/// Name of the host and identity of its boot.
fn boot() -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", read("hostname").trim(), read("random/boot_id").trim())
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
