//! Workers of this user on this host.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use crate::report::Leftover;
use linerate_model::record::RunId;
use linerate_sys::other_process::OtherProcess;

/// Most workers that are listed.
const FOUND_MAX: usize = 1000;
/// Time from `SIGTERM` to `SIGKILL`, and to the end after it.
const GRACE: Duration = Duration::from_millis(500);

/// The workers of one run, or of all runs.
pub(super) fn find(run: Option<RunId>) -> Vec<Leftover> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if let Some(worker) = pid.and_then(worker)
            && run.is_none_or(|run| run == worker.run)
            && found.len() < FOUND_MAX
        {
            found.push(worker);
        }
    }

    found
}

/// Ends workers without an agent; with `are_all` the others too, with their agents.
pub(super) fn end(found: &mut [Leftover], are_all: bool) {
    for worker in found {
        if worker.agent.is_some() && !are_all {
            continue;
        }
        let is_worker = |words: &[String]| run_of(words) == Some(worker.run);
        if let Some(agent) = worker.agent.and_then(|pid| open(pid, is_agent)) {
            end_group(&agent);
        }
        if let Some(process) = open(worker.pid, is_worker) {
            end_group(&process);
        }
        let words = own_command_line(worker.pid).unwrap_or_default();
        worker.is_ended = Some(!is_worker(&words));
    }
}

/// The process with this number, if it is of this user and has this command line.
fn open(pid: u32, is_it: impl Fn(&[String]) -> bool) -> Option<OtherProcess> {
    // Opened before the check, because the number of an ended process is used again.
    let process = OtherProcess::open(pid).ok()?;
    is_it(&own_command_line(pid)?).then_some(process)
}

/// Ends the group; the caller checks the effect afterwards.
fn end_group(process: &OtherProcess) {
    let _ = process.terminate_group();
    if !process.ends_within(GRACE).unwrap_or(false) {
        let _ = process.kill_group();
        let _ = process.ends_within(GRACE);
    }
}

fn worker(pid: u32) -> Option<Leftover> {
    let run = run_of(&own_command_line(pid)?)?;
    let agent = parent(pid)
        .filter(|parent| own_command_line(*parent).is_some_and(|words| is_agent(&words)));
    Some(Leftover {
        pid,
        run,
        ports: ports(pid),
        agent,
        is_ended: None,
    })
}

/// Words of the command line of a process of this user.
fn own_command_line(pid: u32) -> Option<Vec<String>> {
    // The owner of /proc/PID is the effective user of the process (proc_pid(5)).
    let of_process = fs::metadata(format!("/proc/{pid}")).ok()?;
    if of_process.uid() != fs::metadata("/proc/self").ok()?.uid() {
        return None;
    }

    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0);
    Some(
        words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect(),
    )
}

/// `linerate fleet worker --run ID`
fn run_of(words: &[String]) -> Option<RunId> {
    let [_, fleet, worker, option, id, ..] = words else {
        return None;
    };
    if fleet != "fleet" || worker != "worker" || option != "--run" {
        return None;
    }
    id.parse().ok()
}

/// `linerate fleet agent --stdio`
fn is_agent(words: &[String]) -> bool {
    matches!(words, [_, fleet, agent, ..] if fleet == "fleet" && agent == "agent")
}

/// Field 4 of /proc/PID/stat (proc(5)).
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain spaces.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Ports of the listening sockets of a process.
fn ports(pid: u32) -> Vec<u16> {
    let mut inodes = Vec::new();
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    for entry in entries.into_iter().flatten().flatten() {
        let link = fs::read_link(entry.path()).unwrap_or_default();
        let link = link.to_string_lossy();
        let socket = link.strip_prefix("socket:[");
        let inode = socket.and_then(|socket| socket.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
    }

    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for (port, inode) in listening(&table) {
            if inodes.contains(&inode) {
                ports.push(port);
            }
        }
    }

    ports
}

/// Port and inode of each listening socket of /proc/net/tcp (proc_net(5)).
fn listening(text: &str) -> impl Iterator<Item = (u16, u64)> {
    const LISTEN: &str = "0A";

    text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1)?;
        let state = fields.nth(1)?;
        let inode = fields.nth(5)?.parse().ok()?;
        let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (state == LISTEN).then_some((port, inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_of_the_table_have_their_port_and_inode() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0A60000A:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 51234 1 0000000000000000 100 0
   1: 0A60000A:1451 0B60000A:B0B4 01 00000000:00000000 00:00000000 00000000     0        0 51240 1 0000000000000000 20 4
";
        assert_eq!(listening(table).collect::<Vec<_>>(), [(5201, 51234)]);
    }

    #[test]
    fn command_lines_of_workers_have_the_option_in_its_place() {
        let id = RunId::new(1, [7; 10]);
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            run_of(&words(&format!("linerate fleet worker --run {id}"))),
            Some(id)
        );

        for other in [
            format!("grep fleet worker --run={id}"),
            format!("vi fleet worker {id}"),
            "sh".to_owned(),
        ] {
            assert_eq!(run_of(&words(&other)), None, "{other}");
        }
    }
}
