//! Goal: rate and verdict of a path whose narrowest hop is known. Method: tbf of 100 Mbit/s, at a
//! router between two hosts or in the hosts themselves.

use std::time::Duration;

use linerate_interop::NativeHost;
use linerate_interop::namespaces::{CLIENT_PORT, DEVICE, Net, SERVER, SERVER_PORT, run};
use serde_json::Value;

/// 1448 of 1514 bytes of 100 Mbit/s are payload. Probes of the default plan take 200 times 114
/// bytes and ten times some 5,000 bytes a second out of it, which is 0.6 Mbit/s.
const GOODPUT_BPS: f64 = 95.64e6;
const PROBES_BPS: f64 = 0.6e6;
const TOLERANCE_BPS: f64 = 0.5e6;
/// A shaper on a machine that pauses for longer than a burst loses the rate of the pause.
const SHORTFALL_BPS: f64 = 3e6;

/// A sender whose own host shapes has little in the queue, and on a busy machine comes too late for
/// some milliseconds; bursts of 10 ms make up for them.
const TBF: &str = "root tbf rate 100mbit burst 128kB limit 1250000";

fn load<'a>(report: &'a Value, kind: &str) -> &'a Value {
    let phases = report["phases"].as_array().expect("phases");
    phases
        .iter()
        .find(|phase| phase["kind"] == kind)
        .unwrap_or_else(|| panic!("no {kind}: {report:#}"))
}

#[track_caller]
fn check_rates(report: &Value) {
    for (kind, rate) in [("down", "down_bps"), ("up", "up_bps")] {
        let phase = load(report, kind);
        let found = phase[rate].as_f64().expect("a rate");
        let expected = GOODPUT_BPS - PROBES_BPS - SHORTFALL_BPS..GOODPUT_BPS + TOLERANCE_BPS;
        assert!(expected.contains(&found), "{kind}: {found}: {phase:#}");

        let busiest = phase["cpu_cores"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_f64)
            .fold(0.0, f64::max);
        assert!(busiest < 0.5, "{kind}: {busiest} cores for 100 Mbit/s");
        assert_eq!(
            phase["deviations"],
            Value::from(vec!["native-echo"]),
            "{kind}"
        );
    }
}

fn shaped_in_the_middle(tbf: &str) -> Option<Net> {
    let net = Net::routed()?;
    for port in [CLIENT_PORT, SERVER_PORT] {
        net.in_middle(&format!("tc qdisc add dev {port} {tbf}"));
    }
    Some(net)
}

/// Report and text of a test.
fn tested(net: &Net, words: &[&str]) -> (Value, String) {
    let (client, server) = NativeHost::both(net);
    let _server = server.serve(&["--facts", "all"]);
    let json = client
        .state_file("report.json")
        .with_file_name("report.json");
    std::fs::create_dir_all(json.parent().expect("a folder")).expect("a folder");

    let file = format!("--json={}", json.display());
    // Eight streams of BBR overflow a queue of 100 ms; their timeouts cost up to 7 % of 5 s.
    let options = [&file, "-q", "--congestion", "cubic"];
    let finished = client
        .test(SERVER, &[&options, words].concat())
        .finish_within(Duration::from_secs(120));
    finished.expect_code(0);

    let report = std::fs::read_to_string(&json).expect("a report");
    (
        serde_json::from_str(&report).expect("JSON"),
        finished.stdout,
    )
}

#[test]
fn shaper_between_the_hosts_is_the_narrowest_hop_of_the_path() {
    let Some(net) = shaped_in_the_middle(TBF) else {
        return;
    };
    let (report, text) = tested(&net, &["--only", "idle,down,up", "--time", "7"]);
    check_rates(&report);
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for place in [
        "up: your own router (hop 1, 10.99.0.254) to the server sets the rate",
        "down: your own router (hop 1, 10.99.0.254) to this host sets the rate",
    ] {
        assert!(unwrapped.contains(place), "{text}");
    }

    for other_term in ["the path between the hosts", "Random loss", "A deep queue"] {
        assert!(!text.contains(other_term), "{other_term}: {text}");
    }
}

/// 500,000 bytes take 200 ms at 20 Mbit/s, which cubic fills.
#[test]
fn long_queue_of_the_path_has_its_remedy_in_the_short_report() {
    let Some(net) = shaped_in_the_middle("root tbf rate 20mbit burst 32kB limit 500000") else {
        return;
    };
    let (_, text) = tested(&net, &["--only", "idle,up", "--time", "7"]);
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");

    for part in [
        "Also A queue on the path delays packets",
        "Do fq_codel or cake at",
    ] {
        assert!(unwrapped.contains(part), "no {part}: {text}");
    }

    for other_term in ["Random loss", "the path between the hosts", "no queue"] {
        assert!(!text.contains(other_term), "{other_term}: {text}");
    }
}

#[test]
fn shaper_of_a_tested_host_is_its_configured_rate() {
    let Some(net) = Net::routed() else { return };
    for host in [&net.a, &net.b] {
        run(&format!("tc -n {host} qdisc add dev {DEVICE} {TBF}"));
    }

    let (report, text) = tested(&net, &["--only", "idle,down,up", "--time", "7"]);
    check_rates(&report);
    assert!(
        text.contains("a shaper on an end host sets the rate"),
        "{text}"
    );
}

/// A test takes less time than its profile allows, and its probes a small part of what it moves.
#[test]
#[ignore = "a minute at full length: make live SUITE=path"]
fn default_profile_keeps_to_its_time_and_its_share_of_probes() {
    for (rate, seconds) in [("100mbit", 30.0), ("1mbit", 30.0)] {
        let Some(net) =
            shaped_in_the_middle(&format!("root tbf rate {rate} burst 32kB limit 125000"))
        else {
            return;
        };
        let (report, text) = tested(&net, &[]);
        let elapsed = report["elapsed_ns"].as_f64().expect("a time") / 1e9;
        assert!(elapsed <= seconds, "{rate}: {elapsed} s\n{text}");

        for kind in ["down", "up"] {
            let phase = load(&report, kind);
            let count = |probe: &str| {
                phase[probe]["n"].as_f64().unwrap_or(0.0)
                    + phase[probe]["lost"].as_f64().unwrap_or(0.0)
            };

            // A new connection moves some 5,000 bytes in both directions, an UDP probe 114 in each.
            let probes = 114.0 * count("rtt") + 5_000.0 * count("tcp");
            let moved = phase["series"]
                .as_array()
                .and_then(|series| series.last())
                .map(|last| {
                    last["down_bytes"].as_f64().unwrap_or(0.0)
                        + last["up_bytes"].as_f64().unwrap_or(0.0)
                });
            let share = probes / (probes + moved.expect("a series"));
            assert!(share <= 0.05, "{rate}, {kind}: {share}\n{text}");
        }

        if rate == "100mbit" {
            check_rates(&report);
            assert!(
                text.contains("the narrowest hop of the path sets the rate"),
                "{text}"
            );
        }
    }
}
