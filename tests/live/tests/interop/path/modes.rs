//! Phases of `linerate test` that are run by name, and its transports: what a path of known
//! properties yields.

use linerate_interop::namespaces::{CLIENT, DEVICE, Net, SERVER, inside, run, try_run};
use linerate_interop::{Finished, NativeHost, Process, ours, skip, traced, unsupported};
use serde_json::Value;

/// A native server in a namespace, ready for clients.
fn serve(net: &Net) -> Process {
    let server = Process::start(inside(
        &net.b,
        ours().path(),
        &["serve", "--log-format", "json"],
    ));
    server.wait_for_stdout("\"listening\"", 1);
    server
}

/// The report of a test in these words, and all that the program wrote.
fn examined(net: &Net, words: &[&str]) -> (Value, Finished) {
    let state = tempfile::tempdir().expect("a temporary folder");
    let words = [
        &["test", SERVER, "--insecure", "--json", "-q", "--record=off"],
        words,
    ]
    .concat();
    let mut command = inside(&net.a, ours().path(), &words);
    command.env("XDG_STATE_HOME", state.path());

    let finished = Process::start(command).finish();
    finished.expect_code(0);
    (finished.json(), finished)
}

/// Shapes both ends of a link and leaves segmentation to the hosts, so that packets are those of
/// the link.
fn shape(net: &Net, device: &str, rate: &str, limit_bytes: u32) {
    for namespace in [&net.a, &net.b] {
        run(&format!(
            "ip netns exec {namespace} ethtool -K {device} gro off tso off gso off"
        ));
        run(&format!(
            "tc -n {namespace} qdisc add dev {device} root tbf rate {rate} burst 32kB limit \
             {limit_bytes}"
        ));
    }
}

fn phase<'a>(report: &'a Value, kind: &str) -> &'a Value {
    let phases = report["phases"].as_array().expect("loads");
    phases
        .iter()
        .find(|phase| phase["kind"] == kind)
        .unwrap_or_else(|| panic!("no load {kind}: {report}"))
}

fn ladder<'a>(report: &'a Value, kind: &str, direction: Option<&str>) -> &'a Value {
    let ladders = report["ladders"]
        .as_array()
        .unwrap_or_else(|| panic!("no searches: {report}"));
    let is_wanted =
        |ladder: &&Value| ladder["kind"] == kind && ladder["direction"].as_str() == direction;
    ladders
        .iter()
        .find(is_wanted)
        .unwrap_or_else(|| panic!("no search {kind}: {report}"))
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Two hosts with a second link beside the first, over which Multipath TCP may open a subflow.
fn two_links() -> Option<Net> {
    let net = Net::new()?;
    let (a, b) = (&net.a, &net.b);
    run(&format!(
        "ip -n {a} link add lr1 type veth peer name lr1 netns {b}"
    ));

    for (namespace, address) in [(a, "10.98.0.1"), (b, "10.98.0.2")] {
        run(&format!("ip -n {namespace} addr add {address}/24 dev lr1"));
        run(&format!("ip -n {namespace} link set lr1 up"));

        if !try_run(&format!(
            "ip -n {namespace} mptcp limits set subflow 4 add_addr_accepted 4"
        )) {
            unsupported("this kernel has no Multipath TCP");
            return None;
        }
    }

    run(&format!(
        "ip -n {b} mptcp endpoint add 10.98.0.2 dev lr1 signal"
    ));
    Some(net)
}

/// Two links of 50 Mbit/s carry a load together, half on each: 2 x 47.8 Mbit/s of payload, less
/// where BBR measures the RTT with an empty queue.
#[test]
fn timed_subflows_of_multipath_tcp_share_two_links() {
    let Some(net) = two_links() else { return };
    shape(&net, DEVICE, "50mbit", 300_000);
    shape(&net, "lr1", "50mbit", 300_000);

    let _server = serve(&net);
    for (kind, rate) in [("down", "down_bps"), ("up", "up_bps")] {
        let words = ["--only", kind, "-P", "1", "-t", "6", "--transport", "mptcp"];
        let (report, finished) = examined(&net, &words);
        let load = phase(&report, kind);
        assert!((88e6..98e6).contains(&number(&load[rate])), "{finished:?}");

        let rows = load["subflows"]
            .as_array()
            .unwrap_or_else(|| panic!("no subflows: {finished:?}"));
        let shares: Vec<f64> = rows.iter().map(|row| number(&row["share"])).collect();
        assert!(
            shares.len() == 2 && shares.iter().all(|share| (0.45..=0.55).contains(share)),
            "{finished:?}"
        );

        // Rows are those of the sender.
        let sender = if kind == "up" {
            [CLIENT, "10.98.0.1"]
        } else {
            [SERVER, "10.98.0.2"]
        };
        let mut locals: Vec<&str> = rows
            .iter()
            .filter_map(|row| row["local"].as_str()?.split(':').next())
            .collect();
        locals.sort_unstable_by_key(|local| *local != sender[0]);
        assert_eq!(locals, sender, "{finished:?}");
    }
}

/// A server without Multipath TCP: the load runs over TCP, and the report names that.
#[test]
fn fallback_to_tcp_is_named() {
    let Some(net) = two_links() else { return };
    run(&format!(
        "ip netns exec {} sysctl -qw net.mptcp.enabled=0",
        net.b
    ));
    let _server = serve(&net);
    let (report, finished) = examined(&net, &["--only", "up", "-t", "1", "--transport", "mptcp"]);
    let load = phase(&report, "up");
    assert!(number(&load["up_bps"]) > 0.0, "{finished:?}");
    assert!(load["subflows"].is_null(), "{finished:?}");
    assert!(
        load["deviations"].to_string().contains("fell back to TCP"),
        "{finished:?}"
    );
}

#[test]
fn load_over_tls_reports_rate_and_cpu_time_of_both_ends() {
    let Some(net) = Net::new() else { return };
    let _server = serve(&net);
    let (report, finished) = examined(
        &net,
        &["--only", "down,up", "-t", "1", "--transport", "tls"],
    );

    for (kind, rate) in [("down", "down_bps"), ("up", "up_bps")] {
        let load = phase(&report, kind);
        assert!(number(&load[rate]) > 1e6, "{finished:?}");
        let cores = load["cpu_cores"].as_array().expect("both ends");
        assert!(
            cores.iter().all(|cores| number(cores) > 0.0),
            "{finished:?}"
        );
    }
}

/// The payload of sockets, which both ends count alike; what needs frames is absent with its
/// reason.
#[test]
fn raw_load_has_no_frames_and_no_echo_of_its_own() {
    let Some(net) = Net::new() else { return };
    let _server = serve(&net);

    let (report, finished) = examined(
        &net,
        &[
            "--only", "down,up", "-t", "5", "-P", "2", "--raw", "--rate", "200M",
        ],
    );
    for (kind, rate) in [("down", "down_bps"), ("up", "up_bps")] {
        let load = phase(&report, kind);
        let rate = number(&load[rate]);
        assert!(
            (150e6..205e6).contains(&rate),
            "{kind}: {rate}: {finished:?}"
        );
        assert!(
            load["in_band"].is_null() && !load["rpm_foreign"].is_null(),
            "{finished:?}"
        );

        let deviations = load["deviations"].as_array().expect("deviations");
        assert!(deviations.contains(&"raw".into()), "{finished:?}");
    }

    assert!(
        report["absent"]["in-band echo"]
            .as_str()
            .is_some_and(|text| text.contains("without frames"))
    );
    // A sender of frames keeps 5 ms of them ready, 62,500 bytes at this rate. One without fills its
    // socket.
    for stream in phase(&report, "up")["stream_info"]
        .as_array()
        .expect("streams")
    {
        assert!(number(&stream["notsent_bytes"]) > 150_000.0, "{stream}");
    }
}

#[test]
fn all_streams_of_the_command_line_run_from_the_start() {
    let Some(net) = Net::new() else { return };
    let _server = serve(&net);
    let (report, finished) = examined(
        &net,
        &["--only", "up,both", "-t", "1", "-P", "3", "--rate", "20M"],
    );

    for (kind, streams) in [("up", 3), ("both", 6)] {
        let load = phase(&report, kind);
        let rows = load["stream_info"].as_array().expect("streams");
        assert_eq!(rows.len(), streams, "{finished:?}");
        assert!(
            rows.iter().all(|row| number(&row["bytes"]) > 0.0),
            "{finished:?}"
        );
        assert_eq!(load["series"][0]["streams"], streams, "{finished:?}");
    }
}

/// The sender's own queue drops what exceeds 10 Mbit/s: frames of 74 bytes, 16,892 per second.
#[test]
#[ignore = "a quarter of a minute: make live SUITE=path"]
fn timed_datagrams_above_the_rate_of_the_own_queue_are_lost_in_the_sending_host() {
    let Some(net) = Net::new() else { return };
    shape(&net, DEVICE, "10mbit", 12_000);
    let _server = serve(&net);
    let (report, finished) = examined(&net, &["--only", "pps", "--profile", "quick"]);

    for direction in ["down", "up"] {
        let found = ladder(&report, "pps", Some(direction));
        let highest = number(&found["highest"]);
        assert!((15_000.0..17_100.0).contains(&highest), "{finished:?}");
        assert!(
            found["limit"]
                .as_str()
                .is_some_and(|limit| limit.contains("in the sending host")),
            "{finished:?}"
        );

        let datagrams = report["datagrams"]
            .as_array()
            .expect("the lowest rate with losses");
        let lossy = datagrams
            .iter()
            .find(|datagrams| datagrams["direction"] == direction)
            .expect("a direction");
        let loss = &lossy["loss"];
        assert!(number(&loss["sender"]) > 0.0, "{finished:?}");
        assert_eq!(
            (number(&loss["network"]), number(&loss["socket"])),
            (0.0, 0.0),
            "{finished:?}"
        );
    }
}

/// 50 Mbit/s of Ethernet frames of 1,264 bytes carry 49.45 Mbit/s of IP packets of 1,250 bytes.
#[test]
#[ignore = "twenty seconds: make live SUITE=path"]
fn timed_capacity_is_the_rate_of_the_shaper_in_ip_packets() {
    let Some(net) = Net::new() else { return };
    shape(&net, DEVICE, "50mbit", 600_000);
    let _server = serve(&net);
    let (report, finished) = examined(&net, &["--only", "capacity"]);

    for direction in ["down", "up"] {
        let highest = number(&ladder(&report, "capacity", Some(direction))["highest"]);
        assert!(
            (highest / 49.45e6 - 1.0).abs() < 0.02,
            "{direction} {highest}: {finished:?}"
        );
    }
}

#[test]
fn connections_per_second_are_searched_for() {
    let Some(net) = Net::new() else { return };
    let _server = serve(&net);
    let (report, finished) = examined(&net, &["--only", "cps", "--profile", "quick"]);
    let found = ladder(&report, "cps", None);
    assert!(
        found["steps"]
            .as_array()
            .is_some_and(|steps| steps.len() > 2),
        "{finished:?}"
    );
    assert!(number(&found["highest"]) >= 100.0, "{finished:?}");
}

/// 1,000 datagrams per second of 60 bytes as IP packets, in both directions.
#[test]
fn schedule_of_datagrams_is_met_and_measured() {
    let Some(net) = Net::new() else { return };
    let _server = serve(&net);
    let (report, finished) = examined(&net, &["--only", "pace", "--profile", "quick"]);
    let paced = report["datagrams"].as_array().expect("both directions");
    assert_eq!(paced.len(), 2, "{finished:?}");

    for paced in paced {
        assert!(
            (number(&paced["sent_bps"]) - 480_000.0).abs() < 5_000.0,
            "{finished:?}"
        );
        assert!(number(&paced["gaps"]["n"]) >= 1_900.0, "{finished:?}");
        assert!(paced["lateness"]["p50_ns"].is_number(), "{finished:?}");
    }
}

/// Requests on open connections and on new ones, with sizes that need several calls: latency and
/// CPU time of both ends.
#[test]
fn requests_have_latency_and_cpu_time_of_both_ends() {
    let Some(net) = Net::new() else { return };
    let _server = serve(&net);

    let words = [
        "--only",
        "rr,crr",
        "--profile",
        "quick",
        "-P",
        "3",
        "--request",
        "100",
        "--response",
        "200000",
    ];
    let (report, finished) = examined(&net, &words);
    let done = report["transactions"].as_array().expect("both kinds");
    let kinds: Vec<_> = done.iter().map(|done| done["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("rr"), Some("crr")], "{finished:?}");

    for done in done {
        let latency = &done["latency"];
        assert!(
            number(&done["per_s"]) > 10.0 && number(&latency["n"]) > 20.0,
            "{finished:?}"
        );
        assert!(
            (latency["lost"].as_u64(), done["flows"].as_u64()) == (Some(0), Some(3)),
            "{finished:?}"
        );
        assert!(
            latency["p50_ns"].as_u64() < latency["p95_ns"].as_u64(),
            "{finished:?}"
        );

        for end in ["client_cpu_ns", "server_cpu_ns"] {
            assert!(number(&done[end]) > 1_000.0, "{end}: {finished:?}");
        }
    }
}

/// An algorithm that paces, once initialised at the handshake, leaves pacing switched on for the
/// one that follows it.
#[test]
fn congestion_control_is_chosen_before_the_streams_connect() {
    let (client, service) = (NativeHost::here(), NativeHost::here().serve(&[]));
    let target = format!("127.0.0.1:{}", service.port);
    let words = [
        "test",
        &target,
        "--store",
        "off",
        "--only",
        "up",
        "--time",
        "2",
        "--congestion",
        "reno",
    ];
    let Some((finished, trace)) = traced(&client.command(&words), "setsockopt,connect,close")
    else {
        return skip("strace is not installed");
    };
    finished.expect_code(0);

    // The first socket shows that this host has the algorithm; it is closed without a connection.
    let lines: Vec<&str> = trace.lines().collect();
    let is_connected_next = |at: usize, set: &str| {
        let (_, descriptor) = set.split_once("setsockopt(").expect("a call");
        let descriptor = descriptor
            .split_once(',')
            .map(|(number, _)| number)
            .expect("a descriptor");
        let connects = format!("connect({descriptor},");
        let mut calls = lines.iter().skip(at + 1);
        let next = calls.find(|line| {
            line.contains(&connects) || line.contains(&format!("close({descriptor})"))
        });

        next.is_some_and(|line| line.contains(&connects))
    };

    let sets: Vec<(usize, &&str)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.contains("TCP_CONGESTION"))
        .collect();
    assert!(
        sets.get(1)
            .is_some_and(|(at, set)| is_connected_next(*at, set)),
        "{trace}"
    );
}
