//! Command lines for the shell of a host, and the lines that it prints.

use std::fmt::Write;
use std::net::IpAddr;

use crate::TaskId;
use crate::protocol::message::ArmTask;
use linerate_model::record::RunId;

/// First line: what the shell started ends with it, and its host is described. `timeout` of GNU
/// leads a process group of its own, out of reach of that, unless an option prevents it.
pub(super) const BEGIN: &str = "trap 'trap - EXIT HUP TERM; kill 0' EXIT HUP TERM; LC_ALL=C; \
                                export LC_ALL; t=timeout; timeout --foreground 1 true 2>/dev/null \
                                && t='timeout --foreground'; echo LRF host $(uname -n); echo LRF \
                                ssh $SSH_CONNECTION; echo LRF iperf3 $(iperf3 --version \
                                2>/dev/null | head -n 1); echo LRF end";

/// Longest time of a test beyond its own, in s, before it ends itself.
const OVERTIME_S: u64 = 5;
/// Intervals of a test, unless they would be shorter than 100 ms.
const INTERVALS: f64 = 40.0;

/// A line of the shell.
#[derive(Debug, PartialEq)]
pub(super) enum Printed<'a> {
    /// A fact of the host.
    Fact { name: &'a str, value: &'a str },
    /// A test printed a line.
    Output { task: TaskId, text: &'a str },
    /// Process id of a test.
    Pid { task: TaskId, pid: u32 },
    /// A test ended.
    Exit { task: TaskId, code: i32 },
}

/// Reads a line; `None` for one that the shell printed by itself.
pub(super) fn read(line: &str) -> Option<Printed<'_>> {
    if let Some(fact) = line.strip_prefix("LRF ") {
        let (name, value) = fact.split_once(' ').unwrap_or((fact, ""));
        return Some(Printed::Fact { name, value });
    }

    let (task, text) = line.strip_prefix("LRT ")?.split_once(' ')?;
    let task = task.parse().ok()?;
    let number = |prefix: &str| text.strip_prefix(prefix)?.trim().parse::<i32>().ok();
    if let Some(pid) = number("LRP ").and_then(|pid| u32::try_from(pid).ok()) {
        return Some(Printed::Pid { task, pid });
    }

    Some(match number("LRX ") {
        Some(code) => Printed::Exit { task, code },
        None => Printed::Output { task, text },
    })
}

/// Length of the first interval of a stream, from a line of a server:
/// `[  5]   0.00-0.50   sec  ...`.
pub(super) fn first_interval_ns(line: &str) -> Option<u64> {
    let (_, row) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let mut words = row.split_whitespace();
    let end_s: f64 = words.next()?.strip_prefix("0.00-")?.parse().ok()?;
    let is_time = words.next() == Some("sec") && (0.0..=60.0).contains(&end_s);
    is_time.then_some((end_s * 1e9) as u64)
}

/// Starts the server of one test.
pub(super) fn server(run: RunId, task: &ArmTask, local: IpAddr) -> String {
    // The client comes within 2 s of ARM and a start of at most 10 s after it.
    let seconds = seconds(task) + 12 + OVERTIME_S;
    // It prints when an interval ends. The first one has to end before omitted time does, which
    // restarts the intervals.
    started(
        run,
        task,
        seconds,
        &format!("-s -1 -p {} -B {local} -i 0.5 --forceflush", task.port),
    )
}

/// Runs a test as client.
pub(super) fn client(run: RunId, task: &ArmTask, local: IpAddr) -> String {
    let interval_s = (task.time_ms as f64 / 1e3 / INTERVALS).max(0.1);
    let mut options = format!(
        "-c {} -p {} -B {local} -J -t {} -i {interval_s}",
        task.peer,
        task.port,
        seconds(task)
    );

    // Writing to a text does not fail.
    let mut add = |word: std::fmt::Arguments<'_>| _ = options.write_fmt(word);
    if task.omit_ms > 0 {
        add(format_args!(" -O {}", task.omit_ms.div_ceil(1_000)));
    }

    if task.streams > 1 {
        add(format_args!(" -P {}", task.streams));
    }

    if task.is_reversed {
        add(format_args!(" -R"));
    }

    if let Some(bps) = task.rate_bps {
        add(format_args!(" -b {bps}"));
    }

    // Its characters are those of an identifier (ArmTask::validate).
    if let Some(name) = &task.congestion {
        add(format_args!(" -C {name}"));
    }

    let seconds = seconds(task) + task.omit_ms.div_ceil(1_000) + OVERTIME_S;
    started(run, task, seconds, &options)
}

/// Ends a test.
pub(super) fn kill(pid: u32) -> String {
    format!("kill {pid} 2>/dev/null")
}

/// iperf3 in the background, which ends itself after this time; its output is marked.
fn started(run: RunId, task: &ArmTask, seconds: u64, options: &str) -> String {
    // `$$` of a subshell is the number of its parent, so a child prints its own `$PPID`. Without
    // /dev/null iperf3 could read the commands of the shell.
    let id = task.task;
    format!(
        "{{ ( echo LRP $(exec sh -c 'echo $PPID'); exec $t -k 1 {seconds} env LINERATE_RUN={run} iperf3 {options} ) 2>&1; echo LRX $?; }} </dev/null | while IFS= read -r l; do printf '%s\\n' \"LRT {id} $l\"; done &"
    )
}

/// iperf3 has whole seconds.
fn seconds(task: &ArmTask) -> u64 {
    task.time_ms.div_ceil(1_000).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_interval_of_a_server_has_a_length_and_no_other_line_has() {
        let line =
            "[  5]   0.00-0.51   sec   112 MBytes   944 Mbits/sec                  (omitted)";
        assert_eq!(first_interval_ns(line), Some(510_000_000));

        let others = [
            "[  5]   0.51-1.00   sec   112 MBytes   944 Mbits/sec",
            "[ ID] Interval           Transfer     Bitrate",
            "[  5] local 10.96.0.11 port 5201 connected to 10.96.0.10 port 40000",
            "[  5]   0.00-nan   sec",
            "[  5]   0.00-99999   sec",
            "[  5] 0.00-1.00",
        ];
        for line in others {
            assert_eq!(first_interval_ns(line), None, "{line}");
        }
    }

    #[test]
    fn lines_of_tests_and_facts_differ() {
        let id = "0000000000000000000000000000000b";
        let task = id.parse().expect("an id");
        let marked = |text: &str| format!("LRT {id} {text}");

        assert_eq!(
            read("LRF kernel 6.1.0"),
            Some(Printed::Fact {
                name: "kernel",
                value: "6.1.0"
            })
        );
        assert_eq!(
            read("LRF iperf3"),
            Some(Printed::Fact {
                name: "iperf3",
                value: ""
            })
        );
        assert_eq!(
            read(&marked("LRP 77")),
            Some(Printed::Pid { task, pid: 77 })
        );
        assert_eq!(
            read(&marked("LRX 124")),
            Some(Printed::Exit { task, code: 124 })
        );
        assert_eq!(
            read(&marked("{ \"a\": 1 }")),
            Some(Printed::Output {
                task,
                text: "{ \"a\": 1 }"
            })
        );
        assert_eq!(
            read(&marked("LRP -1")),
            Some(Printed::Output {
                task,
                text: "LRP -1"
            })
        );

        for other in ["", "LRT", "LRT x y", "motd", "LRF"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
