//! Goal: every packet that the kernel drops is named with its reason and its place, and counted; of
//! a test, its own drops alone. Method: one cause of drops in network namespaces of our own, and as
//! many packets into it as a small program sends.
//!
//! The watch sees the drops of the whole machine, so that these tests run alone.

use std::fs;
use std::path::Path;

use linerate_interop::namespaces::{Net, inside};
use linerate_interop::{Process, TIMEOUT, ours, skip, unsupported, wait_until};
use serde_json::Value;

/// A cause of drops.
struct Cause {
    /// Commands that make it, in a shell of the client's namespace and in one of the server's.
    made_by: [&'static str; 2],
    /// Address, port and size of the datagrams, and the options `df` and `bound=ADDRESS`.
    send: &'static str,
    reason: &'static str,
    function: &'static str,
    place: &'static str,
    /// Datagrams that are not dropped: those that fit into a buffer or a queue.
    kept_max: u64,
}

const DATAGRAMS: u64 = 400;

/// A shell that keeps a socket with a small buffer open and reads nothing.
const DEAF_SOCKET: &str = "python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
s.bind((\"10.99.0.2\", 7000))
time.sleep(20)' > /dev/null 2>&1 &
until grep -q :1B58 /proc/net/udp; do sleep 0.05; done";

/// Sends datagrams slowly enough for every queue that has no fault.
const SENDER: &str = "import socket, sys, time
address, port, size, options = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
for option in options:
    if option == 'df':
        s.setsockopt(socket.IPPROTO_IP, 10, 3)
    else:
        s.bind((option.split('=')[1], 0))
for _ in range(400):
    s.sendto(bytes(size), (address, port))
    time.sleep(0.0005)
";

const fn cause(reason: &'static str, function: &'static str, place: &'static str) -> Cause {
    Cause {
        made_by: ["", ""],
        send: "10.99.0.2 7000 100",
        reason,
        function,
        place,
        kept_max: 0,
    }
}

impl Cause {
    const fn at_client(self, command: &'static str) -> Self {
        let made_by = [command, self.made_by[1]];
        Self { made_by, ..self }
    }

    const fn at_server(self, command: &'static str) -> Self {
        let made_by = [self.made_by[0], command];
        Self { made_by, ..self }
    }

    const fn sends(self, send: &'static str) -> Self {
        Self { send, ..self }
    }

    const fn keeps(self, kept_max: u64) -> Self {
        Self { kept_max, ..self }
    }

    /// Makes the cause, sends into it during a watch, and compares the counts.
    fn test(&self) {
        let Some(net) = Net::new() else { return };
        for (namespace, command) in [&net.a, &net.b].into_iter().zip(self.made_by) {
            let made = inside(namespace, Path::new("sh"), &["-ec", command]).output();
            let made = made.expect("sh");
            if !made.status.success() {
                let error = String::from_utf8_lossy(&made.stderr);
                return unsupported(&format!("{command}: {}", error.trim()));
            }
        }

        let watch = watched(&net.b, "5s");
        let words = [
            &["-c", SENDER][..],
            &self.send.split(' ').collect::<Vec<_>>(),
        ]
        .concat();
        let sent = inside(&net.a, Path::new("python3"), &words)
            .output()
            .expect("python3");
        assert!(
            sent.status.success(),
            "{}",
            String::from_utf8_lossy(&sent.stderr)
        );

        let diagnosis = watch.finish().json();
        let is_it =
            |drop: &&Value| drop["reason"] == self.reason && drop["function"] == self.function;
        let drops = diagnosis["drops"].as_array().cloned().unwrap_or_default();
        let drop = drops.iter().find(is_it);
        let drop = drop.unwrap_or_else(|| panic!("no {}: {drops:#?}", self.reason));
        assert_eq!(drop["place"], self.place, "{drop:#}");

        let packets = drop["packets"].as_u64().expect("a number");
        // One in a hundred may be of another program. Beside a flood of its drops all are estimates.
        let error = drop["error"].as_u64().unwrap_or(0);
        let least = (DATAGRAMS - self.kept_max).saturating_sub(error);
        let range = least..=DATAGRAMS + DATAGRAMS / 100 + error;
        assert!(range.contains(&packets), "{range:?}: {drop:#}");
        let finding = found(&diagnosis, "findings");
        assert!(finding.contains(self.reason), "{finding}");
    }
}

/// A diagnosis of the whole machine over a period, whose watch of drops has begun.
fn watched(namespace: &str, window: &str) -> Process {
    let words = ["doctor", "--json", "--window", window];
    let process = Process::start(inside(namespace, ours().path(), &words));
    let tasks = format!("/proc/{}/task", process.id());
    let is_watch = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.trim() == "linerate-drops"
    };

    let has_watch = || {
        let tasks = fs::read_dir(&tasks).into_iter().flatten().flatten();
        tasks.into_iter().any(is_watch)
    };
    assert!(wait_until(TIMEOUT, has_watch), "a watch of the drops");
    process
}

/// What a list of the diagnosis has of the rule about drops, as text; empty where it has nothing.
fn found(diagnosis: &Value, list: &str) -> String {
    let entries = diagnosis[list].as_array().cloned().unwrap_or_default();
    let entries = entries.into_iter().filter(|entry| entry["id"] == "DROP-01");
    entries.map(|entry| entry.to_string()).collect()
}

#[test]
fn a_rule_of_nftables_drops() {
    cause("NETFILTER_DROP", "nft_do_chain", "firewall")
        .at_server(
            "nft 'add table inet t; add chain inet t i { type filter hook input priority 0; }; \
             add rule inet t i udp dport 7000 drop'",
        )
        .test();
}

#[test]
fn a_full_socket_drops() {
    cause("SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", "socket buffer")
        .at_server(DEAF_SOCKET)
        .keeps(8)
        .test();
}

#[test]
fn a_shaper_with_a_short_queue_drops() {
    cause("QDISC_DROP", "__dev_queue_xmit", "qdisc")
        .at_client("tc qdisc add dev lr0 root tbf rate 8kbit burst 1600 limit 1600")
        .keeps(40)
        .test();
}

#[test]
fn packets_without_a_route_are_dropped() {
    cause("IP_INNOROUTES", "ip_error", "routing")
        .at_client("ip route add 10.97.0.0/24 via 10.99.0.2")
        .at_server("sysctl -qw net.ipv4.ip_forward=1")
        .sends("10.97.0.9 7000 100")
        .test();
}

/// Causes of the same places, and those of others.
#[test]
fn every_other_cause_is_named() {
    let tests = [
        cause("NO_SOCKET", "__udp4_lib_rcv", "no socket"),
        cause("NO_SOCKET", "__udp6_lib_rcv", "no socket")
            .at_client("ip addr add fd99::1/64 dev lr0 nodad")
            .at_server("ip addr add fd99::2/64 dev lr0 nodad")
            .sends("fd99::2 7000 100"),
        cause("IP_RPFILTER", "ip_rcv_finish_core", "routing")
            .at_client(
                "ip addr add 10.98.0.1/32 dev lo; sysctl -qw net.ipv4.conf.lr0.arp_announce=2",
            )
            .at_server("sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.lr0.rp_filter=1")
            .sends("10.99.0.2 7000 100 bound=10.98.0.1"),
        // The buffer of the sending socket has less room than they need.
        cause("NEIGH_FAILED", "neigh_invalidate", "neighbour")
            .sends("10.99.0.77 7000 10")
            .keeps(160),
        cause("NEIGH_QUEUEFULL", "__neigh_event_send", "neighbour")
            .at_client("sysctl -qw net.ipv4.neigh.lr0.unres_qlen_bytes=2000")
            .sends("10.99.0.78 7000 100")
            .keeps(20),
        cause("UDP_CSUM", "__udp4_lib_rcv", "checksum")
            .at_client("ethtool -K lr0 tx off")
            .at_server(
                "nft 'add table inet t; add chain inet t p { type filter hook prerouting \
                 priority 0; }; add rule inet t p udp dport 7000 @th,48,16 set 0x1234'",
            ),
        cause("PKT_TOO_BIG", "ip_forward", "MTU")
            .at_client("ip route add 10.97.0.0/24 via 10.99.0.2")
            .at_server(
                "sysctl -qw net.ipv4.ip_forward=1; ip link add lr1 type veth peer name lr2; \
                 ip addr add 10.97.0.1/24 dev lr1; ip link set lr2 up; ip link set lr1 mtu 1000 up",
            )
            .sends("10.97.0.9 7000 1200 df"),
        cause("FULL_RING", "tun_net_xmit", "tap")
            .at_client(
                "python3 -c 'import fcntl, os, struct, time
f = os.open(\"/dev/net/tun\", os.O_RDWR)
fcntl.ioctl(f, 0x400454ca, struct.pack(\"16sH22x\", b\"lr-tun\", 0x1001))
os.system(\"ip link set lr-tun txqueuelen 20 up; ip addr add 10.96.0.1/24 dev lr-tun\")
time.sleep(20)' > /dev/null 2>&1 &
                 until ip route show | grep -q 10.96.0.0; do sleep 0.05; done",
            )
            .sends("10.96.0.9 7000 100")
            .keeps(24),
        cause("NETFILTER_DROP", "nft_do_chain", "firewall")
            .at_server("iptables-nft -A INPUT -p udp --dport 7000 -j DROP"),
        cause("NETFILTER_DROP", "nf_hook_slow", "firewall")
            .at_server("iptables-legacy -A INPUT -p udp --dport 7000 -j DROP"),
    ];
    tests.iter().for_each(Cause::test);
}

/// Above the rate at which every drop is recorded, the numbers are estimates of a stated error.
#[test]
fn a_flood_of_drops_is_sampled() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();
    let watch = watched(&net.b, "6s");
    let rejected = inside(
        &net.b,
        Path::new("nft"),
        &[
            "add table inet t; add chain inet t i { type filter hook input priority 0; }; \
           add rule inet t i udp length > 100 counter drop",
        ],
    );
    let _client = net.client(&["-u", "-b", "0", "-l", "100", "-t", "2"]);
    assert!({ rejected }.status().expect("nft").success());

    let diagnosis = watch.finish().json();
    let rules = inside(&net.b, Path::new("nft"), &["-j", "list", "ruleset"])
        .output()
        .expect("nft");
    let rules: Value = serde_json::from_slice(&rules.stdout).expect("JSON");
    let counted = rules.to_string();
    let counted = counted.split("\"packets\":").nth(1).expect("a counter");
    let counted: u64 = counted
        .split([',', '}'])
        .next()
        .and_then(|text| text.parse().ok())
        .expect("a number");

    let drops = diagnosis["drops"].as_array().expect("drops");
    let drop = drops.iter().find(|drop| drop["reason"] == "NETFILTER_DROP");
    let drop = drop.unwrap_or_else(|| panic!("{diagnosis:#}"));
    let [packets, error] = ["packets", "error"].map(|name| drop[name].as_u64().unwrap_or(0));
    assert!(counted > 60_000 && error > 0, "{counted} packets: {drop:#}");
    assert!(
        packets.abs_diff(counted) * 10 < counted,
        "{counted} packets: {drop:#}"
    );
}

#[test]
fn the_drops_of_a_test_are_its_own() {
    let Some(net) = Net::new() else { return };
    let _server = net.server();
    let deaf = inside(&net.b, Path::new("sh"), &["-ec", DEAF_SOCKET]).status();
    assert!(deaf.is_ok_and(|status| status.success()));
    // Beside the test: into a socket of another program, in both namespaces.
    let others = ["-c", SENDER, "10.99.0.2", "7000", "100"];
    let others = Process::start(inside(&net.a, Path::new("python3"), &others));

    let options = "-u -b 300M -l 200 -w 4K -t 3 -J --lr-doctor";
    let report = net
        .client(&options.split(' ').collect::<Vec<_>>())
        .finish()
        .json();
    others.finish();
    let diagnosis = &report["lr_doctor"];

    let drops = diagnosis["drops"].as_array().cloned().unwrap_or_default();
    let is_own = |drop: &&Value| drop["host"] == "server" && drop["reason"] == "SOCKET_RCVBUFF";
    let own = drops.iter().find(is_own);
    let own = own.unwrap_or_else(|| panic!("no drop of the server's socket: {diagnosis:#}"));
    let packets = own["packets"].as_u64().expect("a number");
    let lost = report["end"]["sum"]["lost_packets"]
        .as_u64()
        .expect("a number");
    let error = own["error"].as_u64().unwrap_or(0) + lost / 100 + 2;
    assert!(
        lost > 100 && packets <= lost + error,
        "{lost} lost: {own:#}"
    );
    assert!(packets + error >= lost, "{lost} lost: {own:#}");
    assert_eq!(own["place"], "socket buffer");
    assert!(
        found(diagnosis, "findings").contains("udp_queue_rcv_one_skb"),
        "{diagnosis:#}"
    );
    assert!(
        drops
            .iter()
            .all(|drop| drop["host"] != "client" || drop["place"].is_null()),
        "the client's host dropped nothing of the test: {drops:#?}"
    );
}

#[test]
fn healthy_tests_have_no_drops() {
    for options in ["-t 3 -J --lr-doctor", "-u -b 20M -t 3 -J --lr-doctor"] {
        let Some(net) = Net::new() else { return };
        let _server = net.server();
        let report = net
            .client(&options.split(' ').collect::<Vec<_>>())
            .finish()
            .json();
        let diagnosis = &report["lr_doctor"];
        let drops = diagnosis["drops"].as_array().cloned().unwrap_or_default();
        assert!(
            drops.iter().all(|drop| drop["place"].is_null()),
            "{options}: {drops:#?}"
        );
        assert!(
            found(diagnosis, "ruled_out").contains("no packet"),
            "{options}: {diagnosis:#}"
        );
    }
}

#[test]
fn without_the_right_the_report_names_it() {
    let words = ["--reuid=65534", "--clear-groups"];
    let mut command = std::process::Command::new("setpriv");
    command
        .args(words)
        .arg(ours().path())
        .args(["doctor", "--json", "--window", "200ms"]);
    let Ok(output) = command.output() else {
        return skip("setpriv is not installed");
    };
    let Ok(diagnosis) = serde_json::from_slice::<Value>(&output.stdout) else {
        return skip("another user cannot run the program from its folder");
    };
    let reason = found(&diagnosis, "not_evaluated");
    assert!(reason.contains("needs root, or CAP_PERFMON"), "{reason}");
    assert!(diagnosis["drops"].is_null(), "{diagnosis:#}");
}
