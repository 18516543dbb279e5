//! Goal: the verdict names the part that limits a test, and the finding it names stands in the list
//! and in no other. Method: one fault in network namespaces of our own, at one of the two hosts or
//! at a bridge between them.
//!
//! Each test is of one fault, or of one end, of its kind. `make live SUITE=faults` sets
//! `LINERATE_FAULT_RUNS`: every fault at every end is tested that often, and one wrong verdict in
//! twenty is allowed.

use std::env;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use linerate_interop::namespaces::{Net, SERVER, inside, try_run};
use linerate_interop::{ControlGroup, Process, original, ours, skip, unsupported, words};
use serde_json::Value;

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Client,
    Server,
    Bridge,
}

/// A fault and what a test has to conclude from it.
struct Fault {
    place: Place,
    /// Commands that make it, in a shell.
    made_by: &'static str,
    /// Options of the test.
    words: &'static str,
    verdict: &'static str,
    /// Its finding.
    rule: &'static str,
    /// Texts that the finding contains: a cause, a command, the former value.
    contains: &'static [&'static str],
}

const fn fault(
    place: Place,
    made_by: &'static str,
    verdict: &'static str,
    rule: &'static str,
) -> Fault {
    Fault {
        place,
        made_by,
        words: "-C cubic",
        verdict,
        rule,
        contains: &[],
    }
}

impl Fault {
    const fn words(self, words: &'static str) -> Self {
        Self { words, ..self }
    }

    const fn contains(self, contains: &'static [&'static str]) -> Self {
        Self { contains, ..self }
    }

    /// `None` where the fault cannot be made here.
    fn test(&self) -> Option<Result<(), String>> {
        let net = if self.place == Place::Bridge {
            Net::bridged()?
        } else {
            Net::new()?
        };
        let namespace = match self.place {
            Place::Client => &net.a,
            Place::Server => &net.b,
            Place::Bridge => net.middle.as_ref()?,
        };
        let made = inside(namespace, Path::new("sh"), &["-ec", self.made_by])
            .output()
            .expect("sh");
        if !made.status.success() {
            unsupported(&format!(
                "{}: {}",
                self.made_by,
                String::from_utf8_lossy(&made.stderr).trim()
            ));
            return None;
        }

        let _server = net.server();
        Some(self.check(&diagnosis(&net, self.words)))
    }

    fn check(&self, diagnosis: &Value) -> Result<(), String> {
        explained(diagnosis, self.verdict, self.rule, self.contains)
            .map_err(|error| format!("{} ({}): {error}: {diagnosis:#}", self.made_by, self.words))
    }
}

/// The diagnosis of a test of ours against ours.
fn diagnosis(net: &Net, options: &str) -> Value {
    let options = [&["-J", "--lr-doctor", "-t", "5"][..], &words(options)].concat();
    net.client(&options).finish().json()["lr_doctor"].clone()
}

/// The verdict is this one, its finding stands in one list, and no other cause is as severe.
fn explained(
    diagnosis: &Value,
    verdict: &str,
    rule: &str,
    contains: &[&str],
) -> Result<(), String> {
    let concluded = &diagnosis["verdict"];
    let sentence = concluded["sentence"].as_str().unwrap_or_default();
    if concluded["verdict"] != verdict || !sentence.contains(rule) {
        return Err(format!(
            "expected {verdict} by {rule}, concluded: {sentence}"
        ));
    }

    let list = |name: &str| diagnosis[name].as_array().cloned().unwrap_or_default();
    let is_same =
        |entry: &Value, subject: &Value| entry["id"] == rule && entry["subject"] == *subject;
    let finding = list("findings")
        .into_iter()
        .find(|finding| finding["id"] == rule);
    let finding = finding.ok_or_else(|| format!("{rule} is not among the findings"))?;

    for other in ["ruled_out", "not_evaluated"] {
        if list(other)
            .iter()
            .any(|entry| is_same(entry, &finding["subject"]))
        {
            return Err(format!("{rule} is also {other}"));
        }
    }

    // Programs beside the test are no fault of this one, and a rule of the same area has the same
    // cause.
    let area = |id: &str| id.split('-').next().map(str::to_owned);
    let is_severe = |other: &Value| {
        let id = other["id"].as_str().unwrap_or_default();
        other["severity"] == "high" && area(id) != area(rule) && id != "CPU-07"
    };
    if let Some(other) = list("findings").into_iter().find(is_severe) {
        return Err(format!("beside {rule}: {other:#}"));
    }

    let text = finding.to_string();
    let missing = contains.iter().find(|part| !text.contains(**part));
    missing.map_or(Ok(()), |part| {
        Err(format!("{part:?} is not in {rule}: {finding:#}"))
    })
}

/// Number of tests of each fault; `None` when only the first one of a kind is, once.
fn runs() -> Option<usize> {
    env::var("LINERATE_FAULT_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok())
}

fn times(kinds: usize) -> usize {
    runs().map_or(1, |runs| kinds * runs)
}

/// Repeats a test. One of twenty may conclude something else.
#[allow(
    clippy::print_stderr,
    reason = "the reader of the test log must see the count"
)]
fn repeat(times: usize, mut test: impl FnMut(usize) -> Option<Result<(), String>>) {
    let results: Vec<Result<(), String>> = (0..times).map_while(&mut test).collect();
    let errors: Vec<&String> = results
        .iter()
        .filter_map(|result| result.as_ref().err())
        .collect();
    eprintln!(
        "{} of {} as expected",
        results.len() - errors.len(),
        results.len()
    );
    errors.iter().for_each(|error| eprintln!("{error}"));
    assert!(
        errors.len() * 20 <= results.len(),
        "{} of {}: {}",
        errors.len(),
        results.len(),
        errors[0]
    );
}

fn test_all(faults: &[Fault]) {
    repeat(times(faults.len()), |number| {
        let fault = &faults[number % faults.len()];
        // A fault that this kernel does not make is none.
        Some(fault.test().unwrap_or(Ok(())))
    });
}

#[test]
fn a_narrow_hop_between_the_hosts_is_the_path() {
    const SHALLOW: &str = "tc qdisc add dev port-b root tbf rate 100mbit burst 32k latency 20ms";
    const DEEP: &str = "tc qdisc add dev port-b root tbf rate 10mbit burst 32k limit 1000000";

    test_all(&[
        fault(Place::Bridge, SHALLOW, "path", "PATH-10"),
        fault(Place::Bridge, SHALLOW, "path", "PATH-10").words("-C bbr"),
        fault(Place::Bridge, DEEP, "path", "PATH-10"),
        fault(Place::Bridge, DEEP, "path", "PATH-10").words("-C bbr"),
    ]);
}

#[test]
fn packets_that_are_dropped_between_the_hosts_are_the_path() {
    const POLICER: &str = "nft 'table bridge t \
                           { chain c { type filter hook forward priority 0; iifname port-a limit rate over 25 mbytes/second burst 200 kbytes drop; }; }'";

    const EVERY_100TH: &str = "nft 'table bridge t \
                               { chain c { type filter hook forward priority 0; numgen random mod 100 == 0 drop; }; }'";

    const EVERY_333RD: &str = "nft 'table bridge t \
                               { chain c { type filter hook forward priority 0; numgen random mod 333 == 0 drop; }; }'";

    test_all(&[
        fault(Place::Bridge, POLICER, "path", "PATH-10").contains(&["retransmit_share"]),
        fault(Place::Bridge, POLICER, "path", "PATH-10").words("-C bbr"),
        fault(Place::Bridge, EVERY_100TH, "path", "PATH-10"),
        fault(Place::Bridge, EVERY_333RD, "path", "PATH-10"),
    ]);
}

/// A hop of 50 Mbit/s that drops what is more.
const NARROW: &str = "tc qdisc add dev port-b root tbf rate 50mbit burst 32k limit 100000";

#[test]
fn datagrams_are_lost_on_the_path_or_at_their_receiver() {
    test_all(&[
        fault(Place::Bridge, NARROW, "path", "PATH-11").words("-u -b 100M"),
        fault(Place::Client, "true", "receiver-cpu-app", "UDP-01").words("-u -b 300M -w 4K"),
    ]);
}

#[test]
fn loss_without_counters_of_the_receiver_is_undecided() {
    repeat(times(1), |_| {
        let net = Net::bridged()?;
        let middle = net.middle.as_deref()?;
        assert!(
            inside(middle, Path::new("sh"), &["-ec", NARROW])
                .status()
                .expect("sh")
                .success()
        );

        let server = Process::start(inside(&net.b, original().path(), &["-s", "--forceflush"]));
        server.wait_for_stdout("Server listening", 1);
        let diagnosis = diagnosis(&net, "-u -b 100M");
        let result = explained(
            &diagnosis,
            "path-or-receiver",
            "PATH-11",
            &["UdpRcvbufErrors"],
        );

        Some(result.map_err(|error| format!("{error}: {diagnosis:#}")))
    });
}

#[test]
fn small_windows_are_those_of_their_host() {
    let rmem = fault(
        Place::Server,
        "sysctl -qw 'net.ipv4.tcp_rmem=4096 16384 16384'",
        "receiver-window",
        "WIN-01",
    );
    test_all(&[
        rmem.contains(&["net.ipv4.tcp_rmem", "4096 16384 16384"]),
        fault(
            Place::Client,
            "sysctl -qw 'net.ipv4.tcp_wmem=4096 4096 4096'",
            "sender-window",
            "WIN-02",
        ),
        fault(Place::Client, "true", "receiver-window", "WIN-01")
            .words("-C cubic -w 4K")
            .contains(&["-w"]),
        fault(
            Place::Server,
            "ip route change 10.99.0.0/24 dev lr0 window 8000",
            "receiver-window",
            "WIN-01",
        ),
    ]);
}

#[test]
fn a_rule_of_the_firewall_that_drops_is_named() {
    const EVERY_20TH: &str = "nft 'table ip t { chain c { type filter hook input priority 0; \
                              meta l4proto udp numgen random mod 20 == 0 counter drop; }; }'";

    const EVERY_100TH: &str = "nft 'table ip t { chain c { type filter hook input priority 0; \
                               meta l4proto tcp numgen random mod 100 == 0 counter drop; }; }'";

    test_all(&[
        fault(Place::Server, EVERY_20TH, "firewall", "FW-01")
            .words("-u -b 50M")
            .contains(&["ip t c"]),
        fault(Place::Server, EVERY_100TH, "firewall", "FW-01").contains(&["ip t c"]),
    ]);
}

#[test]
fn shapers_of_a_host_are_configured_rates() {
    const SENDER: &str = "tc qdisc add dev lr0 root tbf rate 100mbit burst 64k latency 50ms";
    const FAST: &str = "tc qdisc add dev lr0 root tbf rate 1gbit burst 256k latency 50ms";
    const HOLDS_BACK: &str = "tc qdisc add dev lr0 root tbf rate 50mbit burst 32k latency 50ms";
    const DROPS: &str = "tc qdisc add dev lr0 root tbf rate 50mbit burst 32k limit 20000";
    const ACKNOWLEDGEMENTS: &str = "tc qdisc add dev lr0 root tbf rate 1mbit burst 5k latency 50ms";

    test_all(&[
        fault(Place::Client, SENDER, "configured-rate", "QD-01").contains(&["tc qdisc del"]),
        fault(Place::Client, FAST, "configured-rate", "QD-01").words("-C cubic -P 2"),
        fault(Place::Client, HOLDS_BACK, "configured-rate", "QD-01").words("-u -b 100M"),
        fault(Place::Client, DROPS, "configured-rate", "QD-01").words("-u -b 100M -l 200"),
        fault(Place::Server, ACKNOWLEDGEMENTS, "configured-rate", "QD-01").contains(&["server"]),
    ]);
}

#[test]
fn offloads_that_are_off_limit_the_sender() {
    test_all(&[
        fault(
            Place::Client,
            "ethtool -K lr0 tso off gso off tx off sg off",
            "offload",
            "OFF-01",
        ),
        fault(
            Place::Client,
            "ip link set dev lr0 gso_max_segs 1",
            "offload",
            "OFF-01",
        )
        .contains(&["gso_max_segs"]),
    ]);
}

#[test]
fn packets_too_large_for_the_path_are_the_path_mtu() {
    // No ICMP error reports the limit.
    const LARGE: &str = "nft 'table bridge t { chain c { type filter hook forward priority 0; \
                         iifname port-a meta length > 1400 drop; }; }'";
    test_all(&[fault(Place::Bridge, LARGE, "path-mtu", "MTU-02")]);
}

/// Programs that use one CPU all the time.
fn busy_programs(cpu: &str, count: usize) -> Vec<Process> {
    let start = |_| {
        let mut program = Command::new("taskset");
        program.args(["-c", cpu, "sh", "-c", "while :; do :; done"]);
        Process::start(program)
    };
    (0..count).map(start).collect()
}

#[test]
fn programs_that_use_the_cpu_of_one_end_are_named() {
    if available_parallelism().map_or(1, usize::from) < 2 || !try_run("taskset -c 1 true") {
        return unsupported("needs CPUs 0 and 1");
    }

    let ends = [("0", 3), ("1", 2)];
    repeat(times(ends.len()), |number| {
        let (cpu, count) = ends[number % ends.len()];
        let net = Net::new()?;
        let _server = net.server();
        let _programs = busy_programs(cpu, count);
        let diagnosis = diagnosis(&net, "-C cubic -A 0,1");
        let result = explained(&diagnosis, "other-programs", "CPU-07", &["sh"]);
        Some(result.map_err(|error| format!("CPU {cpu}: {error}: {diagnosis:#}")))
    });
}

/// Neither end is bound to a CPU: its threads wait for one although the CPUs have idle time.
#[test]
fn a_program_that_uses_one_cpu_beside_the_test_is_named() {
    if available_parallelism().map_or(1, usize::from) != 2 {
        return unsupported("needs two CPUs, of which a program uses one");
    }

    let _program = busy_programs("1", 1);
    repeat(runs().map_or(1, |_| 20), |_| {
        let net = Net::new()?;
        let _server = net.server();
        let diagnosis = diagnosis(&net, "-C cubic");
        let result = explained(&diagnosis, "other-programs", "CPU-07", &["sh"]);
        Some(result.map_err(|error| format!("{error}: {diagnosis:#}")))
    });
}

/// Our program in a network namespace and a control group. `ip netns exec` would hide the control
/// groups.
fn joined(namespace: &str, group: &ControlGroup, options: &[&str]) -> Process {
    let group = group.processes();
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}"));
    command
        .args(["sh", "-c", "echo $$ > \"$0\"; exec \"$@\""])
        .args([&group, ours().path()]);
    command.arg("iperf3").args(options);

    Process::start(command)
}

#[test]
fn a_quota_of_cpu_time_at_one_end_is_named() {
    repeat(times(2), |number| {
        let net = Net::new()?;
        let Some(group) = ControlGroup::with_fifth_of_a_cpu() else {
            skip("no control group with a quota can be made here");
            return None;
        };
        let is_server = number % 2 == 0;
        let server = if is_server {
            let server = joined(&net.b, &group, &["-s", "--forceflush", "--lr-facts", "all"]);
            server.wait_for_stdout("Server listening", 1);
            server
        } else {
            net.server()
        };

        let options = ["-c", SERVER, "-J", "--lr-doctor", "-t", "5", "-C", "cubic"];
        let client = if is_server {
            net.client(&options[2..])
        } else {
            joined(&net.a, &group, &options)
        };
        let diagnosis = client.finish().json()["lr_doctor"].clone();

        drop(server);
        let result = explained(&diagnosis, "cpu-quota", "CPU-04", &[]);
        Some(result.map_err(|error| format!("{error}: {diagnosis:#}")))
    });
}

/// Nothing is wrong with the pair of virtual NICs: the CPUs are the limit, and no finding has more
/// than low severity.
#[test]
fn the_cpus_limit_a_test_without_a_fault() {
    let healthy = ["-C cubic", "-C cubic -R", "-C cubic -P 4"];
    repeat(runs().map_or(healthy.len(), |_| 20), |number| {
        let net = Net::new()?;
        let _server = net.server();
        let options = healthy[number % healthy.len()];
        let diagnosis = diagnosis(&net, options);
        let verdict = diagnosis["verdict"]["verdict"].as_str().unwrap_or_default();
        let is_cpu = matches!(verdict, "host-cpu" | "other-programs" | "cpu-steal");

        let is_severe = |finding: &Value| {
            finding["severity"] != "low"
                && finding["severity"] != "info"
                && finding["id"] != "CPU-07"
        };
        let severe = diagnosis["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .any(is_severe);
        Some(if is_cpu && !severe {
            Ok(())
        } else {
            Err(format!("{options}: {diagnosis:#}"))
        })
    });
}
